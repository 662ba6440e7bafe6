/* SPDX-License-Identifier: MIT */
#include "tests/unit/client/client_case.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/ut.h"

struct fake_leader client_fake;
struct muster *client_handle;
struct muster_outcome client_outcome;
void *client_result_into;
static uint64_t began_ns;

struct muster_options client_options_for(const char *server, uint32_t join_ms)
{
	struct muster_options opt = MUSTER_OPTIONS;

	opt.server = server;
	opt.elems = FAKE_ELEMS;
	opt.join_ms = join_ms;
	opt.wait_ms = CLIENT_SHORT_MS;
	client_outcome = (struct muster_outcome)MUSTER_OUTCOME;
	began_ns = mst_now_ns();
	return opt;
}

uint64_t client_took_ms(void)
{
	return (mst_now_ns() - began_ns) / MST_MS;
}

bool client_says(const char *reason, const char *word)
{
	if (strstr(reason, word) != NULL)
		return true;
	printf("\n\"%s\" has no \"%s\"\n", reason, word);
	return false;
}

int client_open(bool (*script)(struct fake_leader *), uint32_t join_ms)
{
	fake_open(&client_fake, script);
	struct muster_options opt = client_options_for(client_fake.address, join_ms);
	client_handle = NULL;
	return muster_open(&opt, &client_handle);
}

int client_open_servers(bool (*script)(struct fake_leader *), uint32_t servers)
{
	fake_open_servers(&client_fake, script, servers);
	struct muster_options opt = client_options_for(client_fake.address, CLIENT_LONG_MS);
	opt.elems = client_fake.welcome.elems;
	opt.result_into = client_result_into;
	client_handle = NULL;
	return muster_open(&opt, &client_handle);
}

void client_close(void)
{
	fake_release(&client_fake);
	muster_close(client_handle);
	fake_close(&client_fake);
	client_handle = NULL;
}

int client_start(const void *own, struct muster_outcome *out)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;
	int rc;

	do
		rc = muster_start(client_handle, own, out);
	while (rc == -ETIMEDOUT && mst_now_ns() < until_ns);
	return rc;
}

int client_wait(void)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;
	int rc;

	do
		rc = muster_wait(client_handle, &client_outcome);
	while (rc == -ETIMEDOUT && mst_now_ns() < until_ns);
	return rc;
}

void client_begin(bool (*script)(struct fake_leader *))
{
	CU_ASSERT_EQUAL_FATAL(client_open(script, CLIENT_LONG_MS), 0);
	CU_ASSERT_EQUAL_FATAL(client_start(NULL, &client_outcome), 0);
	began_ns = mst_now_ns();
}
