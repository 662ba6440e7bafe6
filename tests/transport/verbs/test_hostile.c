/* SPDX-License-Identifier: MIT */
/*
 * What a hostile peer can do over verbs, once it has been let in: strike outside of its inbound
 * region, with others' keys, with other operations, more often than it may, and too late.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/clock.h"
#include "common/transport/verbs/verbs.h"
#include "tests/transport/verbs/attack.h"

static const enum ibv_wr_opcode WRITE = IBV_WR_RDMA_WRITE;

/* An attacker and one who is honest. */
struct scene {
	struct verbs_target h;
	struct verbs_attack g, honest;
};

static void scene_open_with(struct scene *s, const struct mst_lanes *lanes)
{
	s->h = target_open();
	attack_begin(&s->h, &s->honest, &usual_lanes);
	attack_begin(&s->h, &s->g, lanes);
}

static void scene_open(struct scene *s)
{
	scene_open_with(s, &usual_lanes);
	/* Region exchanges are in: from now on inbound regions change by strikes only. */
	CU_ASSERT_EQUAL(mst_verbs.poll(s->h.net, &(struct mst_net_event){ 0 }, 1), 0);
	inbound_fill(s->g.near, true);
	inbound_fill(s->honest.near, true);
}

static void scene_close(struct scene *s)
{
	expect_alive(&s->h, &s->honest);
	attack_lift(&s->g);
	attack_lift(&s->honest);
	target_close(&s->h);
}

/* A strike that is refused, changes neither inbound region, and ends its link and no other. */
static void expect_refused(struct scene *s, const struct strike *blow)
{
	const struct mst_verbs_memory *own = inbound_of(s->g.near);
	const struct mst_verbs_memory *other = inbound_of(s->honest.near);
	uint8_t *arms = s->g.arms;

	CU_ASSERT_NOT_EQUAL(strike(&s->g, blow), IBV_WC_SUCCESS);
	CU_ASSERT(is_canary(own->base, own->bytes));
	CU_ASSERT(is_canary(other->base, other->bytes));
	CU_ASSERT(arms[0] == 'x' && memcmp(arms, arms + 1, ARMS_BYTES - 1) == 0);
	int error = expect_lost(&s->h, &s->g, &s->honest);
	CU_ASSERT(error == -EPROTO || error == -EPIPE);
	CU_ASSERT(is_canary(own->base, own->bytes));
}

static void write_beyond_the_inbound_is_refused(void)
{
	static const int32_t offsets[] = { -8, 8192 - 8, 8192, 1 << 20 };
	uint8_t *canary = canary_map(NULL, 4096);

	/* Below, across the end of the tail, right after it, somewhere, and where memory is. */
	for (size_t i = 0; i <= sizeof(offsets) / sizeof(offsets[0]); i++) {
		struct scene s;
		scene_open(&s);
		CU_ASSERT_EQUAL_FATAL(inbound_of(s.g.near)->bytes, 8192);
		struct strike blow = strike_at(s.g.far, WRITE, 0, 16);
		if (i < sizeof(offsets) / sizeof(offsets[0]))
			blow.remote += (uint64_t)(int64_t)offsets[i];
		else
			blow.remote = (uintptr_t)canary;
		expect_refused(&s, &blow);
		CU_ASSERT(is_canary(canary, 4096));
		scene_close(&s);
	}
	munmap(canary, 4096);
}

static void long_write_beyond_the_inbound_is_refused(void)
{
	struct scene s;

	scene_open(&s);
	/* Several packets long: the first of them would fit, and may be written. */
	struct strike blow = strike_at(s.g.far, WRITE, 0, ARMS_BYTES);
	CU_ASSERT_NOT_EQUAL(strike(&s.g, &blow), IBV_WC_SUCCESS);
	int error = expect_lost(&s.h, &s.g, &s.honest);
	CU_ASSERT(error == -EPROTO || error == -EPIPE);
	CU_ASSERT(is_canary((uint8_t *)s.honest.near->inbound + 16, 4096));
	scene_close(&s);
}

static void key_of_another_link_opens_nothing(void)
{
	struct scene s;

	scene_open(&s);
	struct strike blow = strike_at(s.honest.far, WRITE, 0, 16);
	expect_refused(&s, &blow);
	scene_close(&s);
	/* It does not work where the own inbound region is, or with a key that nobody has. */
	for (uint32_t i = 0; i < 3; i++) {
		scene_open(&s);
		blow = strike_at(s.g.far, WRITE, 0, 16);
		blow.rkey = i == 0 ? rail_of(s.honest.far)->rkey : blow.rkey + i * 7;
		expect_refused(&s, &blow);
		scene_close(&s);
	}
}

