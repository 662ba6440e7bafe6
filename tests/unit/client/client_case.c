/* SPDX-License-Identifier: MIT */
#include "tests/unit/client/client_case.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/ut.h"

struct fake_lead fake;
struct muster *m;
struct muster_outcome out;
void *fake_result_into;
static uint64_t began_ns;

struct muster_options options_for(const char *server, uint32_t join_ms)
{
	struct muster_options opt = MUSTER_OPTIONS;

	opt.server = server;
	opt.elems = FAKE_ELEMS;
	opt.join_ms = join_ms;
	opt.wait_ms = SHORT_MS;
	out = (struct muster_outcome)MUSTER_OUTCOME;
	began_ns = mst_now_ns();
	return opt;
}

uint64_t took_ms(void)
{
	return (mst_now_ns() - began_ns) / MST_MS;
}

bool says(const char *reason, const char *word)
{
	if (strstr(reason, word) != NULL)
		return true;
	printf("\n\"%s\" has no \"%s\"\n", reason, word);
	return false;
}

int open_fake(bool (*script)(struct fake_lead *), uint32_t join_ms)
{
	fake_open(&fake, script);
	struct muster_options opt = options_for(fake.address, join_ms);
	m = NULL;
	return muster_open(&opt, &m);
}

int open_fake_servers(bool (*script)(struct fake_lead *), uint32_t servers)
{
	fake_open_servers(&fake, script, servers);
	struct muster_options opt = options_for(fake.address, LONG_MS);
	opt.elems = fake.welcome.elems;
	opt.result_into = fake_result_into;
	m = NULL;
	return muster_open(&opt, &m);
}

void close_both(void)
{
	fake_release(&fake);
	muster_close(m);
	fake_close(&fake);
	m = NULL;
}

void begin(bool (*script)(struct fake_lead *))
{
	CU_ASSERT_EQUAL_FATAL(open_fake(script, LONG_MS), 0);
	CU_ASSERT_EQUAL_FATAL(muster_start(m, NULL, &out), 0);
	began_ns = mst_now_ns();
}
