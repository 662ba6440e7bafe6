/* SPDX-License-Identifier: MIT */
/* Which policy may follow which in a running job: the matrix of docs/policies.md, for all pairs. */
#include <string.h>

#include "common/base/reason.h"
#include "server/core/policy/switch.h"
#include "tests/ut.h"

#define WORKERS 4u

/* What a policy needs of a job, typed once more from docs/policies.md. */
struct need {
	const char *policy;
	bool deltas;      /* the optimiser `add` */
	bool servers_own; /* --owner servers */
	uint32_t slots;   /* of a session */
	uint32_t room;    /* contributions that a step holds, from any ranks */
	bool drops_most;  /* --force */
};

static const struct need needs[] = {
	{ "bsp", false, false, 1, 0, false },
	{ "backup:3", false, false, 1, 0, false },
	{ "backup:-1", false, false, 1, 0, false },
	{ "backup:1", false, false, 1, 0, true },
	{ "ksync:2", false, false, 1, 0, false },
	{ "kbatchsync:6", false, true, 2, 6, false },
	{ "kasync:2", false, false, 1, 0, false },
	{ "kbatchasync:8", false, true, 2, 8, false },
	{ "kbatchasync:9", false, true, 2, 9, false },
	{ "softsync:5", false, true, 2, 5, false },
	{ "async", false, true, 1, 1, false },
	{ "bounded:2", false, true, 1, 1, false },
	{ "ssp:3", false, true, 1, 1, false },
	{ "nonblocking", false, false, 1, 0, false },
	{ "nonblocking:5,3", false, false, 2, WORKERS *MST_MICRO_MAX, false },
	{ "anytime:50", false, false, 1, 0, false },
	{ "deadline:50,3", false, false, 1, 0, false },
	{ "downpour:5,5", false, true, 1, 1, false },
	{ "local:10", true, true, 1, 0, false },
	{ "easgd:10,0.1", true, true, 1, 1, false },
	{ "easgdsync:10,0.1", true, true, 1, 0, false },
};
#define NEEDS (sizeof(needs) / sizeof(needs[0]))

static struct mst_reason why;

static struct mst_rule rule(const char *policy)
{
	struct mst_rule out = { .divide = true,
				.patience_ns = UINT64_C(300000000000),
				.min_workers = 1 };

	CU_ASSERT_EQUAL_FATAL(mst_rule_parse(policy, &out, &why), 0);
	return out;
}

static bool may(const struct need *from, const struct need *to, const struct mst_rule_context *ctx)
{
	struct mst_rule one = rule(from->policy), other = rule(to->policy);

	why.text[0] = '\0';
	int rc = mst_switch_check(&one, &other, ctx, &why);
	CU_ASSERT_EQUAL(rc != 0, why.text[0] != '\0');
	return rc == 0;
}

static bool fits(const struct need *need, const struct mst_rule_context *ctx)
{
	return (!need->servers_own || ctx->owner == MUSTER_SERVERS_OWN) &&
	       need->slots <= ctx->slots && need->room <= ctx->quorum_max &&
	       (!need->drops_most || ctx->force);
}

static void all_pairs(const struct mst_rule_context *ctx)
{
	for (size_t i = 0; i < NEEDS; i++) {
		for (size_t k = 0; k < NEEDS; k++) {
			bool expected = needs[i].deltas == needs[k].deltas && fits(&needs[k], ctx);
			if (may(&needs[i], &needs[k], ctx) != expected)
				fprintf(stderr, "from %s to %s: %s\n", needs[i].policy,
					needs[k].policy, why.text);
			CU_ASSERT_EQUAL(may(&needs[i], &needs[k], ctx), expected);
		}
	}
}

static void the_matrix_holds_for_all_pairs(void)
{
	for (unsigned kind = 0; kind < 8; kind++) {
		uint32_t slots = kind & 1 ? 2 : 1;
		struct mst_rule_context ctx = {
			.owner = kind & 2 ? MUSTER_WORKERS_OWN : MUSTER_SERVERS_OWN,
			.workers = WORKERS,
			.slots = slots,
			.quorum_max = WORKERS * slots,
			.force = kind & 4,
		};
		all_pairs(&ctx);
	}
}

static bool says(const char *from, const char *to, uint32_t slots, const char *words)
{
	struct mst_rule one = rule(from), other = rule(to);
	struct mst_rule_context ctx = { .owner = MUSTER_SERVERS_OWN,
					.workers = WORKERS,
					.slots = slots,
					.quorum_max = WORKERS * slots };

	int rc = mst_switch_check(&one, &other, &ctx, &why);
	return rc != 0 && strstr(why.text, words) != NULL;
}

static void a_refusal_has_the_figures(void)
{
	CU_ASSERT(says("bsp", "kbatchsync:9", 2, "a quorum of 9 is more than the 8 contributions"));
	CU_ASSERT(says("bsp", "kbatchsync:9", 2, "4 workers and 2 slots"));
	CU_ASSERT(says("bsp", "kbatchsync:3", 1, "needs 2 slots per worker, there is 1"));
	CU_ASSERT(says("bsp", "nonblocking:5,3", 2,
		       "4096 of them in a step with 4 workers, and a step "
		       "of this job can hold 8"));
	CU_ASSERT(says("bsp", "local:3", 2, "would be differences of parameters"));
	CU_ASSERT(says("local:3", "bsp", 2, "are differences of parameters"));
	CU_ASSERT(says("local:3", "easgdsync:3,0.5", 2, "2 / (1 + 4) = 0.4000 at most"));
	CU_ASSERT(says("async", "backup:5", 2, "5 distinct workers cannot be met by 4"));
}

static void a_job_born_with_a_larger_quorum_has_room_for_it(void)
{
	struct mst_rule one = rule("kbatchsync:20"), other = rule("softsync:20");
	struct mst_rule_context ctx = {
		.owner = MUSTER_SERVERS_OWN, .workers = WORKERS, .slots = 2, .quorum_max = 20
	};
	struct mst_rule_context micro = ctx;

	CU_ASSERT_EQUAL(mst_switch_check(&one, &other, &ctx, &why), 0);
	other.quorum = 21;
	CU_ASSERT_NOT_EQUAL(mst_switch_check(&one, &other, &ctx, &why), 0);
	one = rule("bsp");
	other = rule("nonblocking:5,3");
	micro.quorum_max = mst_rule_planned(&other, WORKERS);
	CU_ASSERT_EQUAL(mst_switch_check(&one, &other, &micro, &why), 0);
}

static CU_TestInfo cases[] = {
	{ "the matrix holds for all pairs", the_matrix_holds_for_all_pairs },
	{ "a refusal has the figures", a_refusal_has_the_figures },
	{ "a job born with a larger quorum has room for it",
	  a_job_born_with_a_larger_quorum_has_room_for_it },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("switch", cases);
}
