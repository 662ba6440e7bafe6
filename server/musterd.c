/* SPDX-License-Identifier: MIT */
/*
 * musterd reads its options, then runs the steps of the control plane on the main thread, and those
 * of the data side on worker threads as soon as the first worker's hello has made it.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/log_writer.h"
#include "common/host/descriptors.h"
#include "common/host/exit.h"
#include "common/host/inherited.h"
#include "common/host/memlock.h"
#include "common/host/processors.h"
#include "common/host/tasks.h"
#include "common/host/user.h"
#include "common/transport/hostport.h"
#include "common/transport/tls/credentials.h"
#include "common/transport/tls/wiping.h"
#include "server/announcement.h"
#include "server/archive_files.h"
#include "server/control/job/budget.h"
#include "server/control/plane.h"
#include "server/core/policy/policy.h"
#include "server/notifier.h"
#include "server/options/options.h"
#include "server/options/process.h"
#include "server/recording_writer.h"
#include "server/threads.h"
#include "server/worker_threads.h"

/* How long a server that is stopped waits until its last messages are sent. */
#define STOP_GRACE_NS MST_SECOND
/* From muster run, which has got a signal itself. A service manager may signal both: this one is
 * never the second. */
#define BY_RUN SIGUSR1
/* In place of an exit status: the process goes on with another plane. */
#define RENEWED (-1)
/* A disk that takes nothing of a checkpoint for so long is worth a warning. */
#define DISK_SILENCE_NS (30 * MST_SECOND)

static struct mst_plane *the_plane;         /* for the signal handler */
static struct mst_credentials *credentials; /* until the process ends; NULL: plain streams */
static atomic_int stop_signal;
static atomic_bool by_parent;   /* the parent process has sent one */
static atomic_int stop_signals; /* how many have come: the second one ends the server at once */

static void on_signal(int signo, siginfo_t *info, void *context)
{
	int none = 0;

	(void)context;
	if (info->si_code == SI_USER && info->si_pid == getppid())
		atomic_store_explicit(&by_parent, true, memory_order_relaxed);
	(void)atomic_compare_exchange_strong_explicit(&stop_signal, &none, signo,
						      memory_order_relaxed, memory_order_relaxed);
	if (signo != BY_RUN)
		(void)atomic_fetch_add_explicit(&stop_signals, 1, memory_order_relaxed);
	if (the_plane != NULL)
		mst_plane_wake(the_plane);
}

static void catch_signals(void)
{
	struct sigaction stop = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO }, inherited;

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	sigaction(BY_RUN, &stop, NULL);
	sigaction(SIGHUP, NULL, &inherited);
	if (inherited.sa_handler != SIG_IGN) /* nohup has it ignored */
		sigaction(SIGHUP, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Options. */

static int usage(const char *why)
{
	fprintf(stderr, "musterd: %s\nmusterd --help tells what there is\n", why);
	return MST_EXIT_USAGE;
}

static void print_help(void)
{
	printf("usage: musterd [-c FILE] [OPTIONS]\n\n"
	       "Gathers gradients of one job, commits when enough are there, ends with "
	       "the job.\n\n");
	mst_options_help(mst_server_table, stdout);
	printf("\npolicies:\n");
	for (unsigned i = 0; mst_policy_help(i) != NULL; i++)
		printf("  %s\n", mst_policy_help(i));
	printf("\noptimisers:\n");
	mst_optim_help(stdout);
	printf("\nschedules of the rate, by samples:\n");
	mst_schedule_help(stdout);
	mst_exit_help(stdout);
}

/* What is typed without its port is told with it. */
static void complete(struct mst_server_options *o)
{
	static char listen[MST_HOSTPORT_LEN], join[MST_HOSTPORT_LEN];

	o->listen = mst_hostport_text(o->listen, listen);
	if (o->join != NULL)
		o->join = mst_hostport_text(o->join, join);
}

/* Flags take precedence over the file, but one of them names the file; so flags are read twice. */
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
		mst_reason_set(
			&parsed->why,
			"what is \"%s\"? musterd takes options only; commands are those of muster",
			argv[operand]);
		rc = -EINVAL;
	}
	if (rc != 0 || o->help || o->version || o->print_config)
		return rc;
	mst_tls_files_environment(&o->tls);
	rc = mst_server_options_check(o, &parsed->why);
	if (rc == 0)
		complete(o);
	return rc;
}

