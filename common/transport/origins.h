/* SPDX-License-Identifier: MIT */
/*
 * From where data links are dialled: what a process announces of itself, and whether a request for
 * a link comes from there. Networks without addresses (shared memory) have no part in it.
 */
#ifndef MST_TRANSPORT_ORIGINS_H
#define MST_TRANSPORT_ORIGINS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "common/transport/fabric.h"
#include "common/wire/origins.h"

/* Room for the text of a few addresses, with its NUL. */
#define MST_ORIGINS_TEXT_LEN 256u

/* The address without its port and interface. Return: false: it is of another family; then @out is
 * all zeros, which is nobody's address. */
bool mst_origin_of(const struct sockaddr *address, struct mst_origin *out);

/*
 * The addresses that this process may dial from. If @fabric names addresses of this host, those
 * and no others; what is no address in that list is left out, and dial() refuses it. Else those of
 * all interfaces that are up, without loopback, which no RDMA device has: dial() lets the kernel
 * choose among them. If there are more than MST_ORIGINS_MAX, those that are good beyond their own
 * link come first, and the rest is left out. Asks the kernel once; does not wait for anybody.
 * Return: 0, or -errno if the interfaces cannot be listed; then @out is empty.
 */
int mst_origins_own(const struct mst_fabric *fabric, struct mst_origins *out);

/* Adds the host of @peer, "10.0.0.1:51234" or "[fd00::1]:51234", if it is an address. Where there
 * is no room it takes the place of the last. */
void mst_origins_add_peer(struct mst_origins *origins, const char *peer);

/* Are all addresses of @from among those that were @announced? An empty @from, of a network
 * without addresses, is. */
bool mst_origins_cover(const struct mst_origins *announced, const struct mst_origins *from);

/* "10.0.0.1, fd00::1 and 3 more", or "no address". Return: @out. */
const char *mst_origins_text(const struct mst_origins *origins, char *out, size_t len);

#endif
