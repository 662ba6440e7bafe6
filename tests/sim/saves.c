/* SPDX-License-Identifier: MIT */
/*
 * What is saved: which versions, with which bits, and when a checkpoint may exist. Where workers
 * own, no server has a part, and the manifest is all.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/disk.h"
#include "tests/sim/observer_state.h"
#include "tests/sim/world.h"

/* For looks of threads, and what is said, beyond what a server waits for. */
#define SLACK_NS (1500 * MST_MS)
#define SAVE_NS MST_SECOND

static uint32_t all_servers(void)
{
	return obs.plan->owner == MUSTER_WORKERS_OWN ? 0 : (1u << obs.plan->servers) - 1;
}

/* ---- which versions ---- */

void obs_saves_start(uint64_t version)
{
	obs.saves.decided = obs.saves.settled = version;
}

void obs_saves_committed(void)
{
	struct obs_saves *s = &obs.saves;
	uint64_t every = obs.plan->saves.commits;

	/* After the first the ledger makes a pause, by a clock that stands still at times. */
	if (every > 0 && !s->any && !s->in_flight && obs.commits - s->decided >= every)
		s->due = obs.commits;
}

void obs_saves_event(const struct mst_ledger_event *ev)
{
	obs.saves.server_lost |= ev->kind == MST_EV_SERVER;
}

/* Keeps the figures of the youngest session of each rank. A rank that nobody has had keeps
 * the figures that the job has begun with. */
static void keep(struct obs_kept *out)
{
	memcpy(out->incarnation, obs.begun_with.incarnation, sizeof(out->incarnation));
	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		if (s->incarnation > out->incarnation[s->rank])
			out->incarnation[s->rank] = s->incarnation;
	}
}

void obs_saves_settled(void)
{
	struct obs_saves *s = &obs.saves;

	if (!obs.plan->saves.wanted || obs_violation() != NULL)
		return;
	if (s->keeps)
		keep(&s->kept);
	s->keeps = false;
	if (s->due > s->decided)
		obs_violated("version %" PRIu64 " is due to be saved, the last one was %" PRIu64,
			     s->due, s->decided);
	if (s->promised > s->decided && !s->in_flight && !s->server_lost)
		obs_violated("version %" PRIu64 " is the last one, and is not saved; the last that "
			     "was is %" PRIu64,
			     s->promised, s->decided);
}

/* The ledger is to have the newest version saved, which is to be a checkpoint before the leader
 * ends. A version whose mean was not scaled is none, and one of which a part is lost neither. */
void obs_saves_finished(void)
{
	bool made = !sim_plan_reduces(obs.plan) || obs.applied == obs.commits;
	bool lost = obs.why == MST_FINISH_SPOILT || obs.why == MST_FINISH_SERVER;

	if (!obs.plan->saves.wanted || !obs.started)
		return;
	if (lost || !made)
		obs.saves.owed = obs.saves.decided;
	else
		obs.saves.owed = obs.saves.promised = obs.commits;
}

void obs_save_decided(const struct mst_decision *d)
{
	struct obs_saves *s = &obs.saves;
	uint64_t version = d->commit.version;

	if (!obs.plan->saves.wanted || version != obs.commits || version <= s->decided)
		obs_violated("version %" PRIu64 " is saved after %" PRIu64
			     ", the newest is %" PRIu64,
			     version, s->decided, obs.commits);
	if (s->in_flight)
		obs_violated("version %" PRIu64 " is saved while %" PRIu64 " is", version,
			     s->decided);
	if (obs.buffer_version[d->commit.buffer] != version + 1)
		obs_violated("version %" PRIu64 " is saved from a buffer that holds %" PRIu64,
			     version, obs.buffer_version[d->commit.buffer] - 1);
	s->decided = version;
	s->any = true;
	s->kept.samples = obs.samples;
	s->keeps = true;
	s->in_flight = true;
	s->begun = s->ended = s->failed = s->parts = 0;
	s->save[0] = '\0';
	sim_say("  version %" PRIu64 " is saved", version);
}

/* A version that is never made, because the job has failed, fails at servers that have begun
 * nothing. If a server is lost the others may still write. */
void obs_saved_decided(const struct mst_decision *d)
{
	struct obs_saves *s = &obs.saves;
	bool all = s->ended == all_servers();

	if (!s->in_flight || d->saved.version != s->decided)
		obs_violated("version %" PRIu64 " has been saved, and %" PRIu64 " was to be",
			     d->saved.version, s->decided);
	bool cut_short = d->saved.failed && s->server_lost;
	if (s->begun != s->ended && !cut_short)
		obs_violated("version %" PRIu64
			     " has been saved, and servers still write: %" PRIx32,
			     s->decided, s->begun & ~s->ended);
	if (!d->saved.failed && (!all || s->failed != 0))
		obs_violated("version %" PRIu64 " has been saved, though not by all", s->decided);
	if (d->saved.failed && !cut_short && all && all_servers() != 0 && s->failed == 0)
		obs_violated("version %" PRIu64 " has not been saved, though every part is written",
			     s->decided);
	s->in_flight = false;
	if (d->saved.failed) {
		s->settled = s->decided;
	} else {
		s->whole = s->decided;
		s->whole_kept = s->kept;
	}
	sim_say("  version %" PRIu64 " has%s been saved", s->decided,
		d->saved.failed ? " not" : "");
}

/* ---- parts ---- */

static void check_vector(uint32_t server, const struct sim_part *p, uint32_t number,
			 enum expect_vector vector)
{
	static const char *const names[] = { [EXPECT_PARAMETERS] = "parameters",
					     [EXPECT_MOMENTUM] = "momentum",
					     [EXPECT_SQUARES] = "squares",
					     [EXPECT_AVERAGE] = "average" };
	const struct sim_vector *v = &p->vector[number];