/* What the parent process is told (server/options/process.h). */

/* Return: the descriptor that this variable names; -1: none. */
static int parent_fd(const char *variable)
{
	const char *text = getenv(variable);
	int fd = text != NULL ? (int)strtol(text, NULL, 10) : -1;

	return fd > STDERR_FILENO ? fd : -1;
}

/* Is the descriptor still open, once it was told that the server is ready? */
static bool tells_again(void)
{
	return parent_fd("MUSTER_READY_FD") == parent_fd("MUSTER_END_FD");
}

static void tell_ready(const char *line, const char *address)
{
	int fd = parent_fd("MUSTER_READY_FD");

	if (fd < 0)
		return;
	dprintf(fd, "%s%s\n", line, address);
	if (!tells_again())
		close(fd);
}

/* Something that was asked for is not there at the end.
 * Return: the exit status, which was @status before. */
static int tell_missing(const char *what, int status)
{
	int fd = parent_fd("MUSTER_END_FD");

	mst_error("missing at the end: %s", what);
	if (fd >= 0)
		dprintf(fd, MST_END_MISSING "%s\n", what);
	return mst_exit_incomplete(status);
}

/* muster run ends its servers when the run is over. Why it is, muster run has said. */
static bool run_is_over(int signo)
{
	return signo == SIGTERM && getenv("MUSTER_END_FD") != NULL &&
	       atomic_load_explicit(&by_parent, memory_order_relaxed);
}

/* Is it muster run that ends the server, and with it the run? */
static bool is_by_run(int signo)
{
	return signo == BY_RUN || run_is_over(signo);
}

static void say_signal(int signo, struct mst_reason *why)
{
	if (run_is_over(signo))
		mst_reason_set(why, "muster run has ended the server, for the run is over");
	else if (signo == BY_RUN)
		mst_reason_set(why, "the server was ended by muster run, which got a signal");
	else
		mst_reason_set(why, "the server was ended by signal %d", signo);
}

/* Tells the workers that the server ends, and why. @for_good: nobody will start it again.
 * Return: when it ends. */
static uint64_t stop(struct mst_plane *plane, const char *why, bool for_good, uint64_t now_ns)
{
	mst_plane_stop(plane, why, for_good, now_ns);
	return now_ns + STOP_GRACE_NS;
}

/* A server that is stopped waits for the checkpoint of the newest version, as long as a step waits
 * for a worker; a second signal ends that. */
static bool is_stopped(const struct mst_plane *plane, const struct mst_server_options *o,
		       uint64_t stop_by, uint64_t now_ns)
{
	bool at_once = atomic_load_explicit(&stop_signals, memory_order_relaxed) > 1;

	if (now_ns < stop_by)
		return false;
	return at_once || !mst_plane_is_saving(plane) || now_ns - stop_by >= o->patience_ns;
}

/* Begins anew: the number of workers changes. A follower does so when its leader has ended it. */
static bool is_to_renew(const struct mst_plane *plane, const struct mst_server_options *o,
			struct mst_reason *why)
{
	struct mst_renewal kept;
	uint32_t workers;

	return o->join == NULL && mst_plane_renews(plane, &workers, &kept, why);
}

/* Starts the worker threads when there is a data side for them.
 * Return: false: they cannot be started. */
static bool has_worker_threads(struct mst_plane *plane, const struct mst_cpus *cpus,
			       struct mst_worker_threads **worker_threads, struct mst_reason *why)
{
	struct mst_reason cause;
	int rc = 0;

	if (*worker_threads == NULL && mst_plane_server(plane) != NULL)
		rc = mst_worker_threads_start(mst_plane_server(plane), cpus, worker_threads);
	if (rc != 0)
		mst_reason_set(why, "cannot start the threads that move data (%" PRIu32 "): %s",
			       mst_server_shards(mst_plane_server(plane)),
			       mst_host_tasks_failed(rc, &cause));
	return rc == 0;
}

