/* SPDX-License-Identifier: MIT */
/*
 * Says who is a straggler, and who is none any more, in the log.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_OPERATOR_STRAGGLING_H
#define MST_SERVER_CONTROL_OPERATOR_STRAGGLING_H

#include "server/control/base.h"

void mst_straggling_noted(const struct mst_base *base, const struct mst_notice *notice);

#endif
