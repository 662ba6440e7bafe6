/* SPDX-License-Identifier: MIT */
#include "tools/signals.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <unistd.h>

static bool is_ignored(int signo)
{
	struct sigaction action;

	return sigaction(signo, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* What is blocked and has its default action waits to be read, and children start with it. */
static void take(sigset_t *taken, int signo)
{
	(void)signal(signo, SIG_DFL);
	(void)sigaddset(taken, signo);
}

int mst_signals_open(struct mst_signals *s)
{
	sigset_t taken;

	(void)sigemptyset(&taken);
	take(&taken, SIGCHLD);
	take(&taken, SIGINT);
	take(&taken, SIGTERM);
	if (!is_ignored(SIGHUP))
		take(&taken, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &taken, &s->before) < 0)
		return -errno;
	s->fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->fd < 0) {
		int rc = -errno;

		(void)sigprocmask(SIG_SETMASK, &s->before, NULL);
		return rc;
	}
	return 0;
}

void mst_signals_close(struct mst_signals *s)
{
	(void)close(s->fd);
	(void)sigprocmask(SIG_SETMASK, &s->before, NULL);
}

int mst_signals_next(struct mst_signals *s)
{
	struct signalfd_siginfo info;

	if (read(s->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	return (int)info.ssi_signo;
}
