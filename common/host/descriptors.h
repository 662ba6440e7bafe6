/* SPDX-License-Identifier: MIT */
/* File descriptors: how many this process has, and may have, and the three standard ones, which a
 * process may have inherited closed. */
#ifndef MST_HOST_DESCRIPTORS_H
#define MST_HOST_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* Raises the soft limit to the hard one. The soft limit is often low only for the sake of old
 * programs. */
void mst_host_descriptors_raise(void);
/* How many may be open at a time, by the soft limit. */
uint64_t mst_host_descriptors_max(void);
/* Moves a descriptor that is one of the standard ones, 0 to 2, to 3 or above. A program whose
 * standard files are closed would else print into what the library has opened: a connection, or
 * memory. @fd: what a system call has returned; a negative one is passed on, with its errno.
 * Return: the descriptor, closed on exec if it was moved; -1 and errno: @fd has been closed. */
int mst_descriptor_lift(int fd);
/* Around calls of foreign libraries, whose descriptors cannot be moved: holds the standard files
 * that are closed open on /dev/null, and closes them again. */
struct mst_descriptors_held {
	bool is_held[3];
};
void mst_descriptors_hold(struct mst_descriptors_held *out);
void mst_descriptors_release(const struct mst_descriptors_held *held);
/* Opens /dev/null for each standard file that is closed, so that nothing else gets its number. For
 * programs, at their start; a library leaves the files of its program as they are. The children
 * of the program inherit /dev/null. */
void mst_descriptors_open_standard(void);
/* How many are open. @root: of the file tree, as for mst_host_memory(). If /proc does not say, the
 * three standard ones. */
uint64_t mst_host_descriptors_open(const char *root);

#endif
