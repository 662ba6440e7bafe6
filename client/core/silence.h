/* SPDX-License-Identifier: MIT */
/*
 * Finds the server that is silent, and since when, as far as this worker has read. The leader beats
 * for all servers of the job: how often each one's data thread has passed its loop. A beat in which
 * a server has not gone on is no sign of life of that server; what comes on its link is one.
 *
 * Pure: what was read and the time go in.
 */
#ifndef MST_CLIENT_CORE_SILENCE_H
#define MST_CLIENT_CORE_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/listening.h"
#include "common/wire/message.h"
#include "common/wire/part.h"

struct mst_silence {
	struct mst_listening listening; /* to the control connection */
	uint32_t servers;
	uint64_t beat_ns; /* the last beat; by the clock of listening, as all that follows */
	struct {
		uint64_t passes, heard_ns;
	} server[MST_SERVERS_MAX];
};

struct mst_silent {
	uint32_t server;
	uint64_t for_ns;
};

void mst_silence_begin(struct mst_silence *s, uint32_t servers, uint64_t lease_ns, uint64_t now_ns);
/* Time has passed; then come the calls for what is read. */
void mst_silence_look(struct mst_silence *s, uint64_t now_ns);
void mst_silence_beat(struct mst_silence *s, const struct mst_beat *beat);
/* Something has come on the links with these servers, bit by bit. */
void mst_silence_moved(struct mst_silence *s, uint32_t servers);
/* The connection was read to its end after @now_ns. */
void mst_silence_read(struct mst_silence *s, uint64_t now_ns);
/* The first server that has been silent for @limit_ns; false: none has. */
bool mst_silence_find(const struct mst_silence *s, uint64_t limit_ns, struct mst_silent *out);

#endif
