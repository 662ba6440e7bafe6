/* SPDX-License-Identifier: MIT */
/* What a handle was opened with: the options, and from the environment what they leave unset. */
#ifndef MST_CLIENT_SETTINGS_H
#define MST_CLIENT_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "common/transport/transport.h"
#include "common/wire/message.h"
#include "muster/muster.h"

#define MST_SERVER_LEN 280u /* HOST:PORT with its NUL; no host name is longer than 255 */
#define MST_DEVICES_LEN 512u

struct mst_settings {
	char server[MST_SERVER_LEN];
	char job[MST_NAME_LEN];
	int32_t rank; /* -1: any */
	uint64_t elems;
	enum muster_type type, result_type;
	enum muster_owner owner;
	uint64_t join_ns;
	uint64_t wait_ns;                      /* 0: what the job's patience and lease come to */
	const struct mst_transport *transport; /* NULL: that of the server's door */
	/* This host's part of the fabric; the rest is the server's word. */
	char devices[MST_DEVICES_LEN], addresses[MST_ADDRESS_LEN]; /* "": any */
	int gid_index;                                             /* -1: as the address asks for */
};

/* Reads and checks. @why: on failure a sentence. 0 or -EINVAL. */
int mst_settings_read(const struct muster_options *opt, struct mst_settings *out, char *why,
		      size_t why_len);

static inline uint32_t mst_type_size(enum muster_type type)
{
	return type == MUSTER_F32 ? 4 : 2;
}

#endif
