#include "store.h"

#include <stdlib.h>

#define CHUNK_BYTES (256 * 1024)

struct chunk {
    struct chunk *next;
    size_t used;
    _Alignas(struct frame) uint8_t space[];
};

static const size_t SPACE_BYTES = CHUNK_BYTES - sizeof(struct chunk);

static size_t size_of(size_t length) {
    size_t align = _Alignof(struct frame);
    return (sizeof(struct frame) + length + align - 1) / align * align;
}

static struct chunk *new_chunk(struct store *store) {
    struct chunk *chunk = store->spare;
    if (chunk) {
        store->spare = chunk->next;
    } else if (store->allocated_bytes + CHUNK_BYTES <= STORE_MAX_BYTES && (chunk = malloc(CHUNK_BYTES))) {
        store->allocated_bytes += CHUNK_BYTES;
    }
    if (chunk) {
        chunk->next = NULL;
        chunk->used = 0;
    }
    return chunk;
}

bool store_init(struct store *store, uint64_t bytes) {
    *store = (struct store){0};
    store->first = store->tail = new_chunk(store);
    store->head.chunk = store->queued.chunk = store->first;
    struct chunk *ahead = NULL;
    while (store->allocated_bytes < bytes + bytes / 8) { /* an eighth more for what stands around frames */
        struct chunk *chunk = new_chunk(store);
        if (!chunk)
            break;
        chunk->next = ahead;
        ahead = chunk;
    }
    store->spare = ahead;
    return store->tail != NULL;
}

struct frame *store_room(struct store *store, size_t max_length) {
    if (store->tail->used + size_of(max_length) > SPACE_BYTES) {
        struct chunk *chunk = new_chunk(store);
        if (!chunk)
            return NULL;
        store->tail->next = chunk;
        store->tail = chunk;
    }
    return (struct frame *)(store->tail->space + store->tail->used);
}

void store_add(struct store *store, const struct frame *frame) {
    store->tail->used += size_of(frame->length);
}

struct frame *store_at(struct cursor *cursor) {
    while (cursor->offset == cursor->chunk->used) {
        if (!cursor->chunk->next)
            return NULL;
        *cursor = (struct cursor){.chunk = cursor->chunk->next, .offset = 0};
    }
    return (struct frame *)(cursor->chunk->space + cursor->offset);
}

void store_step(struct cursor *cursor) {
    cursor->offset += size_of(store_at(cursor)->length);
}

void store_drop_head(struct store *store) {
    store_step(&store->head);
    store_at(&store->head); /* moves both on to the chunk of the next frame */
    store_at(&store->queued);
    while (store->first != store->head.chunk) {
        struct chunk *empty = store->first;
        store->first = empty->next;
        empty->next = store->spare;
        store->spare = empty;
    }
}
