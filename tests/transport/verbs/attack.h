/* SPDX-License-Identifier: MIT */
/*
 * A target over verbs, and those who attack it. An attacker's end is dialled as it should be; then
 * its queue pair is taken out of the transport's hands and made to send what the transport never
 * would. The target's end of that link must break, and nothing else.
 */
#ifndef MST_TESTS_TRANSPORT_VERBS_ATTACK_H
#define MST_TESTS_TRANSPORT_VERBS_ATTACK_H

#include "common/base/clock.h"
#include "common/base/reason.h"
#include "common/transport/verbs/verbs.h"
#include "tests/ut.h"

#define CANARY 0xa5
#define ARMS_BYTES ((size_t)64 << 10)
#define STRIKE_ID UINT64_MAX /* work request number of a strike */
/* For what comes unless something is broken. An emulated machine on a busy host takes seconds. */
#define PATIENCE_NS (60 * MST_SECOND)

struct verbs_target {
	struct mst_net *net;
	struct mst_link_listener *listener;
};

struct verbs_attack {
	struct mst_net *net;  /* of the one who dials */
	struct mst_link *far; /* its end */
	struct mst_link *near;
	uint8_t *arms; /* memory it strikes from */
	struct ibv_mr *mr;
};

struct strike {
	enum ibv_wr_opcode opcode;
	uint64_t remote;
	uint32_t rkey, bytes, imm;
	uint32_t rail; /* strike() waits for those of the first only */
};

extern const struct mst_lanes usual_lanes; /* a page up, two down, 4 credits each */

struct verbs_target target_open(void);
struct verbs_target house_open_at(const char *addresses); /* NULL: where it will */
void target_close(struct verbs_target *h);
/* The next at the listener within PATIENCE_NS: 0. */
int house_next_request(const struct verbs_target *h, struct mst_link_request *out);

/* What dialling @address comes to, in a thread of its own. */
struct dialling {
	struct mst_net *net;
	struct mst_export export; /* region NULL: nothing is */
	struct mst_dial dial;
	struct mst_link *link;
	int rc;
	struct mst_reason why;
	unsigned long thread;
};
struct mst_net *attacker_net(void);
void dialling_begin(struct dialling *d, const char *address, const struct mst_lanes *lanes);
int dialling_end(struct dialling *d);

void attack_begin(const struct verbs_target *h, struct verbs_attack *g,
		  const struct mst_lanes *lanes);
void attack_lift(struct verbs_attack *g); /* both ends, of what is left */
void attack_drop_near(struct verbs_attack *g);

static inline struct mst_verbs_rail *rail_of(const struct mst_link *l)
{
	return &((struct mst_verbs_link *)(uintptr_t)l)->rail[0];
}
static inline const struct mst_verbs_memory *inbound_of(const struct mst_link *l)
{
	return &((const struct mst_verbs_link *)l)->inbound;
}
/* What @link's inbound region is called by its peer. */
struct strike strike_at(const struct mst_link *far, enum ibv_wr_opcode opcode, size_t offset,
			uint32_t bytes);
/* Posts it. 0 or an error number. */
int strike_post(const struct verbs_attack *g, const struct strike *s);
/* And waits for its completion: what it came to. */
enum ibv_wc_status strike(const struct verbs_attack *g, const struct strike *s);
/* The next completion of a strike; false: none within @ns. */
bool strike_ended(const struct verbs_attack *g, uint64_t ns, enum ibv_wc_status *status);
/* From a reset on, with rights and patience the transport does not ask for. */
void attack_rearm(const struct verbs_attack *g, uint8_t reads, uint8_t rnr_retries);

/* Fills the acceptor's inbound region, with or without the tail, with canaries. */
void inbound_fill(const struct mst_link *near, bool tail);
bool is_canary(const void *at, size_t bytes);
/* Packets that the device has taken in before the end are written after it, as late as a busy host
 * lets the device work; then nothing is written any more. Return: they do within
 * PATIENCE_NS, and the memory has canaries. */
bool comes_to_rest(const struct mst_verbs_memory *m);
/* Canaries where nothing else is mapped: at @at, or anywhere if that is taken. */
uint8_t *canary_map(void *at, size_t bytes);

struct heard {
	int lost, arrived, arrived_other, error;
};
/* Polls the target for so long, or until @offender is lost and @honest has arrived. */
struct heard house_listen(const struct verbs_target *h, const struct mst_link *offender,
			  const struct mst_link *honest, uint64_t ns);
/* The target reports @g lost, once, with a sentence, and a newcomer goes on. Return: the error. */
int expect_lost(const struct verbs_target *h, const struct verbs_attack *g,
		const struct verbs_attack *honest);
/* A put of each end arrives at the other. */
void expect_alive(const struct verbs_target *h, const struct verbs_attack *g);

/* hostile_listener.c */
extern CU_TestInfo verbs_listener_cases[];
/* hostile_acceptor.c: a case */
void what_is_exported_is_all_that_is_reached(void);
/* removal.c: this host's device is gone afterwards */
extern CU_TestInfo verbs_removal_cases[];

#endif
