/* SPDX-License-Identifier: MIT */
/*
 * What common/transport/transport.h promises, held against one transport:
 *
 *   test_transport [--OPTION=VALUE ...] SCHEME[,BESIDE] threads|processes [HASTE]
 *
 * The cases are in the files *_cases.c. Threads are there for the thread sanitizer; processes for
 * what only they can do, such as being killed. HASTE is for slow devices: cases that repeat for
 * long do so this much less often. The options are those of networks (fabric.h), for both ends;
 * and --tls, by which links are encrypted, with certificates of an authority made for this run.
 * With BESIDE the acceptor's net is a joint one of both networks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/option.h"
#include "tests/transport/named.h"
#include "tests/transport/tls/place.h"
#include "tests/transport/world.h"

#define CASES_MAX 80

struct suite_options {
	struct mst_fabric_options fabric;
	bool tls;
};

static const struct mst_option table[] = {
	MST_FABRIC_ROWS(struct suite_options, fabric),
	{ .name = "tls",
	  .kind = MST_OPTION_FLAG,
	  .offset = offsetof(struct suite_options, tls),
	  .help = "encrypt links" },
	{ .name = NULL },
};

const struct mst_transport *transport, *acceptor, *other_network;
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
	struct mst_net_cfg cfg = { .fabric = &peer_fabric,
				   .channels = peer_channels,
				   .links_max = 1 };
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

/* What follows the options: SCHEME threads|processes [HASTE]. */
static bool may_be(int count, char **operand)
{
	if (count != 2 && (count != 3 || strtoul(operand[2], NULL, 10) == 0))
		return false;
	return strcmp(operand[1], "threads") == 0 || strcmp(operand[1], "processes") == 0;
}

static struct suite_options typed; /* peer_fabric refers to its strings */

/* Return: the index of the first operand, or a negative errno, with a sentence in @o. */
static int read_options(struct mst_options *o, int argc, char **argv)
{
	int operand = 0, rc = mst_options_init(o, table, &typed);

	if (rc == 0)
		rc = mst_options_argv(o, argc, argv, &operand);
	if (rc == 0)
		rc = mst_fabric_read(&typed.fabric, &peer_fabric, &o->why);
	return rc == 0 ? operand : rc;
}

static int run(int count, char **operand)
{
	in_processes = strcmp(operand[1], "processes") == 0;
	if (count == 3)
		haste = strtoul(operand[2], NULL, 10);
	char *beside = operand[0], *scheme = strsep(&beside, ",");

	transport = acceptor = transport_named(scheme);
	if (beside != NULL) {
		acceptor = &mst_joint;
		other_network = transport_named(beside);
	}
	if (transport == NULL || (beside != NULL && other_network == NULL)) {
		fprintf(stderr, "there is no transport '%s', only " MST_TRANSPORT_SCHEMES "\n",
			operand[0]);
		return EXIT_FAILURE;
	}
	peer_polls = !transport->maps && !transport->pins;
	int status = try_to_open();
	if (status != EXIT_SUCCESS)
		return status;
	add_cases(put_cases);
	add_cases(listener_cases);
	add_cases(wait_cases);
	add_cases(end_cases);
	add_cases(answer_cases);
	add_cases(ring_cases);
	add_cases(region_cases);
	add_cases(copy_cases);
	add_cases(shared_region_cases);
	if (in_processes)
		add_cases(process_cases);
	return ut_main(transport->scheme, cases);
}

/* Each end may listen, so all show a certificate of a server. */
static int run_encrypted(int count, char **operand)
{
	struct tls_place home;

	tls_place_make(&home, 0);
	struct mst_credentials *own = tls_place_load(&home, "server");
	peer_channels = mst_channels_of(own);
	peer_fabric.encrypted = true;
	int status = run(count, operand);
	mst_credentials_free(own);
	tls_place_remove(&home);
	return status;
}

int main(int argc, char **argv)
{
	struct mst_options options;
	int operand = read_options(&options, argc, argv), status = EXIT_FAILURE;

	if (operand < 0)
		fprintf(stderr, "%s: %s\n", argv[0], mst_reason_or_errno(&options.why, operand));
	else if (!may_be(argc - operand, argv + operand))
		fprintf(stderr,
			"usage: %s [--OPTION=VALUE ...] SCHEME[,SCHEME] threads|processes [N]\n",
			argv[0]);
	else if (typed.tls)
		status = run_encrypted(argc - operand, argv + operand);
	else
		status = run(argc - operand, argv + operand);
	mst_options_free(&options);
	return status;
}
