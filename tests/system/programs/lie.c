/* SPDX-License-Identifier: MIT */
/*
 * A worker, or a follower, that does not say to one what it says to the others. It is linked with
 * this in place of its transport (--wrap), and lies as MUSTER_LIE tells:
 *
 *	PART KIND COUNT LIE
 *
 *	1 header 20 seq     the 20th header to server 1 has another ticket
 *	- answer 20 number  the 20th answer of this server has another number
 *
 * PART is of a worker's links, in the order of servers; "-" is every link that is not another
 * server's. KIND is header, abandon or answer, and, whatever the part, dial, state, runs or
 * heartbeat.
 * LIE is a field: seq, tag, weight, slot, flags, epoch, size; number, version; up_bytes,
 * down_bytes, up_credits, down_credits; offset, total; or of a state nan (its last element is),
 * split (it ends within an element); or never (it is not said), twice, flood (500 times), now (an
 * abandon instead), reset (its link's socket is shut down), linger (a descriptor that is slow to
 * close goes over that socket); unasked, scales, alien (a start state, scales of tensors or a
 * server's message instead of a heartbeat); of scales gap, other (another scale), early (the state
 * instead).
 * KIND link: this server takes 9 s to make one, whatever the LIE.
 */
#include <math.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/wire/lane.h"
#include "common/wire/message.h"
#include "tests/transport/interposed.h"

#define FLOOD 500
#define LINKS_MAX 16u
#define FDS 256
#define ANSWER_LINE 64 /* what a follower tells a worker at once ends with the answer's line */

int64_t __real_mst_message_encode(const struct mst_message *msg, void *buffer, size_t room);
int64_t __wrap_mst_message_encode(const struct mst_message *msg, void *buffer, size_t room);

static char part[8], kind[16], lie[16];
/* Calls of that kind until the one. A server answers several callers at a time, each by a
 * thread. */
static atomic_ulong left;
static struct mst_link *dialled[LINKS_MAX];
static char listener[LINKS_MAX][128];
static unsigned dialled_count;

/* Before there are threads: who says messages, and who puts, may be two. */
__attribute__((constructor)) static void read_lie(void)
{
	const char *text = getenv("MUSTER_LIE");
	unsigned long count = 0;

	if (text != NULL && sscanf(text, "%7s %15s %lu %15s", part, kind, &count, lie) != 4) {
		fprintf(stderr, "lie: what is \"%s\"?\n", text);
		abort();
	}
	atomic_store(&left, count);
}

/* Counts one of the kind. Is it the one? */
static bool is_the_one(void)
{
	unsigned long now = atomic_load(&left);

	while (now > 0 && !atomic_compare_exchange_weak(&left, &now, now - 1))
		;
	return now == 1;
}

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
	else if (strcmp(lie, "size") == 0)
		h->size = MST_HEADER_SIZE_MIN - 1;
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
	return interposed_real->put(link, &bent);
}

static int put_instead(struct mst_link *link, const struct mst_put *put)
{
	struct mst_put abandon = { .src = put->src, .notify = true };

	abandon.imm = mst_imm(MST_IMM_ABANDON, mst_imm_slot(put->imm), mst_imm_epoch(put->imm));
	return interposed_real->put(link, &abandon);
}

/* A listener over shared memory is a file. */
static bool is_to(int fd, const char *address)
{
	struct sockaddr_un at;
	socklen_t len = sizeof(at);

	return getpeername(fd, (struct sockaddr *)&at, &len) == 0 && at.sun_family == AF_UNIX &&
	       strncmp(at.sun_path, address, sizeof(at.sun_path)) == 0;
}

static int socket_of(const struct mst_link *link)
{
	unsigned i = 0;
	int fd = 3;

	while (dialled[i] != link)
		i++;
	while (fd < FDS && !is_to(fd, listener[i]))
		fd++;
	return fd;
}

