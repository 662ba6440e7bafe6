/* SPDX-License-Identifier: MIT */
/* What reaches a service manager, and whom its watchdog is for. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/host/service.h"
#include "tests/fixtures.h"
#include "tests/ut.h"

static struct fix_folder folder;
static struct mst_service service;
static struct mst_reason why;

/* A manager's socket at this address; a name after @ is abstract. */
static int manager(const char *address)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", address);
	if (address[0] == '@')
		at.sun_path[0] = '\0';
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(address));
	CU_ASSERT_EQUAL_FATAL(bind(s, (struct sockaddr *)&at, len), 0);
	setenv("NOTIFY_SOCKET", address, 1);
	return s;
}

static void forget(void)
{
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

static void a_message_arrives_at(const char *address)
{
	int s = manager(address);
	char got[32] = "";

	CU_ASSERT_EQUAL_FATAL(mst_service_open(&service, &why), 0);
	CU_ASSERT_TRUE(mst_service_tell(&service, "READY=1\n"));
	CU_ASSERT_EQUAL(recv(s, got, sizeof(got) - 1, 0), 8);
	CU_ASSERT_STRING_EQUAL(got, "READY=1\n");
	mst_service_close(&service);
	close(s);
}

static void messages_arrive_at_a_path_or_an_abstract_name(void)
{
	char address[100];

	fix_folder_new(&folder);
	(void)snprintf(address, sizeof(address), "%s/notify", folder.root);
	a_message_arrives_at(address);
	(void)snprintf(address, sizeof(address), "@muster-test-%d", (int)getpid());
	a_message_arrives_at(address);
	fix_folder_free(&folder);
	forget();
}

static void without_a_manager_all_is_told_and_nothing_bites(void)
{
	forget();
	setenv("WATCHDOG_USEC", "1000", 1);
	CU_ASSERT_EQUAL(mst_service_open(&service, &why), 0);
	CU_ASSERT_EQUAL(service.watchdog_ns, 0);
	CU_ASSERT_TRUE(mst_service_tell(&service, "READY=1\n"));
	mst_service_close(&service);
	forget();
}

static void a_manager_that_takes_nothing_does_not_block(void)
{
	char address[100];
	unsigned told = 0;

	(void)snprintf(address, sizeof(address), "@muster-test-%d", (int)getpid());
	int s = manager(address);
	CU_ASSERT_EQUAL_FATAL(mst_service_open(&service, &why), 0);
	while (told < 100000 && mst_service_tell(&service, "WATCHDOG=1\n"))
		told++;
	CU_ASSERT(told > 0 && told < 100000);
	close(s);
	CU_ASSERT_FALSE(mst_service_tell(&service, "WATCHDOG=1\n")); /* it has gone */
	mst_service_close(&service);
	forget();
}

static uint64_t watchdog_of(const char *us, const char *pid)
{
	setenv("NOTIFY_SOCKET", "/nowhere", 1);
	setenv("WATCHDOG_USEC", us, 1);
	setenv("WATCHDOG_PID", pid, 1);
	CU_ASSERT_EQUAL(mst_service_open(&service, &why), 0);
	mst_service_close(&service);
	forget();
	return service.watchdog_ns;
}

static void the_watchdog_is_for_the_process_it_names(void)
{
	char own[16], other[16];

	(void)snprintf(own, sizeof(own), "%d", (int)getpid());
	(void)snprintf(other, sizeof(other), "%d", (int)getppid());
	CU_ASSERT_EQUAL(watchdog_of("30000000", own), UINT64_C(30000000000));
	CU_ASSERT_EQUAL(watchdog_of("30000000", ""), UINT64_C(30000000000));
	CU_ASSERT_EQUAL(watchdog_of("30000000", other), 0);
	CU_ASSERT_EQUAL(watchdog_of("30s", own), 0);
	CU_ASSERT_EQUAL(watchdog_of("-1", own), 0);
	CU_ASSERT_EQUAL(watchdog_of("18446744073709551615", own), 0);
}

static void an_address_that_is_none_is_named(void)
{
	char longest[200];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	for (const char *const *bad = (const char *const[]){ "vsock:2:1", "/", longest, NULL };
	     *bad != NULL; bad++) {
		setenv("NOTIFY_SOCKET", *bad, 1);
		CU_ASSERT_EQUAL(mst_service_open(&service, &why), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "NOTIFY_SOCKET is \""));
		CU_ASSERT_TRUE(mst_service_tell(&service, "READY=1\n"));
		mst_service_close(&service);
	}
	forget();
}

static CU_TestInfo cases[] = {
	{ "messages arrive at a path or an abstract name",
	  messages_arrive_at_a_path_or_an_abstract_name },
	{ "without a manager all is told, and nothing bites",
	  without_a_manager_all_is_told_and_nothing_bites },
	{ "a manager that takes nothing does not block",
	  a_manager_that_takes_nothing_does_not_block },
	{ "the watchdog is for the process it names", the_watchdog_is_for_the_process_it_names },
	{ "an address that is none is named", an_address_that_is_none_is_named },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("service", cases);
}
