/* SPDX-License-Identifier: MIT */
/*
 * The data side of a server: one thread runs its decider, its aggregator and the net that they
 * poll. Further shards of the aggregator may have threads of their own. It has step functions
 * over transport and clock. The caller of the steps makes progress, with or without threads.
 */
#ifndef MST_SERVER_DATA_SERVER_H
#define MST_SERVER_DATA_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/transport.h"
#include "server/data/aggregator.h"
#include "server/data/exchange.h"

struct mst_server_cfg;
struct mst_decider;
struct mst_recording;
/* Makes who decides over this net, which is open. Return: 0 or -errno. */
typedef int mst_decider_maker(const struct mst_server_cfg *cfg, struct mst_net *net,
			      struct mst_decider **out);

struct mst_server_cfg {
	mst_decider_maker *decider;           /* NULL: this server alone, by its ledger */
	struct mst_ledger_cfg ledger;         /* a follower: lease_ns alone */
	struct mst_aggregator_cfg aggregator; /* published is filled in */
	uint32_t peers;                       /* links with other servers */
	uint64_t server_lease_ns;             /* one without a link for this time is given up */
	bool records;                         /* this server records how gradients end, ... */
	struct mst_recording *recording;      /* ... there */
	const char *leader;                   /* a follower: the leader's listener */
	const struct mst_transport *transport;
	struct mst_net_cfg net; /* published_bytes and links_max are filled in */
	/* A notice is waiting: called by the data thread. */
	void (*notify)(void *ctx);
	void *notify_ctx;
};

struct mst_server;

/* Bytes this server will allocate and publish, apart from workers' own slots and from what its
 * decider keeps for and of other servers. */
uint64_t mst_server_bytes(const struct mst_server_cfg *cfg);
/* The bytes among those that it publishes. */
uint64_t mst_server_published(const struct mst_server_cfg *cfg);

/* Return: 0; or -errno, with @why as the transport's operations have it: emptied first. */
int mst_server_new(const struct mst_server_cfg *cfg, struct mst_server **out,
		   struct mst_reason *why);
/* Nobody steps it any more: ends and detaches every session, so that their links can be freed.
 * @error: as of mst_aggregator_hang_up(). */
void mst_server_hang_up(struct mst_server *s, int error);
void mst_server_free(struct mst_server *s); /* accepts NULL; after mst_server_hang_up() */

/* The net its links are attached to: what a listener is opened for. */
struct mst_net *mst_server_net(struct mst_server *s);
/* Version 0's buffer, to be filled by the control side between SEND_STATE and MST_EV_STATE; at a
 * follower before it says so to the leader. */
void *mst_server_start_buffer(struct mst_server *s);
/* At the same time, before the buffer: as mst_aggregator_tensors(). */
void mst_server_tensors(struct mst_server *s, const struct mst_tensor_table *tensors);
/* Before the data thread runs: the job goes on from a checkpoint. The vectors to be filled. */
void mst_server_resume(struct mst_server *s, struct mst_resumed *out);
/* A follower: it is filled. */
void mst_server_state_filled(struct mst_server *s);

/* Control thread. Return: false if the ring is full; try again. */
bool mst_server_request(struct mst_server *s, const struct mst_request *request);
bool mst_server_notice(struct mst_server *s, struct mst_notice *out);

/* Data thread: handles what is there, does one chunk of work. Return: is there more to do now? */
bool mst_server_step(struct mst_server *s, uint64_t now_ns);
/* Data thread: sleeps until there may be something to do. */
void mst_server_wait(struct mst_server *s, uint64_t now_ns);
/* Any thread: how often the data thread has passed its loop. One that is woken passes it. */
uint64_t mst_server_passes(const struct mst_server *s);
/* Any thread: ends the present or next wait. */
void mst_server_wake(struct mst_server *s);

/* A shard other than the first, in a thread of its own or not: one chunk of its work. Return: false
 * if there is none. And: returns when there may be some. */
bool mst_server_shard_step(struct mst_server *s, uint32_t shard);
void mst_server_shard_wait(struct mst_server *s, uint32_t shard);
/* Any thread: that shard's waits end at once from now on. */
void mst_server_shard_stop(struct mst_server *s, uint32_t shard);
uint32_t mst_server_shards(const struct mst_server *s);

#endif