/* The exit status of a job that has failed. */
static int failed(const struct mst_plane *plane, const struct mst_server_options *o)
{
	if (mst_plane_goes_on_elsewhere(plane))
		return MST_EXIT_AGAIN;
	if (!mst_plane_was_refused(plane))
		return MST_EXIT_FAILED;
	if (credentials != NULL)
		mst_error("this server was started with the certificate in %s: --tls-ca, "
			  "--tls-cert and --tls-key have to fit those of its leader",
			  o->tls.cert);
	return MST_EXIT_USAGE;
}

static int by_signal(int signo)
{
	return MST_EXIT_BY_SIGNAL + (signo == BY_RUN ? SIGTERM : signo);
}

/* The exit status of a server whose job is over, well (1), or not (-1); 0: the job is not over. */
static int conclude(const struct mst_plane *plane, const struct mst_server_options *o, int over)
{
	bool saved = mst_plane_give_up_saving(plane);
	int signo = atomic_load_explicit(&stop_signal, memory_order_relaxed);
	int status = MST_EXIT_FAILED;
	struct mst_reason missing;

	if (signo != 0)
		status = by_signal(signo);
	else if (over < 0)
		status = failed(plane, o);
	else if (over > 0)
		status = MST_EXIT_DONE;
	if (mst_plane_is_missing(plane, &missing))
		status = tell_missing(missing.text, status);
	return saved ? status : mst_exit_incomplete(status);
}

/* Has it ended so that another plane comes in its place? @over: as of mst_plane_over(). */
static bool is_renewed(const struct mst_plane *plane, int over)
{
	struct mst_renewal kept;
	struct mst_reason why;
	uint32_t workers;

	return atomic_load_explicit(&stop_signal, memory_order_relaxed) == 0 && over <= 0 &&
	       mst_plane_goes_on_elsewhere(plane) && mst_plane_renews(plane, &workers, &kept, &why);
}

/* Runs until the job is over.
 * Return: the exit status. */
static int serve(struct mst_plane *plane, const struct mst_server_options *o,
		 const struct mst_cpus *cpus, struct mst_notifier *notifier)
{
	struct mst_worker_threads *worker_threads = NULL;
	uint64_t stop_by = MST_NEVER;
	struct mst_reason why;
	int over = 0;

	while ((over = mst_plane_over(plane)) == 0) {
		uint64_t now_ns = mst_now_ns();
		int signo = atomic_load_explicit(&stop_signal, memory_order_relaxed);
		if (signo != 0 && stop_by == MST_NEVER) {
			say_signal(signo, &why);
			if (run_is_over(signo))
				mst_info("%s", why.text);
			else
				mst_error("%s", why.text);
			mst_notifier_stopping(notifier, why.text);
			stop_by = stop(plane, why.text, is_by_run(signo), now_ns);
		}
		if (stop_by == MST_NEVER && is_to_renew(plane, o, &why)) {
			mst_info("%s", why.text);
			stop_by = stop(plane, why.text, false, now_ns);
		}
		if (is_stopped(plane, o, stop_by, now_ns))
			break;
		mst_plane_step(plane, now_ns);
		if (mst_plane_is_vacant(plane)) {
			mst_worker_threads_stop(worker_threads);
			worker_threads = NULL;
			mst_plane_vacate(plane);
		}
		if (stop_by == MST_NEVER &&
		    !has_worker_threads(plane, cpus, &worker_threads, &why)) {
			mst_error("%s", why.text);
			stop_by = stop(plane, why.text, true, now_ns);
		}
		mst_notifier_step(notifier, worker_threads, now_ns);
		mst_plane_wait(plane, mst_plane_nap(plane));
	}
	if (stop_by == MST_NEVER && !is_renewed(plane, over))
		mst_notifier_stopping(notifier, "the job is over");
	mst_worker_threads_stop(worker_threads);
	if (is_renewed(plane, over) && mst_plane_give_up_saving(plane))
		return RENEWED;
	return conclude(plane, o, over);
}