/* The keys in the target: of the published memory, of what is composed for the peer, and of memory
 * that the program has registered. None may be reached. */
static void memory_that_is_not_for_writing_is_refused(void)
{
	static uint8_t own[8192];

	for (int i = 0; i < 3; i++) {
		struct scene s;
		scene_open(&s);
		struct mst_region *registered;
		CU_ASSERT_EQUAL_FATAL(mst_region_register(&s.h.net->domain, own, sizeof(own),
							  &registered, UT_UNREAD),
				      0);
		struct mst_verbs_rail *r = rail_of(s.g.near);
		const struct mst_region *all[] = { &r->link->home->versions, &r->link->composed,
						   registered };
		const struct ibv_mr *mr = all[i]->pin[r->device->index];
		struct strike blow = { .opcode = WRITE,
				       .remote = (uintptr_t)mr->addr,
				       .rkey = mr->rkey,
				       .bytes = 16 };
		memset(mr->addr, CANARY, mr->length);
		expect_refused(&s, &blow);
		CU_ASSERT(is_canary(mr->addr, mr->length));
		scene_close(&s);
	}
}

static void inbound_cannot_be_read(void)
{
	struct scene s;

	scene_open(&s);
	attack_rearm(&s.g, 1, 3);
	struct strike blow = strike_at(s.g.far, IBV_WR_RDMA_READ, 0, 64);
	expect_refused(&s, &blow);
	scene_close(&s);
}

static void inbound_knows_no_atomics(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_ATOMIC_CMP_AND_SWP,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };

	for (int i = 0; i < 2; i++) {
		struct scene s;
		scene_open(&s);
		attack_rearm(&s.g, 1, 3);
		struct strike blow = strike_at(s.g.far, opcodes[i], 0, 8);
		expect_refused(&s, &blow);
		scene_close(&s);
	}
}

static void messages_end_the_link(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM };
	static const uint32_t sizes[] = { 0, 1, 4096, ARMS_BYTES };

	for (int i = 0; i < 8; i++) {
		struct scene s;
		scene_open(&s);
		struct strike blow = { .opcode = opcodes[i % 2], .bytes = sizes[i / 2] };
		enum ibv_wc_status status = strike(&s.g, &blow);
		CU_ASSERT((status == IBV_WC_SUCCESS) == (blow.bytes == 0));
		CU_ASSERT(is_canary(inbound_of(s.g.near)->base, inbound_of(s.g.near)->bytes));
		CU_ASSERT_EQUAL(expect_lost(&s.h, &s.g, &s.honest), -EPROTO);
		scene_close(&s);
	}
}

/* ---- more than it may ---- */

/* As many of @count immediates as there is room for. Return: how many. */
static int flood(const struct verbs_attack *g, int count, uint32_t from)
{
	struct strike blow = strike_at(g->far, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 8);
	int n = 0;

	for (blow.imm = from; n < count && strike_post(g, &blow) == 0; blow.imm++)
		n++;
	return n;
}

static void impatient_flood_ends_the_link(void)
{
	struct mst_net_event ev[32];
	struct scene s;
	int arrived = 0, lost = 0;

	scene_open(&s);
	CU_ASSERT(flood(&s.g, 1000, 0) > 8);
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	for (int i = 0; i < 4; i++)
		CU_ASSERT(strike_ended(&s.g, PATIENCE_NS, &status) && status == IBV_WC_SUCCESS);
	CU_ASSERT(strike_ended(&s.g, PATIENCE_NS, &status));
	CU_ASSERT_EQUAL(status, IBV_WC_RNR_RETRY_EXC_ERR);
	while (strike_ended(&s.g, MST_MS, &status))
		CU_ASSERT_EQUAL(status, IBV_WC_WR_FLUSH_ERR);
	for (int i = 0; i < 100; i++) {
		int n = mst_verbs.poll(s.h.net, ev, 32);
		for (int k = 0; k < n; k++) {
			CU_ASSERT(ev[k].kind != MST_ARRIVED || ev[k].imm == (uint32_t)arrived);
			arrived += ev[k].kind == MST_ARRIVED;
			lost += ev[k].kind == MST_LOST;
		}
	}
	CU_ASSERT_EQUAL(arrived, 4);
	CU_ASSERT_EQUAL(lost, 0); /* the attacker's own device gave up: it says so by going */
	CU_ASSERT(is_canary((uint8_t *)s.g.near->inbound + 8, 8192 - 8));
	scene_close(&s);
}

