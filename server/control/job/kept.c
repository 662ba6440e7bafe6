/* SPDX-License-Identifier: MIT */
#include "server/control/job/kept.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/range.h"
#include "server/core/policy/in_force.h"

#define SAMPLES "samples"
#define CLOCKS "clocks"
#define INCARNATIONS "incarnations"
#define CONTRIBUTIONS "contributions" /* for people: nobody reads it */
#define CHANGE "policy_change"
#define CHANGED_TO "policy_changed_to"
#define CHANGE_FORCED "policy_change_forced"
/* Verdicts that their workers may not have heard, one after the other. */
#define VERDICT_RANKS "verdicts.ranks"
#define VERDICT_TICKETS "verdicts.tickets"
#define VERDICTS "verdicts.verdicts"
#define VERDICT_VERSIONS "verdicts.versions"

/* ---- the ranges ---- */

static int check_rank(const struct mst_kept_rank *rank, uint32_t number, struct mst_reason *why)
{
	if (rank->clock <= MST_COUNT_MAX && rank->incarnation <= MST_INCARNATION_MAX)
		return 0;
	return mst_reason_fail(why, -EINVAL,
			       "rank %" PRIu32 " has clock %" PRIu64 " (at most %" PRIu64
			       ") and session %" PRIu32 " (at most %" PRIu32 ")",
			       number, rank->clock, MST_COUNT_MAX, rank->incarnation,
			       MST_INCARNATION_MAX);
}

static int check(const struct mst_kept *kept, struct mst_reason *why)
{
	int rc = 0;

	if (kept->version > MST_COUNT_MAX)
		return mst_reason_fail(why, -EINVAL, "no job has %" PRIu64 " versions",
				       kept->version);
	if (!(kept->samples >= 0 && kept->samples <= MST_SAMPLES_MAX))
		return mst_reason_fail(why, -EINVAL,
				       "%g samples are counted, and a job counts from 0 to %.0f",
				       kept->samples, MST_SAMPLES_MAX);
	for (uint32_t i = 0; i < kept->ranks && rc == 0; i++)
		rc = check_rank(&kept->rank[i], i, why);
	return rc;
}

/* ---- writing ---- */

/* A figure of each rank. */
static int add_ranks(struct mst_values *v, const char *name, const struct mst_kept *kept,
		     uint64_t (*figure)(const struct mst_kept_rank *rank))
{
	uint64_t *list = malloc(kept->ranks * sizeof(*list));

	if (list == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < kept->ranks; i++)
		list[i] = figure(&kept->rank[i]);
	int rc = mst_values_add_list(v, name, list, kept->ranks);
	free(list);
	return rc;
}

static uint64_t clock_of(const struct mst_kept_rank *rank)
{
	return rank->clock;
}

static uint64_t incarnation_of(const struct mst_kept_rank *rank)
{
	return rank->incarnation;
}

static uint64_t contributions_of(const struct mst_kept_rank *rank)
{
	return rank->contributions;
}

static uint32_t verdicts_of(const struct mst_kept *kept)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < kept->ranks; i++)
		count += kept->rank[i].verdicts;
	return count;
}

/* A figure of each verdict, by its rank. */
static int add_verdicts(struct mst_values *v, const char *name, const struct mst_kept *kept,
			uint64_t (*figure)(uint32_t rank, const struct mst_kept_verdict *verdict))
{
	uint32_t count = verdicts_of(kept), n = 0;
	uint64_t *list = calloc(count > 0 ? count : 1, sizeof(*list));

	if (list == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < kept->ranks; i++) {
		for (uint32_t k = 0; k < kept->rank[i].verdicts; k++)
			list[n++] = figure(i, &kept->rank[i].verdict[k]);
	}
	int rc = mst_values_add_list(v, name, list, count);
	free(list);
	return rc;
}

static uint64_t rank_of(uint32_t rank, const struct mst_kept_verdict *verdict)
{
	(void)verdict;
	return rank;
}

static uint64_t ticket_of(uint32_t rank, const struct mst_kept_verdict *verdict)
{
	(void)rank;
	return verdict->ticket;
}

