/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/text.h"
#include "common/checkpoint/names.h"

#define PARAMETERS "parameters" /* the group whose tensors have no prefix */
#define NAMELESS "tensor"
#define NUMBER_LEN 12u /* "#4294967295" and NUL */

/* ---- the arguments ---- */

static bool is_group(const char *name)
{
	static const char taken[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-";
	size_t len = strlen(name);

	return len > 0 && len < MST_CHECKPOINT_GROUP_LEN && strspn(name, taken) == len;
}

static bool is_group_twice(const struct mst_checkpoint_writing *w, uint32_t vector)
{
	for (uint32_t i = 0; i < vector; i++)
		if (strcmp(w->vector[i].group, w->vector[vector].group) == 0)
			return true;
	return false;
}

static uint64_t elements(const struct mst_checkpoint_vector *v)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < v->pieces; i++)
		count += v->piece[i].count;
	return count;
}

static int check_vectors(const struct mst_checkpoint_writing *w, struct mst_reason *why)
{
	if (w->vectors == 0 || w->vectors > MST_CHECKPOINT_GROUPS_MAX)
		return mst_reason_fail(why, -EINVAL,
				       "a checkpoint of %" PRIu32 " vectors cannot be written: "
				       "it has from 1 to %u",
				       w->vectors, MST_CHECKPOINT_GROUPS_MAX);
	for (uint32_t i = 0; i < w->vectors; i++) {
		const struct mst_checkpoint_vector *v = &w->vector[i];
		if (!is_group(v->group) || is_group_twice(w, i))
			return mst_reason_fail(
				why, -EINVAL, "\"%.60s\" cannot be the name of a vector", v->group);
		if (elements(v) != w->count)
			return mst_reason_fail(why, -EINVAL,
					       "the vector %s has %" PRIu64 " elements, and its "
					       "part has %" PRIu64,
					       v->group, elements(v), w->count);
	}
	return 0;
}

static int check_table(const struct mst_checkpoint_writing *w, struct mst_reason *why)
{
	uint64_t end = 0;

	for (uint32_t i = 0; w->table != NULL && i < w->tensors; i++) {
		const struct muster_tensor *t = &w->table[i];
		if (t->first != end || t->count == 0 || t->count > w->id->elems - end)
			return mst_reason_fail(why, -EINVAL,
					       "tensor %" PRIu32 " of the job does not begin where "
					       "the tensor before it ends, or it ends after the "
					       "end of the vector",
					       i);
		end += t->count;
	}
	if (w->table == NULL || end == w->id->elems)
		return 0;
	return mst_reason_fail(why, -EINVAL,
			       "the tensors of the job have %" PRIu64 " elements, and its vector "
			       "has %" PRIu64,
			       end, w->id->elems);
}

static int check(const struct mst_checkpoint_writing *w, struct mst_reason *why)
{
	if (!mst_checkpoint_is_save(w->id->save))
		return mst_reason_fail(why, -EINVAL,
				       "a save id is 32 hexadecimal digits, and this one is "
				       "\"%.40s\"",
				       w->id->save);
	bool outside = w->first > w->id->elems || w->count > w->id->elems - w->first;

	if (w->part >= w->parts || w->parts > MST_CHECKPOINT_PARTS_MAX)
		return mst_reason_fail(why, -EINVAL,
				       "there is no part %" PRIu32 " of %" PRIu32 "; a checkpoint "
				       "has at most %u parts",
				       w->part, w->parts, MST_CHECKPOINT_PARTS_MAX);
	if (outside || w->count == 0)
		return mst_reason_fail(why, -EINVAL,
				       "the part has %" PRIu64 " elements from %" PRIu64
				       " on, and the vector has %" PRIu64,
				       w->count, w->first, w->id->elems);
	int rc = check_vectors(w, why);
	return rc == 0 ? check_table(w, why) : rc;
}

/* ---- names of the table's tensors ---- */

struct label {
	const char *name;
	uint32_t tensor;
	bool numbered; /* the tensor's number follows its name */
};

