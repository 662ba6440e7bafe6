/* SPDX-License-Identifier: MIT */
/*
 * Chooses the asker that gives its place to another, when all places are taken. Pure.
 *
 * With certificates, an operator always finds a place, and so does an observer, unless operators
 * have all of them. Without certificates nobody proves anything: there who has asked for a change
 * of the job, which only an operator may, is taken for one.
 */
#ifndef MST_SERVER_CONTROL_CONNECTIONS_ASKERS_H
#define MST_SERVER_CONTROL_CONNECTIONS_ASKERS_H

#include "server/control/connections/places.h"

/* The watcher that gives its place to @c. To an operator or an observer it is one that is neither,
 * or else an observer; in both cases the one that has been silent longest of the host that has most
 * of them. To an operator, if there are only operators, it is the one of them that has been silent
 * longest. To another peer it is one that is neither, of a host that has at least two places more
 * than the host of @c.
 * Return: NULL: nobody does. */
struct mst_conn *mst_askers_yield(const struct mst_places *p, const struct mst_conn *c);

#endif
