/* SPDX-License-Identifier: MIT */
/*
 * Another number of workers, for which an operator asks (muster workers, PROTOCOL 11). The leader
 * tells all workers and followers of it and ends the generation; then the process begins anew, with
 * that number.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_OPERATOR_RESIZING_H
#define MST_SERVER_CONTROL_OPERATOR_RESIZING_H

#include "server/control/base.h"

/* The peer of @c asks for @workers, and is answered. */
void mst_resizing_ask(struct mst_base *b, struct mst_conn *c, uint32_t workers, uint64_t now_ns);

#endif
