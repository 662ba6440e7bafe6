/* SPDX-License-Identifier: MIT */
/*
 * Huge pages for memory that processes share, where they can be had; never a condition.
 *
 * Hosts leave shared memory in small pages unless told otherwise, by a setting that is hardly ever
 * made. What they do since Linux 6.1 is gather the pages of a range into huge ones once, on demand,
 * whatever that setting says. Every mapping in which addresses and offsets are equal modulo the
 * size of a huge page then uses them, so only one end has to ask.
 */
#ifndef MST_TRANSPORT_PAGES_H
#define MST_TRANSPORT_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MST_PAGES_HUGE ((size_t)2 << 20)
/* What is smaller fits the translation caches well enough, and would grow to no purpose. */
#define MST_PAGES_LARGE ((size_t)4 << 20)

/* Maps @bytes of @fd, a multiple of the page size, from its beginning, shared, so that they can be
 * in huge pages if there are MST_PAGES_LARGE of them. NULL and errno: not mapped. To be unmapped
 * with munmap(). */
void *mst_pages_map(int fd, size_t bytes, int prot);

/* Gathers the huge pages that make up [p, p + bytes), part of such a mapping, all but perhaps the
 * last; none if it is not large. Memory that has not been used yet is taken, zeroed: in less time
 * than touching it page by page takes. Where the host has no huge pages left and must move others'
 * memory for each, that takes up to ten times as long as small pages: then the rest stays in small
 * ones. Anybody may use the memory meanwhile. Return: it is in huge pages; else it works as before,
 * in small ones, all or a part. */
bool mst_pages_gather(void *p, size_t bytes);
/* Is gathering still worth its time, after one more huge page has taken so long? Pure.
 * @behind_ns: by how much it is slower than small pages are so far; at first 0. */
bool mst_pages_keeps_up(uint64_t *behind_ns, uint64_t took_ns);

#define MST_PAGES_SMALL ((size_t)4096)

/* @base: where @has bytes of shared memory are mapped. Maps [offset, offset + bytes) of them once
 * more, with the same rights, at @at, in place of what is mapped there. All are multiples of
 * MST_PAGES_SMALL; the last page may reach beyond @has. 0; -EINVAL; -ENOMEM. */
int mst_pages_view(const void *base, size_t has, size_t offset, size_t bytes, void *at);

#endif
