/* SPDX-License-Identifier: MIT */
#include "common/host/inherited.h"

#include <signal.h>

#include "common/host/descriptors.h"
#include "common/host/limits.h"

static struct sigaction xfsz; /* as it was inherited */

int mst_inherited_settle(struct mst_reason *why)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t none;

	mst_descriptors_open_standard();
	(void)sigaction(SIGXFSZ, &ignore, &xfsz);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	return mst_limit_stack(why);
}

void mst_inherited_hand_on(void)
{
	(void)sigaction(SIGXFSZ, &xfsz, NULL);
}
