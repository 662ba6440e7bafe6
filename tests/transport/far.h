/* SPDX-License-Identifier: MIT */
/*
 * A transport that does not map, where there is no RDMA: shared memory underneath, but puts wait in
 * a queue, travel a piece at each poll, and are reported sent later still. What others may do with
 * the contract of transport.h it does on purpose, and what they may not, it notices.
 *
 * Its listeners are called "far:@..."; a program that is to dial
 * them wraps mst_network_choice_take().
 */
#ifndef MST_TESTS_TRANSPORT_FAR_H
#define MST_TESTS_TRANSPORT_FAR_H

#include <stdatomic.h>

#include "common/transport/transport.h"

extern const struct mst_transport far;

/* To be set while there is no link. */
struct far_manner {
	uint32_t room;      /* puts that can be on their way from a connector */
	size_t step_bytes;  /* delivered by one poll of a link */
	uint64_t linger_ns; /* from the delivery to MST_SENT */
	/* NULL: none. Asked of an attached link by the thread that polls it: is it stuck, so that
	 * nothing more goes out; is the path dead, so that it is to be reported lost? */
	bool (*stuck)(const struct mst_link *link);
	bool (*dead)(const struct mst_link *link);
};
extern struct far_manner far_manner;

#define FAR_MANNER                                                                                 \
	{                                                                                          \
		.room = 4, .step_bytes = 8192, .linger_ns = 20000                                  \
	}
#define FAR_DEATH "the path to 10.0.0.9 is dead"

/* Puts whose bytes changed before they were reported sent; puts that got -EAGAIN. */
extern _Atomic uint64_t far_spoiled, far_refused;
/* What this thread copies now, a device would. */
extern _Thread_local bool far_delivers;

#endif
