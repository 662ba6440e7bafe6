/* SPDX-License-Identifier: MIT */
/* The parts of delay.c: models, specs and traces. Internal to common/delay. */
#ifndef MST_DELAY_MODEL_H
#define MST_DELAY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rand.h"
#include "common/base/reason.h"

/* No delay is longer: 2^62 ns are 146 years, and can still be added to a time. */
#define MST_DELAY_MAX (UINT64_C(1) << 62)
#define MST_DELAY_PARAMS 2u

enum mst_model_kind {
	MST_MODEL_DRAWN,
	MST_MODEL_MIX,   /* multiplies what another model gives */
	MST_MODEL_TRACE, /* from a file */
};

struct mst_model {
	const char *form; /* "uniform:LO,HI"; its name ends at the ':' */
	enum mst_model_kind kind;
	unsigned params;
	/* DRAWN: the next delay in milliseconds. */
	double (*draw)(struct mst_rand *r, const double *p);
	/* What is wrong with the numbers, or NULL. No function: any numbers from 0 on are
	 * allowed. */
	const char *(*check)(const double *p);
};

/* Ends with a form that is NULL. */
extern const struct mst_model mst_models[];
/* Return: the model called @name (@len characters), or NULL. */
const struct mst_model *mst_model_find(const char *name, size_t len);

struct mst_trace_file; /* a file that has been read */

struct mst_spec {
	const char *text;
	const struct mst_model *model;
	double p[MST_DELAY_PARAMS];
	const char *file;              /* TRACE */
	struct mst_trace_file *traces; /* TRACE: what is in the file; NULL: it is not read yet */
	bool for_all;
	uint32_t rank; /* unless for_all */
};

struct mst_specs {
	struct mst_spec *spec;
	size_t count;
};

/* Parses out->count texts into out->spec, and checks them together.
 * @why: a sentence that quotes the spec.
 * Return: 0 or -EINVAL. */
int mst_specs_parse(struct mst_specs *out, const char *const *text, struct mst_reason *why);
/* The model that is given for all ranks, or for exactly this rank; with @want_mix the mix. NULL:
 * none. */
struct mst_spec *mst_specs_for_all(const struct mst_specs *all, bool want_mix);
struct mst_spec *mst_specs_for_rank(const struct mst_specs *all, uint32_t rank, bool want_mix);
/* Writes: delay "SPEC": WRONG, which may lie in @why.
 * Return: -EINVAL. */
int mst_spec_refuse(const char *spec, const char *wrong, struct mst_reason *why);

/* Reads the number that @text begins with: decimal, not negative, finite. strtod() alone would also
 * accept blanks, "nan", "inf" and hexadecimal.
 * Return: what follows it, or NULL. */
const char *mst_delay_number(const char *text, double *out);

/* The times of one worker of a file, in the order of the file. */
struct mst_trace {
	uint64_t *ns;
	size_t count; /* > 0 */
	size_t next;
};

/* Reads a file, once for all ranks that use it.
 * @why: on failure what is wrong, in words.
 * Return: 0; -EINVAL; -ENOMEM; the errno of opening or reading it. */
int mst_trace_file_read(const char *path, struct mst_trace_file **out, struct mst_reason *why);
void mst_trace_file_free(struct mst_trace_file *f); /* accepts NULL */

/* Copies the times that @rank uses. Return: 0 or -ENOMEM. */
int mst_trace_pick(struct mst_trace *t, const struct mst_trace_file *f, uint32_t rank);
void mst_trace_free(struct mst_trace *t);
/* The next time; after the last one the first. */
uint64_t mst_trace_next(struct mst_trace *t);

#endif
