/* SPDX-License-Identifier: MIT */
/*
 * A server, or each of two, that says anything at any time, on the link and on the control
 * connection, while its worker works on: each call gives an outcome that makes sense in itself, or
 * an error with a sentence.
 *
 * An input is a list of turns: a byte for what happens, then what that takes.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/assert.h"
#include "tests/fuzz/handle.h"
#include "tests/fuzz/input.h"

#define WORKERS 3u
#define SLOTS 2u
#define BUFFERS 4u
#define ELEMS 64u
#define SERVERS 2u
#define PART 4096u /* elements of the first of two servers */
#define STRIDE 4096u

/* ---- what the server says: as the protocol has it, with bytes of the input over it ---- */

struct fuzz_shard {
	struct pipe_net net;
	struct pipe_link acceptor, connector;
	struct mst_lane_layout layout;
};

struct fuzz_server {
	struct handle h;
	uint32_t count;
	uint64_t elems;
	struct fuzz_shard shard[SERVERS], *now; /* now: whose turn it is to speak */
	uint64_t given;                         /* newest ticket that an outcome has brought */
};

static void *down(struct fuzz_server *s, size_t offset)
{
	return (char *)s->now->connector.link.inbound + offset;
}

static void write_grant(struct fuzz_server *s, struct fuzz_input *in, uint32_t slot)
{
	struct mst_lane_grant grant = { s->h.m.worker.slot[slot].epoch + 1 };

	fuzz_overwrite(in, &grant, sizeof(grant));
	memcpy(down(s, s->now->layout.down_grant[slot]), &grant, sizeof(grant));
}

static void write_verdict(struct fuzz_server *s, struct fuzz_input *in, uint32_t slot)
{
	struct mst_lane_verdict verdict = { .ticket = s->h.m.worker.tickets.judged + 1 };

	verdict.verdict = fuzz_next(in) % 5;
	fuzz_overwrite(in, &verdict, sizeof(verdict));
	memcpy(down(s, s->now->layout.down_verdict[slot]), &verdict, sizeof(verdict));
}

static void write_answer(struct fuzz_server *s, struct fuzz_input *in)
{
	const struct mst_worker *w = &s->h.m.worker;
	uint64_t version = w->held.version + 1; /* of none: 0 */
	struct mst_lane_answer a = {
		.number = w->ask_number, .version = version, .newest = version, .buffer = 1
	};
	struct mst_lane_record record = { .version = version,
					  .weight = 1,
					  .share_count = 1,
					  .window = 4,
					  .size = MST_RECORD_SIZE };
	struct mst_lane_share share[WORKERS] = { { .rank = 1, .count = 1, .weight = 1 } };

	a.where = fuzz_next(in) % 4;
	fuzz_overwrite(in, &a, sizeof(a));
	fuzz_overwrite(in, &record, sizeof(record));
	fuzz_overwrite(in, share, sizeof(share));
	memcpy(down(s, s->now->layout.down_answer), &a, sizeof(a));
	memcpy(down(s, s->now->layout.down_record), &record, sizeof(record));
	memcpy(down(s, s->now->layout.down_record + sizeof(record)), share, sizeof(share));
}

static void write_session(struct fuzz_server *s, struct fuzz_input *in, uint32_t which)
{
	struct mst_lane_session word = { .state = 1 + fuzz_next(in) % 2, .error = -ENOTCONN };

	word.version = s->h.m.worker.held.version;
	fuzz_overwrite(in, &word, sizeof(word));
	memcpy(down(s, s->now->layout.down_session[which]), &word, sizeof(word));
}

static void speak(struct fuzz_server *s, struct fuzz_input *in, uint8_t what, bool judges)
{
	uint8_t slot = what / 8 % SLOTS;
	uint64_t epoch = s->h.m.worker.slot[slot].epoch + 1;

	switch (what % 8) {
	case 0:
		write_grant(s, in, slot);
		pipe_arrive(&s->now->connector, mst_imm(MST_IMM_GRANT, slot, epoch));
		break;
	case 1:
		write_verdict(s, in, slot);
		pipe_arrive(&s->now->connector, mst_imm(MST_IMM_VERDICT, slot, 0));
		break;
	case 2:
	case 3:
	case 4:
		write_answer(s, in);
		pipe_arrive(&s->now->connector, mst_imm_answer(0, 0));
		break;
	case 5:
		write_verdict(s, in, slot);
		write_grant(s, in, slot);
		write_answer(s, in);
		pipe_arrive(&s->now->connector,
			    mst_imm_answer(judges ? 1u << slot : 0, 1u << slot));
		break;
	case 6:
		write_session(s, in, slot);
		pipe_arrive(&s->now->connector, mst_imm(MST_IMM_SESSION, slot, 0));
		break;
	default:
		fuzz_overwrite(in, s->now->connector.link.inbound, 256);
		pipe_arrive(&s->now->connector, fuzz_word(in));
	}
}

