/* SPDX-License-Identifier: MIT */
/* Registered memory where one net takes the place of another: what is pinned, what is found, and
 * what stays the caller's. The nets are counters. */
#include <errno.h>
#include <string.h>

#include "client/local/sources.h"
#include "common/base/reason.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

#define BYTES 4096u

static char memory[4 * BYTES];

struct pin_counter {
	struct mst_net net;
	int pins, unpins;
	int fails_at; /* the pin that fails; 0: none */
};

static int pin(void *ctx, struct mst_region *r, struct mst_reason *why)
{
	struct pin_counter *d = ctx;

	if (d->pins + 1 == d->fails_at)
		return mst_reason_fail(why, -ENOMEM, "only so much may be locked");
	d->pins++;
	r->pin[0] = d;
	return 0;
}

static void unpin(void *ctx, struct mst_region *r)
{
	struct pin_counter *d = ctx;

	CU_ASSERT_PTR_EQUAL(r->pin[0], d);
	d->unpins++;
}

static const struct mst_domain_ops pins = { .pin = pin, .unpin = unpin };
static const struct mst_transport pinning = { .scheme = "pinning", .pins = true };
static const struct mst_transport mapping = { .scheme = "mapping", .maps = true };

static struct mst_reason failure;
static struct mst_links links;
static struct mst_contiguous contiguous;
static struct mst_sources sources;

static void open_net(struct pin_counter *d, const struct mst_transport *t)
{
	memset(d, 0, sizeof(*d));
	if (t->pins)
		d->net.domain = (struct mst_domain){ .ops = &pins, .ctx = d };
	links.net = &d->net;
	links.transport = t;
}

static void close_net(struct pin_counter *d)
{
	mst_sources_let_go(&sources);
	CU_ASSERT_PTR_NULL(d->net.domain.regions);
	mst_domain_fini(&d->net.domain);
	links.net = NULL;
}

static void begin(struct pin_counter *d, const struct mst_transport *t)
{
	memset(&contiguous, 0, sizeof(contiguous));
	sources = (struct mst_sources){ .links = &links,
					.contiguous = &contiguous,
					.failure = &failure };
	open_net(d, t);
}

static void end(struct pin_counter *d)
{
	mst_domain_fini(&d->net.domain);
	mst_sources_fini(&sources);
}

static char *part(uint32_t i)
{
	return memory + i * BYTES;
}

static void give(uint32_t i)
{
	CU_ASSERT_EQUAL_FATAL(mst_sources_register(&sources, part(i), BYTES), 0);
}

static struct mst_region *found(uint32_t i)
{
	struct mst_region *region = NULL;

	CU_ASSERT_EQUAL(mst_sources_find(&sources, part(i) + 8, 16, &region), 0);
	return region;
}

static bool is_of(uint32_t i, const struct pin_counter *d)
{
	const struct mst_region *region = found(i);

	return region != NULL && region->domain == &d->net.domain &&
	       region->base == (uint8_t *)part(i) && region->bytes == BYTES;
}

static void each_region_is_registered_with_the_next_net(void)
{
	struct pin_counter first, second;

	begin(&first, &pinning);
	give(2);
	give(0);
	CU_ASSERT_EQUAL(first.pins, 2);
	close_net(&first);
	CU_ASSERT_EQUAL(first.unpins, 2);
	open_net(&second, &pinning);
	CU_ASSERT_EQUAL(mst_sources_renew(&sources), 0);
	CU_ASSERT_EQUAL(second.pins, 2);
	CU_ASSERT(is_of(0, &second) && is_of(2, &second));
	CU_ASSERT_PTR_NULL(found(1));
	CU_ASSERT_EQUAL(mst_sources_renew(&sources), 0); /* once is enough */
	CU_ASSERT_EQUAL(second.pins, 2);
	CU_ASSERT_EQUAL(mst_sources_unregister(&sources, part(0)), 0);
	CU_ASSERT_EQUAL(second.unpins, 1);
	CU_ASSERT_PTR_NULL(found(0));
	CU_ASSERT(is_of(2, &second));
	end(&second);
	CU_ASSERT_EQUAL(second.unpins, 2);
}

static void without_a_net_it_is_nobodys(void)
{
	struct pin_counter first;
	struct mst_region *region;

	begin(&first, &pinning);
	give(0);
	close_net(&first);
	CU_ASSERT_PTR_NULL(found(0)); /* and so it is copied */
	CU_ASSERT_EQUAL(mst_sources_find(&sources, part(0) + BYTES - 8, 16, &region), -EINVAL);
	CU_ASSERT_EQUAL(mst_sources_renew(&sources), 0); /* there is still none */
	CU_ASSERT_PTR_NULL(found(0));
	end(&first);
}

