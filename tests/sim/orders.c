/* SPDX-License-Identifier: MIT */
/* What other servers than the leader execute, and what becomes of servers. */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/observer_state.h"
#include "tests/sim/servers.h"
#include "tests/sim/world.h"

#define ORDERS_FIRST 256u

/* Beyond the lease of servers and one more: a step that looks, a dial that fails, last words. */
#define SLACK_NS (1500 * MST_MS)
/* A follower that is told to end stays until its leader has saved the job, at most so long. */
#define FOLLOWER_STAYS_NS (5 * MST_SECOND)

/* ---- what the leader has decided, and others are to execute ---- */

static bool is_for_followers(enum mst_decision_kind kind)
{
	return kind == MST_DO_START || kind == MST_DO_COUNT || kind == MST_DO_REGRANT ||
	       kind == MST_DO_COMMIT || kind == MST_DO_RELEASE || kind == MST_DO_EVICT ||
	       kind == MST_DO_APPLY || kind == MST_DO_FINISH || kind == MST_DO_SETTLE ||
	       kind == MST_DO_SAVE || kind == MST_DO_LEND;
}

static uint64_t figure_of(float a, float b)
{
	uint32_t bits[2];

	memcpy(&bits[0], &a, sizeof(a));
	memcpy(&bits[1], &b, sizeof(b));
	return (uint64_t)bits[0] << 32 | bits[1];
}

/* All of a decision that followers are told, in figures. */
static struct obs_order order_of(const struct mst_decision *d, const struct mst_record *r)
{
	struct obs_order o = { .kind = d->kind };

	if (d->kind != MST_DO_START && d->kind != MST_DO_COMMIT && d->kind != MST_DO_APPLY &&
	    d->kind != MST_DO_FINISH && d->kind != MST_DO_SETTLE && d->kind != MST_DO_SAVE &&
	    d->kind != MST_DO_LEND)
		o.who = d->who;
	switch (d->kind) {
	case MST_DO_COUNT:
		o.figure[0] = d->count.slot;
		o.figure[1] = figure_of(d->count.coefficient, 0);
		o.figure[2] = d->count.repeats;
		break;
	case MST_DO_REGRANT:
		o.figure[0] = d->grant.slot;
		o.figure[1] = d->grant.epoch;
		break;
	case MST_DO_COMMIT:
		o.figure[2] = figure_of(r->divisor, r->scalar[MST_SCALAR_RATE]);
		o.figure[1] = d->commit.version;
		o.figure[0] = d->commit.buffer;
		break;
	case MST_DO_APPLY:
		o.figure[0] = d->apply.version;
		o.figure[1] = figure_of(d->apply.factor, 0);
		break;
	case MST_DO_SAVE:
		o.figure[1] = d->commit.version;
		o.figure[0] = d->commit.buffer;
		break;
	case MST_DO_LEND:
		o.figure[0] = d->commit.version;
		break;
	case MST_DO_START:
		o.figure[0] = d->commit.buffer;
		break;
	case MST_DO_RELEASE:
		o.figure[0] = d->answer.number;
		o.figure[1] = d->answer.version;
		o.figure[2] = d->answer.newest;
		o.figure[3] = (uint64_t)d->answer.where << 32 | d->answer.buffer;
		break;
	case MST_DO_EVICT:
		o.figure[0] = (uint64_t)d->evict;
		break;
	case MST_DO_FINISH:
		o.figure[0] = (uint64_t)d->finish.why;
		o.figure[1] = d->finish.version;
		break;
	default:
		break;
	}
	return o;
}

void obs_order_keep(const struct mst_decision *d, const struct mst_record *record)
{
	if (obs.plan->servers == 1 || !is_for_followers(d->kind))
		return;
	if (obs.order_count == obs.order_size) {
		uint32_t size = obs.order_size > 0 ? 2 * obs.order_size : ORDERS_FIRST;
		struct obs_order *bigger = sim_alloc(size * sizeof(*bigger));
		if (obs.order_count > 0)
			memcpy(bigger, obs.order, obs.order_count * sizeof(*bigger));
		obs.order = bigger;
		obs.order_size = size;
	}
	obs.order[obs.order_count++] = order_of(d, record);
}

static bool is_same(const struct obs_order *a, const struct obs_order *b)
{
	return a->kind == b->kind && a->who.rank == b->who.rank &&
	       a->who.incarnation == b->who.incarnation &&
	       memcmp(a->figure, b->figure, sizeof(a->figure)) == 0;
}

