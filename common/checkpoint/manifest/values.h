/* SPDX-License-Identifier: MIT */
/*
 * Named numbers and texts: the part of a manifest that its writer fills as it likes. A reader takes
 * the names that it knows and ignores the others, so that a later release may add some.
 *
 * Every function that adds copies what it is given. One thread at a time.
 */
#ifndef MST_COMMON_CHECKPOINT_MANIFEST_VALUES_H
#define MST_COMMON_CHECKPOINT_MANIFEST_VALUES_H

#include <stdint.h>

#define MST_VALUES_MAX 4096u /* names */

enum mst_value_kind { MST_VALUE_NUMBER, MST_VALUE_TEXT, MST_VALUE_LIST };

struct mst_value {
	enum mst_value_kind kind;
	char *name;
	char *text;     /* a text, or a number as it is written; NULL: a list */
	uint64_t *list; /* [count] */
	uint32_t count;
};

struct mst_values {
	uint32_t count, capacity;
	struct mst_value *value;
};

void mst_values_init(struct mst_values *v);
void mst_values_fini(struct mst_values *v);

/* Return: 0, -ENOMEM, -EEXIST: the name is taken, -E2BIG: there are MST_VALUES_MAX already. */
int mst_values_add_u64(struct mst_values *v, const char *name, uint64_t number);
/* Reading gives the same bits; a NaN becomes the canonical one. */
int mst_values_add_real(struct mst_values *v, const char *name, double number);
/* @number: as JSON writes it, and shorter than 32 characters. */
int mst_values_add_number(struct mst_values *v, const char *name, const char *number);
/* @text: what is not clean (common/base/text.h) is replaced by '?'. */
int mst_values_add_text(struct mst_values *v, const char *name, const char *text);
/* @list: may be NULL if @count is 0. */
int mst_values_add_list(struct mst_values *v, const char *name, const uint64_t *list,
			uint32_t count);

/* @out is written on success only. Return: 0, -ENOENT: there is no such name, -EINVAL: its value is
 * of another kind, or does not fit. */
int mst_values_u64(const struct mst_values *v, const char *name, uint64_t *out);
int mst_values_real(const struct mst_values *v, const char *name, double *out);
/* @out: lives as long as @v. */
int mst_values_text(const struct mst_values *v, const char *name, const char **out);
int mst_values_list(const struct mst_values *v, const char *name, const uint64_t **out,
		    uint32_t *count);

#endif
