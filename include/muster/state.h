/* SPDX-License-Identifier: MIT */
/*
 * state.h - the part of muster.h about the states of workers that own the parameters.
 *
 * A state is all that a worker needs to apply the next version: parameters, the moments of an
 * optimiser, rates, the place in a schedule. What is in it, the program says. All workers of a job
 * have to have the same: they agree on one before their first push, and a worker that comes late,
 * or has fallen behind, takes that of another. Errors that several calls share: see muster.h.
 */
#ifndef MUSTER_STATE_H
#define MUSTER_STATE_H

#include "muster/muster.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a part of a worker's state is. */
enum muster_part_kind {
	MUSTER_PART_STATE, /* it belongs to the state, and travels with it */
	/* Not a state: what decides which bits the same computation gives, such as the release of a
	 * library. It is compared, and nothing of it travels. */
	MUSTER_PART_KERNEL,
};

/* How many parts a state may have, and how many bytes a name, and a value, of one. */
#define MUSTER_PARTS_MAX 24u
#define MUSTER_PART_TEXT_MAX 63u

/* A part of a worker's state. Parts of two workers with the same name are compared. */
struct muster_part {
	const char *name;  /* such as "lr of group 0": UTF-8, 1 to MUSTER_PART_TEXT_MAX bytes */
	const char *value; /* for people, where it is short, such as "0.1"; or NULL */
	uint64_t digest;   /* of its content: the same content has the same digest */
	enum muster_part_kind kind;
};

/* What a worker's state is made of. Start from MUSTER_CLAIM. */
struct muster_claim {
	size_t size;      /* of this struct at the caller, so that it may grow */
	uint64_t version; /* that the state is of, in the job that it comes from; 0: of none */
	const struct muster_part *parts;
	size_t part_count; /* 1 to MUSTER_PARTS_MAX */
};
/* clang-format off */
#define MUSTER_CLAIM { .size = sizeof(struct muster_claim) }
/* clang-format on */

/* What comes of it. Start from MUSTER_AGREEMENT; the library writes the rest. */
struct muster_agreement {
	size_t size;
	/* The state of another worker, which is to replace the own one. It is the library's, and
	 * may be read until the next muster_wait(), or muster_close(). NULL: the own one is right.
	 */
	const void *state;
	size_t state_bytes;
	/* What differed from the state of rank `from`, with both values; "": nothing did. Valid
	 * until muster_close(). */
	const char *why;
	uint64_t version;    /* that this state is of, as the claim of rank `from` says */
	uint32_t from;       /* the rank whose state all begin with */
	bool give;           /* this worker's state is wanted: see muster_agree() */
	bool kernels_differ; /* between some of the workers */
	char reserved[2];
};
/* clang-format off */
#define MUSTER_AGREEMENT { .size = sizeof(struct muster_agreement) }
/* clang-format on */

/**
 * muster_agree - workers own: agree with all other workers on the state that they begin with.
 * Called after muster_start(), before the first push. Where the parts of all workers are equal,
 * nothing travels. Else all get the state of one worker: that of the newest version, and of
 * several of them the lowest rank. The server's log says what differed in which rank.
 * @mine: what this worker's state is made of; read during the call only.
 * @state, @state_bytes: NULL and 0, and where @out->give has said so, the state itself, in a form
 *       of the program's own, copied during the call.
 * @out: what comes of it; written on success only.
 * A worker that has joined a running job and taken the state of another agrees at once. One that
 * has taken none, or says what it has when the others have waited for half of musterd --patience
 * and begun, goes on if it has the same. Else its session ends, with a sentence.
 * Blocks until all workers that have started with this one have called it or left, at most
 * wait_ms. Return: 0; 1 this worker's state is wanted: call again with the state; -EINVAL servers
 * own, muster_start() has not returned 0 yet, something has been pushed, or a part cannot be;
 * -EMSGSIZE the state is larger than musterd --state-max; -ETIMEDOUT and -EINTR call again;
 * -ESHUTDOWN the job has ended before that: this worker has no version of it; -ENOMEM; shared
 * errors.
 */
int muster_agree(struct muster *m, const struct muster_claim *mine, const void *state,
		 size_t state_bytes, struct muster_agreement *out);

/*
 * Comparing, while they train. After the same version, all workers have to have the same. A program
 * says what it has after some of the versions, such as those whose numbers are multiples of 16, and
 * the leader compares that with what others have said of the same version. So it is found if a
 * worker has other parameters than the others, or another rate, in whatever way that has come.
 */

/* How many digests of tensors a comparison may have. */
#define MUSTER_COMPARE_MAX 128u

/* What this worker has after the version of its last outcome. Start from MUSTER_COMPARISON. */
struct muster_comparison {
	size_t size;
	const struct muster_part *parts; /* rates and the like; NULL: none */
	size_t part_count;               /* at most MUSTER_PARTS_MAX */
	/* Digests of tensors, in the order of options.tensors: the first is of the tensors `first`
	 * to `first` + `each` - 1, the next of the `each` tensors after them, and so on. */
	const uint64_t *tensors;
	size_t tensor_count; /* at most MUSTER_COMPARE_MAX */
	uint32_t first;
	uint32_t each; /* from 1 */
	/* If this worker is one of those that differ, muster_wait() is to return -ESTALE, so that
	 * it takes the state of another (options.comes_back). */
	bool takes;
	/* It is the last version of the job. If workers differ after it, musterd says that this is
	 * missing, and exits with status 3. */
	bool last;
	char reserved[2];
	/* Where a digest is of a section of each tensor: the number of the section, as the program
	 * numbers them. Digests of the same tensors and the same section are compared with each
	 * other. 0: of whole tensors. */
	uint32_t section;
};
/* clang-format off */
#define MUSTER_COMPARISON { .size = sizeof(struct muster_comparison), .each = 1 }
/* clang-format on */

