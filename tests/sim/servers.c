/* SPDX-License-Identifier: MIT */
#include "tests/sim/servers.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "server/control/plane.h"
#include "server/options/options.h"
#include "tests/sim/actors.h"
#include "tests/sim/archive.h"
#include "tests/sim/log.h"
#include "tests/sim/net.h"
#include "tests/sim/observer.h"
#include "tests/sim/stream.h"

#define ADDRESS "127.0.0.1:17077"

/* So short that nobody waits for another server. */
#define SERVER_PATIENCE "1ms"

/* Lines that a server says beside what happens to it while nobody reads its log; so many at a time,
 * and so many of them are urgent. */
#define CHATTER_MIN 300u
#define CHATTER_MAX 1500u
#define CHATTER_PIECE 50u
#define URGENT_SHARE 32u

/* A data thread that has nothing to do may look so often without a sleep in between. */
#define TURNS_MAX 1000u

struct sim_server {
	uint32_t number;
	uint32_t generation; /* that it is to serve */
	struct sim_process *process;
	struct mst_server_options options;
	struct mst_options parsed;
	struct mst_plane *plane;
	struct mst_server *data;
	bool stop_data, data_runs;
	unsigned shards_run;
	struct sim_wakeup shard_wakeup[MST_SHARDS_MAX];
	struct sim_wakeup data_over;
	const char *stop; /* as by a signal: what is said */
	bool stopped;
	uint64_t deaf_until;
	uint64_t hung_from, hung_until;
	uint32_t chatter;         /* lines it is still to say */
	struct sim_server *older; /* whose place it has taken; NULL: the first */
};

/* What a fiber of a shard is of. */
struct sim_shard {
	struct sim_server *server;
	uint32_t index;
};

static const struct sim_plan *the_plan;
static struct sim_server *servers[SIM_SERVERS_MAX]; /* the newest of each number */

/* ---- the data side ---- */

static void rest_between_steps(void)
{
	sim_sleep(sim_between(200, the_plan->slow_server ? 200000 : 3000));
}

/* A thread that neither works nor sleeps burns its processor until something else happens. */
static void note_turn(const struct sim_server *s, uint64_t began_ns, uint32_t *turns)
{
	*turns = sim_now() == began_ns ? *turns + 1 : 0;
	if (*turns < TURNS_MAX)
		return;
	if (!s->process->dead)
		obs_violated("%s's data thread turns without work and without sleep",
			     s->process->name);
	sim_sleep(MST_SECOND);
}

static void data_main(void *arg)
{
	struct sim_server *s = arg;
	uint32_t turns = 0;

	while (!s->stop_data) {
		while (sim_now() < s->hung_until && !s->stop_data)
			sim_sleep(s->hung_until - sim_now() < MST_SECOND ? s->hung_until - sim_now()
									 : MST_SECOND);
		uint64_t now_ns = mst_now_ns(), began_ns = sim_now();
		bool busy = mst_server_step(s->data, now_ns);
		marks_look(the_plan);
		if (busy)
			rest_between_steps();
		else
			mst_server_wait(s->data, now_ns);
		note_turn(s, began_ns, &turns);
	}
	s->data_runs = false;
	sim_ring(&s->data_over);
}

static void shard_main(void *arg)
{
	const struct sim_shard *shard = arg;
	struct sim_server *s = shard->server;

	while (!s->stop_data) {
		bool busy = mst_server_shard_step(s->data, shard->index);
		marks_look(the_plan);
		if (busy)
			rest_between_steps();
		else
			(void)sim_wait(&s->shard_wakeup[shard->index], MST_SECOND);
	}
	s->shards_run--;
	sim_ring(&s->data_over);
}

static void ring_shards(struct sim_server *s)
{
	for (uint32_t i = 1; i < MST_SHARDS_MAX; i++)
		sim_ring(&s->shard_wakeup[i]);
}

static void start_data(struct sim_server *s)
{
	if (s->data != NULL || mst_plane_server(s->plane) == NULL)
		return;
	s->data = mst_plane_server(s->plane);
	s->data_runs = true;
	sim_spawn(s->process, data_main, s);
	for (uint32_t i = 1; i < mst_server_shards(s->data); i++) {
		struct sim_shard *shard = sim_alloc(sizeof(*shard));
		*shard = (struct sim_shard){ s, i };
		s->shards_run++;
		sim_spawn(s->process, shard_main, shard);
	}
}

