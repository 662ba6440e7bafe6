/* SPDX-License-Identifier: MIT */
#include "tools/sim/learn/versions.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/assert.h"

#define LINE_BYTES 64u

float *mst_sim_vector_new(uint64_t elems)
{
	size_t bytes = (size_t)(elems * sizeof(float) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;

	return aligned_alloc(LINE_BYTES, bytes);
}

int mst_sim_versions_init(struct mst_sim_versions *v, uint64_t elems, uint32_t room)
{
	MST_ASSERT(room >= 2);
	*v = (struct mst_sim_versions){ .elems = elems, .room = room };
	v->newest = calloc(room, sizeof(struct mst_sim_version *));
	return v->newest != NULL ? 0 : -ENOMEM;
}

void mst_sim_versions_fini(struct mst_sim_versions *v)
{
	for (uint32_t i = 0; v->newest != NULL && i < v->room; i++)
		mst_sim_version_drop(v, v->newest[i]);
	while (v->unused != NULL) {
		struct mst_sim_version *version = v->unused;
		v->unused = version->next;
		free(version->at);
		free(version);
	}
	free(v->newest);
	*v = (struct mst_sim_versions){ .room = 0 };
}

static struct mst_sim_version *take_unused(struct mst_sim_versions *v)
{
	struct mst_sim_version *version = v->unused;

	if (version != NULL) {
		v->unused = version->next;
		return version;
	}
	version = calloc(1, sizeof(*version));
	if (version == NULL)
		return NULL;
	version->at = mst_sim_vector_new(v->elems);
	if (version->at == NULL) {
		free(version);
		return NULL;
	}
	return version;
}

struct mst_sim_version *mst_sim_versions_add(struct mst_sim_versions *v, uint64_t number)
{
	struct mst_sim_version **place = &v->newest[number % v->room];
	struct mst_sim_version *version = take_unused(v);

	if (version == NULL)
		return NULL;
	mst_sim_version_drop(v, *place);
	version->number = number;
	version->readers = 1;
	*place = version;
	return version;
}

struct mst_sim_version *mst_sim_versions_at(const struct mst_sim_versions *v, uint64_t number)
{
	struct mst_sim_version *version = v->newest[number % v->room];

	MST_ASSERT(version != NULL && version->number == number);
	return version;
}

struct mst_sim_version *mst_sim_version_hold(struct mst_sim_version *version)
{
	version->readers++;
	return version;
}

void mst_sim_version_drop(struct mst_sim_versions *v, struct mst_sim_version *version)
{
	if (version == NULL || --version->readers > 0)
		return;
	version->next = v->unused;
	v->unused = version;
}
