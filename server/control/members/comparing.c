/* SPDX-License-Identifier: MIT */
#include "server/control/members/comparing.h"

#include <errno.h>
#include <inttypes.h>

#include "server/control/job/sentences.h"

/* ---- what a hello tells ---- */

/* What every hello must agree with: the options, or else the first hello. FREE: not fixed yet. */
#define FREE UINT32_MAX
struct fixed {
	uint64_t elems; /* 0: not fixed yet */
	uint32_t type, result_type;
};

static uint32_t fixed_type(uint32_t choice)
{
	return choice == MST_TYPE_AUTO ? FREE : choice - MST_TYPE_F32 + MUSTER_F32;
}

static struct fixed what_is_fixed(const struct mst_job *j)
{
	if (j->plan.vector.elems != 0)
		return (struct fixed){ j->plan.vector.elems, (uint32_t)j->plan.vector.type,
				       (uint32_t)j->plan.vector.result_type };
	return (struct fixed){ j->o->elems, fixed_type(j->o->type), fixed_type(j->o->result_type) };
}

/* Is @type of the hello another than the fixed one? */
static bool is_other(uint32_t type, uint32_t fixed)
{
	return fixed != FREE && type != fixed;
}

static int check_figures(const struct mst_job *j, const struct mst_hello *h, struct mst_reason *why)
{
	struct fixed f = what_is_fixed(j);
	const char *job = j->o->job;

	if (h->elems == 0 || h->elems > MST_ELEMS_MAX)
		mst_reason_set(why, "a length of %" PRIu64 " elements cannot be", h->elems);
	else if (f.elems != 0 && h->elems != f.elems)
		mst_reason_set(why,
			       "length %" PRIu64 " does not match job \"%s\" (%" PRIu64
			       "): all workers need the same model; the job has its length from %s",
			       h->elems, job, f.elems,
			       j->o->elems != 0 ? "--elems of the server"
						: "the worker that came first");
	else if (is_other(h->type, f.type))
		mst_reason_set(why, "gradients of %s do not match job \"%s\" (%s)",
			       mst_type_name((enum muster_type)h->type), job,
			       mst_type_name((enum muster_type)f.type));
	else if (is_other(h->result_type, f.result_type))
		mst_reason_set(why, "results of %s do not match job \"%s\" (%s)",
			       mst_type_name((enum muster_type)h->result_type), job,
			       mst_type_name((enum muster_type)f.result_type));
	else
		return 0;
	return -EINVAL;
}

/* Would scales of tensors take effect? */
static int check_scales(const struct mst_job *j, const struct mst_hello *h, struct mst_reason *why)
{
	const struct mst_optim *row = j->terms.optimizer.row;

	if (!mst_table_is_sane(&h->table, h->elems))
		mst_reason_set(why,
			       "a table of %" PRIu32 " tensors with %" PRIu32 " scales and %" PRIu64
			       " bytes of names cannot be",
			       h->table.tensors, h->table.runs, h->table.name_bytes);
	else if (h->table.runs == 0)
		return 0;
	else if (h->owner == MUSTER_WORKERS_OWN)
		mst_reason_set(
			why,
			"scales of tensors have no effect where workers own the parameters: set "
			"lr_scale and decay_scale to 1, and scale where you apply the gradient");
	else if (!row->scales)
		mst_reason_set(
			why,
			"scales of tensors have no effect on the optimiser %s of job \"%s\": set "
			"lr_scale and decay_scale to 1, or start the server with another "
			"--optimizer",
			row->name, j->o->job);
	else
		return 0;
	return -EINVAL;
}

int mst_comparing_hello(const struct mst_job *j, const struct mst_conn *c,
			const struct mst_hello *hello, struct mst_reason *why)
{
	int rc = check_figures(j, hello, why);
	char giver[MST_GIVER_LEN];

	(void)mst_tables_giver(hello->rank, c->peer, hello->pid, giver);
	if (rc == 0)
		rc = check_scales(j, hello, why);
	return rc == 0 ? mst_tables_check(&j->tables, &hello->table, giver, why) : rc;
}

/* ---- which tensor ---- */

/* Can it be found out in which tensor its model differs? A job that has started without its table
 * never has it. */
static bool has_other_tensors(const struct mst_job *j, const struct mst_hello *h)
{
	const struct mst_table *own = &h->table, *given = &j->plan.vector.table;
	bool comes = j->state == MST_JOB_GATHERING || !mst_job_lacks_table(j);

	return comes && j->tensors != NULL && own->tensors > 0 &&
	       mst_table_is_sane(own, h->elems) &&
	       (own->tensors != given->tensors || own->places != given->places ||
		own->names != given->names);
}

/* The table of the job may still be on its way, from another worker that is joining.
 * Return: it has not come in time. */
static bool is_time_over(const struct mst_followers *f, struct mst_conn *c, uint64_t now_ns)
{
	if (f->base->job.server == NULL || !mst_followers_are_ready(f))
		return false; /* nobody has been let in yet */
	if (c->compares_until_ns == 0)
		c->compares_until_ns = now_ns + MST_FRONTEND_GRACE_NS;
	return now_ns >= c->compares_until_ns;
}

enum mst_comparing mst_comparing_begin(const struct mst_followers *f, struct mst_conn *c,
				       const struct mst_hello *hello, uint64_t now_ns)
{
	if (!has_other_tensors(&f->base->job, hello) || is_time_over(f, c, now_ns))
		return MST_COMPARING_REFUSE;
	if (mst_job_lacks_table(&f->base->job))
		return MST_COMPARING_WAIT;
	c->compares = true;
	c->pid = hello->pid;
	c->table = hello->table;
	c->who.rank = (uint32_t)hello->rank;
	return MST_COMPARING_ASK;
}

int mst_comparing_piece(const struct mst_job *j, struct mst_conn *c,
			const struct mst_tensor_piece *piece, struct mst_reason *why)
{
	const char *broken = "broke the protocol: a table of tensors with a gap";
	char giver[MST_GIVER_LEN];

	if (!mst_tensor_table_is_whole(j->tensors)) {
		mst_reason_set(
			why,
			"the workers whose model this one was compared with have left before the "
			"start of job \"%s\"; join again",
			j->o->job);
		return -EBUSY;
	}
	(void)mst_tables_giver((int32_t)c->who.rank, c->peer, c->pid, giver);
	if (piece->at == c->compared && piece->total == c->table.tensors && piece->count > 0) {
		if (mst_tables_differ(&j->tables, j->tensors, piece, giver, why))
			return -EINVAL;
		c->compared += piece->count;
		if (c->compared < piece->total)
			return 0;
		broken = "broke the protocol: another table of tensors than its hello told of";
	}
	mst_reason_set(why, "%s", broken);
	return -EPROTO;
}
