/* SPDX-License-Identifier: MIT */
/*
 * The peer of a control stream: its name, as far as the stream knows it, and what it may do.
 */
#ifndef MST_TRANSPORT_PRINCIPAL_H
#define MST_TRANSPORT_PRINCIPAL_H

#include <stdbool.h>
#include <stdint.h>

/* What a peer may do: a set of these. */
enum mst_role {
	MST_ROLE_WORKER = 1 << 0,   /* joins as a worker */
	MST_ROLE_SERVER = 1 << 1,   /* leads, or joins as a follower */
	MST_ROLE_OPERATOR = 1 << 2, /* changes a running job, and sees its status */
	MST_ROLE_OBSERVER = 1 << 3, /* sees the status */
};
#define MST_ROLES_ALL                                                                              \
	((uint32_t)(MST_ROLE_WORKER | MST_ROLE_SERVER | MST_ROLE_OPERATOR | MST_ROLE_OBSERVER))
#define MST_PRINCIPAL_LEN 64u /* with NUL */

struct mst_principal {
	uint32_t roles; /* a set of enum mst_role */
	bool proven;    /* by a certificate; false: any peer at the port has all roles */
	char name[MST_PRINCIPAL_LEN]; /* that the certificate gives; "": not proven */
};

#endif
