/* SPDX-License-Identifier: MIT */
#include "tests/sim/archive.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/reason.h"
#include "tests/sim/disk.h"
#include "tests/sim/observer.h"

struct sim_archive {
	struct mst_archive archive; /* first */
	uint32_t server;
	struct sim_process *process;
	uint64_t works; /* so far: an end that comes after archives_stop() is of none */
	enum { RESTS, WRITES, COMPLETES, DONE } state;
	const struct mst_checkpoint_writing *writing;
	struct sim_part *part; /* what it was when writing began */
	struct mst_checkpoint_manifest *manifest;
	struct mst_archive_end end;
};

static const struct sim_plan *the_plan;
static struct sim_archive archives[SIM_SERVERS_MAX];

static struct sim_archive *archive_of(struct mst_archive *a)
{
	return (struct sim_archive *)a;
}

/* ---- parts ---- */

static void copy_vector(const struct mst_checkpoint_vector *v, uint64_t count,
			struct sim_vector *out)
{
	uint64_t at = 0;

	MST_ASSERT(v->type == MST_DTYPE_F32);
	(void)snprintf(out->group, sizeof(out->group), "%s", v->group);
	out->bits = sim_alloc(count * sizeof(float));
	for (uint32_t i = 0; i < v->pieces; i++) {
		MST_ASSERT(v->piece[i].count <= count - at);
		memcpy(out->bits + at, v->piece[i].base, v->piece[i].count * sizeof(float));
		at += v->piece[i].count;
	}
	MST_ASSERT(at == count);
}

static struct sim_part *copy_part(const struct mst_checkpoint_writing *w)
{
	struct sim_part *p = sim_alloc(sizeof(*p));

	MST_ASSERT(w->vectors <= SIM_VECTORS_MAX);
	*p = (struct sim_part){ .id = *w->id,
				.part = w->part,
				.parts = w->parts,
				.first = w->first,
				.count = w->count,
				.vectors = w->vectors };
	for (uint32_t i = 0; i < w->vectors; i++)
		copy_vector(&w->vector[i], w->count, &p->vector[i]);
	return p;
}

static bool is_vector(const struct mst_checkpoint_vector *v, const struct sim_vector *was)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < v->pieces; i++) {
		size_t bytes = v->piece[i].count * sizeof(float);
		if (memcmp(was->bits + at, v->piece[i].base, bytes) != 0)
			return false;
		at += v->piece[i].count;
	}
	return true;
}

static void check_unchanged(const struct sim_archive *a)
{
	const struct mst_checkpoint_writing *w = a->writing;
	const struct sim_part *was = a->part;

	if (w->id->version != was->id.version || strcmp(w->id->save, was->id.save) != 0 ||
	    w->vectors != was->vectors)
		obs_violated("%s writes version %" PRIu64 ", and is to write another by the end",
			     a->process->name, was->id.version);
	for (uint32_t i = 0; i < was->vectors && obs_violation() == NULL; i++) {
		if (!is_vector(&w->vector[i], &was->vector[i]))
			obs_violated("%s: the %s of version %" PRIu64
				     " changed while being written",
				     a->process->name, was->vector[i].group, was->id.version);
	}
}

/* ---- time ---- */

static void done(struct sim_archive *a)
{
	bool writes = a->state == WRITES;

	if (writes)
		check_unchanged(a);
	if (writes && a->end.error == 0) {
		disk_keep(a->part);
		a->end.bytes = a->part->count * sizeof(float);
	} else if (a->end.error == 0) {
		disk_complete(a->manifest);
	}
	a->state = DONE;
	sim_say("%s has %s %s", a->process->name, writes ? "written its part," : "the manifest,",
		a->end.error != 0 ? a->end.why.text : "and all is well");
	if (writes)
		obs_part_ended(a->server, a->part->id.version, a->end.error);
	else
		obs_manifest_ended(a->manifest->id.version, a->end.error);
	sim_ring(&a->process->control);
}

/* A process that has died has no archive any more. */
static void end_work(void *ctx, uint64_t number)
{
	struct sim_archive *a = ctx;

	if (!a->process->dead && a->works == number && a->state != RESTS)
		done(a);
}

static void begin_work(struct sim_archive *a, int state)
{
	const struct sim_saves *s = &the_plan->saves;
	bool slow = sim_chance(s->slow_chance);

	a->state = state;
	a->works++;
	a->end = (struct mst_archive_end){ .error = sim_chance(s->fail_chance) ? -ENOSPC : 0 };
	if (a->end.error != 0)
		mst_reason_set(&a->end.why, "the disk is full");
	if (s->hangs == (int)a->server && a->works >= s->hangs_from) {
		sim_say("%s's disk does not answer any more", a->process->name);
		return;
	}
	uint64_t took_ns = slow ? sim_below(s->slow_ns + 1) : sim_below(s->most_ns + 1);
	if (took_ns > 0)
		sim_after(took_ns, end_work, a, a->works);
	else
		done(a);
}

/* ---- what servers call ---- */

static void sim_write(struct mst_archive *archive, const struct mst_checkpoint_writing *w)
{
	struct sim_archive *a = archive_of(archive);

	if (a->process->dead)
		return;
	MST_ASSERT(a->state == RESTS);
	a->writing = w;
	a->part = copy_part(w);
	sim_say("%s writes part %" PRIu32 " of version %" PRIu64, a->process->name, w->part,
		w->id->version);
	obs_part_begins(a->server, a->part);
	begin_work(a, WRITES);
}

/* These disks have a time of their own. */
static void sim_hurry(struct mst_archive *archive)
{
	(void)archive;
}

static void sim_complete(struct mst_archive *archive, struct mst_checkpoint_manifest *manifest)
{
	struct sim_archive *a = archive_of(archive);

	if (a->process->dead)
		return;
	MST_ASSERT(a->state == RESTS && a->server == 0);
	a->manifest = manifest;
	sim_say("%s writes the manifest of version %" PRIu64, a->process->name,
		manifest->id.version);
	obs_manifest_begins(manifest);
	begin_work(a, COMPLETES);
}

static bool sim_ended(struct mst_archive *archive, struct mst_archive_end *out)
{
	struct sim_archive *a = archive_of(archive);

	if (a->state != DONE)
		return false;
	*out = a->end;
	a->state = RESTS;
	return true;
}

/* ---- all of them ---- */

void archives_begin(const struct sim_plan *plan)
{
	the_plan = plan;
	memset(archives, 0, sizeof(archives));
}

struct mst_archive *archives_of(uint32_t server, struct sim_process *process)
{
	static const struct mst_archive_ops ops = { sim_write, sim_complete, sim_hurry, sim_ended };
	struct sim_archive *a = &archives[server];

	if (!the_plan->saves.wanted)
		return NULL;
	a->archive.ops = &ops;
	a->server = server;
	a->process = process;
	return &a->archive;
}

void archives_stop(uint32_t server)
{
	archives[server].works++;
	archives[server].state = RESTS;
}
