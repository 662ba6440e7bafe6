/* SPDX-License-Identifier: MIT */
/* A full message of every kind. */
#ifndef MST_TESTS_UNIT_COMMON_WIRE_WIRE_CASE_H
#define MST_TESTS_UNIT_COMMON_WIRE_WIRE_CASE_H

#include "common/wire/message.h"

extern struct mst_message wire_sent; /* the last that was made */
extern uint8_t wire_piece[1000];     /* the data of pieces */

void wire_make(enum mst_message_kind kind);

#endif