static void patient_flood_is_throttled(void)
{
	struct mst_net_event ev[32];
	struct scene s;
	int sent = 0, arrived = 0, most = 0;
	uint64_t end = mst_now_ns() + PATIENCE_NS;

	scene_open(&s);
	attack_rearm(&s.g, 0, 7); /* for ever */
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	while (arrived < 1000 && status == IBV_WC_SUCCESS && mst_now_ns() < end) {
		sent += flood(&s.g, 1000 - sent, (uint32_t)sent);
		while (status == IBV_WC_SUCCESS && strike_ended(&s.g, 0, &status))
			;
		int n = mst_verbs.poll(s.h.net, ev, 32), at_once = 0;
		for (int k = 0; k < n; k++) {
			CU_ASSERT(ev[k].kind == MST_ARRIVED && ev[k].link == s.g.near);
			CU_ASSERT_EQUAL(ev[k].imm, (uint32_t)arrived);
			arrived++;
			at_once++;
		}
		most = at_once > most ? at_once : most;
	}
	if (status != IBV_WC_SUCCESS)
		printf("(a strike: %s) ", ibv_wc_status_str(status));
	CU_ASSERT_EQUAL(status, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(arrived, 1000);
	CU_ASSERT(most > 0 && most <= 4);
	CU_ASSERT(is_canary((uint8_t *)s.g.near->inbound + 8, 8192 - 8));
	scene_close(&s);
}

/* ---- lies ---- */

static struct mst_verbs_region_exchange truth(const struct mst_link *far)
{
	return (struct mst_verbs_region_exchange){ .magic = MST_VERBS_MAGIC,
						   .rkey = rail_of(far)->inbound->rkey,
						   .inbound = (uintptr_t)far->inbound };
}

/* Overwrites the region exchange that the acceptor has not looked at yet. */
static void overwrite_exchange(const struct verbs_attack *g,
			       struct mst_verbs_region_exchange exchange)
{
	struct strike blow = strike_at(g->far, WRITE, 4096, sizeof(exchange));

	memcpy(g->arms, &exchange, sizeof(exchange));
	CU_ASSERT_EQUAL(strike(g, &blow), IBV_WC_SUCCESS);
}

static void region_exchange_of_nobody_ends_the_link(void)
{
	static const struct { /* what lies apart, beyond the lane's two pages or all memory */
		uint64_t at, bytes, base;
	} apart[] = {
		{ 0, 8193, 0 }, { 8192, 1, 0 }, { UINT64_MAX, 2, 0 }, { 0, 8, UINT64_MAX - 6 }
	};

	for (size_t i = 0; i < 3 + sizeof(apart) / sizeof(apart[0]); i++) {
		struct scene s;
		scene_open_with(&s, &usual_lanes);
		struct mst_verbs_region_exchange exchange = truth(s.g.far);
		if (i == 0) {
			exchange.magic++;
		} else if (i < 3) {
			exchange.inbound = i == 1 ? UINT64_MAX : UINT64_MAX - 8192;
		} else {
			exchange.at = apart[i - 3].at;
			exchange.bytes = apart[i - 3].bytes;
			exchange.base = apart[i - 3].base;
		}
		overwrite_exchange(&s.g, exchange);
		CU_ASSERT_EQUAL(expect_lost(&s.h, &s.g, &s.honest), -EPROTO);
		scene_close(&s);
	}
}

/* The target is sent to memory that is not there, not the attacker's, or not as long. */
static void region_exchange_to_elsewhere_ends_the_link(void)
{
	for (int i = 0; i < 4; i++) {
		struct mst_put put = { .offset = 4096, .src = "hello", .bytes = 5, .notify = true };
		struct scene s;
		scene_open_with(&s, &usual_lanes);
		const struct mst_verbs_memory *other = inbound_of(s.honest.far);
		struct mst_verbs_region_exchange exchange = truth(i == 0 ? s.honest.far : s.g.far);
		if (i == 1)
			exchange.inbound = 4096;
		else if (i == 2)
			exchange.rkey += 0x100;
		else if (i == 3)
			exchange.inbound += inbound_of(s.g.far)->bytes - 4096;
		memset(other->base, CANARY, other->bytes);
		overwrite_exchange(&s.g, exchange);
		CU_ASSERT_EQUAL(mst_verbs.put(s.g.near, &put), 1);
		int error = expect_lost(&s.h, &s.g, &s.honest);
		CU_ASSERT(error == -EPROTO || error == -EPIPE);
		CU_ASSERT(is_canary(other->base, other->bytes - MST_VERBS_PAGE)); /* credits come */
		scene_close(&s);
	}
}

static void say_credit(const struct verbs_attack *g, uint64_t word)
{
	struct strike blow = strike_at(g->far, WRITE, 4096 + MST_VERBS_CREDIT_AT, sizeof(word));

	memcpy(g->arms, &word, sizeof(word));
	CU_ASSERT_EQUAL(strike(g, &blow), IBV_WC_SUCCESS);
}

static void credits_that_cannot_be_are_not_taken(void)
{
	static const uint64_t lies[] = { UINT64_MAX, UINT64_C(1) << 63, UINT32_MAX, 5 };
	struct mst_put put = { .notify = true };
	struct scene s;

	scene_open_with(&s, &usual_lanes);
	CU_ASSERT_EQUAL(mst_verbs.poll(s.h.net, &(struct mst_net_event){ 0 }, 1), 0);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(mst_verbs.put(s.g.near, &put), 1);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		say_credit(&s.g, lies[i]);
		CU_ASSERT_EQUAL(mst_verbs.put(s.g.near, &put), -EAGAIN);
	}
	CU_ASSERT_EQUAL(mst_verbs_rail_post_receives(rail_of(s.g.far), 2), 0);
	say_credit(&s.g, 3);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(mst_verbs.put(s.g.near, &put), 1);
	for (uint64_t back = 2; back < 3; back--) {
		say_credit(&s.g, back);
		CU_ASSERT_EQUAL(mst_verbs.put(s.g.near, &put), -EAGAIN);
	}
	mst_sleep_ns(20 * MST_MS); /* seven came, as many had room */
	CU_ASSERT_EQUAL(mst_verbs.poll(s.h.net, &(struct mst_net_event){ 0 }, 1), 0);
	say_credit(&s.g, 7); /* and now there is none */
	CU_ASSERT_EQUAL(mst_verbs.put(s.g.near, &put), 1);
	CU_ASSERT_EQUAL(expect_lost(&s.h, &s.g, &s.honest), -EPROTO);
	scene_close(&s);
}