	if (number >= p->vectors || strcmp(v->group, names[vector]) != 0) {
		obs_violated("server %" PRIu32 " saves %s for %s", server,
			     number < p->vectors ? v->group : "nothing", names[vector]);
		return;
	}
	int64_t at = expect_kept_differs(p->id.version, vector, p->first, v->bits, p->count);
	if (at >= 0)
		obs_violated("server %" PRIu32 " saves wrong %s of version %" PRIu64
			     ", from element %" PRIu64 " on",
			     server, names[vector], p->id.version, p->first + (uint64_t)at);
}

static void check_vectors(uint32_t server, const struct sim_part *p)
{
	uint32_t number = 0;

	for (int i = 0; i < EXPECT_VECTORS && obs_violation() == NULL; i++) {
		if (expect_keeps((enum expect_vector)i))
			check_vector(server, p, number++, (enum expect_vector)i);
	}
	if (p->vectors != number)
		obs_violated("server %" PRIu32 " saves %" PRIu32 " vectors", server, p->vectors);
}

void obs_part_begins(uint32_t server, const struct sim_part *p)
{
	struct obs_saves *s = &obs.saves;

	if (!(s->in_flight || s->server_lost) || p->id.version != s->decided)
		obs_violated("server %" PRIu32 " writes version %" PRIu64 ", and %" PRIu64
			     " is to be saved",
			     server, p->id.version, s->decided);
	if (s->begun >> server & 1u || p->part >= obs.plan->servers || s->parts >> p->part & 1u ||
	    p->parts != obs.plan->servers)
		obs_violated("part %" PRIu32 " of version %" PRIu64 " is written twice", p->part,
			     p->id.version);
	if (s->save[0] != '\0' && strcmp(s->save, p->id.save) != 0)
		obs_violated("parts of version %" PRIu64 " are of two saves", p->id.version);
	memcpy(s->save, p->id.save, sizeof(s->save));
	s->begun |= 1u << server;
	s->parts |= 1u << p->part;
	check_vectors(server, p);
}

void obs_part_ended(uint32_t server, uint64_t version, int error)
{
	struct obs_saves *s = &obs.saves;

	if (version != s->decided)
		return; /* obs_saved_decided() has said so */
	s->ended |= 1u << server;
	s->failed |= (uint32_t)(error != 0) << server;
}

/* ---- checkpoints ---- */

void obs_manifest_begins(const struct mst_checkpoint_manifest *m)
{
	struct obs_saves *s = &obs.saves;

	if (m->id.version != s->whole || m->id.version <= s->manifest)
		obs_violated("the manifest of version %" PRIu64 " is written, and %" PRIu64
			     " is whole",
			     m->id.version, s->whole);
	if (m->samples != (uint64_t)s->whole_kept.samples)
		obs_violated("the manifest of version %" PRIu64 " has %" PRIu64
			     " samples, must have %.0f",
			     m->id.version, m->samples, s->whole_kept.samples);
	s->manifest = m->id.version;
}

void obs_manifest_ended(uint64_t version, int error)
{
	obs.saves.settled = version;
	if (error == 0)
		obs.kept = obs.saves.whole_kept;
	sim_say("version %" PRIu64 " is %s", version,
		error == 0 ? "a checkpoint" : "no checkpoint");
}

/* ---- the end of servers ---- */

void obs_server_stops(uint32_t server)
{
	if (server != 0)
		return;
	obs.saves.stopped_ns = sim_now();
	if (obs.started && !obs.finished)
		obs.saves.owed = obs.commits;
}

/* When the leader may know that the job has ended. */
static uint64_t end_ns(void)
{
	uint64_t stopped_ns = obs.saves.stopped_ns;

	return stopped_ns != 0 && (obs.finished_ns == 0 || stopped_ns < obs.finished_ns)
		       ? stopped_ns
		       : obs.finished_ns;
}

static bool has_waited(void)
{
	return end_ns() != 0 && sim_now() - end_ns() >= obs.plan->patience_ns;
}

/* A leader that is told to end gives its ledger so long to say what is saved. */
static bool may_be_unsaid(void)
{
	const struct obs_saves *s = &obs.saves;

	return s->stopped_ns != 0 && s->decided < s->owed && sim_now() - s->stopped_ns >= SAVE_NS;
}

static void leader_ends(void)
{
	const struct obs_saves *s = &obs.saves;
	uint64_t most_ns = obs.plan->patience_ns + obs.server_gap_ns + SLACK_NS;

	if (!has_waited() && !may_be_unsaid() && !s->server_lost && s->settled < s->owed)
		obs_violated("the leader ends, and does not wait until version %" PRIu64
			     " has been saved",
			     s->owed);
	if (end_ns() != 0 && sim_now() - end_ns() > most_ns)
		obs_violated("the leader stays for %.3f s after the end of the job",
			     (double)(sim_now() - end_ns()) / (double)MST_SECOND);
}

/* It is let go when its part is written, or when the leader has waited long enough. */
static void follower_ends(uint32_t server)
{
	const struct obs_saves *s = &obs.saves;

	if (!sim_plan_servers_hold(obs.plan) || has_waited() || all_servers() == 0 ||
	    obs.why == MST_FINISH_SPOILT)
		return;
	if (s->in_flight && !(s->ended >> server & 1u))
		obs_violated("follower %" PRIu32 " ends before its part of version %" PRIu64
			     " is written",
			     server, s->decided);
}

void obs_saves_server_ended(uint32_t server)
{
	if (!obs.plan->saves.wanted)
		return;
	if (server == 0)
		leader_ends();
	else
		follower_ends(server);
}
