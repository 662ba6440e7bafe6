/* SPDX-License-Identifier: MIT */
/*
 * The store knows which version lies in which buffer, and how many readers still need it (PROTOCOL
 * 7). A buffer is free when it holds no version, or an old one outside the history that has no
 * readers, is not being saved and is not pinned. Versions are pinned for a worker that takes
 * another worker's state: it needs all that come after that state. Pure.
 */
#ifndef MST_SERVER_CORE_LEDGER_STORE_H
#define MST_SERVER_CORE_LEDGER_STORE_H

#include <stdbool.h>
#include <stdint.h>

struct mst_store_buffer {
	uint64_t version; /* MST_VERSION_NONE: none yet */
	uint32_t holds;   /* answers being copied, and workers reading in place */
	uint32_t lasting; /* how many of these are LASTING */
	bool saved;       /* it is being saved */
};

/* A hold of a buffer, by who ends it. */
enum mst_hold {
	MST_HOLD_PASSING, /* a shard, which copies, without anybody's help */
	MST_HOLD_LASTING, /* a worker or its link, whenever they like */
};

struct mst_store {
	struct mst_store_buffer *buffer;
	uint32_t count;
	bool saves;      /* one buffer is left over for a version that is saved */
	uint32_t kept;   /* how many of the newest versions stay: 1, or the history */
	uint32_t extra;  /* how many more of the newest stay if they are pinned */
	uint64_t pin;    /* the first version that is pinned; MST_VERSION_NONE: none is */
	uint64_t first;  /* the version that comes first */
	uint64_t newest; /* MST_VERSION_NONE: none yet */
};

/* @buffer: an array of @count that the caller owns. @kept is 1 or more, and less than @count. The
 * first version is 0. */
void mst_store_init(struct mst_store *s, struct mst_store_buffer *buffer, uint32_t count,
		    uint32_t kept);
/* @extra more buffers are for versions that are pinned. @kept and @extra together are less than the
 * number of buffers. */
void mst_store_set_extra(struct mst_store *s, uint32_t extra);
/* Pins the versions from @first on, in place of what was pinned; MST_VERSION_NONE: none. A version
 * that is older than the `kept` and `extra` newest goes all the same. */
void mst_store_pin(struct mst_store *s, uint64_t first);
/* One buffer is for a version that is saved: nobody else counts on it, so that no commit waits for
 * a disk. */
void mst_store_reserve(struct mst_store *s);
/* Another version comes first. None has been taken yet. */
void mst_store_begin_with(struct mst_store *s, uint64_t first);

/* Takes a free buffer for @version, which becomes the newest: one more than the newest so far, or
 * the first. Return: false if no buffer is free; nothing has changed then. */
bool mst_store_take(struct mst_store *s, uint64_t version, uint32_t *buffer);

/* The newest version; while there is none, the one that comes first. */
uint64_t mst_store_version(const struct mst_store *s);

/* How many buffers would always be left for commits if @buffer stayed held: the buffers that are
 * needed neither by the kept versions, nor by other holders, nor by a version that is saved. */
uint32_t mst_store_spare(const struct mst_store *s, uint32_t buffer);
/* The same when all PASSING holds have ended. */
uint32_t mst_store_spare_later(const struct mst_store *s, uint32_t buffer);

/* Finds the buffer of @version.
 * Return: false if the version is gone, because it is neither held nor kept. */
bool mst_store_find(const struct mst_store *s, uint64_t version, uint32_t *buffer);

/* Is @version there, and not only because a worker holds its buffer? Then the versions after it are
 * there, too. */
bool mst_store_keeps(const struct mst_store *s, uint64_t version);

void mst_store_hold(struct mst_store *s, uint32_t buffer, enum mst_hold hold);
/* A version stays while it is being saved. */
void mst_store_save(struct mst_store *s, uint32_t buffer);
void mst_store_saved(struct mst_store *s, uint32_t buffer);
/* Ends a hold. Return: true if there is more room for LASTING holds now, or the version may be
 * gone: that was the last LASTING hold of @buffer, or the last of all. */
bool mst_store_let_go(struct mst_store *s, uint32_t buffer, enum mst_hold hold);

#endif
