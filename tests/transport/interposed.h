/* SPDX-License-Identifier: MIT */
/*
 * A transport of a test's own between a program and its network. musterd or a worker is linked with
 * interposed.c, and with --wrap=mst_networks_transport,--wrap=mst_network_choice_take: whichever of
 * them chooses a network gets a copy of that network's table, in which interpose() has put
 * functions of the test's. These call the real ones through interposed_real.
 *
 * A joint net is left as it is: a follower has one until its leader has told it what to use. Any
 * other network a process may choose only once.
 */
#ifndef MST_TESTS_TRANSPORT_INTERPOSED_H
#define MST_TESTS_TRANSPORT_INTERPOSED_H

#include "common/transport/transport.h"

/* The network; and the copy, which `ops` of nets and links have to be for calls to come here. */
extern const struct mst_transport *interposed_real;
extern struct mst_transport interposed_ours;

/* The test's, called before there are threads: changes members of interposed_ours, and of its
 * @listeners. Return: false: the program keeps the real one. */
bool interpose(struct mst_transport *ours, struct mst_link_listener_ops *listeners);

/* Members of the copy that are there already: nets and links that they make are interposed ones.
 * Functions of a test that stand for them call these. */
int interposed_net_open(const struct mst_net_cfg *cfg, struct mst_net **out,
			struct mst_reason *why);
int interposed_dial(struct mst_net *net, const struct mst_dial *how, struct mst_link **out,
		    struct mst_reason *why);

#endif
