/* SPDX-License-Identifier: MIT */
/*
 * A worker, or a member, that does not say to one what it says to the others. It is linked with
 * this in place of its transport (--wrap), and lies as MUSTER_LIE tells:
 *
 *	PART KIND COUNT LIE
 *
 *	1 header 20 seq     the 20th header to server 1 has another ticket
 *	- answer 20 number  the 20th answer of this server has another number
 *
 * PART is of a worker's links, in the order of servers; "-" is every link that is not another
 * server's. KIND is header, abandon or answer. LIE is a field: seq, tag, weight, slot, flags,
 * epoch; number, version; or never (it is not said), twice, flood (500 times), now (an abandon
 * instead), reset (its link's socket is shut down).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/base/assert.h"
#include "common/transport/transport.h"
#include "common/wire/lane.h"

#define FLOOD 500
#define LINKS_MAX 16u
#define FDS 256
#define ANSWER_LINE 64 /* what a member tells a worker at once ends with the answer's line */

const struct mst_transport *__real_mst_transport_find(const char *scheme);
const struct mst_transport *__wrap_mst_transport_find(const char *scheme);
const struct mst_transport *__real_mst_transport_of(const char *address);
const struct mst_transport *__wrap_mst_transport_of(const char *address);

static const struct mst_transport *real;
static struct mst_transport ours;
static char part[8], kind[16], lie[16];
static unsigned long left; /* of that kind, until the one */
static struct mst_link *dialled[LINKS_MAX];
static char door[LINKS_MAX][128];
static unsigned dialled_count;

static bool is_between_servers(const struct mst_link *link)
{
	return link->lanes.up_bytes == link->lanes.down_bytes;
}

/* A worker begins with the server of its rank, modulo their number. */
static bool is_meant(const struct mst_link *link)
{
	const char *rank = getenv("MUSTER_RANK");

	if (strcmp(part, "-") == 0)
		return !is_between_servers(link);
	unsigned long first = strtoul(rank != NULL ? rank : "0", NULL, 10);
	unsigned long index = (strtoul(part, NULL, 10) + dialled_count - first % dialled_count) %
			      dialled_count;
	return dialled[index] == link;
}

static bool is_kind(uint32_t imm)
{
	switch (mst_imm_kind(imm)) {
	case MST_IMM_HEADER:
		return strcmp(kind, "header") == 0;
	case MST_IMM_ABANDON:
		return strcmp(kind, "abandon") == 0;
	case MST_IMM_ANSWER:
		return strcmp(kind, "answer") == 0;
	default:
		return false;
	}
}

static void bend_header(struct mst_lane_header *h)
{
	if (strcmp(lie, "seq") == 0)
		h->seq++;
	else if (strcmp(lie, "tag") == 0)
		h->tag--;
	else if (strcmp(lie, "weight") == 0)
		h->weight *= 2;
	else if (strcmp(lie, "slot") == 0)
		h->slot ^= 1;
	else if (strcmp(lie, "epoch") == 0)
		h->epoch += UINT64_C(1) << 40;
	else
		h->flags ^= MST_HEADER_ASK;
}

static void bend_answer(char *at)
{
	struct mst_lane_answer answer;

	memcpy(&answer, at, sizeof(answer));
	if (strcmp(lie, "number") == 0)
		answer.number++;
	else
		answer.version++;
	memcpy(at, &answer, sizeof(answer));
}

static int put_bent(struct mst_link *link, const struct mst_put *put)
{
	static union {
		struct mst_lane_header header;
		char bytes[65536];
	} said;
	struct mst_put bent = *put;

	MST_ASSERT(put->bytes <= sizeof(said));
	memcpy(said.bytes, put->src, put->bytes);
	bent.src = said.bytes;
	if (mst_imm_kind(put->imm) == MST_IMM_ANSWER)
		bend_answer(said.bytes + put->bytes - ANSWER_LINE);
	else
		bend_header(&said.header);
	return real->put(link, &bent);
}

static int put_instead(struct mst_link *link, const struct mst_put *put)
{
	struct mst_put abandon = { .src = put->src, .notify = true };

	abandon.imm = mst_imm(MST_IMM_ABANDON, mst_imm_slot(put->imm), mst_imm_epoch(put->imm));
	return real->put(link, &abandon);
}

/* Doors over shared memory have abstract addresses: '@' stands for the NUL they begin with. */
static bool is_to(int fd, const char *address)
{
	struct sockaddr_un at;
	socklen_t len = sizeof(at);

	return getpeername(fd, (struct sockaddr *)&at, &len) == 0 && at.sun_family == AF_UNIX &&
	       len > offsetof(struct sockaddr_un, sun_path) + 1 &&
	       strncmp(at.sun_path + 1, address + 1, strlen(address + 1)) == 0;
}

static void reset(const struct mst_link *link)
{
	unsigned i = 0;

	while (dialled[i] != link)
		i++;
	for (int fd = 3; fd < FDS; fd++)
		if (is_to(fd, door[i]))
			(void)shutdown(fd, SHUT_RDWR);
}

static int lie_put(struct mst_link *link, const struct mst_put *put)
{
	int rc = 0;

	if (left == 0 || !put->notify || !is_kind(put->imm) || !is_meant(link) || --left > 0)
		return real->put(link, put);
	if (strcmp(lie, "never") == 0)
		return 1;
	if (strcmp(lie, "reset") == 0) {
		reset(link);
		return real->put(link, put);
	}
	if (strcmp(lie, "now") == 0)
		return put_instead(link, put);
	if (strcmp(lie, "twice") != 0 && strcmp(lie, "flood") != 0)
		return put_bent(link, put);
	for (int i = strcmp(lie, "twice") == 0 ? FLOOD - 2 : 0; i < FLOOD && rc >= 0; i++)
		rc = real->put(link, put);
	return 1;
}

static int lie_dial(struct mst_net *net, const struct mst_dial *how, struct mst_link **out)
{
	int rc = real->dial(net, how, out);

	if (rc != 0)
		return rc;
	MST_ASSERT(dialled_count < LINKS_MAX);
	(void)snprintf(door[dialled_count], sizeof(door[0]), "%s", how->address);
	dialled[dialled_count++] = *out;
	(*out)->ops = &ours;
	return 0;
}

static int lie_attach(struct mst_net *net, struct mst_link *link)
{
	link->ops = &ours;
	return real->attach(net, link);
}

static int lie_net_open(const struct mst_net_cfg *cfg, struct mst_net **out)
{
	int rc = real->net_open(cfg, out);

	if (rc == 0)
		(*out)->ops = &ours;
	return rc;
}

static const struct mst_transport *stand_before(const struct mst_transport *found)
{
	const char *text = getenv("MUSTER_LIE");

	if (found == NULL || found == real)
		return found == NULL ? NULL : &ours;
	MST_ASSERT(real == NULL);
	real = found;
	ours = *found;
	ours.net_open = lie_net_open;
	ours.dial = lie_dial;
	ours.attach = lie_attach;
	ours.put = lie_put;
	if (text != NULL && sscanf(text, "%7s %15s %lu %15s", part, kind, &left, lie) != 4) {
		fprintf(stderr, "lie: what is \"%s\"?\n", text);
		abort();
	}
	return &ours;
}

const struct mst_transport *__wrap_mst_transport_find(const char *scheme)
{
	return stand_before(__real_mst_transport_find(scheme));
}

const struct mst_transport *__wrap_mst_transport_of(const char *address)
{
	return stand_before(__real_mst_transport_of(address));
}