/**
 * muster_compare - workers own: say what this worker has after the version of its last outcome.
 * @mine: read during the call only.
 * The version is that of the last outcome, or of the state that was taken last; with muster_train()
 * that of apply(). All workers have to say the same parts and tensors of the same version; what
 * only some of them say is compared among these. The leader waits for all; but if more than half of
 * the workers have said something of a later version, only for those that could decide who is
 * right, and not for long. Then those that have something else than most others are told, and of
 * two that differ both are; the server's log names version, ranks, part and tensor, and muster
 * status counts them. What a worker has said of a version stays, unless it says it again with
 * `last`. Never waits for the server.
 * Return: 0; -EINVAL servers own, there has been no outcome yet, a part cannot be, or there are too
 * many; -EAGAIN the connection is busy: say it again, or not at all; shared errors.
 */
int muster_compare(struct muster *m, const struct muster_comparison *mine);

/* What muster_difference() brings. Start from MUSTER_DIFFERENCE; the library writes the rest. */
struct muster_difference {
	size_t size;
	uint64_t version; /* after which this worker had something else */
	/* What, with both values where they are short, such as "lr of group 0: 0.2, and 0.1 at rank
	 * 0; tensor fc.weight: not that of rank 0". Valid until the next call of this function. */
	const char *why;
	uint32_t from; /* a rank of those that have something else */
	/* One of the two has joined while the job was running, and has other parts of kind
	 * MUSTER_PART_KERNEL than the others. */
	bool kernels_differ;
	char reserved[3];
};
/* clang-format off */
#define MUSTER_DIFFERENCE { .size = sizeof(struct muster_difference) }
/* clang-format on */

/**
 * muster_difference - has the leader found that this worker has something else than others?
 * It is told once, and again only after this worker has taken a state. It reads local memory; never
 * waits for the server. Return: 1 yes, and @out is written; 0 no; -EINVAL; shared errors.
 */
int muster_difference(struct muster *m, struct muster_difference *out);

/**
 * muster_digest - a digest of bytes, for parts and tensors: CRC32C (RFC 3720, appendix B.4), which
 * the processor computes about as fast as it reads memory. Two contents that differ have the same
 * digest with a chance of one in 2^32; it is no protection against somebody who wants that.
 * @before: 0, or the digest of what comes before these bytes.
 * Any thread, with no handle. Return: the digest of both together.
 */
uint64_t muster_digest(uint64_t before, const void *data, size_t bytes);

/*
 * Coming back. Where workers own the parameters, a worker that joins a running job, or has stood
 * still for longer than the servers keep versions (musterd --history), cannot go on by itself. If
 * options.comes_back is set, muster_start() or muster_wait() then returns -ESTALE, the servers ask
 * another worker for its state, and muster_take_state() brings it. A state is bytes that only the
 * program understands: its parameters, its optimiser, whatever it needs to apply the next version.
 * No step waits for a worker that is behind.
 */

/**
 * muster_state_wanted - is this worker to give its state to one that comes back?
 * To be called after each outcome, when its version has been applied; with muster_train(), in
 * apply(). It reads local memory; never waits for the server. Return: 1 yes, muster_give_state();
 * 0 no; shared errors.
 */
int muster_state_wanted(struct muster *m);

/**
 * muster_give_state - give this worker's state, as of the version of the last outcome.
 * @state, @bytes: the state, which is copied before return, and sent meanwhile by the library's
 *       thread. 0 bytes: this worker gives none now, and another is asked.
 * To be called when muster_state_wanted() says 1. A worker that does not call it within two
 * patiences (musterd --patience) is not waited for. Never waits for the server; it takes as long as
 * it takes to copy the state. Return: 0; -EINVAL nobody wants a state; -EMSGSIZE it is larger than
 * musterd --state-max, and another worker is asked; -EAGAIN the last one is still being sent;
 * -ENOMEM no memory for the copy, and another worker is asked; shared errors.
 */
int muster_give_state(struct muster *m, const void *state, size_t bytes);

/**
 * muster_take_state - after -ESTALE: the state of another worker.
 * @state, @bytes: the state. It is the library's, and may be read until the next call of
 *       muster_wait(), muster_try_wait(), muster_take_state() or muster_close().
 * @version: that it is of. This worker has that version now, as if an outcome had brought it:
 *       muster_wait() brings the one after it. That is so after muster_start() too, which is not
 *       called again.
 * What has been pushed gets its verdicts as ever. If the job has made more versions by then than it
 * keeps (musterd --history and --catch-up), muster_wait() returns -ESTALE again, and this call
 * brings a newer state, as often as that happens, of which the log tells. Blocks at most wait_ms.
 * Return: 0; -EINVAL there is none to take; -ETIMEDOUT and -EINTR call again; -ESHUTDOWN the job
 * has ended, and no state comes: muster_wait() brings the last outcome, of this worker's version;
 * or a server was lost, and at the next one this worker lacks nothing: muster_wait() goes on;
 * -ESTALE the session has ended: no other worker gave a state, or this one did not take it
 * within two patiences (musterd --patience), or had joined too late to get one; shared errors.
 */
int muster_take_state(struct muster *m, const void **state, size_t *bytes, uint64_t *version);

#ifdef __cplusplus
}
#endif

#endif
