/* SPDX-License-Identifier: MIT */
#include "common/config/habits.h"

#include <ctype.h>
#include <string.h>

#include "common/config/row.h"

struct habit {
	const char *words;  /* each between two blanks */
	const char *beside; /* for programs that have this option */
	const char *says;
};

/* The first row that has the word, and whose option the program has, holds. Only muster run and
 * muster tune have --grace; they, musterd and muster bench have --join-timeout; commands that ask a
 * running job have --timeout. */
static const struct habit habits[] = {
	{ " np nproc nprocs nproc-per-node num-proc num-processes ntasks ntasks-per-node "
	  "world-size num-workers nworkers gpus gpus-per-node gpus-per-task ",
	  "workers", "here it is -n W, or --workers W" },
	{ " N nnodes nodes num-nodes host hosts hostfile machinefile H nodelist w ", "grace",
	  "muster run starts all workers on this host; for several hosts start musterd, and the "
	  "workers by mpirun, srun or torchrun (docs/launchers.md)" },
	{ " N nnodes nodes num-nodes hosts hostfile machinefile H nodelist ", "join-timeout",
	  "musterd starts no workers; mpirun, srun or torchrun do (docs/launchers.md), and "
	  "--workers W says how many there are" },
	{ " rank node-rank local-rank machine-rank ", "grace",
	  "muster run gives each worker its rank, in MUSTER_RANK" },
	{ " rank node-rank local-rank machine-rank ", "join-timeout",
	  "a worker has a rank, and says it, in MUSTER_RANK" },
	{ " rank r ", "timeout",
	  "the rank stands without an option, as in muster evict 3 127.0.0.1:17077" },
	{ " standalone rdzv-id rdzv-backend rdzv-endpoint rdzv-conf rdzv ", "grace",
	  "leave it out: the workers of muster run find its server by MUSTER_SERVER" },
	{ " oversubscribe allow-run-as-root overcommit exclusive mpi mca pmi monitor-interval "
	  "start-method local-addr use-env ",
	  "grace", "leave it out: there is no such thing here" },
	{ " join user tls-ca tls-cert tls-key budget ", "grace",
	  "musterd has it; all of a job of muster run is on this host, and of this user" },
	{ " time time-limit walltime t ", "grace",
	  "the job ends with --commits N or --samples NUMBER; for a time write timeout 1h muster "
	  "run ..." },
	{ " wdir chdir cwd D ", "grace", "workers start in the directory of muster run: cd there" },
	{ " job-name J name ", "join-timeout", "here it is --job NAME" },
	{ " mem mem-per-cpu mem-per-node ", "join-timeout",
	  "--memory SIZE is the most that the server takes for slots and sums" },
	{ " quiet q silent ", "log-level", "here it is --log-level warn, or error" },
	{ " m module no-python ", "grace",
	  "the program stands after --, as in -- python3 -m MODULE" },
	{ " x env export genv ", "grace",
	  "workers inherit the environment; more of it as in -- env NAME=VALUE PROGRAM" },
	{ " o output error log-dir output-filename redirects tee label l tag-output ", "grace",
	  "what workers print goes where muster run prints; a program that wants files of its own "
	  "has MUSTER_RANK for their names" },
	{ " port p master-port master-addr rdzv-endpoint address addr bind host server ",
	  "join-timeout",
	  "the server's address is --listen HOST:PORT, such as --listen 127.0.0.1:17077; workers "
	  "find it by MUSTER_SERVER" },
	{ " port p server host address addr connect ", "peer",
	  "the other host is --peer HOST:PORT" },
	{ " port p server host address addr connect master-addr master-port ", "timeout",
	  "the address stands without an option, as HOST:PORT, or in MUSTER_SERVER" },
	{ " job name ", "timeout",
	  "a job is found by the address of its server, HOST:PORT without an option" },
	{ " policy ", "timeout",
	  "the policy stands without an option, as in muster policy 127.0.0.1:17077 backup:4" },
	{ " w watch follow f interval ", "timeout",
	  "muster status prints once; `watch muster status` prints again and again" },
	{ " steps max-steps num-steps iterations iters max-iters epochs num-epochs max-epochs ",
	  "commits", "how long the job goes on is --commits N, or --samples NUMBER" },
	{ " lr learning-rate momentum weight-decay wd betas ", "optimizer",
	  "it is a part of --optimizer, as in --optimizer sgd:lr=0.1,momentum=0.9" },
	{ " checkpoint checkpoint-dir checkpoint-path ckpt ckpt-dir save save-dir output-dir ",
	  "state", "here it is --state DIR, and --checkpoint-every says how often" },
	{ " load load-checkpoint resume-from resume-from-checkpoint restore ", "resume",
	  "here it is --resume DIR" },
	{ " trace recording csv ", "record", "here it is --record FILE" },
	{ " record recording file input i ", "trace", "here it is --trace FILE" },
	{ " verbose v debug verbosity loglevel log ", "log-level",
	  "here it is --log-level LEVEL: error, warn, info or debug" },
	{ " ack-timeout retries retry-cnt ib-timeout ib-retry-cnt user-timeout tcp-user-timeout "
	  "keepalive dead-timeout ",
	  "link-timeout",
	  "--link-timeout SECONDS, such as --link-timeout 2s, is how long the other host of a link "
	  "may acknowledge nothing, over all networks" },
	{ " socket-ifname ifname interface iface netif network-interface nic data-host ",
	  "data-address",
	  "here it is --data-address LIST, with IP addresses of the interface (ip address shows "
	  "them); a worker has MUSTER_DATA_ADDRESS" },
	{ " timeout wait ", "join-timeout",
	  "--join-timeout is how long workers may take to join, --patience how long a step waits "
	  "for one, --lease how long one may be silent" },
	{ " backup sync async mode sync-mode strategy ", "policy",
	  "here it is --policy POLICY, such as --policy backup:3" },
	{ " daemon daemonize background detach d ", "join-timeout",
	  "it stays in the foreground: end the line with &, or let systemd start musterd "
	  "(musterd(8), SERVICE)" },
	{ " bind-to map-by cpu-bind cpus-per-task ", "cpus",
	  "--cpus LIST is for the threads of the server; a worker binds itself, as with taskset" },
	{ " state dir path resume ", "verify",
	  "the directory stands without an option, as in muster checkpoint DIR" },
};

#define WORD_MAX 40u

/* Return: false: it is too long for any. */
static bool spell(const char *word, char out[WORD_MAX])
{
	size_t len = strlen(word);

	if (len == 0 || len > WORD_MAX - 3)
		return false;
	*out++ = ' ';
	for (size_t i = 0; i < len; i++)
		*out++ = word[i] == '_' ? '-' : (char)(len > 1 ? tolower(word[i]) : word[i]);
	*out++ = ' ';
	*out = '\0';
	return strpbrk(word, " ") == NULL;
}

const char *mst_habit_say(const struct mst_option *table, const char *word)
{
	char spelt[WORD_MAX];

	if (!spell(word, spelt))
		return NULL;
	for (unsigned i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
		const struct habit *h = &habits[i];
		if (strstr(h->words, spelt) != NULL &&
		    mst_row_find(table, h->beside, strlen(h->beside)) != NULL)
			return h->says;
	}
	return NULL;
}
