/* SPDX-License-Identifier: MIT */
/* What connectors of this process export over the transport of far.h. A transport that delivers to
 * one writes there, as a device would, until the connector has detached its link. Any thread. */
#ifndef MST_TESTS_TRANSPORT_FAR_EXPORT_H
#define MST_TESTS_TRANSPORT_FAR_EXPORT_H

#include "common/transport/transport.h"

/* Known by the listener and the token until the acceptor has answered. */
struct far_export {
	struct mst_export what; /* region NULL: no more */
	char address[MST_ADDRESS_LEN];
	uint8_t token[MST_TOKEN_LEN];
	unsigned ends; /* links that have it */
	struct far_export *next;
};

/* The connector's end of it; NULL: no memory. */
struct far_export *far_export_new(const struct mst_dial *how);
/* The acceptor's end of it; NULL: that caller exports nothing. */
struct far_export *far_export_find(const char *address, const uint8_t *token);
void far_export_end(struct far_export *e);
/* Nothing is written there any more once this has returned. */
void far_export_revoke(struct far_export *e);

/* Does what is at @offset of the lane lie in the exported memory? *bytes: at most as far as that
 * holds. */
bool far_export_has(const struct far_export *e, size_t offset, size_t *bytes);
void far_export_write(const struct far_export *e, size_t offset, const uint8_t *src, size_t bytes);

#endif