void obs_executed(uint32_t server, const struct mst_decision *d, const struct mst_record *record)
{
	struct obs_order o = order_of(d, record);
	uint32_t number = obs.executed[server]++;

	obs.executed_commits[server] += d->kind == MST_DO_COMMIT;
	sim_mix((uint64_t)d->kind << 8 ^ d->who.rank ^ (uint64_t)server << 16);
	if (number >= obs.order_count)
		obs_violated("follower %" PRIu32 " executes order %" PRIu32
			     ", the leader has given %" PRIu32,
			     server, number + 1, obs.order_count);
	else if (!is_same(&o, &obs.order[number]))
		obs_violated("follower %" PRIu32 " executes another order %" PRIu32
			     " than the leader: kind %d of rank %" PRIu32
			     ", the leader's is kind %d of rank %" PRIu32,
			     server, number + 1, (int)o.kind, o.who.rank,
			     (int)obs.order[number].kind, obs.order[number].who.rank);
}

/* ---- what becomes of servers ---- */

static bool has_started(void)
{
	return obs.order_count > 0 && obs.order[0].kind == MST_DO_START;
}

static bool ends_it(enum sim_fault_kind kind)
{
	return kind == SIM_FAULT_KILL || kind == SIM_FAULT_POWER_OFF || kind == SIM_FAULT_STOP ||
	       kind == SIM_FAULT_CUT || kind == SIM_FAULT_RESET;
}

/* Does it lose a server and close no connection, so that only silence says so? */
static bool is_unheard(enum sim_fault_kind kind, const struct sim_process *p)
{
	return kind == SIM_FAULT_CUT || (kind == SIM_FAULT_POWER_OFF && !sim_shares_host(p));
}

void obs_server_hit(const struct sim_fault *f, bool lives)
{
	uint32_t server = sim_server_of_target(f->target);

	obs.server_gap_ns += f->span_ns;
	if (!lives || obs.plan->servers == 1)
		return;
	obs.server_hit |= 1u << server;
	obs.lost_unheard |= is_unheard(f->kind, servers_process(server));
	if (ends_it(f->kind) && obs.lost_ns == 0 && has_started()) {
		obs.lost_ns = sim_now();
		obs.stays_ns = f->kind == SIM_FAULT_STOP && server > 0 ? FOLLOWER_STAYS_NS : 0;
	}
}

/* While a server is silent the ledger's clock stands still (docs/decisions.md). A server that is
 * lost unheard is silent until --server-lease is over. Then the job ends, so this counts once. */
uint64_t obs_leases_stood_ns(void)
{
	return obs.server_gap_ns + (obs.lost_unheard ? sim_plan_server_lease_ns(obs.plan) : 0);
}

/* As long as it may take others to know. */
static uint64_t notice_most_ns(void)
{
	return sim_plan_server_lease_ns(obs.plan) + obs.plan->lease_ns + obs.server_gap_ns +
	       obs.stays_ns + SLACK_NS;
}

void obs_end_decided(void)
{
	if (obs.lost_ns != 0 && sim_now() - obs.lost_ns > notice_most_ns())
		obs_violated("the job ends %.3f s after a server was lost",
			     (double)(sim_now() - obs.lost_ns) / (double)MST_SECOND);
}

void obs_server_ended(uint32_t server, bool well)
{
	bool job_is_well = obs.finished && !obs_job_failed();

	obs.ended_well |= (uint32_t)well << server;
	obs.ended |= 1u << server;
	obs_saves_server_ended(server);
	if (server > 0 && !well && job_is_well && sim_plan_servers_hold(obs.plan))
		obs_violated("follower %" PRIu32 " says that the job has failed, which it has not",
			     server);
	/* A server that has been told of the end stays for its workers, as long as they may
	 * need. */
	uint64_t most = notice_most_ns() + obs.plan->patience_ns;
	if (obs.lost_ns != 0 && sim_now() - obs.lost_ns > most)
		obs_violated("server %" PRIu32 " stays for %.3f s after another was lost", server,
			     (double)(sim_now() - obs.lost_ns) / (double)MST_SECOND);
}

/* Which server it is nobody can tell here: followers sit where they were let in. A server that is
 * away for longer than others are patient may cost a worker its session, as the worker would. */
bool obs_names_cause(const char *reason)
{
	static const char *const causes[] = { "server ", "servers ", "signal", "leader",
					      "the patience" };

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (strstr(reason, causes[i]) != NULL)
			return true;
	}
	return false;
}

void obs_check_servers(void)
{
	if (obs.plan->servers == 1 || !sim_plan_servers_hold(obs.plan))
		return;
	for (uint32_t k = 1; k < obs.plan->servers; k++) {
		if ((obs.ended_well & 1u) && !(obs.ended_well >> k & 1u))
			obs_violated("the leader ends well, follower %" PRIu32 " does not", k);
	}
}
