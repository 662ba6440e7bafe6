/* SPDX-License-Identifier: MIT */
/*
 * digits - a job to run muster with: workers learn together to read digits, MNIST's or drawn ones,
 * with a small network. Any policy, either owner, and delays on demand:
 *
 *	muster run -n 5 --policy backup:4 --commits 200 -- digits --delay exp:20
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/examples/digits/worker.h"

#define EXIT_USAGE 2

/* Rank 0 speaks for all, who have the same parameters; with %r in its name each has a file. */
static int report(struct worker *w)
{
	const struct settings *s = w->settings;
	bool own_file = s->json && strstr(s->json, "%r");
	struct mst_reason why;

	if (w->rank != 0 && !own_file)
		return 0;
	struct mst_test_result test = worker_test(w);
	struct report r = {
		.rank = w->rank,
		.versions = w->version,
		.loss = test.loss,
		.accuracy = test.accuracy,
		.train = w->learner.data->train.count,
		.test = w->learner.data->test.count,
		.parameters = muster_job(w->muster)->elems,
		.data = s->data,
		.product = w->learner.net.product == mst_product ? "plain" : "blas",
	};
	if (w->rank == 0)
		report_print(&r);
	if (w->rank == 0 && worker_report(w, &test) != 0)
		fprintf(stderr, "digits: %s\n", muster_error(w->muster));
	int rc = s->json ? report_write(&r, s->json, &why) : 0;
	if (rc)
		fprintf(stderr, "digits: %s\n", why.text);
	return rc;
}

static int work(struct worker *w)
{
	int rc = worker_learn(w);

	if (rc) {
		fprintf(stderr, "digits: %s\n", muster_error(w->muster));
		return EXIT_FAILURE;
	}
	return report(w) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int join_and_work(const struct settings *s, const struct mst_dataset *data)
{
	struct worker w;
	struct mst_reason why;
	int status;
	int rc = worker_init(&w, s, data, &why);

	if (rc) {
		fprintf(stderr, "digits: %s\n", why.text);
		status = w.muster && rc == -EINVAL ? EXIT_USAGE : EXIT_FAILURE;
	} else {
		status = work(&w);
	}
	worker_fini(&w);
	return status;
}

static int get_data(const struct settings *s, struct mst_dataset *data)
{
	struct mst_reason why = { "no memory for the digits to draw" };
	int rc = s->data ? mst_dataset_load(s->data, data, &why) : mst_dataset_draw(s->seed, data);

	if (rc)
		fprintf(stderr, "digits: %s\n", why.text);
	return rc;
}

int main(int argc, char **argv)
{
	struct settings settings;
	struct mst_dataset data = { 0 };
	int status = EXIT_FAILURE;
	int rc = settings_init(&settings, argc, argv);

	if (rc)
		return rc > 0 ? EXIT_SUCCESS : EXIT_USAGE;
	if (get_data(&settings, &data) == 0)
		status = join_and_work(&settings, &data);
	mst_dataset_fini(&data);
	settings_fini(&settings);
	return status;
}
