/* SPDX-License-Identifier: MIT */
/* Version buffers of the reference ledger: which versions are still there, and who uses them. */
#include "tests/unit/server/core/ledger/reference_state.h"

/* Does it read this version in place? Or, if it has asked: may it go on with it? */
static bool reads_in_place(const struct reference *r, const struct session *s, uint64_t version)
{
	return s->in_place && s->reads == version && (!s->asking || version == reference_newest(r));
}

static bool is_copied_to(const struct reference *r, const struct session *s, uint64_t version)
{
	for (size_t k = 0; k < s->copy_count; k++) {
		if (s->copy[k].version == version && s->copy[k].shards != all_shards(r))
			return true;
	}
	return false;
}

/* Does somebody read it, or is it sent to somebody? */
static bool in_long_use(const struct reference *r, uint64_t version)
{
	for (size_t i = 0; i < r->session_count; i++) {
		const struct session *s = r->session[i];
		if (!s->ended && (reads_in_place(r, s, version) ||
				  (is_sent_to(r, s) && is_copied_to(r, s, version))))
			return true;
	}
	return false;
}

/* Or does a shard copy it? */
static bool in_use(const struct reference *r, uint64_t version)
{
	for (size_t i = 0; i < r->session_count; i++) {
		const struct session *s = r->session[i];
		if (!s->ended && is_copied_to(r, s, version))
			return true;
	}
	return in_long_use(r, version);
}

static uint32_t kept(const struct reference *r)
{
	return r->cfg.owner == MUSTER_WORKERS_OWN ? r->cfg.history : 1;
}

bool version_held(const struct reference *r, uint64_t version)
{
	return version + kept(r) > reference_newest(r) || in_use(r, version) ||
	       version == r->saving;
}

uint32_t buffers_free(const struct reference *r)
{
	uint32_t free_count = r->cfg.buffers + r->cfg.history + (r->cfg.saves.wanted ? 1 : 0);

	for (uint64_t version = 0; version <= reference_newest(r); version++)
		free_count -= version_held(r, version);
	return free_count;
}

/* One more may use this version for as long as it likes if two buffers would be free even when all
 * that is in use has become old: no commit may wait for it. The buffer of a version that is saved
 * is one more, which nobody else counts on. */
bool leaves_two(const struct reference *r, uint64_t version)
{
	uint32_t used = 0;

	for (uint64_t other = 0; other <= reference_newest(r); other++)
		used += other != version && in_use(r, other);
	return used + kept(r) + 2 <= r->cfg.buffers + r->cfg.history;
}

bool leaves_two_later(const struct reference *r, uint64_t version)
{
	uint32_t used = 0;

	for (uint64_t other = 0; other <= reference_newest(r); other++)
		used += other != version && in_long_use(r, other);
	return used + kept(r) + 2 <= r->cfg.buffers + r->cfg.history;
}
