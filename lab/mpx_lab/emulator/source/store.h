/* The frames a direction holds, first in first out, in chunks that are taken as needed and used again. */
#ifndef STORE_H
#define STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_MAX_BYTES (UINT64_C(1) << 30) /* of one direction */

struct frame {
    int64_t departure_ns; /* when its last bit leaves the serialiser */
    int64_t due_ns;       /* when it is delivered */
    uint32_t length;
    uint32_t lost; /* carried, but not delivered */
    uint8_t bytes[];
};

struct chunk;

/* A place between two frames. */
struct cursor {
    struct chunk *chunk;
    size_t offset;
};

struct store {
    struct cursor head;   /* before the oldest frame */
    struct cursor queued; /* before the oldest frame that has not departed; never before head */
    struct chunk *first;  /* the chunks in use, from this one */
    struct chunk *tail;   /* to this one */
    struct chunk *spare;
    uint64_t allocated_bytes;
};

/* Takes memory for about so many bytes of full frames; false when there is none. */
bool store_init(struct store *store, uint64_t bytes);

/* Returns where a frame of up to so many bytes may be written, NULL when the store is at its limit. */
struct frame *store_room(struct store *store, size_t max_length);

/* Keeps the frame written to the last room; `length` must be set. */
void store_add(struct store *store, const struct frame *frame);

/* Returns the frame after a cursor, NULL when there is none. */
struct frame *store_at(struct cursor *cursor);

/* Moves a cursor behind the frame that store_at() gave. */
void store_step(struct cursor *cursor);

/* Forgets the oldest frame; `queued` must stand behind it. */
void store_drop_head(struct store *store);

#endif
