/* SPDX-License-Identifier: MIT */
/*
 * What musterd warns of when it begins: options that may not do what the user means.
 */
#ifndef MST_SERVER_ANNOUNCEMENT_H
#define MST_SERVER_ANNOUNCEMENT_H

#include "server/control/plane.h"
#include "server/options/options.h"

void mst_announcement_tell(const struct mst_server_options *o, enum mst_access access,
			   const struct mst_plane *plane);
/* @bound: where the server listens. */
void mst_announcement_tell_name(const struct mst_server_options *o, const char *bound);

#endif
