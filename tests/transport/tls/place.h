/* SPDX-License-Identifier: MIT */
/* A directory with an authority, for tests of TLS. */
#ifndef MST_TESTS_TRANSPORT_TLS_PLACE_H
#define MST_TESTS_TRANSPORT_TLS_PLACE_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/transport/tls/credentials.h"

/* From now on the library of TLS, of which nothing has been used yet, takes its memory by malloc()
 * of this program. *@lacks becomes true where there is none. */
void tls_place_allocate(atomic_bool *lacks);

struct tls_place {
	char dir[64]; /* "": none was made */
};

/* @later_s: from now to when its certificates begin to be valid. They are valid for a day. */
void tls_place_make(struct tls_place *p, int64_t later_s);
void tls_place_remove(struct tls_place *p);
/* The path of a file there; valid until the 32nd call after this of the same thread. */
const char *tls_place_path(const struct tls_place *p, const char *name);
/* What a process of this role shows. */
struct mst_credentials *tls_place_load(const struct tls_place *p, const char *role);

#endif
