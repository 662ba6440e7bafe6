/* SPDX-License-Identifier: MIT */
/*
 * Who of those that ask gives its place to another, when all their places are taken. Pure.
 *
 * An operator always finds a place. That is who has proven to be one; and, as nobody proves
 * anything without certificates, also who has asked for a change of the job, which only an operator
 * may.
 */
#ifndef MST_SERVER_CONTROL_ASKERS_H
#define MST_SERVER_CONTROL_ASKERS_H

#include "server/control/places.h"

/* The watcher that gives its place to @c. To an operator it is one that is none; if there are only
 * operators, the one that has been silent longest. To another peer it is one of a host that has at
 * least two places more than the host of @c.
 * Return: NULL: nobody does. */
struct mst_conn *mst_askers_yield(const struct mst_places *p, const struct mst_conn *c);

#endif
