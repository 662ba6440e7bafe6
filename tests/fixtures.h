/* SPDX-License-Identifier: MIT */
/*
 * What tests of several folders stand on: a folder of a test's own, and a network on which nothing
 * moves. What only one folder needs lies there, in its *_case.h.
 */
#ifndef MST_TESTS_FIXTURES_H
#define MST_TESTS_FIXTURES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/transport/transport.h"

/* ---- a folder, such as a made-up host ---- */

struct fix_folder {
	char root[64];
};

void fix_folder_new(struct fix_folder *f);
/* Removes it with all that is in it. */
void fix_folder_free(struct fix_folder *f);

/* A file of this folder, with the folders above it. @path begins with a slash. */
void fix_folder_put(const struct fix_folder *f, const char *path, const char *text);
void fix_folder_put_bytes(const struct fix_folder *f, const char *path, const void *bytes,
			  size_t len);
/* The same with a symbolic link. */
void fix_folder_link(const struct fix_folder *f, const char *path, const char *to);

/* ---- a network on which nothing moves: a test answers the calls, and counts them ---- */

struct fix_net {
	/* NULL: a put is sent at once. */
	int (*put)(struct mst_link *to, const struct mst_put *put);
	/* NULL: nobody answers. */
	int (*dial)(const struct mst_dial *how, struct mst_link **out);
	bool heap; /* links are from malloc(), and link_free() frees them */
	atomic_int attached, detached, freed;
};

extern struct fix_net fix_net;
/* Flags and listener are the test's to change. */
extern struct mst_transport fix_transport;

/* Zeroes, and this behaviour of put() and dial(). */
void fix_net_begin(int (*put)(struct mst_link *to, const struct mst_put *put),
		   int (*dial)(const struct mst_dial *how, struct mst_link **out));

#endif