static uint64_t verdict_of(uint32_t rank, const struct mst_kept_verdict *verdict)
{
	(void)rank;
	return verdict->verdict;
}

static uint64_t counted_in_of(uint32_t rank, const struct mst_kept_verdict *verdict)
{
	(void)rank;
	return verdict->counted_in;
}

static int add_all_verdicts(const struct mst_kept *kept, struct mst_values *v)
{
	if (verdicts_of(kept) == 0)
		return 0;
	int rc = add_verdicts(v, VERDICT_RANKS, kept, rank_of);
	if (rc == 0)
		rc = add_verdicts(v, VERDICT_TICKETS, kept, ticket_of);
	if (rc == 0)
		rc = add_verdicts(v, VERDICTS, kept, verdict_of);
	if (rc == 0)
		rc = add_verdicts(v, VERDICT_VERSIONS, kept, counted_in_of);
	return rc;
}

static int add_all(const struct mst_kept *kept, struct mst_values *v)
{
	int rc = mst_values_add_real(v, SAMPLES, kept->samples);

	for (uint32_t i = 0; i < kept->figures && rc == 0; i++)
		rc = mst_values_add_real(v, kept->figure[i].name, kept->figure[i].value);
	if (rc == 0)
		rc = add_ranks(v, CLOCKS, kept, clock_of);
	if (rc == 0)
		rc = add_ranks(v, INCARNATIONS, kept, incarnation_of);
	if (rc == 0)
		rc = add_ranks(v, CONTRIBUTIONS, kept, contributions_of);
	if (rc == 0)
		rc = add_all_verdicts(kept, v);
	return rc;
}

int mst_kept_write(const struct mst_kept *kept, struct mst_checkpoint_manifest *m,
		   struct mst_reason *why)
{
	int rc = check(kept, why);

	if (rc != 0)
		return rc;
	m->samples = (uint64_t)kept->samples;
	if (add_all(kept, &m->values) == 0)
		return 0;
	return mst_reason_fail(why, -ENOMEM, "there is no memory for its manifest");
}

/* A manifest of before has none of these, and one of a policy that was never changed neither. */
int mst_kept_write_in_force(const struct mst_in_force *what, struct mst_values *v)
{
	if (what->number == 0)
		return 0;
	int rc = mst_values_add_u64(v, CHANGE, what->number);
	if (rc == 0)
		rc = mst_values_add_text(v, CHANGED_TO, what->policy);
	return rc == 0 ? mst_values_add_u64(v, CHANGE_FORCED, what->forced) : rc;
}

void mst_kept_in_force(const struct mst_values *v, struct mst_in_force *out)
{
	uint64_t forced = 0;
	const char *policy;

	*out = (struct mst_in_force){ 0 };
	if (mst_values_u64(v, CHANGE, &out->number) != 0 ||
	    mst_values_text(v, CHANGED_TO, &policy) != 0 || strlen(policy) >= sizeof(out->policy) ||
	    mst_values_u64(v, CHANGE_FORCED, &forced) != 0 || forced > 1) {
		out->number = 0;
		return;
	}
	out->forced = (uint32_t)forced;
	snprintf(out->policy, sizeof(out->policy), "%s", policy);
	if (!mst_in_force_is_sane(out))
		*out = (struct mst_in_force){ 0 };
}

/* ---- reading ---- */

/* Values of a manifest that are to be those of ranks. */
struct lists {
	const uint64_t *clock, *incarnation;
	uint32_t count, again;
};

static bool are_lists(const struct lists *l)
{
	return l->count == l->again && l->count > 0 && l->count <= MST_LEDGER_WORKERS_MAX;
}

static int read_ranks(const struct lists *l, struct mst_kept *kept, struct mst_reason *why)
{
	kept->rank = calloc(l->count, sizeof(*kept->rank));
	if (kept->rank == NULL)
		return mst_reason_fail(
			why, -ENOMEM, "no memory for the figures of %" PRIu32 " workers", l->count);
	kept->ranks = l->count;
	for (uint32_t i = 0; i < l->count; i++) {
		uint64_t session = l->incarnation[i];
		kept->rank[i].clock = l->clock[i];
		kept->rank[i].incarnation = session < UINT32_MAX ? (uint32_t)session : UINT32_MAX;
	}
	return 0;
}

