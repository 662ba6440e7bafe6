/* SPDX-License-Identifier: MIT */
/*
 * A gradient is composed, and a result read, in one piece. With one server that is where its link
 * has it. With several each link has a part; here the parts are mapped a second time, side by side,
 * in room that is reserved for a whole one.
 *
 * Parts begin on pages, so that they can. Large ones also begin as far from the bound of a huge
 * page here as where their links have them, so that they can be in huge pages here, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "client/client.h"
#include "common/base/assert.h"
#include "common/transport/pages.h"

static size_t whole_pages(size_t bytes)
{
	return (bytes + MST_PAGES_SMALL - 1) / MST_PAGES_SMALL * MST_PAGES_SMALL;
}

/* ---- room ---- */

/* Of @bytes, whole pages, as far behind the bound of a huge page as @like is. */
static int reserve(struct mst_client_room *room, size_t bytes, const void *like)
{
	size_t all = bytes + MST_PAGES_HUGE;
	char *low = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (low == MAP_FAILED)
		return -ENOMEM;
	size_t skip = ((uintptr_t)like - (uintptr_t)low) % MST_PAGES_HUGE;
	if (skip > 0)
		munmap(low, skip);
	if (skip < MST_PAGES_HUGE)
		munmap(low + skip + bytes, MST_PAGES_HUGE - skip);
	*room = (struct mst_client_room){ low + skip, bytes };
	return 0;
}

static void release(struct mst_client_room *room)
{
	if (room->bytes > 0)
		munmap(room->at, room->bytes);
	*room = (struct mst_client_room){ NULL, 0 };
}

void mst_client_free_rooms(struct muster *m)
{
	for (uint32_t slot = 0; slot < MST_SLOTS_MAX; slot++)
		release(&m->gradient[slot]);
	release(&m->copied);
	release(&m->published);
}

/* ---- joining ---- */

static int join_gradient(struct muster *m, uint32_t slot)
{
	const struct mst_client_part *p = m->part;
	const char *like = (const char *)p->link->outbox + mst_client_gradient_at(m, p, slot);
	size_t bytes = mst_type_size(m->settings.type);
	int rc = reserve(&m->gradient[slot], whole_pages(mst_client_gradient_bytes(m)), like);

	for (; p < m->part + m->part_count && rc == 0; p++)
		rc = m->transport->view(
			p->link, MST_VIEW_OUTBOX, mst_client_gradient_at(m, p, slot),
			whole_pages(p->layout.slot_bytes), m->gradient[slot].at + p->first * bytes);
	return rc;
}

static int join_copied(struct muster *m)
{
	const struct mst_client_part *p = m->part;
	const char *like = (const char *)p->link->landing + p->layout.down_result;
	size_t bytes = mst_type_size(m->settings.result_type);
	int rc = reserve(&m->copied, whole_pages(mst_client_result_bytes(m)), like);

	for (; p < m->part + m->part_count && rc == 0; p++)
		rc = m->transport->view(p->link, MST_VIEW_LANDING, p->layout.down_result,
					whole_pages(p->layout.result_bytes),
					m->copied.at + p->first * bytes);
	return rc;
}

/* From one published version to the next, side by side. Address space costs nothing. */
static size_t room_stride(const struct muster *m)
{
	size_t bytes = mst_client_result_bytes(m);
	size_t unit = bytes >= MST_PAGES_LARGE ? MST_PAGES_HUGE : MST_PAGES_SMALL;

	return (bytes + unit - 1) / unit * unit;
}

static int join_version(struct muster *m, uint32_t buffer)
{
	char *at = m->published.at + buffer * room_stride(m);
	size_t bytes = mst_type_size(m->settings.result_type);
	int rc = 0;

	for (const struct mst_client_part *p = m->part; p < m->part + m->part_count && rc == 0; p++)
		rc = m->transport->view(p->link, MST_VIEW_SHARED, buffer * mst_client_stride(p),
					mst_client_stride(p), at + p->first * bytes);
	return rc;
}

static int join_published(struct muster *m)
{
	uint32_t buffers = m->welcome.buffers;
	int rc = reserve(&m->published, buffers * room_stride(m), m->part[0].link->shared);

	for (uint32_t b = 0; b < buffers && rc == 0; b++)
		rc = join_version(m, b);
	return rc;
}

int mst_client_join_parts(struct muster *m)
{
	int rc = 0;

	if (m->part_count == 1)
		return 0;
	for (uint32_t slot = 0; slot < m->welcome.slots && rc == 0; slot++)
		rc = join_gradient(m, slot);
	if (rc == 0)
		rc = join_copied(m);
	if (rc == 0 && m->transport->maps)
		rc = join_published(m);
	if (rc == 0)
		return 0;
	return mst_client_fail(m, rc,
			       "cannot map the parts of %" PRIu32 " servers side by side: %s; "
			       "raise vm.max_map_count, or have the job keep fewer --buffers",
			       m->part_count, strerror(-rc));
}

/* ---- where they are ---- */

char *mst_client_gradient(const struct muster *m, int slot)
{
	MST_ASSERT(slot >= 0 && slot < (int)MST_SLOTS_MAX);
	if (m->part_count > 1)
		return m->gradient[slot].at;
	return (char *)m->part[0].link->outbox + mst_client_gradient_at(m, m->part, (uint32_t)slot);
}

static const char *published(const struct muster *m, uint32_t buffer)
{
	if (m->part_count > 1)
		return m->published.at + buffer * room_stride(m);
	return (const char *)m->part[0].link->shared + buffer * mst_client_stride(m->part);
}

static const char *copied(const struct muster *m)
{
	if (m->part_count > 1)
		return m->copied.at;
	return (const char *)m->part[0].link->landing + m->part[0].layout.down_result;
}

const void *mst_client_result(const struct muster *m)
{
	const struct mst_held *held = &m->worker.held;

	switch (held->where) {
	case MST_WHERE_IN_PLACE:
		return published(m, held->buffer);
	case MST_WHERE_COPIED:
		return copied(m);
	default:
		return NULL;
	}
}
