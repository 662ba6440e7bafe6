/* SPDX-License-Identifier: MIT */
/*
 * A ring between exactly one producer and one consumer thread of a process. Threads of muster
 * exchange messages in no other way. All elements have one size, and are copied in and out. It
 * never blocks, and allocates only in mst_spsc_new().
 */
#ifndef MST_BASE_SPSC_H
#define MST_BASE_SPSC_H

#include <stdbool.h>
#include <stddef.h>

struct mst_spsc;

/* @slots: a power of two. Return: the ring, or NULL if memory is short. */
struct mst_spsc *mst_spsc_new(size_t slots, size_t element_bytes);
void mst_spsc_free(struct mst_spsc *ring); /* accepts NULL */

/* Producer. Return: false if the ring is full. */
bool mst_spsc_push(struct mst_spsc *ring, const void *element);
/* Producer. How many more can be pushed now, at least. */
size_t mst_spsc_room(struct mst_spsc *ring);

/* Consumer. Return: false if the ring is empty. */
bool mst_spsc_pop(struct mst_spsc *ring, void *element);

#endif