struct verdict_lists {
	const uint64_t *rank, *ticket, *verdict, *counted_in;
	uint32_t count;
};

/* Manifests of earlier releases have none.
 * Return: false: they cannot be. */
static bool find_verdicts(const struct mst_values *v, struct verdict_lists *out)
{
	uint32_t count[3];

	*out = (struct verdict_lists){ .count = 0 };
	if (mst_values_list(v, VERDICT_RANKS, &out->rank, &out->count) != 0)
		return true;
	return mst_values_list(v, VERDICT_TICKETS, &out->ticket, &count[0]) == 0 &&
	       mst_values_list(v, VERDICTS, &out->verdict, &count[1]) == 0 &&
	       mst_values_list(v, VERDICT_VERSIONS, &out->counted_in, &count[2]) == 0 &&
	       count[0] == out->count && count[1] == out->count && count[2] == out->count;
}

/* Tickets of a rank rise, and all of them have been open at a time. */
static bool take_verdict(const struct mst_kept *kept, struct mst_kept_rank *rank,
			 const struct mst_kept_verdict *verdict)
{
	const struct mst_kept_verdict *first = &rank->verdict[0];
	bool counted = verdict->verdict == MUSTER_COUNTED;

	if (verdict->ticket == 0 || verdict->ticket > MST_COUNT_MAX ||
	    verdict->counted_in > kept->version || counted != (verdict->counted_in != 0))
		return false;
	if (rank->verdicts == MST_KEPT_VERDICTS ||
	    (rank->verdicts > 0 && (verdict->ticket <= rank->verdict[rank->verdicts - 1].ticket ||
				    verdict->ticket - first->ticket >= MUSTER_TICKETS_MAX)))
		return false;
	rank->verdict[rank->verdicts++] = *verdict;
	return true;
}

static bool read_verdicts(const struct mst_values *v, struct mst_kept *kept)
{
	struct verdict_lists l;

	if (!find_verdicts(v, &l))
		return false;
	for (uint32_t i = 0; i < l.count; i++) {
		if (l.rank[i] >= kept->ranks || l.verdict[i] <= MUSTER_NONE ||
		    l.verdict[i] > MUSTER_DAMAGED)
			return false;
		struct mst_kept_verdict verdict = { l.ticket[i], l.counted_in[i],
						    (enum muster_verdict)l.verdict[i] };
		if (!take_verdict(kept, &kept->rank[l.rank[i]], &verdict))
			return false;
	}
	return true;
}

static int read_all(const struct mst_checkpoint_manifest *m, struct mst_kept *kept,
		    struct mst_reason *why)
{
	const struct mst_values *v = &m->values;
	struct lists l;

	if (mst_values_real(v, SAMPLES, &kept->samples) != 0 ||
	    mst_values_list(v, CLOCKS, &l.clock, &l.count) != 0 ||
	    mst_values_list(v, INCARNATIONS, &l.incarnation, &l.again) != 0 || !are_lists(&l))
		return mst_reason_fail(why, -EBADMSG, "it does not say what was counted");
	int rc = read_ranks(&l, kept, why);
	if (rc == 0 && !read_verdicts(v, kept))
		rc = mst_reason_fail(why, -EBADMSG, "its verdicts are none that workers may get");
	return rc == 0 ? check(kept, why) : rc;
}

int mst_kept_read(const struct mst_checkpoint_manifest *m, const char *dir, struct mst_kept *out,
		  struct mst_reason *why)
{
	struct mst_kept kept = { .version = m->id.version };
	struct mst_reason clause = { "" };
	int rc = read_all(m, &kept, &clause);

	if (rc == 0) {
		*out = kept;
		return 0;
	}
	free(kept.rank);
	return mst_reason_fail(why, rc == -ENOMEM ? rc : -EBADMSG,
			       "the manifest of version %" PRIu64 " in %s is none of musterd's: %s",
			       m->id.version, dir, clause.text);
}
