/* SPDX-License-Identifier: MIT */
/*
 * IP addresses with ports, for the kernel and as text: where a network's listener is, and from
 * where a link begins. Every network that has IP addresses writes and reads them by this.
 */
#ifndef MST_TRANSPORT_ENDPOINT_H
#define MST_TRANSPORT_ENDPOINT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/transport/transport.h"

#define MST_ENDPOINTS_MAX 8u
/* "[fe80::1%eth0]:4711", with its NUL: an address, an interface, and ten characters around them. */
#define MST_ENDPOINT_TEXT_LEN (INET6_ADDRSTRLEN + 32u)

union mst_endpoint {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct mst_endpoints {
	/* The port of a listener that is also at the host at which its server is called
	 * (called.h), in network order; 0: it is not. */
	in_port_t called_port;
	uint32_t count;
	union mst_endpoint at[MST_ENDPOINTS_MAX];
};

/* Reads what a listener of the transport has printed:
 * "tcp:10.0.0.1:4711,[fd00::1]:4711,[fe80::1%eth0]:4711". The scope is 0 where no interface of this
 * host has that name, and "*:4711" gives none. Return: 0; -EINVAL, with a sentence. */
int mst_endpoints_parse(const char *text, const struct mst_transport *of, struct mst_endpoints *out,
			struct mst_reason *why);
/* Reads addresses of this host, without ports, as --data-address has them: "10.0.0.1,fd00::1".
 * Return: 0; -EINVAL, with a sentence. */
int mst_endpoints_list(const char *text, struct mst_endpoints *out, struct mst_reason *why);
/* Leaves the first of those that are the same. */
void mst_endpoints_drop_repeated(struct mst_endpoints *e);
/* Writes the text of a listener, of as many as there is room for. @prefix: its transport's. Return:
 * 0; -ENAMETOOLONG: there is no room even for one. */
int mst_endpoints_print(const struct mst_endpoints *e, const char *prefix, char *out, size_t len);

/* "10.0.0.1:4711", "[fe80::1%eth0]:4711". Return: @out. */
const char *mst_endpoint_text(const struct sockaddr *a, char out[MST_ENDPOINT_TEXT_LEN]);
/* "10.0.0.1", "fe80::1%eth0". Return: @out. */
const char *mst_endpoint_host_text(const struct sockaddr *a, char out[MST_ENDPOINT_TEXT_LEN]);

socklen_t mst_endpoint_bytes(const union mst_endpoint *a);
in_port_t mst_endpoint_port(const union mst_endpoint *a);          /* in network order */
void mst_endpoint_set_port(union mst_endpoint *a, in_port_t port); /* in network order */
/* 0.0.0.0, ::, or none. */
bool mst_endpoint_is_any(const union mst_endpoint *a);

#endif
