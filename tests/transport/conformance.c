/* SPDX-License-Identifier: MIT */
/*
 * What common/transport/transport.h promises, held against one transport:
 *
 *   test_transport SCHEME threads|processes [HASTE]
 *
 * The cases are in the files *_cases.c. Threads are there for the thread sanitizer; processes for
 * what only they can do, such as being killed. HASTE is for slow devices: cases that repeat for
 * long do so this much less often.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/transport/world.h"

#define CASES_MAX 80

const struct mst_transport *transport;
bool in_processes;
uint64_t haste = 1;

static CU_TestInfo cases[CASES_MAX + 1]; /* ends with an empty one */

static void add_cases(const CU_TestInfo *more)
{
	size_t n = 0;

	while (cases[n].pName != NULL)
		n++;
	for (; more->pName != NULL && n < CASES_MAX; more++)
		cases[n++] = *more;
}

/* Return: an exit status. A transport whose memory a device reaches may have no device here; one
 * that needs none has to open. */
static int try_to_open(void)
{
	struct mst_net_cfg cfg = { .links_max = 1 };
	struct mst_reason why = { 0 };
	struct mst_net *net;
	int rc = transport->net_open(&cfg, &net, &why);

	if (rc == 0) {
		transport->net_close(net);
		return EXIT_SUCCESS;
	}
	printf("%s: transport '%s' does not open here: %s\n",
	       transport->pins ? "skipped" : "failed", transport->scheme,
	       mst_reason_or_errno(&why, rc));
	return transport->pins ? UT_SKIP : EXIT_FAILURE;
}

static bool may_be(int argc, char **argv)
{
	if (argc != 3 && (argc != 4 || strtoul(argv[3], NULL, 10) == 0))
		return false;
	return strcmp(argv[2], "threads") == 0 || strcmp(argv[2], "processes") == 0;
}

int main(int argc, char **argv)
{
	if (!may_be(argc, argv)) {
		fprintf(stderr, "usage: %s SCHEME threads|processes [HASTE]\n", argv[0]);
		return EXIT_FAILURE;
	}
	in_processes = strcmp(argv[2], "processes") == 0;
	if (argc == 4)
		haste = strtoul(argv[3], NULL, 10);
	transport = mst_transport_find(argv[1]);
	if (transport == NULL) {
		fprintf(stderr, "%s: there is no transport '%s', only " MST_TRANSPORT_SCHEMES "\n",
			argv[0], argv[1]);
		return EXIT_FAILURE;
	}
	int status = try_to_open();
	if (status != EXIT_SUCCESS)
		return status;
	add_cases(put_cases);
	add_cases(listener_cases);
	add_cases(wait_cases);
	add_cases(end_cases);
	add_cases(answer_cases);
	add_cases(region_cases);
	add_cases(copy_cases);
	add_cases(shared_region_cases);
	if (in_processes)
		add_cases(process_cases);
	return ut_main(argv[1], cases);
}