/* A link's own send fails amid arrivals: what came before its end arrives, in order. */
static void end_amid_arrivals_keeps_their_order(void)
{
	struct mst_lanes many = { 4096, 8192, 64, 4 };
	struct mst_put put = { .src = "hello", .bytes = 5 };
	struct mst_net_event ev[80];
	struct scene s;
	int arrived = 0, lost = 0;

	scene_open_with(&s, &many);
	struct mst_verbs_region_exchange exchange = truth(s.g.far);
	exchange.rkey += 0x100;
	overwrite_exchange(&s.g, exchange);
	CU_ASSERT_EQUAL(mst_verbs.poll(s.h.net, ev, 80), 0);
	CU_ASSERT_EQUAL(flood(&s.g, 5, 0), 5);
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	for (int i = 0; i < 5; i++)
		CU_ASSERT(strike_ended(&s.g, PATIENCE_NS, &status) && status == IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(mst_verbs.put(s.g.near, &put), 1);
	mst_sleep_ns(20 * MST_MS);
	CU_ASSERT_EQUAL(flood(&s.g, 45, 5), 45);
	mst_sleep_ns(50 * MST_MS);
	uint64_t end = mst_now_ns() + PATIENCE_NS;
	for (int i = 0; i < 100 || (lost == 0 && mst_now_ns() < end); i++) {
		int n = mst_verbs.poll(s.h.net, ev, 80);
		for (int k = 0; k < n; k++) {
			CU_ASSERT(ev[k].kind != MST_ARRIVED || ev[k].imm == (uint32_t)arrived);
			arrived += ev[k].kind == MST_ARRIVED;
			lost += ev[k].kind == MST_LOST;
		}
	}
	CU_ASSERT(arrived >= 5);
	CU_ASSERT_EQUAL(lost, 1);
	scene_close(&s);
}

/* Two rails, which bring what cannot be one put. */
static void rails_that_disagree_end_the_link(void)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_endpoints own;
	char one[MST_ENDPOINT_TEXT_LEN], both[2 * MST_ENDPOINT_TEXT_LEN];
	struct scene s;

	CU_ASSERT_EQUAL_FATAL(mst_verbs_address_own(&fabric, NULL, &own, UT_UNREAD), 0);
	mst_endpoint_host_text(&own.at[0].any, one);
	(void)snprintf(both, sizeof(both), "%s,%s", one, one);
	s.h = house_open_at(both);
	attack_begin(&s.h, &s.honest, &usual_lanes);
	attack_begin(&s.h, &s.g, &usual_lanes);
	for (uint32_t i = 0; i < 2; i++) {
		struct strike blow = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .rail = i, .imm = i };
		CU_ASSERT_EQUAL(strike_post(&s.g, &blow), 0);
	}
	CU_ASSERT_EQUAL(expect_lost(&s.h, &s.g, &s.honest), -EPROTO);
	scene_close(&s);
}

