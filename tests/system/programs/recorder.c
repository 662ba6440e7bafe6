/* SPDX-License-Identifier: MIT */
/*
 * Any worker as it is, with its history told: linked in between the program and libmuster (--wrap),
 * it writes to the file that MUSTER_HISTORY names what the program did and saw, and keeps a sample
 * of each gradient, so that every version can be computed again. muster_train() is the library's
 * and calls the library: its calls come by here too. One handle a process.
 */
#include <stdlib.h>

#include "tests/system/programs/history.h"

/* Elements of a vector: each is summed and applied alone, so that these prove the rest. */
#define SAMPLES 1024u

int __real_muster_open(const struct muster_options *opt, struct muster **out);
int __wrap_muster_open(const struct muster_options *opt, struct muster **out);
int __real_muster_start(struct muster *m, const void *own, struct muster_outcome *out);
int __wrap_muster_start(struct muster *m, const void *own, struct muster_outcome *out);
void *__real_muster_gradient(struct muster *m);
void *__wrap_muster_gradient(struct muster *m);
int __real_muster_push_range(struct muster *m, uint64_t first, uint64_t count, const void *src);
int __wrap_muster_push_range(struct muster *m, uint64_t first, uint64_t count, const void *src);
int __real_muster_push(struct muster *m, const struct muster_contribution *c, uint64_t *ticket);
int __wrap_muster_push(struct muster *m, const struct muster_contribution *c, uint64_t *ticket);
int __real_muster_abandon(struct muster *m);
int __wrap_muster_abandon(struct muster *m);
int __real_muster_wait(struct muster *m, struct muster_outcome *out);
int __wrap_muster_wait(struct muster *m, struct muster_outcome *out);
void __real_muster_close(struct muster *m);
void __wrap_muster_close(struct muster *m);

static struct history *history;
static uint64_t version, tag; /* of the last outcome; of what is being filled */
static uint64_t tickets;
static bool filling;
static bool abandoning; /* the next outcome tells whether that was a pass */
static int last_error;

static int told(const char *call, int rc)
{
	last_error = rc < 0 ? rc : 0;
	if (rc < 0 && history != NULL)
		history_error(history, call, rc);
	return rc;
}

int __wrap_muster_open(const struct muster_options *opt, struct muster **out)
{
	const char *path = getenv("MUSTER_HISTORY");
	int rc = __real_muster_open(opt, out);

	if (rc != 0 || path == NULL)
		return rc;
	history = history_open(path, muster_job(*out), SAMPLES);
	if (history == NULL)
		abort();
	return 0;
}

static void saw(const struct muster_outcome *out)
{
	version = out->version;
	history_outcome(history, out);
}

int __wrap_muster_start(struct muster *m, const void *own, struct muster_outcome *out)
{
	int rc = told("start", __real_muster_start(m, own, out));

	if (rc != 0 || history == NULL)
		return rc;
	if (out->version == 0 && out->result != NULL)
		history_keep_start(history, out->result);
	saw(out);
	return 0;
}

/* The version is fixed by the first call that fills. */
static void fill(void)
{
	if (!filling)
		tag = version;
	filling = true;
}

void *__wrap_muster_gradient(struct muster *m)
{
	void *gradient = __real_muster_gradient(m);

	if (gradient != NULL)
		fill();
	return gradient;
}

int __wrap_muster_push_range(struct muster *m, uint64_t first, uint64_t count, const void *src)
{
	fill();
	return told("push_range", __real_muster_push_range(m, first, count, src));
}

/* Ranges lie in the slot by now, whoever's memory they came from. */
int __wrap_muster_push(struct muster *m, const struct muster_contribution *c, uint64_t *ticket)
{
	uint64_t number = 0;

	if (history == NULL)
		return __real_muster_push(m, c, ticket);
	fill();
	const void *gradient = __real_muster_gradient(m);
	if (gradient == NULL)
		return told("push", __real_muster_push(m, c, ticket));
	filling = false;
	tickets++;
	history_keep_gradient(history, tickets, gradient);
	history_push(history, tickets, tag, c);
	int rc = told("push", __real_muster_push(m, c, &number));
	if (rc == 0 && number == 0)
		history_void(history, tickets--);
	else if (rc == 0 && number != tickets)
		abort(); /* tickets are numbered one after the other */
	if (rc == 0 && ticket != NULL)
		*ticket = number;
	return rc;
}

int __wrap_muster_abandon(struct muster *m)
{
	int rc = told("abandon", __real_muster_abandon(m));

	filling = false;
	abandoning = rc == 0;
	return rc;
}

/* What was given up is told as cancelled, under ticket 0; a pass is not, and has a number. */
static void find_pass(const struct muster_outcome *out)
{
	bool cancelled = out->verdict == MUSTER_CANCELLED && out->ticket == 0;

	if (abandoning && !cancelled && !out->finished)
		history_pass(history, ++tickets);
	abandoning = false;
}

int __wrap_muster_wait(struct muster *m, struct muster_outcome *out)
{
	int rc = told("wait", __real_muster_wait(m, out));

	if (rc >= 0 && history != NULL) {
		find_pass(out);
		saw(out);
	}
	return rc;
}

void __wrap_muster_close(struct muster *m)
{
	__real_muster_close(m);
	history_end(history, last_error);
	history = NULL;
}
