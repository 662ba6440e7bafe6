/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/store.h"

#include "common/base/assert.h"
#include "common/wire/lane.h"

void mst_store_init(struct mst_store *s, struct mst_store_buffer *buffer, uint32_t count,
		    uint32_t kept)
{
	MST_ASSERT(kept >= 1 && count > kept);
	*s = (struct mst_store){
		.buffer = buffer,
		.count = count,
		.kept = kept,
		.pin = MST_VERSION_NONE,
		.newest = MST_VERSION_NONE,
	};
	for (uint32_t i = 0; i < count; i++)
		buffer[i] = (struct mst_store_buffer){ .version = MST_VERSION_NONE };
}

void mst_store_set_extra(struct mst_store *s, uint32_t extra)
{
	MST_ASSERT(s->kept + extra < s->count);
	s->extra = extra;
}

void mst_store_pin(struct mst_store *s, uint64_t first)
{
	s->pin = first;
}

void mst_store_reserve(struct mst_store *s)
{
	s->saves = true;
}

void mst_store_begin_with(struct mst_store *s, uint64_t first)
{
	MST_ASSERT(s->newest == MST_VERSION_NONE);
	s->first = first;
}

/* Is @version one of the `kept` newest, or pinned? */
static bool is_kept(const struct mst_store *s, uint64_t version)
{
	bool pinned = s->pin != MST_VERSION_NONE && version >= s->pin;

	return version != MST_VERSION_NONE &&
	       s->newest - version < s->kept + (pinned ? s->extra : 0);
}

static bool is_free(const struct mst_store *s, const struct mst_store_buffer *b)
{
	return b->holds == 0 && !b->saved && !is_kept(s, b->version);
}

bool mst_store_take(struct mst_store *s, uint64_t version, uint32_t *buffer)
{
	MST_ASSERT(version == (s->newest == MST_VERSION_NONE ? s->first : s->newest + 1));
	for (uint32_t i = 0; i < s->count; i++) {
		if (!is_free(s, &s->buffer[i]))
			continue;
		s->buffer[i].version = version;
		s->newest = version;
		*buffer = i;
		return true;
	}
	return false;
}

uint64_t mst_store_version(const struct mst_store *s)
{
	return s->newest == MST_VERSION_NONE ? s->first : s->newest;
}

/* A version that is held and also kept counts twice, since it will still be held when it is kept no
 * more. */
static uint32_t spare_of(const struct mst_store *s, uint32_t held)
{
	uint32_t used = s->kept + s->extra + s->saves + held;

	return used < s->count ? s->count - used : 0;
}

uint32_t mst_store_spare(const struct mst_store *s, uint32_t buffer)
{
	uint32_t held = 0;

	MST_ASSERT(buffer < s->count);
	for (uint32_t i = 0; i < s->count; i++)
		held += i != buffer && s->buffer[i].holds > 0;
	return spare_of(s, held);
}

uint32_t mst_store_spare_later(const struct mst_store *s, uint32_t buffer)
{
	uint32_t held = 0;

	MST_ASSERT(buffer < s->count);
	for (uint32_t i = 0; i < s->count; i++)
		held += i != buffer && s->buffer[i].lasting > 0;
	return spare_of(s, held);
}

bool mst_store_find(const struct mst_store *s, uint64_t version, uint32_t *buffer)
{
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->buffer[i].version != version || version == MST_VERSION_NONE)
			continue;
		MST_ASSERT(version <= s->newest);
		if (is_free(s, &s->buffer[i]))
			return false;
		*buffer = i;
		return true;
	}
	return false;
}

bool mst_store_keeps(const struct mst_store *s, uint64_t version)
{
	uint32_t buffer;

	return is_kept(s, version) && mst_store_find(s, version, &buffer);
}

void mst_store_hold(struct mst_store *s, uint32_t buffer, enum mst_hold hold)
{
	MST_ASSERT(buffer < s->count && !is_free(s, &s->buffer[buffer]));
	s->buffer[buffer].holds++;
	s->buffer[buffer].lasting += hold == MST_HOLD_LASTING;
}

void mst_store_save(struct mst_store *s, uint32_t buffer)
{
	MST_ASSERT(s->saves && !s->buffer[buffer].saved);
	s->buffer[buffer].saved = true;
}

void mst_store_saved(struct mst_store *s, uint32_t buffer)
{
	MST_ASSERT(s->buffer[buffer].saved);
	s->buffer[buffer].saved = false;
}

bool mst_store_let_go(struct mst_store *s, uint32_t buffer, enum mst_hold hold)
{
	struct mst_store_buffer *b = &s->buffer[buffer];
	bool lasting = hold == MST_HOLD_LASTING;

	MST_ASSERT(buffer < s->count && b->holds > 0 && b->lasting >= lasting);
	b->holds--;
	b->lasting -= lasting;
	MST_ASSERT(b->lasting <= b->holds);
	return b->holds == 0 || (lasting && b->lasting == 0);
}