/* Names of the whole table, so that every part comes to the same ones. */
struct labels {
	char *text;
	struct label *label; /* [tensors], by tensor */
};

static void labels_fini(struct labels *l)
{
	free(l->text);
	free(l->label);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

static int by_tensor(const void *a, const void *b)
{
	uint32_t x = ((const struct label *)a)->tensor, y = ((const struct label *)b)->tensor;

	return x < y ? -1 : x > y;
}

/* "fc1#17" */
static bool looks_numbered(const char *name)
{
	const char *mark = strrchr(name, '#');

	return mark != NULL && strspn(mark + 1, "0123456789") == strlen(mark + 1);
}

/* "momentum/fc1" */
static bool looks_like_state(const struct mst_checkpoint_writing *w, const char *name)
{
	size_t len = strcspn(name, "/");

	for (uint32_t i = 0; i < w->vectors && name[len] == '/'; i++)
		if (strncmp(w->vector[i].group, name, len) == 0 && w->vector[i].group[len] == '\0')
			return true;
	return false;
}

static bool is_taken(const struct mst_checkpoint_writing *w, const char *name)
{
	return name[0] == '\0' || strcmp(name, "__metadata__") == 0 || looks_numbered(name) ||
	       looks_like_state(w, name);
}

/* A name that is used twice, or that could be taken for another one, is numbered. No name that is
 * not numbered ends as those do, and no two have the same number. */
static void labels_number(const struct mst_checkpoint_writing *w, struct label *label)
{
	qsort(label, w->tensors, sizeof(*label), by_name);
	for (uint32_t i = 0; i < w->tensors; i++)
		label[i].numbered = is_taken(w, label[i].name) ||
				    (i > 0 && by_name(&label[i - 1], &label[i]) == 0) ||
				    (i + 1 < w->tensors && by_name(&label[i], &label[i + 1]) == 0);
	qsort(label, w->tensors, sizeof(*label), by_tensor);
}

static size_t name_bytes(const struct muster_tensor *t)
{
	return (t->name != NULL ? strlen(t->name) : 0) + 1;
}

static int labels_init(struct labels *l, const struct mst_checkpoint_writing *w)
{
	size_t bytes = 0;

	*l = (struct labels){ 0 };
	if (w->table == NULL || w->tensors == 0)
		return 0;
	for (uint32_t i = 0; i < w->tensors; i++)
		bytes += name_bytes(&w->table[i]);
	l->text = malloc(bytes);
	l->label = calloc(w->tensors, sizeof(*l->label));
	if (l->text == NULL || l->label == NULL) {
		labels_fini(l);
		return -ENOMEM;
	}
	char *at = l->text;
	for (uint32_t i = 0; i < w->tensors; i++) {
		size_t name = name_bytes(&w->table[i]);
		memcpy(at, w->table[i].name != NULL ? w->table[i].name : "", name);
		mst_text_clean(at);
		l->label[i] = (struct label){ .name = at, .tensor = i };
		at += name;
	}
	labels_number(w, l->label);
	return 0;
}

/* ---- the tensors of the part ---- */

/* What of the table lies in the part: the tensors [begin, end). Without a table there is one. */
struct cut {
	uint32_t begin, end;
};

static struct cut cut_of(const struct mst_checkpoint_writing *w)
{
	struct cut cut = { 0, 1 };
	uint64_t end = w->first + w->count;

	if (w->table == NULL)
		return cut;
	while (w->table[cut.begin].first + w->table[cut.begin].count <= w->first)
		cut.begin++;
	cut.end = cut.begin;
	while (cut.end < w->tensors && w->table[cut.end].first < end)
		cut.end++;
	return cut;
}

/* Bytes that all names of the part take at most. */
static size_t names_bytes(const struct mst_checkpoint_writing *w, const struct labels *l,
			  struct cut cut)
{
	size_t bytes = 0;

	for (uint32_t i = cut.begin; i < cut.end; i++)
		bytes += MST_CHECKPOINT_GROUP_LEN + 1 + sizeof(NAMELESS) + NUMBER_LEN +
			 (l->label != NULL ? strlen(l->label[i].name) : 0);
	return bytes * w->vectors;
}

/* Writes the name of a tensor. Return: its bytes with NUL. */
static size_t compose_name(const char *group, const struct label *label, char *out, size_t room)
{
	bool prefix = strcmp(group, PARAMETERS) != 0;
	char number[NUMBER_LEN] = "";
	int len;

	if (label != NULL && label->numbered)
		(void)snprintf(number, sizeof(number), "#%" PRIu32, label->tensor);
	if (label == NULL)
		len = snprintf(out, room, "%s", group);
	else
		len = snprintf(out, room, "%s%s%s%s", prefix ? group : "", prefix ? "/" : "",
			       label->name[0] != '\0' ? label->name : NAMELESS, number);
	MST_ASSERT(len >= 0 && (size_t)len < room);
	return (size_t)len + 1;
}

/* Where the tensor lies in vector, table and file. */
static void place(const struct mst_checkpoint_writing *w, uint32_t tensor, uint64_t begin,
		  struct mst_tensor_entry *t)
{
	uint64_t from = w->table != NULL ? w->table[tensor].first : w->first;
	uint64_t total = w->table != NULL ? w->table[tensor].count : w->count;
	uint64_t part_end = w->first + w->count, end = from + total;

	t->first = from > w->first ? from : w->first;
	t->count = (end < part_end ? end : part_end) - t->first;
	t->offset = w->table != NULL ? t->first - from : w->first;
	t->total = w->table != NULL ? total : w->id->elems;
	t->begin = begin;
	t->end = begin + t->count * mst_dtype_bytes(t->type);
}

/* Adds the tensors of one vector. */
static void add_vector(const struct mst_checkpoint_writing *w, const struct labels *l,
		       const struct mst_checkpoint_vector *v, struct mst_tensor_file *f,
		       char **names, const char *names_end)
{
	struct cut cut = cut_of(w);

	for (uint32_t i = cut.begin; i < cut.end; i++) {
		struct mst_tensor_entry *t = &f->tensor[f->tensors];
		uint64_t begin = f->tensors > 0 ? t[-1].end : 0;
		*t = (struct mst_tensor_entry){ .name = *names, .type = v->type };
		(void)snprintf(t->group, sizeof(t->group), "%s", v->group);
		place(w, i, begin, t);
		*names += compose_name(v->group, l->label != NULL ? &l->label[i] : NULL, *names,
				       (size_t)(names_end - *names));
		f->tensors++;
	}
}

static int add_all(const struct mst_checkpoint_writing *w, const struct labels *l,
		   struct mst_tensor_file *f)
{
	struct cut cut = cut_of(w);
	size_t bytes = names_bytes(w, l, cut);

	f->tensor = calloc((size_t)(cut.end - cut.begin) * w->vectors, sizeof(*f->tensor));
	f->names = malloc(bytes);
	if (f->tensor == NULL || f->names == NULL)
		return -ENOMEM;
	char *names = f->names;
	for (size_t size = 8; size >= 2; size /= 2)
		for (uint32_t v = 0; v < w->vectors; v++)
			if (mst_dtype_bytes(w->vector[v].type) == size)
				add_vector(w, l, &w->vector[v], f, &names, f->names + bytes);
	return 0;
}

int mst_checkpoint_layout(const struct mst_checkpoint_writing *w, struct mst_tensor_file *out,
			  struct mst_reason *why)
{
	struct mst_tensor_file f = { .id = *w->id,
				     .part = w->part,
				     .parts = w->parts,
				     .first = w->first,
				     .count = w->count };
	struct labels labels;
	int rc = check(w, why);

	if (rc != 0)
		return rc;
	mst_text_clean(f.id.job);
	rc = labels_init(&labels, w);
	if (rc == 0) {
		rc = add_all(w, &labels, &f);
		labels_fini(&labels);
	}
	if (rc == 0) {
		*out = f;
		return 0;
	}
	mst_tensor_file_fini(&f);
	return mst_reason_fail(why, rc, "no memory for the names of the tensors");
}
