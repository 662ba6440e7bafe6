/* SPDX-License-Identifier: MIT */
/*
 * Where a server has been called: the host at the other end of a control connection, as its peer
 * sees it. A server that listens for data at all of its addresses does not know which of them its
 * peers can reach, and under a NAT it has none that they can. So its listener names itself with a
 * '*' in place of a host, "tcp:*:4711,10.0.0.1:4711", and who dials puts there the host at which it
 * has called the server: there it certainly is.
 */
#ifndef MST_TRANSPORT_CALLED_H
#define MST_TRANSPORT_CALLED_H

#include <stdbool.h>
#include <stddef.h>

/* "10.0.0.1", "[fd00::1]" or "[fe80::1%eth0]", with its NUL: 45 characters of an address, 15 of an
 * interface, and three. */
#define MST_CALLED_LEN 64u

/* The host that the socket is connected with; "" if there is none. Return: @out. */
const char *mst_called_host(int fd, char out[MST_CALLED_LEN]);
/* The same of a text with a port, "10.0.0.1:4711". */
const char *mst_called_host_of(const char *endpoint, char out[MST_CALLED_LEN]);
/* Is it this host, which another host calls by another address? */
bool mst_called_is_here(const char *host);
/* Puts @host in place of each '*' of a listener's @address, in a buffer of @room. Where there is no
 * host, or no room, the address stays as it is: transports skip what has a '*'. */
void mst_called_fill(char *address, size_t room, const char *host);

#endif
