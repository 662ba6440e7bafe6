/* SPDX-License-Identifier: MIT */
/* A handle, and several servers that it talks to, over shared memory or over a transport that does
 * not map: what a script of theirs is made of. */
#ifndef MST_TESTS_UNIT_CLIENT_SERVERS_CASE_H
#define MST_TESTS_UNIT_CLIENT_SERVERS_CASE_H

#include "tests/transport/far.h"
#include "tests/unit/client/client_case.h"

#define SERVERS_COUNT FAKE_SERVERS_MAX
#define SERVERS_ELEMS (FAKE_ELEMS + (SERVERS_COUNT - 1) * FAKE_PART_ELEMS)
#define SERVERS_RESULT 100000.0f /* plus its place: an element of a result */

/* From the command line: far, or a transport of this build. Links of the test need
 * --wrap=mst_network_choice_take. */
void servers_transport(int argc, char **argv);

extern _Atomic bool servers_went_well; /* the script has come to its end */
extern _Atomic int servers_stage;      /* of a script that waits for its test */

bool servers_end_well(struct fake_leader *f);
bool servers_await_stage(struct fake_leader *f, int wanted);

void servers_begin(bool (*script)(struct fake_leader *)); /* opened and started */
void servers_end(void);                                   /* the script has ended well */

/* Each server gets its part of a gradient whose elements are @base plus their place, and the header
 * after it. The weight is 3. */
bool servers_hear_push(struct fake_leader *f, uint64_t seq, float base);
bool servers_grant(struct fake_leader *f, uint32_t k, uint64_t epoch);
bool servers_judge(struct fake_leader *f, uint64_t ticket);
/* It is counted in a version of its own, which comes in place where that can be, in buffer 1; else,
 * and for @copied, in the worker's inbound region. */
bool servers_answer_push(struct fake_leader *f, uint64_t seq, bool copied);

#endif
