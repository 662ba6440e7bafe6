/* SPDX-License-Identifier: MIT */
#include "client/session/network_choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/ut.h"

#define NOWHERE "/nowhere/muster/7"
#define TCP "tcp:127.0.0.1:9"

static struct mst_network_choice choice;
static struct mst_welcome welcome;
static const struct mst_transport *taken;
static struct mst_reason why;

/* A worker that may use these, and one server for each listener. */
static void begin(const char *may, const char *first, const char *second)
{
	struct mst_networks networks;

	CU_ASSERT_EQUAL_FATAL(mst_networks_read(may, &networks, &why), 0);
	mst_network_choice_init(&choice, &networks);
	welcome = (struct mst_welcome){ .server_count = second != NULL ? 2 : 1 };
	(void)snprintf(welcome.server[0].address, MST_LISTENER_LEN, "%s", first);
	(void)snprintf(welcome.server[1].address, MST_LISTENER_LEN, "%s",
		       second != NULL ? second : "");
}

static int take(void)
{
	taken = NULL;
	return mst_network_choice_take(&choice, &welcome, &taken, &why);
}

static bool says(const char *part)
{
	if (strstr(why.text, part) != NULL)
		return true;
	printf("\n\"%s\" has no \"%s\"\n", why.text, part);
	return false;
}

static void a_listener_that_is_not_here_is_passed_over(void)
{
	begin("auto", NOWHERE "|" TCP, NULL);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_PTR_EQUAL(taken, &mst_tcp);
	CU_ASSERT_PTR_NOT_NULL(strstr(choice.passed.text, "not shm: "));
	CU_ASSERT_PTR_NOT_NULL(strstr(choice.passed.text, NOWHERE));
}

static void a_network_has_to_lead_to_all_servers(void)
{
	begin("auto", "/|" TCP, TCP);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_PTR_EQUAL(taken, &mst_tcp);
	begin("auto", "/|" TCP, NOWHERE "|" TCP); /* the first would do */
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_PTR_EQUAL(taken, &mst_tcp);
	begin("auto", "/", TCP);
	CU_ASSERT_EQUAL(take(), -EPROTO);
	CU_ASSERT(says("over one network") && says("over shm and over tcp"));
}

static void what_the_worker_may_not_use_is_left_out(void)
{
	begin("tcp", "/|" TCP, NULL);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_PTR_EQUAL(taken, &mst_tcp);
	begin("verbs", "/|" TCP, NULL);
	CU_ASSERT_EQUAL(take(), -EINVAL);
	CU_ASSERT(says("MUSTER_TRANSPORT is verbs") && says("--transport verbs"));
	begin("auto", "pigeon:loft", NULL);
	CU_ASSERT_EQUAL(take(), -EPROTONOSUPPORT);
	CU_ASSERT(says("pigeon:loft"));
}

static void one_that_has_failed_is_not_taken_again(void)
{
	begin("auto", "/|" TCP, NULL);
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_PTR_EQUAL(taken, &mst_shm);
	CU_ASSERT(mst_network_choice_pass(&choice, taken, "it was refused"));
	CU_ASSERT_EQUAL(take(), 0);
	CU_ASSERT_PTR_EQUAL(taken, &mst_tcp);
	CU_ASSERT_FALSE(mst_network_choice_pass(&choice, taken, "it was silent"));
	CU_ASSERT_STRING_EQUAL(choice.passed.text,
			       "not shm: it was refused; not tcp: it was silent");
}

static void none_that_leads_there_says_what_to_do(void)
{
	begin("auto", NOWHERE, NULL);
	CU_ASSERT_EQUAL(take(), -ECONNREFUSED);
	CU_ASSERT(says("offers shm") && says(NOWHERE) && says("--transport tcp"));
	begin("shm", NOWHERE "|" TCP, NULL); /* the server has what this worker may not use */
	CU_ASSERT_EQUAL(take(), -ECONNREFUSED);
	CU_ASSERT(says("offers shm,tcp") && says("MUSTER_TRANSPORT is shm") && says(NOWHERE));
}

static CU_TestInfo cases[] = {
	{ "a listener that is not here is passed over, and the reason kept",
	  a_listener_that_is_not_here_is_passed_over },
	{ "a network has to lead to all servers", a_network_has_to_lead_to_all_servers },
	{ "what the worker may not use is left out", what_the_worker_may_not_use_is_left_out },
	{ "one that has failed is not taken again", one_that_has_failed_is_not_taken_again },
	{ "none that leads there says what to do", none_that_leads_there_says_what_to_do },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("network choice", cases);
}
