/* SPDX-License-Identifier: MIT */
/*
 * What a simulated job can be trained on: a vector of parameters, gradients of a loss over samples
 * that are drawn at random, and an error that the parameters have. Problems are rows of one table;
 * a new one is a row here and a file like quadratic.c. Pure, but for the files that a problem reads
 * when it is made.
 */
#ifndef MST_TOOLS_SIM_PROBLEM_PROBLEM_H
#define MST_TOOLS_SIM_PROBLEM_PROBLEM_H

#include <stdint.h>
#include <stdio.h>

#include "common/base/rand.h"
#include "common/optim/optim.h"

#define MST_SIM_PARAMETERS_MAX 8u
#define MST_SIM_TENSORS_MAX 4u

/* Every problem has these two, at these places. */
enum { MST_SIM_BATCH, MST_SIM_LR };

struct mst_sim_problem;

struct mst_sim_problem_ops {
	void (*free)(struct mst_sim_problem *p);
	void (*start)(const struct mst_sim_problem *p, float *parameters);
	/* The mean gradient over so many samples, drawn by @chance. Return: their mean loss. */
	double (*gradient)(struct mst_sim_problem *p, const float *parameters,
			   struct mst_rand *chance, uint64_t samples, float *gradient);
	/* What the parameters are still wrong by, without any noise. */
	double (*error)(struct mst_sim_problem *p, const float *parameters);
};

struct mst_sim_problem {
	const struct mst_sim_problem_ops *ops;
	uint64_t elems; /* parameters */
	/* Which are so many tensors; where each ends. */
	uint32_t tensors;
	uint64_t tensor_end[MST_SIM_TENSORS_MAX];
	uint64_t batch; /* samples in a whole contribution */
	double lr;      /* of the steps that workers make on parameters of their own */
};

struct mst_sim_problem_spec;

struct mst_sim_problem_row {
	const char *name, *help; /* a sentence without its full stop */
	const char *error;       /* what its error is */
	const char *directory;   /* what is read from the directory of the spec; NULL: nothing */
	struct mst_optim_parameter parameter[MST_SIM_PARAMETERS_MAX];
	/* @why: a sentence. Return: 0; -ENOMEM; -ENOTSUP: not in this build; or what reading files
	 * gives. */
	int (*make)(const struct mst_sim_problem_spec *spec, struct mst_sim_problem **out,
		    struct mst_reason *why);
};

/* Ends with a name that is NULL. */
extern const struct mst_sim_problem_row mst_sim_problems[];

/* A row, and what the user set. */
struct mst_sim_problem_spec {
	const struct mst_sim_problem_row *row;
	char directory[4096]; /* empty: none */
	double parameter[MST_SIM_PARAMETERS_MAX];
	uint64_t seed; /* of the problem itself, and of its start; set by the caller */
};

/* Reads "quadratic:dim=10,noise=0" or "digits:DIRECTORY,batch=16". @why: a clause that names what
 * is wrong. Return: 0 or -EINVAL. */
int mst_sim_problem_parse(const char *text, struct mst_sim_problem_spec *out,
			  struct mst_reason *why);
/* Makes the problem of a spec. To be freed by its own function.
 * @why: a sentence. Return: as its row says. */
int mst_sim_problem_new(const struct mst_sim_problem_spec *spec, struct mst_sim_problem **out,
			struct mst_reason *why);
void mst_sim_problem_free(struct mst_sim_problem *p); /* accepts NULL */

/* All rows: as a part of --help, and as a section of a manual page in roff. */
void mst_sim_problem_help(FILE *out);
void mst_sim_problem_man(FILE *out);

/* The problems: quadratic.c, and digits.c or no_digits.c. */
int mst_sim_quadratic_new(const struct mst_sim_problem_spec *spec, struct mst_sim_problem **out,
			  struct mst_reason *why);
int mst_sim_digits_new(const struct mst_sim_problem_spec *spec, struct mst_sim_problem **out,
		       struct mst_reason *why);
/* Places of parameters, after those that every problem has. */
enum { MST_SIM_QUADRATIC_DIM = MST_SIM_LR + 1, MST_SIM_QUADRATIC_COND, MST_SIM_QUADRATIC_NOISE };
enum { MST_SIM_DIGITS_HIDDEN = MST_SIM_LR + 1 };

#endif
