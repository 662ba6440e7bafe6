/* SPDX-License-Identifier: MIT */
/*
 * A transport that stops at a moment: the real one, over which a process walks until it trips.
 *
 * musterd and the workers are linked with it in place of their transport (--wrap). The folder that
 * MUSTER_TRIP names has a file for a process that is to be stopped, "server" or "rank2", with a
 * line per stage, in order:
 *
 *	before|after  put|dial     KIND  RANK  COUNT|vVERSION
 *	before  poll|arrive|wait   KIND  RANK  COUNT
 *	before  open               -     -     COUNT
 *	before  say                KIND  -     COUNT
 *
 *	before put answer 2 20     about to put the 20th answer to rank 2
 *	after put header - v20     a header is put of what was computed on version 20 or later
 *	before poll - - 1          about to look for the next arrivals
 *	before open - - 1          a server makes its memory; it has tried its networks before
 *	before say give - 2        a worker gives its state to another, of which a piece has gone
 *
 * KIND is an immediate's, `line` between servers, or `data` for a put without. What is said are
 * messages of the control connection: of KIND `give` or `begins`. RANK is of the session, at the
 * server.
 * What comes before its stage does not count. At the last stage the thread writes NAME.held, with
 * its process number, and stands still until there is NAME.go. Meanwhile, at exactly that moment,
 * the test does what it wants to any process. It uses only files: a virtual machine has them too.
 *
 * The threads that walk are the server's data thread, and the worker's own, which also dials.
 * Opening comes before there is a data thread. The thread of the control side says messages, so a
 * plan with `say` has no other stage.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/wire/lane.h"
#include "common/wire/message.h"
#include "server/data/session.h"
#include "tests/transport/interposed.h"

#define STAGES_MAX 8u
#define HELD_MAX_NS (120 * MST_SECOND) /* nobody is stuck for ever because a test died */
#define PATH_LEN 512u
#define ANY "-"

struct trip_stage {
	char when[8], what[8], kind[8], rank[8];
	uint64_t version; /* 0: any */
	uint64_t count;
};

/* What happens, seen from a stage. */
struct moment {
	const char *what;
	const char *kind; /* "" where there is none */
	const struct mst_link *link;
	uint64_t version;
};

static struct trip_stage stages[STAGES_MAX];
static unsigned stage_count, stage_now;
static char base[PATH_LEN]; /* FOLDER/NAME */

/* ---- the plan ---- */

static bool stage_read(const char *line, struct trip_stage *s)
{
	char count[24];

	if (sscanf(line, "%7s %7s %7s %7s %23s", s->when, s->what, s->kind, s->rank, count) != 5)
		return false;
	bool by_version = count[0] == 'v';
	uint64_t number = strtoull(count + by_version, NULL, 10);
	s->version = by_version ? number : 0;
	s->count = by_version ? 1 : number;
	return s->count > 0;
}

static void plan_read(void)
{
	const char *folder = getenv("MUSTER_TRIP"), *rank = getenv("MUSTER_RANK");
	char line[128];

	if (folder == NULL)
		return;
	(void)snprintf(base, sizeof(base), "%s/%s%s", folder, rank != NULL ? "rank" : "server",
		       rank != NULL ? rank : "");
	FILE *f = fopen(base, "re");
	if (f == NULL)
		return;
	while (stage_count < STAGES_MAX && fgets(line, sizeof(line), f) != NULL) {
		if (!stage_read(line, &stages[stage_count++])) {
			fprintf(stderr, "trip: %s: what is \"%s\"?\n", base, line);
			abort();
		}
	}
	(void)fclose(f);
}

/* ---- stopping ---- */

static void hold(void)
{
	char held[PATH_LEN + 8], part[PATH_LEN + 8], go[PATH_LEN + 8];
	uint64_t until_ns = mst_now_ns() + HELD_MAX_NS;

	(void)snprintf(held, sizeof(held), "%s.held", base);
	(void)snprintf(part, sizeof(part), "%s.part", base);
	(void)snprintf(go, sizeof(go), "%s.go", base);
	FILE *f = fopen(part, "we");
	if (f == NULL || fprintf(f, "%d\n", (int)getpid()) < 0 || fclose(f) != 0 ||
	    rename(part, held) != 0)
		abort();
	while (access(go, F_OK) != 0) {
		if (mst_now_ns() > until_ns)
			abort();
		mst_sleep_ns(MST_MS / 2);
	}
}

static bool rank_fits(const struct trip_stage *s, const struct mst_link *link)
{
	if (strcmp(s->rank, ANY) == 0)
		return true;
	if (link == NULL || link->user == NULL)
		return false;
	return ((const struct mst_session *)link->user)->who.rank == strtoul(s->rank, NULL, 10);
}

static bool is_at(const struct trip_stage *s, const char *when, const struct moment *m)
{
	return strcmp(s->when, when) == 0 && strcmp(s->what, m->what) == 0 &&
	       (strcmp(s->kind, ANY) == 0 || strcmp(s->kind, m->kind) == 0) &&
	       rank_fits(s, m->link) && m->version >= s->version;
}

