/* SPDX-License-Identifier: MIT */
/*
 * musterd: reads its options, then runs its steps: those of the control plane on this thread, those
 * of the data side on a crew of others as soon as the first worker has made it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/admin.h"
#include "server/core/rule.h"
#include "server/crew.h"
#include "server/memory.h"
#include "server/options.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_BY_SIGNAL = 128 };

/* What a stopped server gives its last messages to get out. */
#define STOP_GRACE_NS MST_SECOND

static struct mst_admin *the_admin; /* for the signal handler */
static atomic_int stop_signal;

static void on_signal(int signo)
{
	atomic_store_explicit(&stop_signal, signo, memory_order_relaxed);
	if (the_admin != NULL)
		mst_admin_wake(the_admin);
}

static void catch_signals(void)
{
	struct sigaction stop = { .sa_handler = on_signal }, inherited;

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGHUP, NULL, &inherited);
	if (inherited.sa_handler != SIG_IGN) /* nohup means it */
		sigaction(SIGHUP, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* `ulimit -f` holds for shared memory too: an error says more */
}

/* Else sockets get the numbers of what is closed, and a peer the lines that are written there. */
static void open_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* A worker takes four descriptors; the soft limit is often low for no reason but old programs. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Options. */

static int usage(const char *why)
{
	fprintf(stderr, "musterd: %s\nmusterd --help tells what there is\n", why);
	return EXIT_USAGE;
}

static void print_help(void)
{
	printf("usage: musterd [-c FILE] [OPTIONS]\n\n"
	       "Gathers gradients of one job, commits when enough are there, ends with "
	       "the job.\n\n");
	mst_options_help(mst_server_table, stdout);
	printf("\npolicies:\n");
	for (unsigned i = 0; mst_rule_help(i) != NULL; i++)
		printf("  %s\n", mst_rule_help(i));
	printf("\nexit status: 0 the job finished, 1 it failed, 2 usage, "
	       "128+n ended by signal n\n");
}

/* Flags win over the file that one of them names: so they are read twice. */
static int read_options(int argc, char **argv, struct mst_options *parsed,
			struct mst_server_options *o)
{
	int operand;
	int rc = mst_options_init(parsed, mst_server_table, o);

	if (rc == 0)
		rc = mst_options_argv(parsed, argc, argv, &operand);
	if (rc == 0 && o->config != NULL) {
		rc = mst_options_file(parsed, o->config);
		if (rc == 0)
			rc = mst_options_argv(parsed, argc, argv, &operand);
	}
	if (rc == 0 && operand < argc) {
		snprintf(parsed->why, sizeof(parsed->why),
			 "what is \"%s\"? musterd takes options only", argv[operand]);
		rc = -EINVAL;
	}
	if (rc == 0 && !o->help && !o->version && !o->print_config)
		rc = mst_server_options_check(o, parsed->why, sizeof(parsed->why));
	return rc;
}

/* Whoever started this process may want to know the port: a descriptor to write it to. */
static void tell_ready(const char *address)
{
	const char *text = getenv("MUSTER_READY_FD");
	int fd = text != NULL ? (int)strtol(text, NULL, 10) : -1;

	if (fd <= STDERR_FILENO)
		return;
	dprintf(fd, "listening on %s\n", address);
	close(fd);
}

/* Runs until the job is over. Returns the exit status. */
static int serve(struct mst_admin *admin, const struct mst_cpus *cpus)
{
	struct mst_crew *crew = NULL;
	uint64_t stop_by = MST_NEVER;
	int over = 0;

	while ((over = mst_admin_over(admin)) == 0) {
		uint64_t now_ns = mst_now_ns();
		int signo = atomic_load_explicit(&stop_signal, memory_order_relaxed);
		if (signo != 0 && stop_by == MST_NEVER) {
			char why[64];
			snprintf(why, sizeof(why), "the server was ended by signal %d", signo);
			mst_error("%s", why);
			mst_admin_stop(admin, why, now_ns);
			stop_by = now_ns + STOP_GRACE_NS;
		}
		if (now_ns >= stop_by)
			break;
		mst_admin_step(admin, now_ns);
		int rc = 0;
		if (crew == NULL && mst_admin_server(admin) != NULL)
			rc = mst_crew_start(mst_admin_server(admin), cpus, &crew);
		if (rc != 0) {
			mst_error("cannot start the threads of the shards: %s", strerror(-rc));
			return EXIT_FAILED;
		}
		mst_admin_wait(admin, mst_admin_nap(admin));
	}
	mst_crew_stop(crew);
	int signo = atomic_load_explicit(&stop_signal, memory_order_relaxed);
	if (signo != 0)
		return EXIT_BY_SIGNAL + signo;
	return over > 0 ? EXIT_DONE : EXIT_FAILED;
}

