/* SPDX-License-Identifier: MIT */
/* The sum of the squares of a range, for the norm of a contribution that servers want to know. */
#ifndef MST_CLIENT_LOCAL_SQUARES_H
#define MST_CLIENT_LOCAL_SQUARES_H

#include <stdint.h>

#include "muster/muster.h"

double mst_client_squares(const void *from, enum muster_type type, uint64_t count);

#endif
