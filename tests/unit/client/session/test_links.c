/* SPDX-License-Identifier: MIT */
/* Links that are closed and opened again, over a network of nothing but counters: what the program
 * has lent them for its results is registered with each net, and with no other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/session/links.h"
#include "common/base/clock.h"
#include "common/base/reason.h"
#include "tests/ut.h"

#define ELEMS 100u

static float results[ELEMS];
static int opened, closed, pinned, unpinned, dialled;
static bool fails; /* to pin */

static int pin(void *ctx, struct mst_region *r, struct mst_reason *why)
{
	(void)ctx;
	if (fails)
		return mst_reason_fail(why, -ENOMEM, "only so much may be locked");
	CU_ASSERT(r->target && r->base == (uint8_t *)results && r->bytes == sizeof(results));
	pinned++;
	return 0;
}

static void unpin(void *ctx, struct mst_region *r)
{
	(void)ctx, (void)r;
	unpinned++;
}

static const struct mst_domain_ops pins = { .pin = pin, .unpin = unpin };

static int net_open(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	struct mst_net *net = calloc(1, sizeof(*net));

	(void)cfg;
	if (net == NULL)
		return mst_reason_fail(why, -ENOMEM, "no memory");
	net->domain.ops = &pins;
	opened++;
	*out = net;
	return 0;
}

static void net_close(struct mst_net *net)
{
	mst_domain_fini(&net->domain);
	free(net);
	closed++;
}

/* Nobody is there; but what is exported must be known by then. */
static int dial(struct mst_net *net, const struct mst_dial *how, struct mst_link **out,
		struct mst_reason *why)
{
	const struct mst_region *region = how->export.region;

	(void)out;
	CU_ASSERT(region != NULL && region->domain == &net->domain);
	dialled++;
	return mst_reason_fail(why, -ECONNREFUSED, "nobody is there");
}

static void wake(struct mst_net *net)
{
	(void)net;
}

static const struct mst_transport counted = { .scheme = "counted",
					      .prefix = "counted:",
					      .net_open = net_open,
					      .net_close = net_close,
					      .dial = dial,
					      .wake = wake };

int __wrap_mst_network_choice_take(struct mst_network_choice *choice, const struct mst_welcome *w,
				   const struct mst_transport **out, struct mst_reason *why);

int __wrap_mst_network_choice_take(struct mst_network_choice *choice, const struct mst_welcome *w,
				   const struct mst_transport **out, struct mst_reason *why)
{
	(void)choice, (void)w, (void)why;
	*out = &counted;
	return 0;
}

static struct mst_reason failure;
static struct mst_wakeup wakeup;
static struct mst_links links;
static struct mst_settings settings;
static struct mst_welcome welcome;

static const struct mst_links_cfg *begin(void)
{
	static struct mst_links_cfg cfg = { .settings = &settings, .welcome = &welcome };

	opened = closed = pinned = unpinned = dialled = 0;
	fails = false;
	mst_wakeup_init(&wakeup);
	links = (struct mst_links){ .failure = &failure, .wakeup = &wakeup };
	settings = (struct mst_settings){ .result_into = results, .elems = ELEMS };
	welcome = (struct mst_welcome){ .workers = 1,
					.record_ranks = 1,
					.slots = 1,
					.elems = ELEMS,
					.server_count = 1,
					.server[0] = { .address = "counted:here",
						       .count = ELEMS } };
	cfg.deadline_ns = mst_deadline_ns(MST_SECOND);
	return &cfg;
}

static void what_results_go_to_is_registered_with_each_net(void)
{
	const struct mst_links_cfg *cfg = begin();

	for (int n = 1; n <= 5; n++) {
		CU_ASSERT_EQUAL(mst_links_open(&links, cfg), 0);
		CU_ASSERT_EQUAL(mst_links_dial(&links, cfg), -ECONNREFUSED);
		CU_ASSERT_PTR_NOT_NULL(links.result_into);
		CU_ASSERT_EQUAL(pinned, n);
		mst_links_free(&links, false);
		mst_links_close(&links);
		CU_ASSERT_PTR_NULL(links.result_into);
		CU_ASSERT_PTR_NULL(links.net);
		CU_ASSERT(links.failure == &failure && links.wakeup == &wakeup);
		CU_ASSERT(opened == n && closed == n && unpinned == n && dialled == n);
	}
}

static void a_registration_that_fails_is_told_and_nobody_is_called(void)
{
	const struct mst_links_cfg *cfg = begin();

	CU_ASSERT_EQUAL(mst_links_open(&links, cfg), 0);
	fails = true;
	CU_ASSERT_EQUAL(mst_links_dial(&links, cfg), -ENOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(failure.text, "options.result_into"));
	CU_ASSERT_PTR_NOT_NULL(strstr(failure.text, "over counted"));
	CU_ASSERT_PTR_NULL(links.result_into);
	CU_ASSERT_EQUAL(dialled, 0);
	mst_links_free(&links, false);
	mst_links_close(&links);
	fails = false;
	CU_ASSERT_EQUAL(mst_links_open(&links, cfg), 0);
	CU_ASSERT_EQUAL(mst_links_dial(&links, cfg), -ECONNREFUSED);
	CU_ASSERT_EQUAL(pinned, 1);
	mst_links_free(&links, false);
	mst_links_close(&links);
	CU_ASSERT_EQUAL(unpinned, 1);
}

/* Servers that are lost cannot write there once this has returned; nor can it be done twice. */
static void withdrawn_links_are_opened_again(void)
{
	const struct mst_links_cfg *cfg = begin();

	CU_ASSERT_EQUAL(mst_links_open(&links, cfg), 0);
	CU_ASSERT_EQUAL(mst_links_dial(&links, cfg), -ECONNREFUSED);
	links.count = 0; /* none was made */
	CU_ASSERT(mst_links_withdraw(&links));
	CU_ASSERT(!mst_links_withdraw(&links));
	mst_links_free(&links, false);
	mst_links_close(&links);
	CU_ASSERT(!links.detached && !links.lost && links.moved == 0);
	CU_ASSERT_EQUAL(mst_links_open(&links, cfg), 0);
	CU_ASSERT_EQUAL(mst_links_dial(&links, cfg), -ECONNREFUSED);
	CU_ASSERT_PTR_NOT_NULL(links.result_into);
	mst_links_close(&links);
	CU_ASSERT_EQUAL(unpinned, 2);
}

static CU_TestInfo cases[] = {
	{ "what results go to is registered with each net",
	  what_results_go_to_is_registered_with_each_net },
	{ "a registration that fails is told, and nobody is called",
	  a_registration_that_fails_is_told_and_nobody_is_called },
	{ "withdrawn links are opened again", withdrawn_links_are_opened_again },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("links", cases);
}
