/* SPDX-License-Identifier: MIT */
/*
 * Makes the links of new workers and followers, several at a time, with threads of its own. One of
 * these threads also makes the leader's data side.
 *
 * Making a link maps or registers memory. That takes longer the more memory there is: over RDMA
 * seconds for gigabytes. The control thread must receive heartbeats meanwhile, so it only asks for
 * a link here, and takes it when it has been made. Each thread makes one link at a time, so that
 * one large worker does not keep small ones waiting.
 *
 * One thread owns the maker and calls all functions. None of them waits, except
 * mst_link_maker_free().
 */
#ifndef MST_SERVER_LINK_MAKER_H
#define MST_SERVER_LINK_MAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/transport/transport.h"

struct mst_link_maker;

struct mst_link_made {
	uint8_t token[MST_TOKEN_LEN]; /* of the request */
	struct mst_link *link;        /* NULL: no link could be made, and */
	int error;                    /* this is why: -errno */
	struct mst_reason why;        /* what answer() has said; "": nothing */
};

/* @wake: called by a thread of the maker whenever a link has been made. NULL: the maker has no
 * threads, and makes a link while it is asked for.
 * Return: 0; -ENOMEM; the -errno of a thread that could not be started. */
int mst_link_maker_new(void (*wake)(void *ctx), void *ctx, struct mst_link_maker **out);
/* Waits for the links that are being made and for other work, and frees the links that have not
 * been taken. The listener must still be open. Accepts NULL. */
void mst_link_maker_free(struct mst_link_maker *m);

/* How many links were asked for and have not been taken. While there are any, their listener must
 * stay open. */
uint32_t mst_link_maker_count(const struct mst_link_maker *m);
/* Is there room for one more link? At most MST_ANSWERS_MAX are made at a time. */
bool mst_link_maker_has_room(const struct mst_link_maker *m);
/* Makes the link that @request asks for. @m must have room. */
void mst_link_maker_make(struct mst_link_maker *m, const struct mst_link_listener_ops *of,
			 struct mst_link_listener *listener,
			 const struct mst_link_request *request);
/* Takes any link that has been made. The link belongs to the caller from now on.
 * Return: false: none has been made. */
bool mst_link_maker_take(struct mst_link_maker *m, struct mst_link_made *out);

/* Has a thread do other work that takes long, one piece at a time, and wake the owner when it is
 * done. */
void mst_link_maker_do(struct mst_link_maker *m, void (*work)(void *arg), void *arg);
/* Return: true, once for each piece of work: it is done. */
bool mst_link_maker_did(struct mst_link_maker *m);

#endif