/* ---- too late ---- */

static void write_after_the_end_is_refused(void)
{
	struct scene s;

	scene_open(&s);
	struct mst_verbs_memory was = *inbound_of(s.g.near);
	struct strike blow = strike_at(s.g.far, WRITE, 0, 16);
	mst_verbs.detach(s.g.near);
	CU_ASSERT_NOT_EQUAL(strike(&s.g, &blow), IBV_WC_SUCCESS);
	CU_ASSERT(is_canary(was.base, was.bytes));
	mst_verbs.link_free(s.g.near);
	s.g.near = NULL;
	uint8_t *canary = canary_map(was.mapping, was.mapped);
	CU_ASSERT_PTR_EQUAL(canary, was.mapping);
	attack_rearm(&s.g, 0, 3);
	CU_ASSERT_NOT_EQUAL(strike(&s.g, &blow), IBV_WC_SUCCESS);
	CU_ASSERT(is_canary(canary, was.mapped));
	munmap(canary, was.mapped);
	scene_close(&s);
}

#define SLOT 65536
#define SLOT_AT(i) (4096 + (i) * (SLOT + 4096))

/* Two slots, written in turn, canaries before, between and after; the target reads a slot when it
 * has been told, and puts a mark where the next write is not under way. */
static void slots_are_written_and_nothing_else(void)
{
	struct mst_lanes lanes = { SLOT_AT(2), 4096, 2, 2 };
	struct verbs_target h = target_open();
	struct verbs_attack g;
	uint64_t end = mst_now_ns() + PATIENCE_NS;
	uint32_t posted = 0, seen = 0;

	attack_begin(&h, &g, &lanes);
	inbound_fill(g.near, false);
	uint8_t *inbound = g.near->inbound, *outbound = g.far->outbound;
	while (seen < 40 && mst_now_ns() < end) {
		struct mst_net_event ev = { 0 };
		size_t at = SLOT_AT(posted % 2);
		struct mst_put put = { .offset = at,
				       .src = outbound + at,
				       .bytes = SLOT,
				       .notify = true,
				       .imm = posted };
		if (posted < 40 && posted < seen + 2) {
			memset(outbound + at, (int)posted + 1, SLOT);
			posted += mst_verbs.put(g.far, &put) == 0;
		}
		(void)mst_verbs.poll(g.net, &ev, 1);
		if (mst_verbs.poll(h.net, &ev, 1) == 0)
			continue;
		CU_ASSERT(ev.kind == MST_ARRIVED && ev.imm == seen);
		const uint8_t *slot = inbound + SLOT_AT(seen % 2);
		seen++;
		CU_ASSERT(slot[0] == (uint8_t)seen && memcmp(slot, slot + 1, SLOT - 1) == 0);
		for (int i = 0; i < 3; i++)
			CU_ASSERT(is_canary(inbound + SLOT_AT(i) - 4096, 4096));
	}
	CU_ASSERT_EQUAL(seen, 40);
	attack_lift(&g);
	target_close(&h);
}

#define BIG ((size_t)4 << 20)

/* Big puts, one after the other, until the target ends it. */
static void *fire(void *arg)
{
	struct verbs_attack *g = arg;
	struct mst_put put = { .src = g->far->outbound, .bytes = BIG };
	struct mst_net_event ev = { 0 };
	uint64_t end = mst_now_ns() + PATIENCE_NS;

	while (ev.kind != MST_LOST && mst_now_ns() < end) {
		(void)mst_verbs.put(g->far, &put);
		(void)mst_verbs.poll(g->net, &ev, 1);
	}
	CU_ASSERT_EQUAL(ev.kind, MST_LOST);
	return NULL;
}

