/* SPDX-License-Identifier: MIT */
/* The table of problems, and its texts. */
#include "tools/sim/problem/problem.h"

#include "common/base/reason.h"

#define LR_HELP "rate of the steps that workers make on their own"

const struct mst_sim_problem_row mst_sim_problems[] = {
	{ .name = "quadratic",
	  .help = "1/2 sum c[i] (w[i] - w*[i])^2, c from 1/cond to 1, with noisy gradients",
	  .error = "the value of the quadratic: 1 at the start, and 0 at the minimum",
	  .parameter = { [MST_SIM_BATCH] = { .name = "batch",
					     .fallback = 8,
					     .min = 1,
					     .max = 1e6,
					     .whole = true,
					     .help = "samples in a contribution" },
			 [MST_SIM_LR] = { .name = "lr",
					  .fallback = 0.1,
					  .max = 1000,
					  .above_min = true,
					  .help = LR_HELP },
			 [MST_SIM_QUADRATIC_DIM] = { .name = "dim",
						     .fallback = 100,
						     .min = 1,
						     .max = 1e7,
						     .whole = true,
						     .help = "parameters" },
			 [MST_SIM_QUADRATIC_COND] = { .name = "cond",
						      .fallback = 10,
						      .min = 1,
						      .max = 1e9,
						      .help = "condition number" },
			 [MST_SIM_QUADRATIC_NOISE] = { .name = "noise",
						       .fallback = 1,
						       .max = 1e6,
						       .help = "length of one sample's noise" } },
	  .make = mst_sim_quadratic_new },
	{ .name = "digits",
	  .help = "the digits of the example, and its network with one hidden layer",
	  .error = "the share of the test digits that the network does not recognise",
	  .directory = "the files of MNIST, plain or .gz; without it, digits are drawn",
	  .parameter = { [MST_SIM_BATCH] = { .name = "batch",
					     .fallback = 32,
					     .min = 1,
					     .max = 65536,
					     .whole = true,
					     .help = "samples in a contribution" },
			 [MST_SIM_LR] = { .name = "lr",
					  .fallback = 0.1,
					  .max = 1000,
					  .above_min = true,
					  .help = LR_HELP },
			 [MST_SIM_DIGITS_HIDDEN] = { .name = "hidden",
						     .fallback = 100,
						     .min = 1,
						     .max = 65536,
						     .whole = true,
						     .help = "width of the hidden layer" } },
	  .make = mst_sim_digits_new },
	{ .name = NULL },
};

int mst_sim_problem_new(const struct mst_sim_problem_spec *spec, struct mst_sim_problem **out,
			struct mst_reason *why)
{
	int rc = spec->row->make(spec, out, why);

	if (rc != 0)
		return rc;
	(*out)->batch = (uint64_t)spec->parameter[MST_SIM_BATCH];
	(*out)->lr = spec->parameter[MST_SIM_LR];
	return 0;
}

void mst_sim_problem_free(struct mst_sim_problem *p)
{
	if (p != NULL)
		p->ops->free(p);
}

/* ---- as text ---- */

static const char *opening(const struct mst_sim_problem_row *row)
{
	return row->directory != NULL ? "[:DIR]" : "";
}

void mst_sim_problem_help(FILE *out)
{
	(void)fprintf(out, "\nproblems (--train), as in quadratic:dim=10,noise=0:\n");
	for (const struct mst_sim_problem_row *row = mst_sim_problems; row->name != NULL; row++) {
		(void)fprintf(out, "  %s%s: %s\n", row->name, opening(row), row->help);
		(void)fprintf(out, "      %-8s %s\n", "error", row->error);
		if (row->directory != NULL)
			(void)fprintf(out, "      %-8s %s\n", "DIR", row->directory);
		for (const struct mst_optim_parameter *p = row->parameter; p->name != NULL; p++) {
			char range[MST_OPTIM_RANGE_LEN];
			(void)fprintf(out, "      %-8s %s (default %g; %s)\n", p->name, p->help,
				      p->fallback, mst_optim_range(p, range));
		}
	}
}

void mst_sim_problem_man(FILE *out)
{
	for (const struct mst_sim_problem_row *row = mst_sim_problems; row->name != NULL; row++) {
		(void)fprintf(out, ".SS %s%s\n%s. The error is %s.\n", row->name, opening(row),
			      row->help, row->error);
		if (row->directory != NULL)
			(void)fprintf(out, ".TP\n.B DIR\n%s.\n", row->directory);
		for (const struct mst_optim_parameter *p = row->parameter; p->name != NULL; p++) {
			char range[MST_OPTIM_RANGE_LEN];
			(void)fprintf(out, ".TP\n.B %s\n%s (default %g; %s).\n", p->name, p->help,
				      p->fallback, mst_optim_range(p, range));
		}
	}
}
