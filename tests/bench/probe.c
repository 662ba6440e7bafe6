/* SPDX-License-Identifier: MIT */
/*
 * A probe between a program and its transport: notes when each put was made, each event polled, and
 * how long it summed, and writes all of it down when the program ends. It is linked into
 * musterd and a worker as they are, in the place of a few functions (the linker's --wrap), so that
 * what is measured is what runs; without MUSTER_PROBE in the environment it does nothing.
 *
 * With MUSTER_PROBE_SUM=copy it copies one gradient instead of summing them all: what is
 * left of a step is what moving bytes takes, where arithmetic is emulated and worth nothing. Only
 * for gradients that are all the same.
 *
 * The file that MUSTER_PROBE names gets a line for each note:
 *
 *   ns  put      rank  imm  bytes    as put() is called; imm 0: it does not notify
 *   ns  posted   rank  imm  bytes    as it returns
 *   ns  arrived  rank  imm  0        as poll() returns it
 *   ns  sent     rank  0    0
 *   ns  slept    0     0    ns       wait() returned after so long
 *   ns  summed   0     0    ns       the arithmetic on one chunk ended after so long
 *
 * Notes are made by the one thread that moves data, so a probed server has one shard; those of one
 * host have one clock.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/kernels/commit.h"
#include "server/data/session.h"
#include "tests/transport/interposed.h"

#define NOTES_MAX (1u << 19) /* later ones are lost */

bool __real_mst_commit_range(const struct mst_commit *commit, size_t first, size_t count);
bool __wrap_mst_commit_range(const struct mst_commit *commit, size_t first, size_t count);

struct note {
	const char *what;
	uint64_t ns, bytes;
	uint32_t rank, imm;
};

static struct note notes[NOTES_MAX];
static uint32_t note_count;

static bool copies; /* instead of summing */

static void note(const char *what, uint32_t rank, uint32_t imm, uint64_t bytes)
{
	if (note_count < NOTES_MAX)
		notes[note_count++] = (struct note){ what, mst_now_ns(), bytes, rank, imm };
}

static void write_down(void)
{
	FILE *out = fopen(getenv("MUSTER_PROBE"), "w");

	if (out == NULL)
		return;
	for (uint32_t i = 0; i < note_count; i++)
		fprintf(out, "%" PRIu64 " %s %" PRIu32 " %" PRIu32 " %" PRIu64 "\n", notes[i].ns,
			notes[i].what, notes[i].rank, notes[i].imm, notes[i].bytes);
	fclose(out);
}

/* ---- the transport ---- */

/* The rank, at a server; a worker has one link only. */
static uint32_t rank_of(const struct mst_link *link)
{
	const struct mst_session *session = link->user;

	return session != NULL ? session->who.rank : 0;
}

static int answer(struct mst_link_listener *listener, const struct mst_link_request *request,
		  struct mst_link **out, struct mst_reason *why)
{
	int rc = interposed_real->listener->answer(listener, request, out, why);

	if (rc == 0 && out != NULL)
		(*out)->ops = &interposed_ours;
	return rc;
}

static int put(struct mst_link *link, const struct mst_put *how)
{
	uint32_t imm = how->notify ? how->imm : 0;

	note("put", rank_of(link), imm, how->bytes);
	int rc = interposed_real->put(link, how);
	note("posted", rank_of(link), imm, how->bytes);
	return rc;
}

static int poll(struct mst_net *net, struct mst_net_event *ev, int max)
{
	int n = interposed_real->poll(net, ev, max);

	for (int i = 0; i < n; i++) {
		if (ev[i].kind == MST_ARRIVED)
			note("arrived", rank_of(ev[i].link), ev[i].imm, 0);
		else if (ev[i].kind == MST_SENT)
			note("sent", rank_of(ev[i].link), 0, 0);
	}
	return n;
}

static int wait(struct mst_net *net, uint64_t timeout_ns)
{
	uint64_t begin = mst_now_ns();
	int rc = interposed_real->wait(net, timeout_ns);

	note("slept", 0, 0, mst_now_ns() - begin);
	return rc;
}

bool interpose(struct mst_transport *ours, struct mst_link_listener_ops *listeners)
{
	const char *sum = getenv("MUSTER_PROBE_SUM");

	if (getenv("MUSTER_PROBE") == NULL)
		return false;
	listeners->answer = answer;
	ours->put = put;
	ours->poll = poll;
	ours->wait = wait;
	copies = sum != NULL && strcmp(sum, "copy") == 0;
	atexit(write_down);
	return true;
}

/* ---- the sum ---- */

bool __wrap_mst_commit_range(const struct mst_commit *commit, size_t first, size_t count)
{
	uint64_t begin = mst_now_ns();
	const float *leaf = commit->tree.leaf[0].data;
	bool finite = true;

	if (copies)
		memcpy((float *)commit->out + first, leaf + first, count * sizeof(float));
	else
		finite = __real_mst_commit_range(commit, first, count);
	note("summed", 0, 0, mst_now_ns() - begin);
	return finite;
}
