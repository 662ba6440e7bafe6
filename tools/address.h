/* SPDX-License-Identifier: MIT */
/* The control address of a job's server, as a user types it. */
#ifndef MST_TOOLS_ADDRESS_H
#define MST_TOOLS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#define MST_ADDRESS_DEFAULT "127.0.0.1:17077"
#define MST_ADDRESS_LEN 300u

/* Is this HOST or HOST:PORT? A number alone would be the host, and is likely meant to be the
 * port. */
bool mst_address_is(const char *text);

/* Where to ask: as typed, as in MUSTER_SERVER (@typed: NULL), or the default; the port may be left
 * out. */
void mst_address_choose(const char *typed, char *out, size_t len);

#endif
