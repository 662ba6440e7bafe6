/* SPDX-License-Identifier: MIT */
/* A listener whose thread takes callers, shakes hands with them and hands over those that have
 * proven who they are. Private to this directory. */
#ifndef MST_TRANSPORT_TLS_LISTENER_H
#define MST_TRANSPORT_TLS_LISTENER_H

#include "common/transport/channel.h"

int mst_tls_listen(const char *address, struct mst_credentials *own, struct mst_listener **out,
		   char *bound, size_t bound_len);
/* The same for channels, at sockets that are there. */
int mst_tls_listen_for_channels(const struct mst_channel_port *port, struct mst_listener **out);
int mst_tls_accept(struct mst_listener *l, struct mst_stream **out, char *peer, size_t peer_len);
void mst_tls_unlisten(struct mst_listener *l);
int mst_tls_listener_fd(const struct mst_listener *l);

#endif
