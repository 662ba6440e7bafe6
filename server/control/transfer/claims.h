/* SPDX-License-Identifier: MIT */
/* What differs between what two workers say of their states, in words. Pure. */
#ifndef MST_SERVER_CONTROL_TRANSFER_CLAIMS_H
#define MST_SERVER_CONTROL_TRANSFER_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/wire/message.h"

/* The parts that a worker says. */
struct mst_parts {
	const struct mst_claim_part *part;
	uint32_t count;
};

struct mst_apart {
	bool state, kernels;   /* of which kinds the parts are that differ */
	struct mst_reason why; /* all of them, with both values; "": nothing differs */
};

/* @from: the rank that says @theirs. */
struct mst_apart mst_claims_compare(const struct mst_parts *own, const struct mst_parts *theirs,
				    uint32_t from);

/* Adds something that differs to the words. */
void mst_apart_add(struct mst_apart *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
