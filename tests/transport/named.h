/* SPDX-License-Identifier: MIT */
/* The transport that is named at a test's command line. */
#ifndef MST_TESTS_TRANSPORT_NAMED_H
#define MST_TESTS_TRANSPORT_NAMED_H

#include <string.h>

#include "common/transport/transport.h"

/* By its scheme; NULL: there is no such transport. */
static inline const struct mst_transport *transport_named(const char *scheme)
{
	const struct mst_transport *t;

	for (uint32_t i = 0; (t = mst_transport_at(i)) != NULL; i++)
		if (strcmp(t->scheme, scheme) == 0)
			return t;
	return NULL;
}

#endif
