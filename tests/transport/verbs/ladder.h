/* SPDX-License-Identifier: MIT */
/* What the cases of test_faults.c and register_cases.c share: a net, and memory to register. */
#ifndef MST_TESTS_TRANSPORT_VERBS_LADDER_H
#define MST_TESTS_TRANSPORT_VERBS_LADDER_H

#include "common/base/reason.h"
#include "common/transport/transport.h"
#include "tests/transport/verbs/faults.h"
#include "tests/ut.h"

#define LADDER_OWN_BYTES ((size_t)1 << 20)

/* What a call came to. */
struct ladder_outcome {
	int rc;
	struct mst_reason why;
};

/* NULL: it failed, as *o says. */
struct mst_net *ladder_open_net(const struct mst_fabric *fabric, struct ladder_outcome *o);
/* One that is there. */
struct mst_net *ladder_net(const struct mst_fabric *fabric);

extern uint8_t ladder_own[LADDER_OWN_BYTES];

/* Registers ladder_own while the @n-th call fails with @error (0: as that call mostly does), and
 * unregisters it. *f: what has failed. */
struct ladder_outcome ladder_register(struct mst_net *net, unsigned n, int error, enum fault *f);

extern CU_TestInfo ladder_register_cases[];

#endif
