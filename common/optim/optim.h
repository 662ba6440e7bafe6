/* SPDX-License-Identifier: MIT */
/*
 * Optimisers that the servers can run, as rows of one table. A row says all that the rest of the
 * program needs to know of an optimiser: options, the appointment of a follower, the memory budget,
 * the aggregator, the shards, the ledger and the manual page read the row, and none of them knows
 * an optimiser by name. A new optimiser is one row in rows.c and one kernel file. Pure.
 */
#ifndef MST_OPTIM_OPTIM_H
#define MST_OPTIM_OPTIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/exact_sum.h"
#include "common/base/reason.h"
#include "common/kernels/apply.h"
#include "common/kernels/isa.h"
#include "common/optim/norms.h"

#define MST_OPTIM_NAME_LEN 16u /* with NUL */
#define MST_OPTIM_EXAMPLE_LEN 200u
#define MST_OPTIM_RANGE_LEN 80u

/* A number that the user may set, as in "sgd:lr=0.1". */
struct mst_optim_parameter {
	const char *name; /* NULL: the row has no more */
	double fallback;  /* where it is left out */
	double min, max;
	bool above_min, below_max; /* the bound itself is refused */
	bool whole;
	const char *needs; /* the parameter without which another value than 0 means nothing */
	const char *help;
};

/* A vector of f32, as long as the server's part, zero at first. */
struct mst_optim_state {
	const char *name; /* NULL: the row has no more */
	/* The state is kept if this parameter is not 0. For a state that is always kept, name a
	 * parameter that cannot be 0, such as lr. */
	unsigned parameter;
};

/* What the scalars of a version are computed from. */
struct mst_optim_version {
	uint64_t version;
	double lr_scale; /* scale x schedule */
};

/* The norms of a tensor before the step. Both are finite and above 0. */
struct mst_norms {
	double theta, direction;
	double decay; /* the weight decay of the tensor, as its elements have it */
};

struct mst_optim {
	const char *name;
	const char *help; /* one sentence without its full stop */
	bool divides;     /* contributions are averaged; else they are added up */
	bool deltas;      /* contributions are differences of parameters */
	struct mst_optim_parameter parameter[MST_PARAMETERS_MAX];
	struct mst_optim_state state[MST_STATES_MAX];
	/* Computes in double what the leader rounds once and writes into the record. NULL: all
	 * are 0, and there is no rate. Else the first parameter is the rate. */
	void (*scalars)(const double *parameter, const struct mst_optim_version *v, double *scalar);
	/* The reduce phase: where the parameter `reduces` is not 0, the mean is kept until its norm
	 * is known, that of the whole vector over all servers, and multiplied by the factor that
	 * the leader makes of it. NULL: there is no such phase, and a commit is one pass. */
	double (*factor)(double limit, double norm); /* @limit: the parameter `reduces` */
	unsigned reduces;
	/* The other reduce phase: the rate of each tensor is multiplied by what this makes of two
	 * norms of the tensor, its trust ratio. A worker's table says where tensors begin; without
	 * a table the vector is one tensor. A row has `factor` or `trust`, or none. */
	double (*trust)(const double *parameter, const struct mst_norms *norms);
	/* The direction whose norm that is, from the mean and the states before the step: a kernel
	 * that writes it to `next`, and no states. NULL: it is the mean itself. */
	mst_apply_fn *direction[MST_ISA_COUNT];
	/* Tensors may have scales of their own: of the rate of the version, and of the parameter
	 * `decay`. Else tables with scales are refused. */
	bool scales;
	unsigned decay;
	mst_apply_fn *apply[MST_ISA_COUNT]; /* the kernel, by instruction set */
};

/* A row, and what the user set. */
struct mst_optimizer {
	const struct mst_optim *row; /* NULL: the workers own the parameters */
	double parameter[MST_PARAMETERS_MAX];
};

/* By index; NULL after the last. The first is the default. */
const struct mst_optim *mst_optim_row(unsigned index);
/* NULL: there is none of this name. */
const struct mst_optim *mst_optim_find(const char *name);
uint32_t mst_optim_parameters(const struct mst_optim *row);

