/* SPDX-License-Identifier: MIT */
/*
 * Addresses of servers as people type them: HOST:PORT, or HOST alone for the default port. A host
 * is a name, an IPv4 address, or an IPv6 address in brackets. Nothing here looks a name up.
 */
#ifndef MST_TRANSPORT_HOSTPORT_H
#define MST_TRANSPORT_HOSTPORT_H

#include <stdbool.h>

#include "common/base/reason.h"

#define MST_CONTROL_PORT "17077" /* where a server listens that is told no other port */
#define MST_HOSTPORT_HOST_LEN 256u
/* "[HOST]:65535", with its NUL. */
#define MST_HOSTPORT_LEN (MST_HOSTPORT_HOST_LEN + 8u)

struct mst_hostport {
	char host[MST_HOSTPORT_HOST_LEN]; /* without brackets */
	char port[6];
};

/* Reads what was typed. Return: 0; -EINVAL, with a sentence that begins with what was typed. */
int mst_hostport_read(const char *typed, struct mst_hostport *out, struct mst_reason *why);
/* The same as text, with its port, "node1:17077"; where it is no address, @typed as it is. Return:
 * @out. */
const char *mst_hostport_text(const char *typed, char out[MST_HOSTPORT_LEN]);
/* Is the host a name, which has to be looked up? No: it is an address, or none at all. */
bool mst_hostport_is_name(const char *typed);
/* Does it name the caller's own host, by 127.0.0.0/8, ::1 or localhost? */
bool mst_hostport_is_here(const char *typed);
/* What a person can do if nobody answers there, by the attempt's -errno. Return: @out->text. */
const char *mst_hostport_advice(const char *typed, int error, struct mst_reason *out);

#endif