static void stop_data(struct sim_server *s)
{
	s->stop_data = true;
	while (s->data_runs || s->shards_run > 0) {
		mst_server_wake(s->data);
		ring_shards(s);
		(void)sim_wait(&s->data_over, MST_SECOND);
	}
}

/* ---- options ---- */

static void set(struct sim_server *s, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void set(struct sim_server *s, const char *name, const char *fmt, ...)
{
	char value[64];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(value, sizeof(value), fmt, args);
	va_end(args);
	int rc = mst_options_set(&s->parsed, name, value);
	MST_ASSERT(rc == 0);
}

static void set_spread(struct sim_server *s, const struct sim_plan *p)
{
	char spread[32];
	size_t used = 0;

	for (uint32_t k = 0; k < p->servers; k++)
		used += (size_t)snprintf(spread + used, sizeof(spread) - used, "%s%" PRIu32,
					 k > 0 ? "," : "", p->weight[k]);
	set(s, "partition", "%s", spread);
}

static void set_leader(struct sim_server *s, const struct sim_plan *p)
{
	set(s, "listen", ADDRESS);
	set(s, "servers", "%" PRIu32, p->servers);
	if (p->servers > 1)
		set_spread(s, p);
	set(s, "workers", "%" PRIu32, p->workers);
	set(s, "policy", "%s", p->policy);
	set(s, "owner", p->owner == MUSTER_WORKERS_OWN ? "workers" : "servers");
	if (p->owner == MUSTER_SERVERS_OWN)
		set(s, "optimizer", "%s", p->optimizer);
	if (p->distance > 0)
		set(s, "lr-distance", "%g", p->distance);
	if (p->average > 0)
		set(s, "average", "%g", p->average);
	if (p->switches_at > 0)
		set(s, "samples", "%.0f", SIM_SAMPLES);
	if (p->rule.batch > 0)
		set(s, "lr-scale", "samples:%g", p->rule.batch);
	else
		set(s, "lr-scale", p->rule.linear ? "linear" : "none");
	set(s, "weigh", p->rule.weigh == MST_WEIGH_SAMPLES ? "samples" : "one");
	set(s, "late-start", "%s", sim_late_start_name(p->rule.late_start));
	set(s, "norm-limit", "%g", p->norm_limit);
	set(s, "checksum", p->checks ? "true" : "false");
	if (p->generations.wanted)
		set(s, "server-patience", "%" PRIu64 "ms", p->generations.patience_ns / MST_MS);
	else if (p->marks)
		set(s, "server-patience", SERVER_PATIENCE);
	if (p->generations.return_ns > 0)
		set(s, "return-timeout", "%" PRIu64 "ms", p->generations.return_ns / MST_MS);
	set(s, "guard", p->guarded ? "worker" : "off");
	set(s, "commits", "%" PRIu64, p->commits);
	set(s, "group", "%" PRIu32, p->group);
	set(s, "buffers", "%" PRIu32, p->buffers);
	set(s, "history", "%" PRIu32, p->history);
	if (p->slots != 0)
		set(s, "slots", "%" PRIu32, p->slots);
	set(s, "lease", "%" PRIu64 "ms", p->lease_ns / MST_MS);
	set(s, "patience", "%" PRIu64 "ms", p->patience_ns / MST_MS);
	if (p->saves.wanted)
		set(s, "checkpoint-every", "%s", p->saves.every);
}

static void set_options(struct sim_server *s, const struct sim_plan *p)
{
	struct mst_reason why;
	int rc = mst_options_init(&s->parsed, mst_server_table, &s->options);

	MST_ASSERT(rc == 0);
	if (s->number == 0)
		set_leader(s, p);
	else
		set(s, "join", ADDRESS);
	if (p->saves.wanted)
		set(s, "state", "the disk");
	if (p->saves.resumes)
		set(s, "resume", "."); /* which is there: options are checked against this host */
	set(s, "job", "sim");
	set(s, "join-timeout", "%" PRIu64 "ms", p->join_ns / MST_MS);
	set(s, "chunk", "4K");
	set(s, "shards", "%" PRIu32, p->shards);
	set(s, "spin-yields", "0"); /* to nobody: a fiber has the processor until it sleeps */
	set(s, "memory", "1G");
	set(s, "force", "true");
	rc = mst_server_options_check(&s->options, &why);
	if (rc != 0)
		obs_violated("%s does not take its options: %s", s->process->name, why.text);
}

/* ---- the control side ---- */

static void stop_if_told(struct sim_server *s)
{
	if (s->stop == NULL || s->stopped)
		return;
	s->stopped = true;
	obs_server_stops(s->number);
	mst_plane_stop(s->plane, s->stop, false, mst_now_ns());
}

/* As strangers cause it. It goes to the log alone: traces are to be read by people. */
static void chat(struct sim_server *s)
{
	for (uint32_t i = 0; i < CHATTER_PIECE && s->chatter > 0; i++, s->chatter--) {
		bool urgent = s->chatter % URGENT_SHARE == 0;
		char line[128];
		(void)snprintf(line, sizeof(line),
			       "stranger %" PRIu32 " has connected to " ADDRESS
			       ", and said what no worker says",
			       s->chatter);
		log_line(urgent ? MST_LOG_ERROR : MST_LOG_INFO, line);
	}
	if (s->chatter > 0)
		sim_ring(&s->process->control);
}

static void serve(struct sim_server *s)
{
	while (mst_plane_over(s->plane) == 0 && !s->process->dead) {
		mst_plane_step(s->plane, mst_now_ns());
		chat(s);
		start_data(s);
		stop_if_told(s);
		while (sim_now() < s->deaf_until)
			sim_sleep(s->deaf_until - sim_now());
		uint64_t nap_ns = mst_plane_nap(s->plane);
		if (!sim_wait(&s->process->control, nap_ns))
			continue;
		sim_sleep(sim_between(500, 10000));
	}
}

static void run_server(struct sim_server *s)
{
	static const struct mst_networks networks[] = {
		[SIM_NEAR] = { 1, { &sim_near }, false },
		[SIM_FAR] = { 1, { &sim_far }, false },
		[SIM_MIXED] = { 2, { &sim_near, &sim_far }, false },
	};
	struct mst_plane_cfg cfg = { .options = &s->options,
				     .stream = &sim_stream,
				     .archive = archives_of(s->number, s->process),
				     .networks = &networks[the_plan->network] };
	struct mst_reason why;

	if (s->number > 0)
		sim_sleep(the_plan->server_comes_ns[s->number]);
	int rc = mst_plane_new(&cfg, &s->plane, &why);
	if (rc != 0) {
		if (!s->process->dead)
			obs_violated("%s does not start: %s", s->process->name, why.text);
		return;
	}
	serve(s);
	if (!s->process->dead && servers_counts(s->process))
		obs_server_ended(s->number, mst_plane_over(s->plane) > 0);
	stop_data(s);
	archives_stop(s->number);
	mst_plane_free(s->plane);
	sim_say("%s has ended", s->process->name);
}

static void control_main(void *arg)
{
	struct sim_server *s = arg;

	run_server(s);
	log_end(s->process);
}

/* ---- all of them ---- */

static void begin_server(uint32_t k)
{
	struct sim_server *s = sim_alloc(sizeof(*s));
	char name[24] = "server";

	if (k > 0)
		(void)snprintf(name, sizeof(name), "follower %" PRIu32, k);
	s->number = k;
	s->generation = obs_generation();
	s->older = servers[k];
	s->process = sim_process_new(name);
	s->process->host = sim_plan_host_of_server(the_plan, k);
	set_options(s, the_plan);
	servers[k] = s;
	sim_spawn(s->process, control_main, s);
}

void servers_begin(const struct sim_plan *plan)
{
	the_plan = plan;
	memset(servers, 0, sizeof(servers));
	archives_begin(plan);
	for (uint32_t k = 0; k < plan->servers; k++)
		begin_server(k);
	int logs = sim_plan_blocks_log_of(plan);
	log_begin(logs >= 0 ? servers[logs]->process : NULL);
}

void servers_succeed(void)
{
	for (uint32_t k = 0; k < the_plan->servers; k++)
		begin_server(k);
}

bool servers_are_lost(void)
{
	for (uint32_t k = 0; k < the_plan->servers; k++) {
		if (!servers[k]->process->dead && servers[k]->process->fibers > 0)
			return false;
	}
	return true;
}

void servers_end(void)
{
	for (uint32_t k = 0; k < the_plan->servers; k++) {
		for (struct sim_server *s = servers[k]; s != NULL; s = s->older)
			mst_options_free(&s->parsed);
	}
}

struct sim_process *servers_process(uint32_t server)
{
	return servers[server]->process;
}

static struct sim_server *server_of(const struct sim_process *p)
{
	for (uint32_t k = 0; k < the_plan->servers; k++) {
		for (struct sim_server *s = servers[k]; s != NULL; s = s->older) {
			if (s->process == p)
				return s;
		}
	}
	return NULL;
}

int servers_number(const struct sim_process *p)
{
	const struct sim_server *s = server_of(p);

	return s != NULL ? (int)s->number : -1;
}

uint32_t servers_generation(const struct sim_process *p)
{
	const struct sim_server *s = server_of(p);

	MST_ASSERT(s != NULL);
	return s->generation;
}

bool servers_counts(const struct sim_process *p)
{
	const struct sim_server *s = server_of(p);

	return !the_plan->generations.wanted || (s != NULL && s == servers[s->number] && !p->dead);
}

void servers_ring_shards(const struct sim_process *p)
{
	struct sim_server *s = server_of(p);

	MST_ASSERT(s != NULL);
	ring_shards(s);
}

void servers_stop(uint32_t server)
{
	servers[server]->stop = "the server was ended by signal 15";
	sim_ring(&servers[server]->process->control);
}

void servers_deafen(uint32_t server, uint64_t span_ns)
{
	sim_say("%s hears nothing for %.3f s", servers[server]->process->name,
		(double)span_ns / (double)MST_SECOND);
	servers[server]->deaf_until = sim_now() + span_ns;
}

void servers_block_log(uint32_t server, uint64_t span_ns)
{
	struct sim_server *s = servers[server];

	log_block(span_ns);
	s->chatter = (uint32_t)sim_between(CHATTER_MIN, CHATTER_MAX);
	sim_ring(&s->process->control);
}

void servers_hang(uint32_t server, uint64_t span_ns)
{
	struct sim_server *s = servers[server];

	sim_say("%s's data thread hangs for %.3f s", s->process->name,
		(double)span_ns / (double)MST_SECOND);
	if (sim_now() >= s->hung_until)
		s->hung_from = sim_now();
	s->hung_until = sim_now() + span_ns;
}

uint64_t servers_hung_ns(uint64_t began_ns)
{
	uint64_t most = 0;

	for (uint32_t k = 0; k < the_plan->servers; k++) {
		const struct sim_server *s = servers[k];
		uint64_t from = s->hung_from > began_ns ? s->hung_from : began_ns;
		if (sim_now() < s->hung_until && sim_now() - from > most)
			most = sim_now() - from;
	}
	return most;
}

void servers_nobody_comes(void)
{
	servers[0]->stop = "nobody came";
	sim_ring(&servers[0]->process->control);
}

bool servers_are_home(void)
{
	for (uint32_t k = 0; k < the_plan->servers; k++) {
		for (const struct sim_server *s = servers[k]; s != NULL; s = s->older) {
			if (s->process->fibers > 0)
				return false;
		}
	}
	return true;
}

void servers_name_the_lost(uint64_t after_ns)
{
	for (uint32_t k = 0; k < the_plan->servers; k++) {
		for (const struct sim_server *s = servers[k]; s != NULL; s = s->older) {
			if (s->process->fibers > 0)
				obs_violated("after %.0f s %s has not ended (%" PRIu64 " commits)",
					     (double)after_ns / (double)MST_SECOND,
					     s->process->name, obs_commits());
		}
	}
}