/* Reads "sgd:lr=0.1,momentum=0.9" or "add". What is left out is the row's fallback. @why: a clause
 * that names what is wrong. Return: 0 or -EINVAL. */
int mst_optimizer_parse(const char *text, struct mst_optimizer *out, struct mst_reason *why);
/* The same of what another server says: @count parameters, in the order of the row. */
int mst_optimizer_take(const char *name, const double *parameter, uint32_t count,
		       struct mst_optimizer *out, struct mst_reason *why);
/* "sgd:lr=0.1,momentum=0.9": with all fallbacks that are not 0. Return: @text. */
char *mst_optim_example(const struct mst_optim *row, char text[MST_OPTIM_EXAMPLE_LEN]);
/* The same of an optimiser as the user set it, with every figure that is not its fallback or not 0.
 * Read back it is the same. Return: @text; "" where workers own. */
#define MST_OPTIM_TEXT_LEN 256u
char *mst_optimizer_text(const struct mst_optimizer *o, char text[MST_OPTIM_TEXT_LEN]);
/* "above 0 and at most 1". Return: @text. */
char *mst_optim_range(const struct mst_optim_parameter *p, char text[MST_OPTIM_RANGE_LEN]);
/* All rows: as a part of --help, and as a section of a manual page in roff. */
void mst_optim_help(FILE *out);
void mst_optim_man(FILE *out);

/* Is this state kept? */
bool mst_optimizer_keeps(const struct mst_optimizer *o, unsigned state);
/* How many are. */
uint32_t mst_optimizer_states(const struct mst_optimizer *o);
/* Does it have a reduce phase, as its figures are? */
bool mst_optimizer_reduces(const struct mst_optimizer *o);
/* Sets a limit on the norm of the mean that no mean reaches, if the row has such a limit and the
 * user has set none. So the norm of every mean is computed. */
void mst_optimizer_measure(struct mst_optimizer *o);
/* The rate that the user has set; 0: it has none. */
double mst_optimizer_rate(const struct mst_optimizer *o);
/* The figure `momentum`, of gradients; 0: it has none. */
double mst_optimizer_momentum(const struct mst_optimizer *o);
/* Sets it where the text that @o was read from does not, and no other figure needs it. */
void mst_optimizer_leave_momentum(struct mst_optimizer *o, const char *text, double momentum);
/* Is a version the version before it, less the rate times the mean? No row says so itself: the
 * answer is concluded. It is yes if the optimiser averages gradients, has a limit for the norm of
 * the mean (`factor`), and keeps no state. Of the present rows only sgd without momentum is such.
 * Weight decay, and a limit that a mean exceeds, change the step and are not looked at. The answer
 * would be wrong for a row that has `factor`, keeps no state and changes the direction of the mean,
 * such as one that takes signs. */
bool mst_optimizer_is_plain(const struct mst_optimizer *o);
/* What a mean is multiplied by; @squares: the sum of the squares of its elements. 1 where that is
 * not finite, so that what spoils the mean is found where it is. Rounded once to f32. */
float mst_optimizer_factor(const struct mst_optimizer *o, const struct mst_exact_sum *squares);
/* Is the rate of each tensor multiplied by what its norms give? Then it has a reduce phase. */
bool mst_optimizer_trusts(const struct mst_optimizer *o);
/* Adds the squares of a block of a tensor, before its step. @block: what the kernel would be given;
 * `next` is scratch, and the figures have the weight decay of the tensor. */
void mst_optimizer_add_block(const struct mst_optimizer *o, const struct mst_apply *block,
			     struct mst_squares *sum);
/* The trust ratio of a tensor with these squares and that weight decay. 1 where a norm is 0, or is
 * not finite, or the ratio is not. Rounded once to f32. */
float mst_optimizer_trust(const struct mst_optimizer *o, const struct mst_squares *squares,
			  float decay);
/* The scalars of a version, each rounded once to f32. */
void mst_optimizer_scalars(const struct mst_optimizer *o, const struct mst_optim_version *v,
			   float *scalar);
/* The parameters, each rounded once to f32. */
void mst_optimizer_figures(const struct mst_optimizer *o, struct mst_figures *out);

#endif
