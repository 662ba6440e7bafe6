/* SPDX-License-Identifier: MIT */
/*
 * A worker of servers that own the parameters, which stays when they are lost, and says which
 * policy it is told of:
 *
 *	stays
 *
 * It pushes a gradient of ones and waits, until it is killed. A line for each version, "version
 * GENERATION V POLICY", and at an error "error RC SENTENCE".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "muster/muster.h"

enum { ELEMS = 1000, PACE_NS = 2000000 };

static int complain(int rc)
{
	printf("error %d %s\n", rc, muster_error(NULL));
	return EXIT_FAILURE;
}

static int push_and_wait(struct muster *m, struct muster_outcome *out)
{
	struct muster_contribution mine = MUSTER_CONTRIBUTION;
	struct timespec pace = { 0, PACE_NS };
	float *gradient = muster_gradient(m);
	uint64_t ticket;

	(void)nanosleep(&pace, NULL);
	mine.weight = 1;
	mine.full = true;
	for (int i = 0; i < ELEMS; i++)
		gradient[i] = 1;
	int rc = muster_push(m, &mine, &ticket);
	while (rc >= 0 && (rc = muster_wait(m, out)) > 0)
		;
	return rc;
}

int main(void)
{
	static const float start[ELEMS];
	struct muster_options options = MUSTER_OPTIONS;
	struct muster_outcome out = MUSTER_OUTCOME;
	struct muster *m;

	setvbuf(stdout, NULL, _IOLBF, 0);
	options.elems = ELEMS;
	int rc = muster_open(&options, &m);
	if (rc == 0)
		rc = muster_start(m, start, &out);
	while (rc >= 0) {
		printf("version %" PRIu64 " %" PRIu64 " %s\n", out.generation, out.version,
		       muster_job(m)->policy);
		rc = push_and_wait(m, &out);
	}
	return complain(rc);
}
