/* SPDX-License-Identifier: MIT */
#include "tests/sim/disk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoint/find.h"
#include "common/checkpoint/keep.h"
#include "common/checkpoint/load.h"
#include "common/checkpoint/names.h"
#include "tests/sim/observer.h"
#include "tests/sim/world.h"

int __wrap_mst_checkpoint_find(const char *dir, const struct mst_checkpoint_wanted *wanted,
			       struct mst_checkpoint_manifest *out, struct mst_reason *why);
int __wrap_mst_checkpoint_manifest_read(const char *dir, uint64_t version,
					struct mst_checkpoint_manifest *out,
					struct mst_reason *why);
int __wrap_mst_checkpoint_check(const char *dir, const struct mst_checkpoint_manifest *m,
				struct mst_reason *why);
int __wrap_mst_checkpoint_verify(const char *dir, const struct mst_checkpoint_manifest *m,
				 struct mst_reason *why);
int __wrap_mst_checkpoint_set_aside(const char *dir, uint64_t version, struct mst_reason *why);
int __wrap_mst_checkpoint_versions(const char *dir, uint64_t **out, struct mst_reason *why);
int __wrap_mst_checkpoint_load(const char *dir, const struct mst_checkpoint_manifest *m,
			       const struct mst_checkpoint_loading *what, struct mst_reason *why);

/* A manifest is what its text says. */
struct manifest {
	uint64_t version;
	char *text;
	size_t length;
	struct manifest *next;
};

/* The newest first. */
static struct sim_part *parts;
static struct manifest *manifests;

void disk_begin(void)
{
	parts = NULL;
	manifests = NULL;
}

uint64_t disk_newest(void)
{
	return manifests != NULL ? manifests->version : 0;
}

/* ---- writing ---- */

void disk_keep(struct sim_part *part)
{
	part->next = parts;
	parts = part;
}

static const struct sim_part *find_part(const struct mst_checkpoint_manifest *m, uint32_t part)
{
	const struct sim_part *p = parts;

	while (p != NULL && (strcmp(p->id.save, m->id.save) != 0 || p->part != part))
		p = p->next;
	return p;
}

static bool take_parts(struct mst_checkpoint_manifest *m)
{
	for (uint32_t i = 0; i < m->parts; i++) {
		const struct sim_part *p = find_part(m, i);
		if (p == NULL || p->parts != m->parts || p->vectors != m->groups) {
			obs_violated("version %" PRIu64 " is complete, and part %" PRIu32
				     " is not on the disk",
				     m->id.version, i);
			return false;
		}
		m->part[i] = (struct mst_checkpoint_part){ .bytes = p->count * sizeof(float),
							   .first = p->first,
							   .count = p->count };
		mst_checkpoint_part_name(&m->id, i, m->parts, m->part[i].file);
	}
	return true;
}

void disk_complete(struct mst_checkpoint_manifest *m)
{
	struct manifest *kept = sim_alloc(sizeof(*kept));
	struct mst_reason why;
	char *text;
	size_t length;

	if (!take_parts(m))
		return;
	if (mst_checkpoint_manifest_compose(m, &text, &length, &why) != 0) {
		obs_violated("version %" PRIu64 " is complete, and has no manifest: %s",
			     m->id.version, why.text);
		return;
	}
	*kept = (struct manifest){ m->id.version, sim_alloc(length), length, manifests };
	memcpy(kept->text, text, length);
	free(text);
	manifests = kept;
}

/* ---- reading ---- */

static int parse(const struct manifest *kept, struct mst_checkpoint_manifest *out,
		 struct mst_reason *why)
{
	int rc = mst_checkpoint_manifest_parse(kept->text, kept->length, out, why);

	if (rc != 0)
		obs_violated("the manifest of version %" PRIu64 " cannot be read: %s",
			     kept->version, why->text);
	return rc;
}

bool disk_figure(const char *name, double *out)
{
	struct mst_checkpoint_manifest m;
	struct mst_reason why;

	if (manifests == NULL || parse(manifests, &m, &why) != 0)
		return false;
	bool has = mst_values_real(&m.values, name, out) == 0;
	mst_checkpoint_manifest_fini(&m);
	return has;
}

int __wrap_mst_checkpoint_find(const char *dir, const struct mst_checkpoint_wanted *wanted,
			       struct mst_checkpoint_manifest *out, struct mst_reason *why)
{
	for (const struct manifest *m = manifests; m != NULL; m = m->next) {
		if (wanted->before == 0 || m->version < wanted->before)
			return parse(m, out, why);
	}
	mst_reason_set(why, "there is no checkpoint on %s", dir);
	return -ENOENT;
}

int __wrap_mst_checkpoint_manifest_read(const char *dir, uint64_t version,
					struct mst_checkpoint_manifest *out, struct mst_reason *why)
{
	for (const struct manifest *m = manifests; m != NULL; m = m->next) {
		if (m->version == version)
			return parse(m, out, why);
	}
	mst_reason_set(why, "version %" PRIu64 " is not on %s", version, dir);
	return -ENOENT;
}

/* What is on this disk is as it was written. */
int __wrap_mst_checkpoint_check(const char *dir, const struct mst_checkpoint_manifest *m,
				struct mst_reason *why)
{
	(void)dir;
	for (uint32_t i = 0; i < m->parts; i++) {
		if (find_part(m, i) != NULL)
			continue;
		mst_reason_set(why, "part %" PRIu32 " is missing", i);
		return -EBADMSG;
	}
	return 0;
}

int __wrap_mst_checkpoint_verify(const char *dir, const struct mst_checkpoint_manifest *m,
				 struct mst_reason *why)
{
	return __wrap_mst_checkpoint_check(dir, m, why);
}

int __wrap_mst_checkpoint_versions(const char *dir, uint64_t **out, struct mst_reason *why)
{
	int count = 0;

	for (const struct manifest *m = manifests; m != NULL; m = m->next)
		count++;
	*out = malloc(((size_t)count + 1) * sizeof(**out));
	if (*out == NULL) {
		mst_reason_set(why, "no memory to list %s", dir);
		return -ENOMEM;
	}
	count = 0;
	for (const struct manifest *m = manifests; m != NULL; m = m->next)
		(*out)[count++] = m->version;
	return count;
}

/* None is ever refused. */
int __wrap_mst_checkpoint_set_aside(const char *dir, uint64_t version, struct mst_reason *why)
{
	(void)dir;
	(void)why;
	if (version != disk_newest())
		obs_violated("a job goes on from version %" PRIu64 ", and the newest is %" PRIu64,
			     version, disk_newest());
	return 0;
}

static const float *bits_of(const struct sim_part *p, const char *group)
{
	for (uint32_t i = 0; p != NULL && i < p->vectors; i++) {
		if (strcmp(p->vector[i].group, group) == 0)
			return p->vector[i].bits;
	}
	return NULL;
}

int __wrap_mst_checkpoint_load(const char *dir, const struct mst_checkpoint_manifest *m,
			       const struct mst_checkpoint_loading *what, struct mst_reason *why)
{
	uint64_t end = what->first + what->count, loaded = 0;
	float *into = what->into;

	for (uint32_t i = 0; i < m->parts; i++) {
		const struct sim_part *p = find_part(m, i);
		const float *bits = bits_of(p, what->group);
		for (uint64_t e = 0; bits != NULL && e < p->count; e++) {
			if (p->first + e < what->first || p->first + e >= end)
				continue;
			into[p->first + e - what->first] = bits[e];
			loaded++;
		}
	}
	if (loaded == what->count)
		return 0;
	mst_reason_set(why, "%s has not all %s", dir, what->group);
	return -ENOENT;
}