static void prepare(const struct mst_server_options *o, struct mst_plane_cfg *cfg,
		    struct mst_cpus *cpus)
{
	static struct mst_networks networks;
	struct mst_reason why;

	*cfg = (struct mst_plane_cfg){ .options = o,
				       .networks = &networks,
				       .makes_links_aside = true };
	(void)mst_server_options_networks(o, &networks, &why); /* checked */
	(void)mst_cpus_parse(o->cpus, cpus, &why);             /* the options have been checked */
	cfg->processors = mst_host_processors("");
	cfg->cores = cpus->count > 0 ? cpus->count : cfg->processors;
	mst_log_open("musterd", (enum mst_log_level)mst_log_level_parse(o->log_level));
}

static int print_budget(const struct mst_server_options *o)
{
	struct mst_budget budget[MST_SERVERS_MAX];
	struct mst_budget_room room;
	char networks[MST_NETWORKS_TEXT_LEN];
	struct mst_plane_cfg cfg;
	struct mst_cpus cpus;
	struct mst_reason why;

	prepare(o, &cfg, &cpus);
	struct mst_plan_cfg plan = { .options = o, .networks = cfg.networks, .cores = cfg.cores };
	if (mst_budget_job(&plan, o->budget / sizeof(float), budget, &why) != 0) {
		mst_error("%s", why.text);
		return MST_EXIT_FAILED;
	}
	printf("%s: %" PRIu32 " workers, %" PRIu64 " elements of f32, policy %s, %s own\n",
	       mst_networks_text(cfg.networks, networks), o->workers, o->budget / sizeof(float),
	       o->policy, o->owner == MUSTER_WORKERS_OWN ? "workers" : "servers");
	mst_budget_room(o->memory, &room);
	mst_budget_print(budget, &room, stdout);
	return MST_EXIT_DONE;
}

/* Where this server can be reached is told last, when nothing can go wrong any more. */
static void tell_begin(const struct mst_server_options *o, const struct mst_plane_cfg *cfg,
		       struct mst_notifier *notifier)
{
	char status[160];

	mst_announcement_tell(o, cfg->access, the_plane);
	(void)snprintf(status, sizeof(status), "listening on %s", mst_plane_address(the_plane));
	mst_notifier_ready(notifier, status);
	if (o->join == NULL) {
		mst_announcement_tell_name(o, mst_plane_address(the_plane));
		mst_info("%s%s", status,
			 mst_hostport_is_here(mst_plane_address(the_plane))
				 ? " (only this host can join there; others need --listen)"
				 : "");
		if (cfg->renewal.given == 0 || tells_again())
			tell_ready(MST_READY_LISTENS, mst_plane_address(the_plane));
	} else {
		mst_info("looking for the leader at %s; workers and muster status connect there, "
			 "too",
			 o->join);
	}
}

static void wake_plane(void *ctx)
{
	(void)ctx;
	mst_plane_wake(the_plane);
}

static bool has_stopped(void *ctx)
{
	(void)ctx;
	return atomic_load_explicit(&stop_signal, memory_order_relaxed) != 0;
}

/* Nobody else writes to the directory from now on, and the plane may look for a checkpoint there.
 * Return: 0 or -errno. */
static int start_archive(const struct mst_server_options *o, struct mst_plane_cfg *cfg,
			 struct mst_archive_files **archive, struct mst_reason *why)
{
	struct mst_archive_files_cfg files = { .dir = o->state,
					       .leads = o->join == NULL,
					       .waits = mst_server_options_goes_on(o),
					       .wait_ns = o->join_timeout_ns,
					       .is_stopped = has_stopped,
					       .silence_ns = DISK_SILENCE_NS,
					       .wake = wake_plane };

	*archive = NULL;
	if (!mst_server_options_saves(o))
		return 0;
	int rc = mst_archive_files_start(&files, archive, why);
	if (rc == 0)
		cfg->archive = mst_archive_files_archive(*archive);
	return rc;
}

