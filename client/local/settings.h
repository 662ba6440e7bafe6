/* SPDX-License-Identifier: MIT */
/* What a handle was opened with: the options, and what the environment says where they are
 * unset. */
#ifndef MST_CLIENT_LOCAL_SETTINGS_H
#define MST_CLIENT_LOCAL_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "client/local/tensors.h"
#include "common/base/reason.h"
#include "common/transport/tls/credentials.h"
#include "common/transport/transport.h"
#include "common/wire/message.h"
#include "muster/muster.h"

#define MST_SERVER_LEN 280u /* HOST:PORT with its NUL; no host name is longer than 255 */

struct mst_settings {
	struct mst_tensors *tensors; /* NULL: none are named */
	char server[MST_SERVER_LEN];
	char job[MST_NAME_LEN];
	int32_t rank; /* -1: any */
	/* The names of the environment's variables that the address and the rank come from; static
	 * strings. @server_from is NULL if the options or MUSTER_SERVER gave the address;
	 * @rank_from is NULL if the options gave the rank, or nothing did. */
	const char *server_from, *rank_from;
	uint64_t elems;
	enum muster_type type, result_type;
	enum muster_owner owner;
	void *result_into;                   /* NULL: none */
	double clip;                         /* 0: none */
	uint64_t start_version;              /* of the start state that is offered */
	bool comes_back;                     /* it gives and takes states */
	struct mst_credentials *credentials; /* NULL: plain streams */
	uint64_t join_ns;
	uint64_t wait_ns;             /* 0: what the job's patience and lease come to */
	struct mst_networks networks; /* that its links may go over */
	/* This host's part of the fabric, whose strings lie after it; the rest is the server's
	 * word. */
	struct mst_fabric fabric;
	char devices[MST_FABRIC_TEXT_LEN], addresses[MST_FABRIC_TEXT_LEN];
};

/* Reads and checks. @why: on failure a sentence. 0, -EINVAL, -EFAULT or -ENOMEM; either way @out is
 * to be released, if it was zeroed before. */
int mst_settings_read(const struct muster_options *theirs, struct mst_settings *out,
		      struct mst_reason *why);

void mst_settings_fini(struct mst_settings *s); /* accepts a zeroed one */

static inline uint32_t mst_type_size(enum muster_type type)
{
	return type == MUSTER_F32 ? 4 : 2;
}

static inline size_t mst_settings_result_bytes(const struct mst_settings *s)
{
	return s->elems * mst_type_size(s->result_type);
}

#endif
