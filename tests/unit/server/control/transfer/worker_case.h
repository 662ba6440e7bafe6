/* SPDX-License-Identifier: MIT */
/* A worker whose control connection is admitted at a frontend, and which reads each message as soon
 * as it has come. The test says what it does with it. */
#ifndef MST_TESTS_UNIT_SERVER_CONTROL_TRANSFER_WORKER_CASE_H
#define MST_TESTS_UNIT_SERVER_CONTROL_TRANSFER_WORKER_CASE_H

#include "server/control/connections/frontend.h"

/* Stands first in what a test keeps of a worker. */
struct worker_case {
	struct mst_conn *conn; /* NULL: it has been closed */
	void (*hear)(struct worker_case *w, const struct mst_message *m);
	unsigned char in[64 << 10];
	size_t have; /* bytes of a message that has not come as a whole */
};

/* Opens a frontend for so many workers; no worker is there. */
void worker_case_open(struct mst_frontend *front, uint32_t workers);
/* It comes, with @hear, and is admitted. What the test keeps of it besides is the test's to set. */
void worker_case_join(struct worker_case *w, struct mst_frontend *front, struct mst_identity who,
		      void (*hear)(struct worker_case *w, const struct mst_message *m));

#endif