/* Return: the exit status of a server that could not start. */
static int not_started(void)
{
	int signo = atomic_load_explicit(&stop_signal, memory_order_relaxed);

	return signo != 0 ? by_signal(signo) : MST_EXIT_FAILED;
}

/* What the next plane is made with. It listens where this one does, also where the system has
 * chosen the port. */
struct next {
	struct mst_renewal kept;
	uint32_t workers; /* 0: as the options say */
	char listens[MST_HOSTPORT_LEN];
};

static void keep_for_next(const struct mst_plane *plane, struct next *next)
{
	struct mst_reason why;

	if (!mst_plane_renews(plane, &next->workers, &next->kept, &why))
		return;
	(void)snprintf(next->listens, sizeof(next->listens), "%s", mst_plane_address(plane));
}

/* No plane uses the options any more.
 * Return: the exit status where they do not suit the number of workers that are to be; else
 * RENEWED. */
static int take_over(const struct next *next, struct mst_server_options *o,
		     struct mst_plane_cfg *cfg)
{
	struct mst_reason why;

	cfg->renewal = next->kept;
	if (o->join != NULL)
		return RENEWED;
	o->workers = next->workers;
	o->listen = next->listens;
	if (mst_server_options_workers_check(o, &why) == 0)
		return RENEWED;
	mst_error("job \"%s\" is to go on with %" PRIu32 " workers, as those that come back say, "
		  "and the options of this server do not suit that: %s",
		  o->job, o->workers, why.text);
	return MST_EXIT_USAGE;
}

/* One plane, from beginning to end.
 * @writer: NULL, or gets the thread that writes the recording. A port that is taken is found before
 * the file is replaced.
 * Return: the exit status, or RENEWED. */
static int run_plane(struct mst_server_options *o, struct mst_plane_cfg *cfg,
		     const struct mst_cpus *cpus, struct mst_recording_writer **writer)
{
	static struct next next; /* the options name what is in it */
	bool first = cfg->renewal.given == 0;
	struct mst_archive_files *archive;
	struct mst_notifier notifier;
	int status = MST_EXIT_FAILED;
	struct mst_reason why;

	mst_notifier_open(&notifier, mst_now_ns());
	int rc = start_archive(o, cfg, &archive, &why);

	if (rc == 0)
		rc = mst_server_options_access(o, &cfg->access, &why);
	if (rc == 0)
		rc = mst_plane_new(cfg, &the_plane, &why);

	if (rc == -EADDRINUSE && first)
		tell_ready(MST_READY_TAKEN, "");
	else if (rc == 0 && writer != NULL && first)
		rc = mst_recording_writer_start(o->record, cfg->recording, writer, &why);
	if (rc != 0) {
		mst_error("%s", why.text);
		status = not_started();
	} else {
		tell_begin(o, cfg, &notifier);
		status = serve(the_plane, o, cpus, &notifier);
		keep_for_next(the_plane, &next);
	}
	mst_notifier_close(&notifier);
	if (!mst_archive_files_stop(archive))
		return status == RENEWED ? MST_EXIT_AGAIN
					 : status; /* its thread still reads what the plane has */
	struct mst_plane *plane = the_plane;
	the_plane = NULL;
	mst_plane_free(plane);
	return status == RENEWED ? take_over(&next, o, cfg) : status;
}

static int run_planes(struct mst_server_options *o, struct mst_plane_cfg *cfg,
		      const struct mst_cpus *cpus, struct mst_recording_writer **writer)
{
	int status;

	do {
		status = run_plane(o, cfg, cpus, writer);
	} while (status == RENEWED);
	return status;
}

/* If the disk does not answer, the thread that waits for it ends with the process. */
static int run_recorded(struct mst_server_options *o, struct mst_plane_cfg *cfg,
			const struct mst_cpus *cpus)
{
	struct mst_recording_writer *writer = NULL;
	struct mst_reason missing;

	if (mst_recording_new(&cfg->recording) != 0) {
		mst_error("no memory to record to %s", o->record);
		return MST_EXIT_FAILED;
	}
	if (mst_server_options_goes_on(o))
		mst_recording_counts(cfg->recording);
	int status = run_planes(o, cfg, cpus, &writer);
	if (mst_recording_writer_stop(writer, &missing))
		mst_recording_free(cfg->recording);
	return missing.text[0] != '\0' ? tell_missing(missing.text, status) : status;
}