/* One of them, or both the same; but verdicts are the first one's. */
static void say(struct fuzz_server *s, struct fuzz_input *in)
{
	uint8_t what = fuzz_next(in);
	uint32_t who = s->count > 1 ? what / 16 % 3 : 0;

	for (uint32_t k = 0; k < s->count; k++) {
		s->now = &s->shard[k];
		if (who == k || (who == 2 && (k == 0 || what % 8 != 1)))
			speak(s, in, what, who != 2 || k == 0);
	}
}

/* ---- what the worker makes of it ---- */

/* What an outcome refers to is there, even if a hostile server wrote it. */
static void look_at(struct fuzz_server *s, const struct muster_outcome *out)
{
	static float copy[PART + ELEMS];

	MST_ASSERT(out->set_len <= WORKERS && out->verdict <= MUSTER_DAMAGED);
	for (uint32_t i = 0; i < out->set_len; i++)
		MST_ASSERT(out->set[i].rank < WORKERS);
	if (out->result != NULL)
		memcpy(copy, out->result, s->elems * sizeof(float));
	if (out->ticket == 0)
		return;
	MST_ASSERT(out->ticket == s->given + 1 && out->ticket <= s->h.m.worker.tickets.sent);
	s->given = out->ticket;
}

static void check(struct fuzz_server *s, int rc)
{
	MST_ASSERT(rc <= 1 && rc > -4096);
	MST_ASSERT(rc >= 0 || muster_error(&s->h.m)[0] != '\0');
}

static void work(struct fuzz_server *s, struct fuzz_input *in)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1, .full = true };
	struct muster_outcome out = MUSTER_OUTCOME;
	struct muster *m = &s->h.m;
	uint8_t what = fuzz_next(in);
	int rc;

	switch (what % 6) {
	case 0:
		c.keep = what / 6 % 2;
		if (muster_gradient(m) != NULL)
			check(s, muster_push(m, &c, NULL));
		break;
	case 1:
		check(s, muster_push_range(m, s->elems - ELEMS + what / 6 % ELEMS, 5, NULL));
		break;
	case 2:
		check(s, muster_abandon(m));
		break;
	case 3:
		check(s, muster_pull(m));
		break;
	default:
		rc = m->worker.phase < MST_WORKER_WORKING ? muster_start(m, NULL, &out)
							  : muster_wait(m, &out);
		check(s, rc);
		if (rc >= 0)
			look_at(s, &out);
	}
	(void)muster_check(m);
}

/* A frame of any bytes, or of such as begin like a message. */
static void tell(struct fuzz_server *s, struct fuzz_input *in)
{
	size_t count = fuzz_next(in);

	s->h.heard = fuzz_take(in, &count);
	s->h.heard_bytes = count;
	(void)mst_control_step(s->h.m.session.control, 0);
}

/* The last server has ELEMS elements, the one before it PART. */
static void open_shard(struct fuzz_server *s, uint32_t k, struct handle_part *part)
{
	bool last = k == s->count - 1;
	struct fuzz_shard *shard = &s->shard[k];
	struct mst_reason unused;
	struct mst_lane_figures figures = {
		last ? ELEMS : PART, 4, 4, SLOTS, WORKERS, s->count > 1
	};

	mst_lane_layout(&figures, &shard->layout);
	size_t stride = (shard->layout.result_bytes + STRIDE - 1) / STRIDE * STRIDE;
	struct mst_lanes lanes = { shard->layout.up_bytes, shard->layout.down_bytes, 8, 8 };
	pipe_net_init(&shard->net, BUFFERS * stride);
	pipe_link_init(&shard->acceptor, &shard->connector, &lanes, &shard->net);
	pipe_transport.attach(&shard->net.net, &shard->acceptor.link, &unused);
	*part = (struct handle_part){ &shard->connector, &shard->layout, s->elems, figures.elems };
	s->elems += figures.elems;
}

static void begin(struct fuzz_server *s, bool workers_own, uint32_t count)
{
	struct handle_part part[SERVERS];

	memset(s, 0, sizeof(*s));
	s->count = count;
	for (uint32_t k = 0; k < count; k++)
		open_shard(s, k, &part[k]);
	struct handle_figures f = { 1, WORKERS, SLOTS, BUFFERS, s->elems, MUSTER_SERVERS_OWN };
	f.owner = workers_own ? MUSTER_WORKERS_OWN : MUSTER_SERVERS_OWN;
	handle_init(&s->h, &f, part, count);
}

static void end(struct fuzz_server *s)
{
	handle_fini(&s->h);
	for (uint32_t k = 0; k < s->count; k++) {
		pipe_link_fini(&s->shard[k].acceptor, &s->shard[k].connector);
		pipe_net_fini(&s->shard[k].net);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, data + size };
	static struct fuzz_server s;

	uint8_t kind = fuzz_next(&in);
	begin(&s, kind % 2, kind / 2 % 64 == 32 ? 2 : 1);
	while (in.at < in.end) {
		uint8_t what = fuzz_next(&in) % 16;
		if (what < 7)
			say(&s, &in);
		else if (what < 15)
			work(&s, &in);
		else
			tell(&s, &in);
		for (uint32_t k = 0; k < s.count; k++)
			s.shard[k].net.count = 0; /* what the worker sends is not looked at */
	}
	end(&s);
	return 0;
}
