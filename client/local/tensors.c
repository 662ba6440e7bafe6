/* SPDX-License-Identifier: MIT */
#include "client/local/tensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

struct mst_tensors {
	uint32_t count;
	char *names; /* one after the other; each row points there */
	struct mst_table table;
	struct muster_tensor row[];
};

#define LABEL_LEN 100u

/* "tensor \"fc1.weight\"", or "tensor number 3". */
static const char *label(const struct muster_tensor *tensor, uint32_t index, char out[LABEL_LEN])
{
	if (tensor->name != NULL && tensor->name[0] != '\0')
		(void)snprintf(out, LABEL_LEN, "tensor \"%.80s\"", tensor->name);
	else
		(void)snprintf(out, LABEL_LEN, "tensor number %" PRIu32, index);
	return out;
}

/* A user must not believe that a layer is frozen if it is not, nor freeze a layer by leaving its
 * scales out. */
static int check_scales(const struct muster_options *opt, uint32_t index, struct mst_reason *why)
{
	const struct muster_tensor *tensor = &opt->tensors[index];
	float lr = tensor->lr_scale, decay = tensor->decay_scale;
	const char *wrong = NULL;
	char name[LABEL_LEN];

	if (!mst_scale_is_sane(lr) || !mst_scale_is_sane(decay))
		wrong = "a scale is a number from 0 on";
	else if (lr == 0 && decay == 0)
		wrong = "set both to 1, or, to freeze the tensor, lr_scale to 0 and decay_scale "
			"to 1";
	else if (opt->owner == MUSTER_WORKERS_OWN && (lr != 1 || decay != 1))
		wrong = "but workers own the parameters of this job: set both to 1, and scale "
			"where you apply the gradient";
	if (wrong == NULL)
		return 0;
	mst_reason_set(why, "%s has lr_scale %g and decay_scale %g: %s", label(tensor, index, name),
		       (double)lr, (double)decay, wrong);
	return -EINVAL;
}

/* @end: where the tensors before it end. */
static int check_place(const struct muster_tensor *tensor, uint32_t index, uint64_t end,
		       struct mst_reason *why)
{
	char name[LABEL_LEN], before[LABEL_LEN] = "the vector";
	bool overlaps = tensor->first < end;

	(void)label(tensor, index, name);
	if (tensor->first == end)
		return 0;
	if (index > 0)
		(void)label(tensor - 1, index - 1, before);
	mst_reason_set(why,
		       "%s begins at element %" PRIu64 ", %s %s at element %" PRIu64 ": %s %" PRIu64
		       " elements; name every element once, in order",
		       name, tensor->first, before, index > 0 ? "ends" : "begins", end,
		       overlaps ? "they share" : "nobody names",
		       overlaps ? end - tensor->first : tensor->first - end);
	return -EINVAL;
}

/* The name travels to the servers, and from there to other programs. */
static int check_name(const struct muster_tensor *tensor, uint32_t index, struct mst_reason *why)
{
	size_t bytes = tensor->name != NULL ? strlen(tensor->name) : 0;

	if (bytes > MUSTER_TENSOR_NAME_MAX) {
		mst_reason_set(why,
			       "tensor number %" PRIu32 " has a name of %zu bytes, \"%.60s...\": a "
			       "name has at most %u",
			       index, bytes, tensor->name, MUSTER_TENSOR_NAME_MAX);
		return -EINVAL;
	}
	if (bytes == 0 || mst_text_is_clean(tensor->name))
		return 0;
	mst_reason_set(why,
		       "the name of tensor number %" PRIu32
		       " has control characters, or is not UTF-8: give it another name",
		       index);
	return -EINVAL;
}

int mst_tensors_check(const struct muster_options *opt, struct mst_reason *why)
{
	const struct muster_tensor *tensor = opt->tensors;
	uint32_t count = opt->tensor_count;
	uint64_t elems = opt->elems;
	char name[LABEL_LEN];
	uint64_t end = 0;

	if (count > MUSTER_TENSORS_MAX) {
		mst_reason_set(why, "%" PRIu32 " tensors are more than a table may have: %u", count,
			       MUSTER_TENSORS_MAX);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct muster_tensor *t = &tensor[i];
		if (t->count == 0 || t->first > elems || t->count > elems - t->first) {
			mst_reason_set(why,
				       "%s has %" PRIu64 " elements from %" PRIu64
				       " on, the vector has %" PRIu64,
				       label(t, i, name), t->count, t->first, elems);
			return -EINVAL;
		}
		int rc = check_name(t, i, why);
		if (rc == 0)
			rc = check_place(t, i, end, why);
		if (rc == 0)
			rc = check_scales(opt, i, why);
		if (rc != 0)
			return rc;
		end = t->first + t->count;
	}
	if (end == elems)
		return 0;
	mst_reason_set(why,
		       "%s ends at element %" PRIu64 ", the vector has %" PRIu64
		       ": name every element once, in order",
		       label(&tensor[count - 1], count - 1, name), end, elems);
	return -EINVAL;
}

static size_t name_bytes(const struct muster_tensor *tensor)
{
	return (tensor->name != NULL ? strlen(tensor->name) : 0) + 1;
}

int mst_tensors_copy(const struct muster_tensor *tensor, uint32_t count, struct mst_tensors **out)
{
	size_t bytes = 0;

	*out = NULL;
	if (count == 0)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		bytes += name_bytes(&tensor[i]);
	struct mst_tensors *t = calloc(1, sizeof(*t) + count * sizeof(t->row[0]));
	char *names = malloc(bytes);
	if (t == NULL || names == NULL) {
		free(names);
		free(t);
		return -ENOMEM;
	}
	t->count = count;
	t->names = names;
	for (uint32_t i = 0; i < count; i++) {
		size_t name = name_bytes(&tensor[i]);
		t->row[i] = tensor[i];
		t->row[i].name = names;
		memcpy(names, tensor[i].name != NULL ? tensor[i].name : "", name);
		names += name;
	}
	mst_table_of(t->row, count, &t->table);
	*out = t;
	return 0;
}

void mst_tensors_free(struct mst_tensors *t)
{
	if (t == NULL)
		return;
	free(t->names);
	free(t);
}

struct mst_table mst_tensors_table(const struct mst_tensors *t)
{
	return t != NULL ? t->table : (struct mst_table){ 0 };
}

uint32_t mst_tensors_piece(const struct mst_tensors *t, uint32_t at, uint32_t max,
			   struct mst_tensor_piece *piece)
{
	return mst_tensor_piece_of(t->row, t->count, at, max, piece);
}

const char *mst_tensors_place(const struct mst_tensors *t, uint64_t element, char *out, size_t len)
{
	out[0] = '\0';
	for (uint32_t i = 0; t != NULL && i < t->count; i++) {
		const struct muster_tensor *row = &t->row[i];
		if (element < row->first || element - row->first >= row->count)
			continue;
		if (row->name[0] != '\0')
			(void)snprintf(out, len,
				       ", which is element %" PRIu64 " of tensor \"%.80s\"",
				       element - row->first, row->name);
		else
			(void)snprintf(out, len,
				       ", which is element %" PRIu64 " of tensor number %" PRIu32,
				       element - row->first, i);
		break;
	}
	return out;
}
