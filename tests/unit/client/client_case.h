/* SPDX-License-Identifier: MIT */
/* A handle, and the fake leader it talks to. */
#ifndef MST_TESTS_UNIT_CLIENT_CLIENT_CASE_H
#define MST_TESTS_UNIT_CLIENT_CLIENT_CASE_H

#include "muster/muster.h"
#include "tests/unit/client/fake_leader.h"

#define CLIENT_LONG_MS 60000u
#define CLIENT_SHORT_MS 300u /* also every handle's wait_ms */
/* What comes at once, or after the short time, comes by then, however slow the host is: not for the
 * reason that the long time is over. */
#define CLIENT_LATE_MS (CLIENT_LONG_MS / 2)

extern struct fake_leader client_fake;
extern struct muster *client_handle;
extern struct muster_outcome client_outcome;
extern void *client_result_into; /* options.result_into of client_open_servers(); usually NULL */

/* Also starts the clock of took_ms(). */
struct muster_options client_options_for(const char *server, uint32_t join_ms);
int client_open(bool (*script)(struct fake_leader *), uint32_t join_ms);
int client_open_servers(bool (*script)(struct fake_leader *), uint32_t servers);
void client_begin(
	bool (*script)(struct fake_leader *)); /* opened and started; the clock starts anew */
void client_close(void);

/* muster_start() and muster_wait(), called again while nothing but the time is over: the leader is
 * a thread of this host, which may stand still for longer than any of their times. */
int client_start(const void *own, struct muster_outcome *out);
int client_wait(void);

uint64_t client_took_ms(void);
bool client_says(const char *reason, const char *word); /* prints both if not */

#endif
