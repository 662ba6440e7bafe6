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

#include "client/session/network_choice.h"
#include "common/base/clock.h"
#include "common/kernels/commit.h"
#include "common/transport/transport.h"
#include "server/data/session.h"

#define NOTES_MAX (1u << 19) /* later ones are lost */

const struct mst_transport *__real_mst_networks_transport(const struct mst_networks *n);
const struct mst_transport *__wrap_mst_networks_transport(const struct mst_networks *n);
/* Not in a server. */
int __attribute__((weak))
__real_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
			       const struct mst_transport **out, struct mst_reason *why);
int __wrap_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
				   const struct mst_transport **out, struct mst_reason *why);
bool __real_mst_commit_range(const struct mst_commit *commit, size_t first, size_t count);
bool __wrap_mst_commit_range(const struct mst_commit *commit, size_t first, size_t count);

struct note {
	const char *what;
	uint64_t ns, bytes;
	uint32_t rank, imm;
};

static struct note notes[NOTES_MAX];
static uint32_t note_count;

static const struct mst_transport *real;
static struct mst_transport probe;
static struct mst_link_listener_ops probe_listener;
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

static int net_open(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	int rc = real->net_open(cfg, out, why);

	if (rc == 0)
		(*out)->ops = &probe;
	return rc;
}

static int dial(struct mst_net *net, const struct mst_dial *how, struct mst_link **out,
		struct mst_reason *why)
{
	int rc = real->dial(net, how, out, why);

	if (rc == 0)
		(*out)->ops = &probe;
	return rc;
}

static int answer(struct mst_link_listener *listener, const struct mst_link_request *request,
		  struct mst_link **out, struct mst_reason *why)
{
	int rc = real->listener->answer(listener, request, out, why);

	if (rc == 0 && out != NULL)
		(*out)->ops = &probe;
	return rc;
}

static int put(struct mst_link *link, const struct mst_put *how)
{
	uint32_t imm = how->notify ? how->imm : 0;

	note("put", rank_of(link), imm, how->bytes);
	int rc = real->put(link, how);
	note("posted", rank_of(link), imm, how->bytes);
	return rc;
}

static int poll(struct mst_net *net, struct mst_net_event *ev, int max)
{
	int n = real->poll(net, ev, max);

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
	int rc = real->wait(net, timeout_ns);

	note("slept", 0, 0, mst_now_ns() - begin);
	return rc;
}

static const struct mst_transport *between(const struct mst_transport *t)
{
	if (t == NULL || t == &mst_joint || getenv("MUSTER_PROBE") == NULL)
		return t;
	if (real == NULL) {
		real = t;
		probe = *t;
		probe_listener = *t->listener;
		probe_listener.answer = answer;
		probe.listener = &probe_listener;
		probe.net_open = net_open;
		probe.dial = dial;
		probe.put = put;
		probe.poll = poll;
		probe.wait = wait;
		const char *sum = getenv("MUSTER_PROBE_SUM");
		copies = sum != NULL && strcmp(sum, "copy") == 0;
		atexit(write_down);
	}
	return t == real ? &probe : t;
}

const struct mst_transport *__wrap_mst_networks_transport(const struct mst_networks *n)
{
	return between(__real_mst_networks_transport(n));
}

int __wrap_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
				   const struct mst_transport **out, struct mst_reason *why)
{
	int rc = __real_mst_network_choice_take(c, welcome, out, why);

	if (rc == 0)
		*out = between(*out);
	return rc;
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