/* Return: false: not with this build, and that is said. */
static bool prepare(const struct mst_server_options *o, struct mst_admin_cfg *cfg,
		    struct mst_cpus *cpus)
{
	const char *scheme = o->transport == MST_CHOOSE_VERBS ? "verbs" : "shm";
	char why[512];

	*cfg = (struct mst_admin_cfg){ .options = o,
				       .stream = &mst_tcp,
				       .transport = mst_transport_find(scheme) };
	(void)mst_cpus_parse(o->cpus, cpus, why, sizeof(why)); /* it has been checked */
	cfg->cores = cpus->count > 0 ? cpus->count : mst_cpus_here();
	mst_log_open("musterd", (enum mst_log_level)mst_log_level_parse(o->log_level));
	if (cfg->transport == NULL)
		mst_error("this build has no transport %s", scheme);
	return cfg->transport != NULL;
}

static int print_budget(const struct mst_server_options *o)
{
	struct mst_budget budget[MST_SERVERS_MAX];
	struct mst_admin_cfg cfg;
	struct mst_cpus cpus;
	char why[512];

	if (!prepare(o, &cfg, &cpus))
		return EXIT_FAILED;
	if (mst_admin_budget(&cfg, o->budget / sizeof(float), budget, why, sizeof(why)) != 0) {
		mst_error("%s", why);
		return EXIT_FAILED;
	}
	printf("%s: %" PRIu32 " workers, %" PRIu64 " elements of f32, policy %s, %s own\n",
	       cfg.transport->scheme, o->workers, o->budget / sizeof(float), o->policy,
	       o->owner == MUSTER_WORKERS_OWN ? "workers" : "servers");
	mst_budget_print(budget, o->memory != 0 ? o->memory : mst_memory_budget(), stdout);
	return EXIT_DONE;
}

static int run(const struct mst_server_options *o)
{
	struct mst_admin_cfg cfg;
	struct mst_cpus cpus;
	char why[512];

	if (!prepare(o, &cfg, &cpus))
		return EXIT_FAILED;
	int rc = mst_admin_new(&cfg, &the_admin, why, sizeof(why));
	if (rc != 0) {
		mst_error("%s", why);
		return EXIT_FAILED;
	}
	if (o->join == NULL) {
		mst_info("listening on %s", mst_admin_address(the_admin));
		tell_ready(mst_admin_address(the_admin));
	} else {
		mst_info("looking for the lead at %s, whom workers and muster status ask, too",
			 o->join);
	}
	int status = serve(the_admin, &cpus);
	struct mst_admin *admin = the_admin;
	the_admin = NULL;
	mst_admin_free(admin);
	return status;
}

int main(int argc, char **argv)
{
	struct mst_server_options o;
	struct mst_options parsed;
	int status = EXIT_DONE;

	open_standard_files();
	catch_signals();
	raise_descriptor_limit();
	if (read_options(argc, argv, &parsed, &o) != 0)
		status = usage(parsed.why);
	else if (o.help)
		print_help();
	else if (o.version)
		printf("musterd %s\n", MST_VERSION);
	else if (o.print_config)
		mst_options_print(&parsed, stdout);
	else if (o.budget != 0)
		status = print_budget(&o);
	else
		status = run(&o);
	mst_options_free(&parsed);
	return status;
}
