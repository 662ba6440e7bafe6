/* SPDX-License-Identifier: MIT */
/* The table of controllers, and the case that there is none. */
#include "server/core/policy/controller.h"

#include <errno.h>
#include <string.h>

#include "common/base/assert.h"
#include "server/core/policy/controller_row.h"

static const struct mst_controller_row *const rows[MST_CONTROLLERS] = {
	[MST_CONTROLLER_ADASYNC] = &mst_controller_adasync,
	[MST_CONTROLLER_SYNCSWITCH] = &mst_controller_syncswitch,
	[MST_CONTROLLER_DBW] = &mst_controller_dbw,
};

/* NULL: the rule is fixed. */
static const struct mst_controller_row *row_of(const struct mst_controller *c)
{
	MST_ASSERT(c->kind < MST_CONTROLLERS);
	return rows[c->kind];
}

static enum mst_controller_kind kind_of(const char *name, size_t len)
{
	for (unsigned kind = MST_CONTROLLER_NONE + 1; kind < MST_CONTROLLERS; kind++) {
		if (strlen(rows[kind]->name) == len && memcmp(rows[kind]->name, name, len) == 0)
			return (enum mst_controller_kind)kind;
	}
	return MST_CONTROLLER_NONE;
}

int mst_controller_parse(const char *policy, struct mst_controller *out, struct mst_rule *rule,
			 struct mst_reason *why)
{
	size_t len = strcspn(policy, ":");
	struct mst_controller c = { .kind = kind_of(policy, len) };
	struct mst_rule first = *rule;

	if (c.kind == MST_CONTROLLER_NONE)
		return -ENOENT;
	const char *text = policy[len] == ':' ? policy + len + 1 : "";
	int rc = row_of(&c)->parse(text, &c, &first, why);
	if (rc != 0)
		return rc;
	*out = c;
	*rule = first;
	return 0;
}

const char *mst_controller_help(unsigned index)
{
	unsigned kind = MST_CONTROLLER_NONE + 1 + index;

	return kind < MST_CONTROLLERS ? rows[kind]->help : NULL;
}

struct mst_rule *mst_controller_then(struct mst_controller *c)
{
	const struct mst_controller_row *row = row_of(c);

	return row != NULL ? row->then(c) : NULL;
}

struct mst_rule mst_controller_last(const struct mst_controller *c, const struct mst_rule *first,
				    uint32_t workers)
{
	const struct mst_controller_row *row = row_of(c);

	return row != NULL ? row->last(c, first, workers) : *first;
}

int mst_controller_check(const struct mst_controller *c, const struct mst_rule_context *ctx,
			 struct mst_reason *why)
{
	const struct mst_controller_row *row = row_of(c);

	return row != NULL ? row->check(c, ctx, why) : 0;
}

bool mst_controller_by_loss(const struct mst_controller *c)
{
	const struct mst_controller_row *row = row_of(c);

	return row != NULL && row->by_loss;
}

bool mst_controller_by_norms(const struct mst_controller *c)
{
	const struct mst_controller_row *row = row_of(c);

	return row != NULL && row->by_norms;
}

bool mst_controller_by_times(const struct mst_controller *c)
{
	const struct mst_controller_row *row = row_of(c);

	return row != NULL && row->arrived != NULL;
}

void mst_controller_arrived(struct mst_controller *c, const struct mst_arrival *arrival,
			    uint32_t workers)
{
	MST_ASSERT(mst_controller_by_times(c));
	row_of(c)->arrived(c, arrival, workers);
}

void mst_controller_reported(struct mst_controller *c, const struct mst_metric *said)
{
	const struct mst_controller_row *row = row_of(c);

	if (row != NULL && row->reported != NULL)
		row->reported(c, said);
}

const char *mst_controller_metric(const struct mst_controller *c)
{
	const struct mst_controller_row *row = row_of(c);

	return row != NULL && row->metric != NULL ? row->metric(c) : NULL;
}

bool mst_controller_decide(struct mst_controller *c, const struct mst_commit_view *commit,
			   struct mst_rule *rule)
{
	const struct mst_controller_row *row = row_of(c);

	return row != NULL && row->decide(c, commit, rule);
}

uint32_t mst_controller_keep(const struct mst_controller *c,
			     struct mst_controller_figure out[MST_CONTROLLER_FIGURES])
{
	const struct mst_controller_row *row = row_of(c);

	return row != NULL ? row->keep(c, out) : 0;
}

bool mst_controller_resume(struct mst_controller *c,
			   const struct mst_controller_figure figure[MST_CONTROLLER_FIGURES],
			   struct mst_rule *rule)
{
	const struct mst_controller_row *row = row_of(c);
	struct mst_controller resumed = *c;
	struct mst_rule next = *rule;

	if (row == NULL || !row->resume(&resumed, figure, &next))
		return false;
	*c = resumed;
	*rule = next;
	return true;
}

void mst_controller_now(const struct mst_controller *c, const struct mst_rule *rule, char *out,
			size_t len)
{
	const struct mst_controller_row *row = row_of(c);

	MST_ASSERT(len > 0);
	out[0] = '\0';
	if (row != NULL)
		row->now(c, rule, out, len);
}

void mst_controller_why(const struct mst_controller *c, const struct mst_rule *rule, char *out,
			size_t len)
{
	const struct mst_controller_row *row = row_of(c);

	MST_ASSERT(len > 0);
	out[0] = '\0';
	if (row != NULL)
		row->why(c, rule, out, len);
}

bool mst_controller_is_stuck(const struct mst_controller *c)
{
	const struct mst_controller_row *row = row_of(c);

	return row != NULL && row->is_stuck(c);
}

bool mst_controller_watches(const struct mst_controller *c, struct mst_straggler_test *out)
{
	const struct mst_controller_row *row = row_of(c);

	return row != NULL && row->watches != NULL && row->watches(c, out);
}

bool mst_controller_rests_stragglers(const struct mst_controller *c, struct mst_straggler_test *out)
{
	const struct mst_controller_row *row = row_of(c);

	return row != NULL && row->rests_stragglers != NULL && row->rests_stragglers(c, out);
}