/* What needs the rights of root comes before this: reading --config. So does the limit of locked
 * memory, which is raised here. All that follows is done by the user: threads, sockets, files.
 * Return: false: the server must not start, which has been logged. */
static bool give_up_rights(const struct mst_server_options *o)
{
	struct mst_user user;
	struct mst_reason why;
	int rc = 0;

	if (mst_server_options_becomes(o)) {
		mst_host_memlock_raise();
		rc = mst_user_find(o->user, &user, &why);
		if (rc == 0)
			rc = mst_user_become(&user, &why);
		if (rc != 0)
			mst_error("--user: %s", why.text);
	}
	if (rc != 0 || !o->no_core)
		return rc == 0;
	rc = mst_process_hide(); /* last, for a change of user sets the same flag */
	if (rc != 0)
		mst_error("--no-core: cannot rule out core dumps: %s", strerror(-rc));
	return rc == 0;
}

/* A server that is no server by its certificate would be believed by nobody.
 * Return: the exit status; 0: go on. */
static int open_credentials(const struct mst_server_options *o)
{
	char roles[MST_ROLES_TEXT_LEN];
	struct mst_reason why = { "no memory for certificates" };
	struct mst_principal own;

	if (mst_credentials_load(&o->tls, &credentials, &why) != 0)
		return usage(why.text);
	if (credentials == NULL)
		return MST_EXIT_DONE;
	mst_credentials_principal(credentials, &own);
	if ((own.roles & MST_ROLE_SERVER) != 0)
		return MST_EXIT_DONE;
	mst_roles_text(own.roles, roles);
	mst_reason_set(
		&why,
		"the certificate in %s is of the role %s; musterd needs one whose URI or OU is "
		"muster:server",
		o->tls.cert, roles);
	return usage(why.text);
}

static int run(struct mst_server_options *o)
{
	struct mst_plane_cfg cfg;
	struct mst_cpus cpus;
	struct mst_reason why;

	prepare(o, &cfg, &cpus);
	if (!give_up_rights(o))
		return MST_EXIT_FAILED;
	int status = open_credentials(o);
	if (status != MST_EXIT_DONE)
		return status;
	cfg.stream = mst_stream_of(credentials);
	cfg.credentials = credentials;
	cfg.channels = mst_channels_of(credentials);
	struct mst_plan_cfg plan = { .options = o, .networks = cfg.networks, .cores = cfg.cores };
	int rc = mst_threads_check(&plan, &why);
	if (rc != 0) {
		mst_error("%s", why.text);
		return MST_EXIT_FAILED;
	}
	rc = mst_log_start();
	if (rc != 0) {
		mst_error("cannot start the thread that writes the log: %s",
			  mst_host_tasks_failed(rc, &why));
		return MST_EXIT_FAILED;
	}
	return mst_server_options_record(o) ? run_recorded(o, &cfg, &cpus)
					    : run_planes(o, &cfg, &cpus, NULL);
}

int main(int argc, char **argv)
{
	struct mst_server_options o;
	struct mst_options parsed;
	int status = MST_EXIT_DONE;
	struct mst_reason why;

	if (mst_inherited_settle(&why) != 0) {
		mst_error("%s", why.text);
		return MST_EXIT_FAILED;
	}
	if (mst_tls_guard_keys() != 0) {
		mst_error("no memory to keep private keys in; free some memory of this host");
		return MST_EXIT_FAILED;
	}
	catch_signals();
	mst_host_descriptors_raise();
	if (read_options(argc, argv, &parsed, &o) != 0)
		status = usage(parsed.why.text);
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
	if (the_plane == NULL) /* else its listener's thread uses them until the process ends */
		mst_credentials_free(credentials);
	mst_options_free(&parsed);
	if (!mst_log_is_open())
		mst_log_open("musterd", MST_LOG_INFO);
	return mst_exit_close(status);
}
