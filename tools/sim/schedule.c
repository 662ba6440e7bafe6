/* SPDX-License-Identifier: MIT */
#include "tools/sim/schedule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/message.h"
#include "server/core/policy/policy.h"
#include "tools/figure.h"

#define DAY_NS (86400 * UINT64_C(1000000000))
#define TIME_MAX_NS (365 * DAY_NS)

const char *mst_sim_change_option(enum mst_sim_change_kind kind)
{
	static const char *const names[] = {
		[MST_SIM_KILL] = "kill",
		[MST_SIM_FREEZE] = "freeze",
		[MST_SIM_NAP] = "nap",
		[MST_SIM_JOIN] = "join",
	};

	return names[kind];
}

/* Copies what stands before the last '@'. Return: what stands after it; NULL: there is no '@', or
 * nothing or too much before it. */
static const char *split(const char *text, char *before, size_t len)
{
	const char *at = strrchr(text, '@');
	size_t used = at != NULL ? (size_t)(at - text) : 0;

	if (used == 0 || used >= len)
		return NULL;
	memcpy(before, text, used);
	before[used] = '\0';
	return at + 1;
}

/* ---- changes ---- */

/* "20s", or of a nap "20s,200ms". Return: 0 or -EINVAL. */
static int read_time(const char *text, struct mst_sim_change *out)
{
	const char *comma = strchr(text, ',');
	size_t used = comma != NULL ? (size_t)(comma - text) : strlen(text);
	char time[32];

	if ((comma != NULL) != (out->kind == MST_SIM_NAP) || used >= sizeof(time))
		return -EINVAL;
	memcpy(time, text, used);
	time[used] = '\0';
	if (mst_parse_duration(time, &out->at_ns) != 0 || out->at_ns > TIME_MAX_NS)
		return -EINVAL;
	if (comma != NULL && (mst_parse_duration(comma + 1, &out->length_ns) != 0 ||
			      out->length_ns == 0 || out->length_ns > TIME_MAX_NS))
		return -EINVAL;
	return 0;
}

/* @text: RANK@TIME. Return: 0 or -EINVAL. */
static int read_change(const char *text, struct mst_sim_change *out)
{
	char before[24];
	const char *time = split(text, before, sizeof(before));
	uint64_t rank;

	if (time == NULL || mst_parse_u64(before, &rank) != 0)
		return -EINVAL;
	out->rank = rank < UINT32_MAX ? (uint32_t)rank : UINT32_MAX;
	return read_time(time, out);
}

int mst_sim_changes_read(struct mst_sim_changes *c, enum mst_sim_change_kind kind,
			 const struct mst_option_list *list, struct mst_reason *why)
{
	for (uint32_t i = 0; i < list->count; i++) {
		const char *text = list->item[i];
		struct mst_sim_change one = { .kind = kind };
		bool naps = kind == MST_SIM_NAP;

		if (read_change(text, &one) != 0) {
			mst_reason_set(why,
				       "option --%s: \"%.60s\" is not a rank and a time, at most a "
				       "year after the start%s, such as 3@20s%s",
				       mst_sim_change_option(kind), text,
				       naps ? ", and how long it lasts" : "", naps ? ",200ms" : "");
			return -EINVAL;
		}
		if (one.rank >= c->workers) {
			mst_reason_set(why,
				       "option --%s: \"%.60s\": the ranks of %" PRIu32
				       " workers are 0 to %" PRIu32,
				       mst_sim_change_option(kind), text, c->workers,
				       c->workers - 1);
			return -EINVAL;
		}
		MST_ASSERT(c->count < MST_SIM_CHANGES_MAX);
		c->at[c->count++] = one;
	}
	return 0;
}