/* The user may call while no server is there. */
static void what_is_registered_meanwhile_counts(void)
{
	struct pin_counter first, second;

	begin(&first, &pinning);
	give(0);
	give(1);
	close_net(&first);
	CU_ASSERT_EQUAL(mst_sources_register(&sources, part(1) + 8, 8), -EEXIST);
	CU_ASSERT(client_says(failure.text, "overlap a region that is registered already"));
	CU_ASSERT_EQUAL(mst_sources_register(&sources, part(3), 0), -EINVAL);
	give(3);
	CU_ASSERT_EQUAL(mst_sources_unregister(&sources, part(1)), 0);
	CU_ASSERT_EQUAL(mst_sources_unregister(&sources, part(1)), -EINVAL);
	give(1); /* again */
	CU_ASSERT_EQUAL(mst_sources_unregister(&sources, part(1)), 0);
	open_net(&second, &pinning);
	CU_ASSERT_EQUAL(mst_sources_renew(&sources), 0);
	CU_ASSERT_EQUAL(second.pins, 2);
	CU_ASSERT(is_of(0, &second) && is_of(3, &second));
	CU_ASSERT_PTR_NULL(found(1));
	end(&second);
}

static void the_next_net_may_be_of_another_network(void)
{
	struct pin_counter first, second, third;

	begin(&first, &mapping);
	give(0);
	CU_ASSERT(is_of(0, &first));
	CU_ASSERT_EQUAL(first.pins, 0);
	close_net(&first);
	open_net(&second, &pinning);
	CU_ASSERT_EQUAL(mst_sources_renew(&sources), 0);
	CU_ASSERT_EQUAL(second.pins, 1);
	CU_ASSERT(is_of(0, &second));
	close_net(&second);
	open_net(&third, &mapping);
	CU_ASSERT_EQUAL(mst_sources_renew(&sources), 0);
	CU_ASSERT(is_of(0, &third));
	CU_ASSERT_EQUAL(second.unpins, 1);
	end(&third);
}

static void what_cannot_be_pinned_is_told_and_stays_the_callers(void)
{
	struct pin_counter first, second, third;

	begin(&first, &mapping);
	give(0);
	give(1);
	give(2);
	close_net(&first);
	open_net(&second, &pinning);
	second.fails_at = 2;
	CU_ASSERT_EQUAL(mst_sources_renew(&sources), -ENOMEM);
	CU_ASSERT(client_says(failure.text, "4096 bytes at"));
	CU_ASSERT(client_says(failure.text, "over pinning"));
	CU_ASSERT(client_says(failure.text, "only so much may be locked"));
	CU_ASSERT(is_of(0, &second));
	CU_ASSERT_PTR_NULL(found(1));
	CU_ASSERT_EQUAL(mst_sources_unregister(&sources, part(1)), 0);
	second.fails_at = 0;
	CU_ASSERT_EQUAL(mst_sources_renew(&sources), 0); /* the rest */
	CU_ASSERT_EQUAL(second.pins, 2);
	close_net(&second);
	CU_ASSERT_EQUAL(second.unpins, 2);
	open_net(&third, &pinning);
	CU_ASSERT_EQUAL(mst_sources_renew(&sources), 0);
	CU_ASSERT(is_of(0, &third) && is_of(2, &third));
	end(&third);
}

static void a_pin_that_fails_leaves_nothing_registered(void)
{
	struct pin_counter only;

	begin(&only, &pinning);
	only.fails_at = 1;
	CU_ASSERT_EQUAL(mst_sources_register(&sources, part(0), BYTES), -ENOMEM);
	CU_ASSERT(client_says(failure.text, "only so much"));
	CU_ASSERT_PTR_NULL(found(0));
	CU_ASSERT_EQUAL(mst_sources_unregister(&sources, part(0)), -EINVAL);
	only.fails_at = 0;
	give(0);
	CU_ASSERT(is_of(0, &only));
	end(&only);
}

/* A link that is not freed yet still reads it: its domain frees the record. */
static void what_is_still_lent_ends_with_its_net(void)
{
	struct pin_counter first, second;

	begin(&first, &pinning);
	give(0);
	struct mst_region *old = found(0);
	mst_region_lend(old);
	mst_sources_let_go(&sources);
	CU_ASSERT_EQUAL(first.unpins, 0);
	mst_region_take_back(old);
	mst_domain_fini(&first.net.domain);
	CU_ASSERT_EQUAL(first.unpins, 1);
	open_net(&second, &pinning);
	CU_ASSERT_EQUAL(mst_sources_renew(&sources), 0);
	CU_ASSERT(is_of(0, &second));
	end(&second);
}

static CU_TestInfo cases[] = {
	{ "each region is registered with the next net",
	  each_region_is_registered_with_the_next_net },
	{ "without a net it is nobody's", without_a_net_it_is_nobodys },
	{ "what is registered meanwhile counts", what_is_registered_meanwhile_counts },
	{ "the next net may be of another network", the_next_net_may_be_of_another_network },
	{ "what cannot be pinned is told, and stays the caller's",
	  what_cannot_be_pinned_is_told_and_stays_the_callers },
	{ "a pin that fails leaves nothing registered",
	  a_pin_that_fails_leaves_nothing_registered },
	{ "what is still lent ends with its net", what_is_still_lent_ends_with_its_net },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sources", cases);
}