/* The target ends the link, and others get its memory. Return: was it written until then? */
static bool under_fire(const struct verbs_target *h, int round)
{
	struct mst_lanes lanes = { BIG, 4096, 4, 4 };
	struct verbs_attack g;
	pthread_t thread;

	attack_begin(h, &g, &lanes);
	struct mst_verbs_memory was = *inbound_of(g.near);
	volatile uint8_t *last = was.base + BIG - 1;
	memset(g.far->outbound, 'x', BIG);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, fire, &g), 0);
	for (uint64_t end = mst_now_ns() + PATIENCE_NS / 2; *last != 'x' && mst_now_ns() < end;)
		CU_ASSERT_EQUAL(mst_verbs.poll(h->net, &(struct mst_net_event){ 0 }, 1), 0);
	mst_sleep_ns((uint64_t)(round % 5) * 300000);
	*last = 0; /* it is written again: so the fire goes on */
	for (uint64_t end = mst_now_ns() + MST_SECOND; *last != 'x' && mst_now_ns() < end;)
		;
	bool written = *last == 'x';
	mst_verbs.detach(g.near);
	if (round % 2 == 1)
		CU_ASSERT(comes_to_rest(&was));
	mst_verbs.link_free(g.near);
	g.near = NULL;
	uint8_t *canary = canary_map(was.mapping, was.mapped);
	CU_ASSERT(is_canary(canary, was.mapped));
	pthread_join(thread, NULL);
	CU_ASSERT(is_canary(canary, was.mapped));
	int same = canary == was.mapping; /* another thread may have been there first */
	munmap(canary, was.mapped);
	attack_lift(&g);
	return written && same;
}

static void freed_memory_is_not_written_under_fire(void)
{
	struct verbs_target h = target_open();
	struct verbs_attack honest;
	int under = 0;

	attack_begin(&h, &honest, &usual_lanes);
	for (int round = 0; round < 50; round++)
		under += under_fire(&h, round);
	printf("(%d of 50 under fire) ", under);
	CU_ASSERT(under >= 25); /* or this shows nothing */
	expect_alive(&h, &honest);
	attack_lift(&honest);
	target_close(&h);
}

static CU_TestInfo cases[] = {
	{ "a write beyond the inbound region is refused", write_beyond_the_inbound_is_refused },
	{ "a long write beyond it is refused", long_write_beyond_the_inbound_is_refused },
	{ "another link's key opens nothing", key_of_another_link_opens_nothing },
	{ "what is exported is all that is reached", what_is_exported_is_all_that_is_reached },
	{ "memory not for writing is refused", memory_that_is_not_for_writing_is_refused },
	{ "the inbound region cannot be read", inbound_cannot_be_read },
	{ "the inbound region knows no atomics", inbound_knows_no_atomics },
	{ "messages end the link", messages_end_the_link },
	{ "an impatient flood ends the link", impatient_flood_ends_the_link },
	{ "a patient flood is throttled", patient_flood_is_throttled },
	{ "a region exchange of nobody ends the link", region_exchange_of_nobody_ends_the_link },
	{ "a region exchange to elsewhere ends the link",
	  region_exchange_to_elsewhere_ends_the_link },
	{ "credits that cannot be are not taken", credits_that_cannot_be_are_not_taken },
	{ "an end amid arrivals keeps their order", end_amid_arrivals_keeps_their_order },
	{ "rails that disagree end the link", rails_that_disagree_end_the_link },
	{ "a write after the end is refused", write_after_the_end_is_refused },
	{ "slots are written and nothing else", slots_are_written_and_nothing_else },
	{ "freed memory is not written under fire", freed_memory_is_not_written_under_fire },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	struct mst_endpoints own;
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_reason why;

	if (mst_verbs_address_own(&fabric, NULL, &own, &why) != 0) {
		printf("skipped: %s\n", why.text);
		return UT_SKIP;
	}
	if (argc > 1 && strcmp(argv[1], "listener") == 0)
		return ut_main("verbs listener, hostile", verbs_listener_cases);
	if (argc > 1 && strcmp(argv[1], "removal") == 0)
		return ut_main("verbs, device removed", verbs_removal_cases);
	return ut_main("verbs links, hostile", cases);
}
