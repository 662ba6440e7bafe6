/* SPDX-License-Identifier: MIT */
#include "tests/unit/client/servers_case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/session/network_choice.h"
#include "common/base/clock.h"
#include "tests/transport/named.h"
#include "tests/ut.h"

void servers_transport(int argc, char **argv)
{
	const char *scheme = argc == 2 ? argv[1] : "";

	fake_transport = strcmp(scheme, "far") == 0 ? &far : transport_named(scheme);
	if (fake_transport == NULL) {
		fprintf(stderr, "usage: %s far|" MST_TRANSPORT_SCHEMES "\n", argv[0]);
		exit(EXIT_FAILURE);
	}
	far_manner.linger_ns = 2 * MST_MS;
	far_manner.room = 16;
}

int __real_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
				   const struct mst_transport **out, struct mst_reason *why);
int __wrap_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
				   const struct mst_transport **out, struct mst_reason *why);
int __wrap_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
				   const struct mst_transport **out, struct mst_reason *why)
{
	if (strncmp(welcome->server[0].address, "far:", 4) != 0)
		return __real_mst_network_choice_take(c, welcome, out, why);
	for (uint32_t k = 1; k < welcome->server_count; k++)
		if (strncmp(welcome->server[k].address, "far:", 4) != 0)
			return mst_reason_fail(why, -EPROTO, "one is not far");
	*out = &far;
	return 0;
}

_Atomic bool servers_went_well;
_Atomic int servers_stage;

bool servers_end_well(struct fake_leader *f)
{
	atomic_store(&servers_went_well, true);
	return fake_stay(f);
}

bool servers_await_stage(struct fake_leader *f, int wanted)
{
	while (atomic_load(&servers_stage) < wanted && !atomic_load(&f->released))
		fake_turn(f);
	return !atomic_load(&f->released);
}

void servers_begin(bool (*script)(struct fake_leader *))
{
	atomic_store(&servers_went_well, false);
	atomic_store(&servers_stage, 0);
	int rc = client_open_servers(script, SERVERS_COUNT);
	if (rc != 0)
		printf("\n%s\n", muster_error(NULL));
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	CU_ASSERT_EQUAL_FATAL(client_start(NULL, &client_outcome), 0);
}

void servers_end(void)
{
	client_close();
	CU_ASSERT(atomic_load(&servers_went_well));
	CU_ASSERT_EQUAL(atomic_load(&far_spoiled), 0); /* no more was sent than was handed over */
}

/* ---- what servers do ---- */

static uint64_t first_of(const struct fake_leader *f, uint32_t k)
{
	return f->welcome.server[k].first;
}

static const char *inbound(const struct fake_leader *f, uint32_t k)
{
	return f->server[k].link->inbound;
}

/* All of this server's part, and nothing else, is there. */
static bool has_part(const struct fake_leader *f, uint32_t k, float base)
{
	const struct mst_lane_layout *l = &f->server[k].layout;
	const char *at = inbound(f, k) + mst_lane_gradient(l, 0, f->welcome.rank);

	for (uint64_t i = 0; i < f->welcome.server[k].count; i++) {
		float got;
		memcpy(&got, at + i * sizeof(got), sizeof(got));
		if (got != base + (float)(first_of(f, k) + i))
			return false;
	}
	return true;
}

static bool is_header(const struct fake_leader *f, uint32_t k, uint32_t imm, uint64_t seq)
{
	struct mst_lane_header h;

	memcpy(&h, inbound(f, k) + f->server[k].layout.up_header[0], sizeof(h));
	return mst_imm_kind(imm) == MST_IMM_HEADER && h.seq == seq && h.weight == 3 &&
	       h.flags == (MST_HEADER_FULL | MST_HEADER_ASK) && h.ask.number == seq + 1;
}

/* Each server gets its part, and the header after it. */
bool servers_hear_push(struct fake_leader *f, uint64_t seq, float base)
{
	uint32_t imm = 0;
	bool well = true;

	for (uint32_t k = 0; k < SERVERS_COUNT && well; k++)
		well = fake_arrival_of(f, k, &imm) && is_header(f, k, imm, seq) &&
		       has_part(f, k, base);
	return well;
}

bool servers_grant(struct fake_leader *f, uint32_t k, uint64_t epoch)
{
	struct mst_lane_grant g = { epoch };

	return fake_put_of(f, k,
			   &(struct mst_put){ .offset = f->server[k].layout.down_grant[0],
					      .src = &g,
					      .bytes = sizeof(g),
					      .notify = true,
					      .imm = mst_imm(MST_IMM_GRANT, 0, epoch) });
}

bool servers_judge(struct fake_leader *f, uint64_t ticket)
{
	struct mst_lane_verdict v = { ticket, ticket, MUSTER_COUNTED, 0 };

	return fake_put(f, f->layout.down_verdict[0], &v, sizeof(v),
			mst_imm(MST_IMM_VERDICT, 0, 0));
}

static void fill(float *at, uint64_t first, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		at[i] = SERVERS_RESULT + (float)(first + i);
}

/* In place where that can be, in buffer 1, else and for @copied in the worker's inbound region. */
static bool give_part(struct fake_leader *f, uint32_t k, bool copied)
{
	const struct fake_server *s = &f->server[k];
	uint64_t count = f->welcome.server[k].count;
	size_t stride = (s->layout.result_bytes + FAKE_STRIDE - 1) / FAKE_STRIDE * FAKE_STRIDE;
	char *published = s->net->published;
	float *buffer = (float *)(void *)(published + stride);

	fill(buffer, first_of(f, k), count);
	if (!copied)
		return true;
	return fake_put_of(f, k,
			   &(struct mst_put){ .offset = s->layout.down_result,
					      .src = buffer,
					      .bytes = count * sizeof(float) });
}

bool servers_answer_push(struct fake_leader *f, uint64_t seq, bool copied)
{
	struct mst_lane_answer a = { seq + 1, seq, seq, MST_WHERE_IN_PLACE, 1 };
	bool well = servers_judge(f, seq);

	if (copied || !fake_transport->maps)
		a.where = MST_WHERE_COPIED;
	for (uint32_t k = 0; k < SERVERS_COUNT && well; k++)
		well = servers_grant(f, k, seq + 1) &&
		       give_part(f, k, a.where == MST_WHERE_COPIED) && fake_answer_of(f, k, &a);
	return well;
}
