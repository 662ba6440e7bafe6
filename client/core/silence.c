/* SPDX-License-Identifier: MIT */
#include "client/core/silence.h"

#include <string.h>

/* The part of a lease for which time goes on after the connection was read. */
#define FRESH_SHARE 4u

void mst_silence_begin(struct mst_silence *s, uint32_t servers, uint64_t lease_ns, uint64_t now_ns)
{
	memset(s, 0, sizeof(*s));
	mst_listening_start(&s->listening, lease_ns / FRESH_SHARE, now_ns);
	s->servers = servers;
	s->beat_ns = s->listening.clock_ns;
	for (uint32_t k = 0; k < servers; k++)
		s->server[k].heard_ns = s->listening.clock_ns;
}

void mst_silence_look(struct mst_silence *s, uint64_t now_ns)
{
	(void)mst_listening_now(&s->listening, now_ns);
}

void mst_silence_beat(struct mst_silence *s, const struct mst_beat *beat)
{
	for (uint32_t k = 0; k < s->servers && k < beat->count; k++) {
		if (s->server[k].passes == beat->server[k].passes)
			continue;
		s->server[k].passes = beat->server[k].passes;
		s->server[k].heard_ns = s->listening.clock_ns;
	}
	s->beat_ns = s->listening.clock_ns;
}

void mst_silence_moved(struct mst_silence *s, uint32_t servers)
{
	for (uint32_t k = 0; k < s->servers; k++) {
		if (servers >> k & 1u)
			s->server[k].heard_ns = s->listening.clock_ns;
	}
}

void mst_silence_read(struct mst_silence *s, uint64_t now_ns)
{
	mst_listening_heard(&s->listening, now_ns, now_ns);
}

/* Only the leader reports on other servers: while it is silent, nothing is known about them. */
static uint64_t known_ns(const struct mst_silence *s, uint32_t server)
{
	return server == 0 ? s->listening.read_ns : s->beat_ns;
}

bool mst_silence_find(const struct mst_silence *s, uint64_t limit_ns, struct mst_silent *out)
{
	for (uint32_t k = 0; k < s->servers; k++) {
		uint64_t since = s->server[k].heard_ns, until = known_ns(s, k);
		if (until < since || until - since < limit_ns)
			continue;
		*out = (struct mst_silent){ k, until - since };
		return true;
	}
	return false;
}
