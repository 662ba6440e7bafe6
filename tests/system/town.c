/* SPDX-License-Identifier: MIT */
#include "tests/system/town.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "tests/ut.h"

static void *control_main(void *arg)
{
	static const struct mst_cpus anywhere = { .count = 0 };
	struct town *t = arg;

	while ((t->over = mst_admin_over(t->admin)) == 0) {
		mst_admin_step(t->admin, mst_now_ns());
		if (t->server == NULL && mst_admin_server(t->admin) != NULL) {
			t->server = mst_admin_server(t->admin);
			CU_ASSERT_EQUAL_FATAL(mst_crew_start(t->server, &anywhere, &t->crew), 0);
		}
		mst_admin_wait(t->admin, 20 * MST_MS);
	}
	return NULL;
}

void town_open(struct town *t, const struct mst_transport *transport, const char *const *settings)
{
	char why[512];

	*t = (struct town){ 0 };
	CU_ASSERT_EQUAL_FATAL(mst_options_init(&t->parsed, mst_server_table, &t->options), 0);
	for (; *settings != NULL; settings += 2)
		CU_ASSERT_EQUAL_FATAL(mst_options_set(&t->parsed, settings[0], settings[1]), 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_set(&t->parsed, "listen", "127.0.0.1:0"), 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_set(&t->parsed, "workers", "4"), 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_set(&t->parsed, "shards", "2"), 0);
	CU_ASSERT_EQUAL_FATAL(mst_server_options_check(&t->options, why, sizeof(why)), 0);
	struct mst_admin_cfg cfg = { .options = &t->options,
				     .stream = &mst_tcp,
				     .transport = transport };
	CU_ASSERT_EQUAL_FATAL(mst_admin_new(&cfg, &t->admin, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t->control, NULL, control_main, t), 0);
}

void town_close(struct town *t)
{
	pthread_join(t->control, NULL);
	mst_crew_stop(t->crew);
	mst_admin_free(t->admin);
	mst_options_free(&t->parsed);
}

/* ---- citizens ---- */

float citizen_value(uint32_t rank, uint64_t tag, uint64_t i)
{
	return (float)((rank + 1) * 3 + tag % 7 + i % 5);
}

struct muster_options citizen_options(const struct citizen *c)
{
	struct muster_options opt = MUSTER_OPTIONS;

	opt.server = mst_admin_address(c->town->admin);
	opt.rank = (int32_t)c->rank;
	opt.elems = TOWN_ELEMS;
	opt.owner = c->owner;
	return opt;
}

/* The mean over the set, of integers: exact in any order. */
static void check_mean(struct citizen *c, const struct muster_outcome *out)
{
	const float *result = out->result;

	for (uint64_t i = 0; i < TOWN_ELEMS && out->set_len > 0; i += 613) {
		float sum = 0;
		for (uint32_t k = 0; k < out->set_len; k++)
			sum += citizen_value(out->set[k].rank, out->version - 1, i);
		c->wrong += result[i] != sum / (float)out->set_len;
	}
}

void citizen_note(struct citizen *c, const struct muster_outcome *out)
{
	c->verdicts += out->ticket != 0;
	if (!out->fresh)
		return;
	c->versions++;
	if (c->owner == MUSTER_WORKERS_OWN)
		check_mean(c, out);
}

int citizen_start(const struct citizen *c, struct muster *m, struct muster_outcome *out)
{
	float *own = calloc(TOWN_ELEMS, sizeof(*own));
	int rc = muster_start(m, c->owner == MUSTER_SERVERS_OWN ? own : NULL, out);

	free(own);
	return rc;
}

int citizen_wait(struct citizen *c, struct muster *m, struct muster_outcome *out)
{
	int rc;

	do {
		rc = muster_wait(m, out);
		if (rc >= 0)
			citizen_note(c, out);
	} while (rc == 1 && !out->finished);
	return rc < 0 ? rc : 0;
}

void citizen_live(struct citizen *c, int (*live)(struct citizen *c, struct muster *m))
{
	struct muster_options opt = citizen_options(c);
	struct muster *m = NULL;

	c->rc = muster_open(&opt, &m);
	if (c->rc == 0)
		c->rc = live(c, m);
	if (c->rc != 0)
		(void)snprintf(c->sentence, sizeof(c->sentence), "%s", muster_error(m));
	muster_close(m);
}

void town_live(struct town *t, struct citizen *c, void *(*main)(void *citizen))
{
	pthread_t thread[TOWN_WORKERS];

	for (uint32_t r = 0; r < TOWN_WORKERS; r++) {
		c[r].town = t;
		c[r].rank = r;
		pthread_create(&thread[r], NULL, main, &c[r]);
	}
	for (uint32_t r = 0; r < TOWN_WORKERS; r++)
		pthread_join(thread[r], NULL);
}
