/* SPDX-License-Identifier: MIT */
/* A job that is planned and not made, for its figures. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/admin.h"
#include "server/admin_state.h"

static int plan(struct mst_admin *a, uint64_t elems, struct mst_budget *out, char *why, size_t len)
{
	const struct mst_hello hello = { .elems = elems,
					 .type = MUSTER_F32,
					 .result_type = MUSTER_F32 };
	struct mst_server_cfg cfg;
	int rc = mst_admin_plan_job(a, &hello, &cfg, why, len);

	if (rc != 0)
		return rc;
	mst_budget_of(&cfg, out);
	out->servers = a->o->servers;
	return 0;
}

/* As @lead would appoint it. */
static void plan_member(const struct mst_admin *lead, uint32_t server, struct mst_admin *a,
			struct mst_budget *out)
{
	struct mst_server_options typed = *lead->o;
	struct mst_server_cfg cfg;

	typed.join = typed.listen;
	*a = (struct mst_admin){ .cfg = lead->cfg, .fabric = lead->fabric };
	a->cfg.options = &typed;
	mst_admin_fill_appoint(lead, server, &a->lead.appoint);
	mst_admin_take_options(a);
	a->guest_max = lead->guest_max;
	mst_admin_plan_part(a, &cfg);
	mst_budget_of(&cfg, out);
	out->servers = lead->o->servers;
	out->first = a->first;
}

int mst_admin_budget(const struct mst_admin_cfg *cfg, uint64_t elems,
		     struct mst_budget out[MST_SERVERS_MAX], char *why, size_t why_len)
{
	struct mst_admin *lead = calloc(2, sizeof(*lead)); /* and a member */

	(void)snprintf(why, why_len, "no memory to reckon with");
	if (lead == NULL)
		return -ENOMEM;
	lead->cfg = *cfg;
	lead->o = cfg->options;
	lead->guest_max = MST_ADMIN_GUESTS_PER_RANK * lead->o->workers;
	int rc = mst_admin_read_options(lead, why, why_len);
	if (rc == 0)
		rc = plan(lead, elems, &out[0], why, why_len);
	for (uint32_t i = 1; rc == 0 && i < lead->o->servers; i++)
		plan_member(lead, i, &lead[1], &out[i]);
	free(lead);
	return rc;
}