/* Two changes of one rank at one time have no order, so the sort need not keep one. */
static int by_time(const void *a, const void *b)
{
	const struct mst_sim_change *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* What is wrong with the change after the rank's change before it (NULL: none)? */
static const char *unfit(const struct mst_sim_change *c, const struct mst_sim_change *before)
{
	bool killed = before != NULL && before->kind == MST_SIM_KILL;
	bool frozen = before != NULL && before->kind == MST_SIM_FREEZE;

	if (before != NULL && before->at_ns == c->at_ns)
		return "something else happens to this rank at the same time";
	if (c->kind == MST_SIM_JOIN)
		return killed || frozen ? NULL : "this rank has not been killed or frozen before";
	if (c->kind == MST_SIM_NAP && frozen)
		return "this rank is frozen";
	if (killed)
		return "this rank has already been killed";
	return frozen && c->kind == MST_SIM_FREEZE ? "this rank is already frozen" : NULL;
}

int mst_sim_changes_order(struct mst_sim_changes *c, struct mst_reason *why)
{
	qsort(c->at, c->count, sizeof(*c->at), by_time);
	for (uint32_t i = 0; i < c->count; i++) {
		const struct mst_sim_change *before = NULL;
		for (uint32_t j = 0; j < i; j++)
			before = c->at[j].rank == c->at[i].rank ? &c->at[j] : before;
		const char *wrong = unfit(&c->at[i], before);
		if (wrong == NULL)
			continue;
		mst_reason_set(why, "option --%s: rank %" PRIu32 " at %s: %s",
			       mst_sim_change_option(c->at[i].kind), c->at[i].rank,
			       mst_figure_duration(c->at[i].at_ns).text, wrong);
		return -EINVAL;
	}
	return 0;
}

/* ---- switches ---- */

/* Return: the index of the version, which is there, or where it belongs. */
static uint32_t place_of(const struct mst_sim_switches *s, uint64_t version)
{
	uint32_t i = 0;

	while (i < s->count && s->at[i].version < version)
		i++;
	return i;
}

static int add(struct mst_sim_switches *s, const struct mst_sim_switch *one, const char *text)
{
	uint32_t place = place_of(s, one->version);

	if (place < s->count && s->at[place].version == one->version)
		return -EEXIST;
	for (uint32_t i = s->count++; i > place; i--) {
		s->at[i] = s->at[i - 1];
		s->text[i] = s->text[i - 1];
	}
	s->at[place] = *one;
	s->text[place] = text;
	return 0;
}

static bool is_adaptive(const char *text)
{
	struct mst_policy policy = { .rule = { .quorum = 0 } };
	struct mst_reason why;

	return mst_policy_parse(text, &policy, &why) == 0 && !mst_policy_is_fixed(&policy);
}

int mst_sim_switches_read(struct mst_sim_switches *s, const struct mst_option_list *list,
			  const struct mst_rule *base, struct mst_reason *why)
{
	for (uint32_t i = 0; i < list->count; i++) {
		struct mst_sim_switch one = { .rule = *base };
		const char *text = list->item[i];
		char policy[MST_POLICY_LEN];
		const char *version = split(text, policy, sizeof(policy));

		if (version == NULL || mst_parse_u64(version, &one.version) != 0)
			return mst_reason_fail(
				why, -EINVAL,
				"option --switch: \"%.60s\" is not a policy and a version, "
				"such as async@500",
				text);
		if (is_adaptive(policy))
			return mst_reason_fail(
				why, -EINVAL,
				"option --switch: \"%.60s\": the policy changes by itself, and "
				"is for --policy; --switch takes a fixed one, such as "
				"async@500",
				text);
		if (mst_rule_parse(policy, &one.rule, why) != 0)
			return mst_reason_fail(why, -EINVAL, "option --switch: \"%.60s\": %s", text,
					       why->text);
		if (add(s, &one, text) != 0)
			return mst_reason_fail(
				why, -EINVAL,
				"option --switch: \"%.60s\": there is another switch at "
				"version %" PRIu64,
				text, one.version);
	}
	return 0;
}
