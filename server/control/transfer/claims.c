/* SPDX-License-Identifier: MIT */
#include "server/control/transfer/claims.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

static const struct mst_claim_part *part_of(const struct mst_parts *parts, const char *name)
{
	for (uint32_t i = 0; i < parts->count; i++) {
		if (strcmp(parts->part[i].name, name) == 0)
			return &parts->part[i];
	}
	return NULL;
}

static const char *value_of(const struct mst_claim_part *part)
{
	if (part == NULL)
		return "not there";
	return part->value[0] != '\0' ? part->value : "another one";
}

void mst_apart_add(struct mst_apart *d, const char *fmt, ...)
{
	va_list args;

	if (d->why.text[0] != '\0')
		mst_reason_add(&d->why, "; ");
	va_start(args, fmt);
	mst_reason_vadd(&d->why, fmt, args);
	va_end(args);
}

/* @own or @theirs may be NULL: there is no such part. */
static void add(struct mst_apart *d, uint32_t from, const struct mst_claim_part *own,
		const struct mst_claim_part *theirs)
{
	const struct mst_claim_part *part = own != NULL ? own : theirs;
	/* What is alike in so few words differs in what they leave out. */
	bool silent = own != NULL && theirs != NULL && strcmp(own->value, theirs->value) == 0;

	d->state |= part->kind == MUSTER_PART_STATE;
	d->kernels |= part->kind == MUSTER_PART_KERNEL;
	if (silent)
		mst_apart_add(d, "%s: not those of rank %" PRIu32, part->name, from);
	else
		mst_apart_add(d, "%s: %s, and %s at rank %" PRIu32, part->name, value_of(own),
			      value_of(theirs), from);
}

struct mst_apart mst_claims_compare(const struct mst_parts *own, const struct mst_parts *theirs,
				    uint32_t from)
{
	struct mst_apart d = { .state = false };

	for (uint32_t i = 0; i < own->count; i++) {
		const struct mst_claim_part *part = part_of(theirs, own->part[i].name);
		if (part == NULL || part->digest != own->part[i].digest)
			add(&d, from, &own->part[i], part);
	}
	for (uint32_t i = 0; i < theirs->count; i++) {
		if (part_of(own, theirs->part[i].name) == NULL)
			add(&d, from, NULL, &theirs->part[i]);
	}
	return d;
}
