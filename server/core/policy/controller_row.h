/* SPDX-License-Identifier: MIT */
/* The row of a kind of controller: its name and its functions. controller.c has the table; each row
 * is made in controller_KIND.c. */
#ifndef MST_SERVER_CORE_POLICY_CONTROLLER_ROW_H
#define MST_SERVER_CORE_POLICY_CONTROLLER_ROW_H

#include "server/core/policy/controller.h"

/* `arrived` is NULL where times of arrival do not matter. A controller that does not look for
 * stragglers has no `watches` and no `rests_stragglers`, and one that no report concerns no
 * `reported` and no `metric`. No other function is NULL. */
struct mst_controller_row {
	const char *name;
	const char *help; /* as of mst_controller_help() */
	bool by_loss;     /* it decides by the losses that workers tell */
	bool by_norms;    /* it decides by norms */
	/* Reads what follows the colon, or "" if there is no colon. Out: @c, all zero before, and
	 * the rule of the first step. @why, and 0 or -EINVAL, as of mst_controller_parse(). */
	int (*parse)(const char *text, struct mst_controller *c, struct mst_rule *rule,
		     struct mst_reason *why);
	/* As the functions in controller.h that have these names. */
	struct mst_rule *(*then)(struct mst_controller *c);
	struct mst_rule (*last)(const struct mst_controller *c, const struct mst_rule *first,
				uint32_t workers);
	int (*check)(const struct mst_controller *c, const struct mst_rule_context *ctx,
		     struct mst_reason *why);
	void (*arrived)(struct mst_controller *c, const struct mst_arrival *arrival,
			uint32_t workers);
	void (*reported)(struct mst_controller *c, const struct mst_metric *said);
	const char *(*metric)(const struct mst_controller *c);
	bool (*decide)(struct mst_controller *c, const struct mst_commit_view *commit,
		       struct mst_rule *rule);
	uint32_t (*keep)(const struct mst_controller *c, struct mst_controller_figure *out);
	bool (*resume)(struct mst_controller *c, const struct mst_controller_figure *figure,
		       struct mst_rule *rule);
	void (*now)(const struct mst_controller *c, const struct mst_rule *rule, char *out,
		    size_t len);
	void (*why)(const struct mst_controller *c, const struct mst_rule *rule, char *out,
		    size_t len);
	bool (*is_stuck)(const struct mst_controller *c);
	bool (*watches)(const struct mst_controller *c, struct mst_straggler_test *out);
	bool (*rests_stragglers)(const struct mst_controller *c, struct mst_straggler_test *out);
};

extern const struct mst_controller_row mst_controller_adasync;
extern const struct mst_controller_row mst_controller_syncswitch;
extern const struct mst_controller_row mst_controller_dbw;

#endif
