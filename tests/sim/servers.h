/* SPDX-License-Identifier: MIT */
/* The servers of a world: the leader, and followers that join it. Each is a process with a fiber
 * for its control thread, one for its data thread, and one for each further shard. */
#ifndef MST_TESTS_SIM_SERVERS_H
#define MST_TESTS_SIM_SERVERS_H

#include "tests/sim/plan.h"
#include "tests/sim/world.h"

void servers_begin(const struct sim_plan *plan);
/* Others begin at the same addresses, in place of those that are lost. */
void servers_succeed(void);
/* Has each of those that began last died, or ended? */
bool servers_are_lost(void);
/* They have all ended. */
void servers_end(void);

/* As the plan numbers them; 0 leads. */
struct sim_process *servers_process(uint32_t server);
/* -1: it is none. */
int servers_number(const struct sim_process *p);

/* The generation that it is to serve, from 0. */
uint32_t servers_generation(const struct sim_process *p);
/* Does it matter what this server decides? Not that of one that is dead, or whose place another has
 * taken. */
bool servers_counts(const struct sim_process *p);

/* There may be work for shards of @p that sleep. */
void servers_ring_shards(const struct sim_process *p);
/* As a signal would. */
void servers_stop(uint32_t server);
/* Its control side stands still; its data side goes on. */
void servers_deafen(uint32_t server, uint64_t span_ns);
/* Its data thread stands still, and its control side does not. */
void servers_hang(uint32_t server, uint64_t span_ns);
/* The reader of its log stands still, and the server says more than a log may keep, or nearly. */
void servers_block_log(uint32_t server, uint64_t span_ns);
/* How long since @began_ns a data thread has stood still at a stretch, and still does. */
uint64_t servers_hung_ns(uint64_t began_ns);
/* Nobody has joined, and nobody will: the leader is stopped. */
void servers_nobody_comes(void);

bool servers_are_home(void);
/* Tells the observer of those that are not. */
void servers_name_the_lost(uint64_t after_ns);

#endif
