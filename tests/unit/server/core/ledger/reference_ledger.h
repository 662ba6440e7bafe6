/* SPDX-License-Identifier: MIT */
/*
 * A second ledger, thought out apart from server/core: plain, slow, and as close to the words of
 * PROTOCOL.md as C allows. It allocates, keeps everything that ever happened and looks at all of
 * it again after each event. test_ledger_random.c holds the real ledger against it.
 *
 * It does not name buffers, it only knows how many are free.
 */
#ifndef MST_TESTS_UNIT_SERVER_CORE_REFERENCE_LEDGER_H
#define MST_TESTS_UNIT_SERVER_CORE_REFERENCE_LEDGER_H

#include "server/core/ledger/ledger.h"

struct reference;

/* Everything a version was made of. */
struct reference_version {
	double samples, loss, lr_scale;
	double total; /* samples in all versions up to this one */
	float divisor, rate;
	/* What the rule of the step that it opens tells workers. */
	uint32_t window;
	bool until_asked, by_micro;
	struct mst_pace pace;
	struct mst_entry *entry; /* in order of counting */
	size_t entry_count;
};

struct reference *reference_new(const struct mst_ledger_cfg *cfg);
void reference_free(struct reference *r);

void reference_handle(struct reference *r, const struct mst_ledger_event *ev, uint64_t now_ns);
void reference_tick(struct reference *r, uint64_t now_ns);
/* The earliest time at which a tick would decide something; MST_NEVER: none. */
uint64_t reference_due(const struct reference *r);

/* What was decided since reference_forget(); buffers are not filled in. */
const struct mst_decision *reference_decisions(const struct reference *r, size_t *count);
void reference_forget(struct reference *r);

const struct reference_version *reference_version(const struct reference *r, uint64_t version);
uint64_t reference_newest(const struct reference *r);
bool reference_finished(const struct reference *r);
/* Is the condition of the open step met, and only a free buffer missing? */
bool reference_blocked(const struct reference *r);
const struct mst_rule *reference_rule(const struct reference *r);
/* Without verdicts. */
void reference_member(const struct reference *r, uint32_t rank, struct mst_member_view *out);

#endif
