/* SPDX-License-Identifier: MIT */
/* What the user can set: one table, read from the command line. */
#include "client/examples/digits/worker.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/examples/digits/blas.h"
#include "common/config/shared_rows.h"
#include "common/delay/delay.h"

#define FIELD(name) .offset = offsetof(struct settings, name)

static const struct mst_option table[] = {
	{ .name = "data",
	  .kind = MST_OPTION_STRING,
	  FIELD(data),
	  .value = "DIR",
	  .help = "directory with MNIST's files, plain or .gz; without it, drawn digits" },
	{ .name = "batch",
	  .kind = MST_OPTION_U32,
	  FIELD(batch),
	  .fallback = "32",
	  .min = 1,
	  .max = 65536,
	  .help = "samples in a batch, which is one contribution under most policies" },
	{ .name = "micro",
	  .kind = MST_OPTION_U32,
	  FIELD(micro),
	  .fallback = "8",
	  .min = 1,
	  .max = 65536,
	  .help = "samples between two looks at the server's hint" },
	{ .name = "hidden",
	  .kind = MST_OPTION_U32,
	  FIELD(hidden),
	  .fallback = "100",
	  .min = 1,
	  .max = 65536,
	  .help = "width of the hidden layer" },
	{ .name = "product",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(product),
	  .fallback = "auto",
	  .choices = "auto|blas|plain",
	  .help = "what multiplies matrices: blas is OpenBLAS, plain gives the same bits on every "
		  "processor; auto is blas where it is built in" },
	{ .name = "seed",
	  .kind = MST_OPTION_U64,
	  FIELD(seed),
	  .fallback = "1",
	  .help = "of drawn digits and start parameters; plus the rank, of samples and delays; "
		  "MUSTER_SEED in the environment is another default" },
	{ .name = "owner",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(owner),
	  .fallback = "servers",
	  .choices = "servers|workers",
	  .help = "who owns the parameters and updates them" },
	{ .name = "lr",
	  .kind = MST_OPTION_REAL,
	  FIELD(lr),
	  .fallback = "0.1",
	  .min = 0,
	  .max = 1000,
	  .help = "learning rate of the worker's own steps: where workers own, and under "
		  "local, easgd, downpour; else the server has it" },
	{ .name = "momentum",
	  .kind = MST_OPTION_REAL,
	  FIELD(momentum),
	  .fallback = "0.9",
	  .min = 0,
	  .max = 1,
	  .help = "momentum where workers own; else the server has it" },
	{ .name = "test-every",
	  .kind = MST_OPTION_U32,
	  FIELD(test_every),
	  .value = "VERSIONS",
	  .help = "versions between two tests and reports of rank 0; 0: at the end only" },
	{ .name = "delay",
	  .kind = MST_OPTION_LIST,
	  FIELD(delay),
	  .value = "MODEL",
	  .help = "makes every batch take longer, each sample by its part, as exp:20 (ms); "
		  "RANK:MODEL for one rank" },
	MST_FILE_ROW("json", FIELD(json),
		     "rank 0 writes the result there; every rank, if it has %r for the rank"),
	MST_HELP_ROW(FIELD(help)),
	{ 0 },
};

static void print_help(void)
{
	printf("usage: muster run -n WORKERS -- digits [OPTIONS]\n"
	       "\n"
	       "One worker of a job that learns to read digits.\n"
	       "\n");
	mst_options_help(table, stdout);
}

static int refuse_operand(const char *operand)
{
	fprintf(stderr, "digits: does not know what to do with '%s'; see digits --help\n", operand);
	return -EINVAL;
}

/* A mistake in a delay is found here, before the job begins. */
static int check_delay(const struct settings *s)
{
	struct mst_delay_options options = { .spec = s->delay.item, .spec_count = s->delay.count };
	struct mst_delay *delay = NULL;
	struct mst_reason why;
	int rc = mst_delay_new(&options, &delay, &why);

	if (rc)
		fprintf(stderr, "digits: %s\n", why.text);
	mst_delay_free(delay);
	return rc;
}

static int check_product(const struct settings *s)
{
	if (s->product != PRODUCT_BLAS || blas_product() != NULL)
		return 0;
	fprintf(stderr, "digits: --product blas: this program was built without OpenBLAS; install "
			"libopenblas-serial-dev and build it again, or say --product plain\n");
	return -EINVAL;
}

/* `muster tune` gives each run another seed. */
static int take_seed(struct settings *s)
{
	const char *seed = getenv("MUSTER_SEED");
	int rc = seed && seed[0] ? mst_options_set(&s->source, "seed", seed) : 0;

	if (rc)
		fprintf(stderr, "digits: MUSTER_SEED in the environment: %s\n", s->source.why.text);
	return rc;
}

/* Return: 0; -EINVAL and -ENOMEM after a sentence. */
static int read_line(struct settings *s, int argc, char **argv, int *operand)
{
	int rc = take_seed(s);

	if (rc)
		return rc;
	rc = mst_options_argv(&s->source, argc, argv, operand);
	if (rc)
		fprintf(stderr, "digits: %s\n", s->source.why.text);
	return rc;
}

int settings_init(struct settings *s, int argc, char **argv)
{
	int operand;

	*s = (struct settings){ 0 };
	if (mst_options_init(&s->source, table, s)) {
		fprintf(stderr, "digits: no memory for its options\n");
		return -ENOMEM;
	}
	int rc = read_line(s, argc, argv, &operand);
	if (rc == 0 && !s->help && operand < argc)
		rc = refuse_operand(argv[operand]);
	if (rc == 0 && !s->help)
		rc = check_product(s);
	if (rc == 0 && !s->help)
		rc = check_delay(s);
	if (rc == 0 && s->help) {
		print_help();
		rc = 1;
	}
	if (rc)
		settings_fini(s);
	return rc;
}

void settings_fini(struct settings *s)
{
	mst_options_free(&s->source);
}
