/* SPDX-License-Identifier: MIT */
/* Which peers may join a server, and which servers do not start. */
#include <errno.h>
#include <string.h>

#include "server/options/access.h"
#include "tests/ut.h"

static void only_what_other_hosts_cannot_reach_is_loopback(void)
{
	static const struct {
		const char *address;
		enum mst_reach reach;
	} rows[] = {
		{ "127.0.0.1:17077", MST_REACH_LOOPBACK },
		{ "127.255.3.4:0", MST_REACH_LOOPBACK },
		{ "localhost:1", MST_REACH_LOOPBACK },
		{ "[::1]:17077", MST_REACH_LOOPBACK },
		{ "[::ffff:127.0.0.1]:1", MST_REACH_LOOPBACK },
		{ "0.0.0.0:17077", MST_REACH_BEYOND },
		{ "[::]:17077", MST_REACH_BEYOND },
		{ "10.1.0.1:17077", MST_REACH_BEYOND },
		{ "128.0.0.1:1", MST_REACH_BEYOND },
		{ "[fe80::1]:1", MST_REACH_BEYOND },
		{ "[::ffff:10.0.0.1]:1", MST_REACH_BEYOND },
		{ "127.0.0.1", MST_REACH_LOOPBACK },
		{ "127.0.0.1:", MST_REACH_UNKNOWN },
		{ "::1:17077", MST_REACH_UNKNOWN },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CU_ASSERT_EQUAL(mst_reach_of(rows[i].address), rows[i].reach);
}

static void beyond_loopback_it_takes_certificates_or_the_users_word(void)
{
	struct mst_access_facts facts = { .address = "10.1.0.1:17077", .reach = MST_REACH_BEYOND };
	enum mst_access access;
	struct mst_reason why;

	CU_ASSERT_EQUAL(mst_access_judge(&facts, &access, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "--listen 10.1.0.1:17077 is beyond loopback"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "muster key new DIR"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "--insecure"));
	facts.joins = true;
	CU_ASSERT_EQUAL(mst_access_judge(&facts, &access, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "--join 10.1.0.1:17077"));
	facts.insecure = true;
	CU_ASSERT_EQUAL(mst_access_judge(&facts, &access, &why), 0);
	CU_ASSERT_EQUAL(access, MST_ACCESS_INSECURE);
	facts.has_certificates = true;
	CU_ASSERT_EQUAL(mst_access_judge(&facts, &access, &why), -EINVAL);
	facts.insecure = false;
	CU_ASSERT_EQUAL(mst_access_judge(&facts, &access, &why), 0);
	CU_ASSERT_EQUAL(access, MST_ACCESS_CERTIFICATES);
}

static void on_loopback_a_server_starts_and_says_who_may_join(void)
{
	struct mst_access_facts facts = { .address = "127.0.0.1:1", .reach = MST_REACH_LOOPBACK };
	enum mst_access access;
	struct mst_reason why;

	CU_ASSERT_EQUAL(mst_access_judge(&facts, &access, &why), 0);
	CU_ASSERT_EQUAL(access, MST_ACCESS_LOCAL);
	facts.insecure = true; /* a script may say it anywhere; here nobody else gets in by it */
	CU_ASSERT_EQUAL(mst_access_judge(&facts, &access, &why), 0);
	CU_ASSERT_EQUAL(access, MST_ACCESS_LOCAL);
	facts.insecure = false;
	facts.has_certificates = true;
	CU_ASSERT_EQUAL(mst_access_judge(&facts, &access, &why), 0);
	CU_ASSERT_EQUAL(access, MST_ACCESS_CERTIFICATES);
}

int main(void)
{
	CU_TestInfo cases[] = {
		{ "only what other hosts cannot reach is loopback",
		  only_what_other_hosts_cannot_reach_is_loopback },
		{ "beyond loopback it takes certificates or the users word",
		  beyond_loopback_it_takes_certificates_or_the_users_word },
		{ "on loopback a server starts and says who may join",
		  on_loopback_a_server_starts_and_says_who_may_join },
		CU_TEST_INFO_NULL,
	};

	return ut_main("access", cases);
}
