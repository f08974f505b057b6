/* Seeded chance: number k of a seed is splitmix64, so what happens to frame k depends on the seed and k only. */
#ifndef CHANCE_H
#define CHANCE_H

#include <stdint.h>

/* Returns number `index` (from 0) of a seed's sequence, 0 <= x < 1. */
static inline double chance(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

#endif
