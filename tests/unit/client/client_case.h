/* SPDX-License-Identifier: MIT */
/* A handle, and the fake lead it talks to. */
#ifndef MST_TESTS_UNIT_CLIENT_CLIENT_CASE_H
#define MST_TESTS_UNIT_CLIENT_CLIENT_CASE_H

#include "muster/muster.h"
#include "tests/unit/client/fake_lead.h"

#define LONG_MS 8000u
#define SHORT_MS 300u /* also every handle's wait_ms */

extern struct fake_lead fake;
extern struct muster *m;
extern struct muster_outcome out;
extern void *fake_result_into; /* options.result_into of open_fake_servers(); usually NULL */

/* Also starts the clock of took_ms(). */
struct muster_options options_for(const char *server, uint32_t join_ms);
int open_fake(bool (*script)(struct fake_lead *), uint32_t join_ms);
int open_fake_servers(bool (*script)(struct fake_lead *), uint32_t servers);
void begin(bool (*script)(struct fake_lead *)); /* opened and started; the clock starts anew */
void close_both(void);

uint64_t took_ms(void);
bool says(const char *reason, const char *word); /* prints both if not */

#endif