/* The thread of the control side and those of the data side come by here. Return: this was the last
 * moment of all. */
static bool is_last(const char *when, const struct moment *m)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	bool last = false;

	pthread_mutex_lock(&lock);
	struct trip_stage *s = stage_now < stage_count ? &stages[stage_now] : NULL;
	if (s != NULL && is_at(s, when, m) && --s->count == 0)
		last = ++stage_now == stage_count;
	pthread_mutex_unlock(&lock);
	return last;
}

static void pass(const char *when, const struct moment *m)
{
	if (is_last(when, m))
		hold();
}

/* ---- messages ---- */

int64_t __real_mst_message_encode(const struct mst_message *msg, void *buffer, size_t room);
int64_t __wrap_mst_message_encode(const struct mst_message *msg, void *buffer, size_t room);

int64_t __wrap_mst_message_encode(const struct mst_message *msg, void *buffer, size_t room)
{
	if (msg->kind == MST_MSG_GIVE)
		pass("before", &(struct moment){ .what = "say", .kind = "give" });
	if (msg->kind == MST_MSG_BEGINS)
		pass("before", &(struct moment){ .what = "say", .kind = "begins" });
	return __real_mst_message_encode(msg, buffer, room);
}

/* ---- the table ---- */

static const char *kind_of(uint32_t imm)
{
	static const char *const names[] = {
		[MST_IMM_HEADER] = "header", [MST_IMM_ABANDON] = "abandon",
		[MST_IMM_ASK] = "ask",       [MST_IMM_SESSION] = "session",
		[MST_IMM_GRANT] = "grant",   [MST_IMM_VERDICT] = "verdict",
		[MST_IMM_ANSWER] = "answer",
	};
	enum mst_imm_kind kind = mst_imm_kind(imm);

	return (unsigned)kind < sizeof(names) / sizeof(names[0]) && names[kind] != NULL
		       ? names[kind]
		       : "";
}

/* Both of its lanes are alike, unlike a worker's; its immediates are others. */
static const char *kind_on(const struct mst_link *link, uint32_t imm)
{
	return link->lanes.up_bytes == link->lanes.down_bytes ? "line" : kind_of(imm);
}

static struct moment moment_of_put(const struct mst_link *link, const struct mst_put *put)
{
	struct moment m = { .what = "put", .kind = "data", .link = link };
	struct mst_lane_header header;

	if (!put->notify)
		return m;
	m.kind = kind_on(link, put->imm);
	if (strcmp(m.kind, "header") == 0) {
		memcpy(&header, put->src, sizeof(header));
		m.version = header.tag;
	}
	return m;
}

static int trip_put(struct mst_link *link, const struct mst_put *put)
{
	struct moment m = moment_of_put(link, put);

	pass("before", &m);
	int rc = interposed_real->put(link, put);
	if (rc >= 0)
		pass("after", &m);
	return rc;
}

/* What is before an arrival is off the ring, and nobody has seen it. The caller has done with it
 * when it polls again. */
static int trip_poll(struct mst_net *net, struct mst_net_event *ev, int max)
{
	pass("before", &(struct moment){ .what = "poll", .kind = "" });
	int count = interposed_real->poll(net, ev, max);
	for (int i = 0; i < count; i++) {
		if (ev[i].kind == MST_ARRIVED)
			pass("before", &(struct moment){ .what = "arrive",
							 .kind = kind_on(ev[i].link, ev[i].imm),
							 .link = ev[i].link });
	}
	return count;
}

static int trip_wait(struct mst_net *net, uint64_t timeout_ns)
{
	pass("before", &(struct moment){ .what = "wait", .kind = "" });
	return interposed_real->wait(net, timeout_ns);
}

static int trip_dial(struct mst_net *net, const struct mst_dial *how, struct mst_link **out,
		     struct mst_reason *why)
{
	struct moment m = { .what = "dial", .kind = "" };

	pass("before", &m);
	int rc = interposed_dial(net, how, out, why);
	if (rc == 0)
		pass("after", &m);
	return rc;
}

static int trip_attach(struct mst_net *net, struct mst_link *link, struct mst_reason *why)
{
	link->ops = &interposed_ours;
	return interposed_real->attach(net, link, why);
}

static int trip_net_open(const struct mst_net_cfg *cfg, struct mst_net **out,
			 struct mst_reason *why)
{
	pass("before", &(struct moment){ .what = "open", .kind = "" });
	return interposed_net_open(cfg, out, why);
}

bool interpose(struct mst_transport *ours, struct mst_link_listener_ops *listeners)
{
	(void)listeners;
	ours->net_open = trip_net_open;
	ours->dial = trip_dial;
	ours->attach = trip_attach;
	ours->put = trip_put;
	ours->poll = trip_poll;
	ours->wait = trip_wait;
	plan_read();
	return true;
}