/* A TCP socket that has more to send than its peer takes, which nobody here closes. */
static int lingering(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	const struct linger linger = { 1, 60 };
	static const char data[65536];
	socklen_t len = sizeof(at);
	int listen_fd = socket(AF_INET, SOCK_STREAM, 0), s = socket(AF_INET, SOCK_STREAM, 0);

	MST_ASSERT(bind(listen_fd, (struct sockaddr *)&at, len) == 0 && listen(listen_fd, 1) == 0 &&
		   getsockname(listen_fd, (struct sockaddr *)&at, &len) == 0 &&
		   connect(s, (struct sockaddr *)&at, len) == 0 &&
		   accept(listen_fd, NULL, NULL) >= 0);
	while (send(s, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	(void)setsockopt(s, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return s;
}

static void pass_lingering(const struct mst_link *link)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} anc = { 0 };
	char word = 'x';
	struct iovec iov = { &word, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = anc.room,
			      .msg_controllen = sizeof(anc.room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fd = lingering();

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	(void)sendmsg(socket_of(link), &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd); /* the server has the last one */
}

static int lie_put(struct mst_link *link, const struct mst_put *put)
{
	int rc = 0;

	if (!put->notify || !is_kind(put->imm) || atomic_load(&left) == 0 || !is_meant(link) ||
	    !is_the_one())
		return interposed_real->put(link, put);
	if (strcmp(lie, "never") == 0)
		return 1;
	if (strcmp(lie, "reset") == 0 || strcmp(lie, "linger") == 0) {
		if (strcmp(lie, "linger") == 0)
			pass_lingering(link);
		else
			(void)shutdown(socket_of(link), SHUT_RDWR);
		return interposed_real->put(link, put);
	}
	if (strcmp(lie, "now") == 0)
		return put_instead(link, put);
	if (strcmp(lie, "twice") != 0 && strcmp(lie, "flood") != 0)
		return put_bent(link, put);
	for (int i = strcmp(lie, "twice") == 0 ? FLOOD - 2 : 0; i < FLOOD && rc >= 0; i++)
		rc = interposed_real->put(link, put);
	return 1;
}

/* The other end has counted on more than what a link of such lanes has. */
static void bend_lanes(struct mst_lanes *lanes)
{
	if (strcmp(lie, "up_bytes") == 0)
		lanes->up_bytes /= 2;
	else if (strcmp(lie, "down_bytes") == 0)
		lanes->down_bytes /= 2;
	else if (strcmp(lie, "up_credits") == 0)
		lanes->up_credits /= 2;
	else
		lanes->down_credits /= 2;
}

/* As one does over RDMA that has gigabytes to register. */
static int lie_answer(struct mst_link_listener *at, const struct mst_link_request *request,
		      struct mst_link **out, struct mst_reason *why)
{
	if (strcmp(kind, "link") == 0 && is_the_one())
		mst_sleep_ns(9 * MST_SECOND);
	return interposed_real->listener->answer(at, request, out, why);
}

static int lie_dial(struct mst_net *net, const struct mst_dial *how, struct mst_link **out,
		    struct mst_reason *why)
{
	struct mst_dial bent = *how;

	if (strcmp(kind, "dial") == 0 && is_the_one())
		bend_lanes(&bent.lanes);
	int rc = interposed_dial(net, &bent, out, why);

	if (rc != 0)
		return rc;
	MST_ASSERT(dialled_count < LINKS_MAX);
	(void)snprintf(listener[dialled_count], sizeof(listener[0]), "%s", how->address);
	dialled[dialled_count++] = *out;
	return 0;
}

static int lie_attach(struct mst_net *net, struct mst_link *link, struct mst_reason *why)
{
	link->ops = &interposed_ours;
	return interposed_real->attach(net, link, why);
}

/* ---- on the control connection ---- */

#define STATE_MAX ((size_t)128 << 10)

static void bend_message(struct mst_message *m, uint64_t elems)
{
	static const char zeros[STATE_MAX];

	if (strcmp(lie, "offset") == 0) {
		m->state.offset += 4;
		m->state.length -= 4;
	} else if (strcmp(lie, "total") == 0) {
		m->state.total += 4;
	} else if (strcmp(lie, "nan") == 0) {
		static float state[STATE_MAX / sizeof(float)];
		MST_ASSERT(m->state.length <= sizeof(state));
		memcpy(state, m->state.data, m->state.length);
		state[m->state.length / sizeof(float) - 1] = NAN;
		m->state.data = state;
	} else if (strcmp(lie, "gap") == 0) {
		m->piece.at++;
	} else if (strcmp(lie, "other") == 0) {
		m->piece.row[0].lr_scale += 1;
	} else if (strcmp(lie, "border") == 0) {
		m->piece.row[0].count++;
		m->piece.row[1].count--;
	} else if (strcmp(lie, "name") == 0) {
		m->piece.row[0].name[0]++;
	} else if (strcmp(lie, "table") == 0) {
		m->kind = MST_MSG_TENSORS;
		m->piece = (struct mst_tensor_piece){ 0, 1, 1, { { "", elems, 1, 1 } } };
	} else if (strcmp(lie, "split") == 0) {
		m->state.length--;
	} else if (strcmp(lie, "alien") == 0) {
		m->kind = MST_MSG_SEND_STATE; /* which only a server says */
		m->wanted = (struct mst_wanted){ .tensors = 1, .state = 1 };
	} else {
		uint32_t bytes = (uint32_t)(elems * sizeof(float));
		MST_ASSERT(bytes <= sizeof(zeros));
		m->kind = MST_MSG_STATE;
		m->state = (struct mst_state_piece){ 0, bytes, bytes, zeros };
	}
}

int64_t __wrap_mst_message_encode(const struct mst_message *msg, void *buffer, size_t room)
{
	static struct mst_message bent; /* there is one connection, and it has a lock */
	static uint64_t elems;

	if (msg->kind == MST_MSG_HELLO)
		elems = msg->hello.elems;
	if (!(msg->kind == MST_MSG_STATE && strcmp(kind, "state") == 0) &&
	    !(msg->kind == MST_MSG_TENSORS && strcmp(kind, "tensors") == 0) &&
	    !(msg->kind == MST_MSG_HEARTBEAT && strcmp(kind, "heartbeat") == 0))
		return __real_mst_message_encode(msg, buffer, room);
	bent = *msg;
	if (is_the_one())
		bend_message(&bent, elems);
	return __real_mst_message_encode(&bent, buffer, room);
}

bool interpose(struct mst_transport *ours, struct mst_link_listener_ops *listeners)
{
	listeners->answer = lie_answer;
	ours->dial = lie_dial;
	ours->attach = lie_attach;
	ours->put = lie_put;
	return true;
}
