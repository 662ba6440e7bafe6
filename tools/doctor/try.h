/* SPDX-License-Identifier: MIT */
/* The checks that move bytes, and what they say. */
#ifndef MST_TOOLS_DOCTOR_TRY_H
#define MST_TOOLS_DOCTOR_TRY_H

#include <stdio.h>

#include "tools/doctor/judge.h"
#include "tools/doctor/options.h"
#include "tools/doctor/write.h"

#define MST_DOCTOR_PORTS_MAX 16u
#define MST_DOCTOR_TRIES_MAX                                                                       \
	(MST_DOCTOR_PORTS_MAX + 2) /* with a network without ports, and a peer */

/* One write test. */
struct mst_doctor_try {
	const char *check;                     /* "shm", "write", "peer" */
	const char *transport;                 /* its scheme */
	char subject[MST_PROBE_NAME_LEN + 16]; /* "rxe0/1", or an address */
	struct mst_write_card own;
	int error;
	struct mst_write_report report;
};

struct mst_doctor_tries {
	uint32_t count;
	struct mst_doctor_try item[MST_DOCTOR_TRIES_MAX];
};

/* A test's result as findings. Pure. */
void mst_doctor_judge_try(const struct mst_doctor_try *t, struct mst_findings *out);

/* Within this process: over each network, over every port that nothing is in the way of. */
void mst_doctor_try_here(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			 const struct mst_doctor_options *o, struct mst_doctor_tries *out);
/* o->peer */
void mst_doctor_try_peer(const struct mst_doctor_facts *f, const struct mst_doctor_options *o,
			 struct mst_doctor_tries *out);

/* Is the peer of others' tests, as o says; blocks until then. @out: where the address is printed.
 * Return: 0, or -errno, logged. */
int mst_doctor_listen(const struct mst_doctor_facts *f, const struct mst_doctor_options *o,
		      FILE *out);

#endif
