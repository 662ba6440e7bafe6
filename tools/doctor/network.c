/* SPDX-License-Identifier: MIT */
#include "tools/doctor/network.h"

#include <errno.h>
#include <string.h>

static void fix_shm(const struct mst_doctor_try *t, const struct mst_findings *found,
		    struct mst_finding *new)
{
	(void)t;
	if (mst_findings_failed(found, MST_DOCTOR_DIRECTORY))
		mst_finding_fix(new, "what " MST_DOCTOR_DIRECTORY " above says");
	else
		mst_finding_fix(new, "in a container: --shm-size and its memory limit; else the "
				     "limits of ulimit -a");
}

static void fix_verbs(const struct mst_doctor_try *t, const struct mst_findings *found,
		      struct mst_finding *new)
{
	(void)found;
	if (t->error == -ENOMEM)
		mst_finding_fix(new, "what memlock above says");
	else
		mst_finding_fix(new, "dmesg | tail; ibv_devinfo -d %.*s",
				(int)strcspn(t->subject, "/"), t->subject);
}

static void fix_tcp(const struct mst_doctor_try *t, const struct mst_findings *found,
		    struct mst_finding *new)
{
	(void)t;
	(void)found;
	mst_finding_fix(new,
			"a firewall or sandbox of this host that forbids connections to its own "
			"addresses: nft list ruleset; else the limits of ulimit -a");
}

const struct mst_doctor_network mst_doctor_networks[] = {
	{ .transport = &mst_shm, .check = "shm", .within_host = true, .fix = fix_shm },
	{ .transport = &mst_verbs, .check = "write", .by_port = true, .fix = fix_verbs },
	{ .transport = &mst_tcp, .check = "tcp", .fix = fix_tcp },
	{ .check = NULL },
};

const struct mst_doctor_network *mst_doctor_network_of(const char *check)
{
	for (const struct mst_doctor_network *n = mst_doctor_networks; n->check != NULL; n++)
		if (strcmp(n->check, check) == 0)
			return n;
	return NULL;
}
