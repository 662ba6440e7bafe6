/* SPDX-License-Identifier: MIT */
/*
 * Dials a link: the connector makes the memory, shows it with its token, and maps what the acceptor
 * publishes.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/host/descriptors.h"
#include "common/transport/shm/shm.h"

#define LOOK_MS 50 /* between two looks whether the link is wanted */

static uint64_t left_ns(uint64_t deadline_ns)
{
	uint64_t now = mst_now_ns();

	return deadline_ns > now ? deadline_ns - now : 0;
}

/* A full queue at the listener makes connect() wait; SO_SNDTIMEO bounds that. */
static int connect_until(int socket, const struct sockaddr_un *at, socklen_t len,
			 uint64_t deadline_ns)
{
	int rc;

	do {
		uint64_t left_us = left_ns(deadline_ns) / 1000 + 1; /* 0 would be for ever */
		struct timeval tv = { (time_t)(left_us / 1000000),
				      (suseconds_t)(left_us % 1000000) };
		setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
		rc = connect(socket, (const struct sockaddr *)at, len);
	} while (rc < 0 && errno == EINTR && left_ns(deadline_ns) > 0);
	return rc == 0 ? 0 : -errno;
}

/* What connect() has said. Where the directory is not to be seen there is no server either. */
static int no_listener(const struct mst_dial *dial, int error, struct mst_reason *why)
{
	switch (error) {
	case -EAGAIN:
	case -EINTR:
		return -ETIMEDOUT;
	case -ENOENT:
	case -ENOTDIR:
		return -ECONNREFUSED;
	case -EACCES:
		return mst_reason_fail(
			why, error,
			"uid %u may not open %.150s: run this process as the server's "
			"user, or the server with --shm-group and a group that this "
			"process is in",
			(unsigned)geteuid(), dial->address);
	default:
		return error;
	}
}

/* Makes the link's memory, goes to the listener and says the hello. */
static int request(struct mst_shm_link *l, const struct mst_dial *dial, uint64_t deadline_ns,
		   struct mst_reason *why)
{
	struct mst_shm_layout layout;
	struct sockaddr_un at;
	socklen_t len;
	int rc = mst_shm_address(dial->address, &at, &len);

	if (rc == 0)
		rc = mst_shm_layout(&dial->lanes, &layout);
	if (rc == 0)
		rc = mst_shm_memory_new(layout.bytes, MST_SHM_WRITABLE, false, &l->memory, why);
	if (rc < 0)
		return rc;
	mst_shm_link_arrange(l, MST_SHM_CONNECTOR, &dial->lanes);
	l->socket = mst_descriptor_lift(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	if (l->socket < 0)
		return -errno;
	rc = connect_until(l->socket, &at, len, deadline_ns);
	if (rc < 0)
		return no_listener(dial, rc, why);
	struct mst_shm_hello hello = { .magic = MST_SHM_MAGIC,
				       .version = MST_SHM_VERSION,
				       .up_bytes = dial->lanes.up_bytes,
				       .down_bytes = dial->lanes.down_bytes,
				       .up_credits = dial->lanes.up_credits,
				       .down_credits = dial->lanes.down_credits };
	memcpy(hello.token, dial->token, sizeof(hello.token));
	struct mst_shm_fd_message p = { .body = &hello, .bytes = sizeof(hello), .fd_count = 1 };
	p.fd[0] = l->memory->fd;
	rc = mst_shm_send(l->socket, &p);
	mst_shm_memory_close_fd(l->memory);
	return rc;
}

static bool is_unwanted(const struct mst_dial *dial)
{
	return dial->unwanted != NULL && dial->unwanted(dial->ctx);
}

/* Waits for the acceptor's answer. */
static int await(int socket, const struct mst_dial *dial, uint64_t deadline_ns,
		 struct mst_shm_fd_message *p)
{
	struct pollfd pfd = { .fd = socket, .events = POLLIN };
	uint64_t left = left_ns(deadline_ns);
	int rc = -EAGAIN;

	while (rc == -EAGAIN && left > 0) { /* nothing has come with -EAGAIN */
		uint64_t ms = left / MST_MS + 1;
		if (is_unwanted(dial))
			return -ECANCELED;
		poll(&pfd, 1, ms < LOOK_MS ? (int)ms : LOOK_MS);
		rc = mst_shm_receive(socket, p);
		left = left_ns(deadline_ns);
	}
	if (rc == -EAGAIN)
		return -ETIMEDOUT;
	/* A listener that closes without a word is nobody there. */
	return rc == -EPIPE || rc == -ECONNRESET ? -ECONNREFUSED : rc;
}

/* Maps what the acceptor's net publishes, and its shared flags. */
static int settle(struct mst_shm_link *l, const struct mst_shm_welcome *w, int fd)
{
	if (w->published_bytes > MST_SHM_BYTES_MAX)
		return -EPROTO;
	struct mst_shm_mapping how = { .fd = fd,
				       .access = MST_SHM_READABLE,
				       .bytes = mst_shm_round(w->published_bytes) + MST_SHM_PAGE,
				       .own_process = mst_shm_own_process(l->socket) };
	int rc = mst_shm_memory_check(fd, how.bytes, how.access);
	if (rc == 0)
		rc = mst_shm_memory_map(&how, &l->peer_net);
	if (rc < 0)
		return rc;
	l->peer_asleep = &mst_shm_flags(l->peer_net, w->published_bytes)->asleep;
	l->link.shared = w->published_bytes > 0 ? l->peer_net->base : NULL;
	l->link.shared_bytes = w->published_bytes;
	l->link.huge_pages = w->flags & MST_SHM_WELCOME_HUGE;
	return 0;
}

/* 0: let in; else what is wrong with the answer, or why the caller was sent away. */
static int judge(const struct mst_shm_welcome *w, unsigned fd_count, struct mst_reason *why)
{
	if (w->magic != MST_SHM_MAGIC || w->version != MST_SHM_VERSION)
		return -EPROTONOSUPPORT;
	if (w->error == -EACCES)
		return mst_reason_fail(
			why, -EACCES,
			"it sent this end away: the token of the welcome is used up, or its "
			"session has ended (the server's log says more)");
	if (w->error == -EMFILE)
		return mst_reason_fail(why, w->error,
				       "the listener's process has no file descriptor free: raise "
				       "its limit (ulimit -n, LimitNOFILE= of a unit)");
	if (w->error < 0)
		return w->error;
	return fd_count == MST_SHM_WELCOME_FDS ? 0 : -EPROTO;
}

/* Reads the answer, and takes everything from it that the link needs. */
static int enter(struct mst_shm_link *l, const struct mst_dial *dial, uint64_t deadline_ns,
		 struct mst_reason *why)
{
	struct mst_shm_welcome welcome;
	struct mst_shm_fd_message p = { .body = &welcome, .bytes = sizeof(welcome) };
	int rc = await(l->socket, dial, deadline_ns, &p);

	if (rc == 0)
		rc = judge(&welcome, p.fd_count, why);
	if (rc == 0)
		rc = settle(l, &welcome, p.fd[MST_SHM_FD_NET]);
	if (rc < 0) {
		mst_shm_fd_message_close(&p);
		return rc;
	}
	mst_shm_close(&p.fd[MST_SHM_FD_NET]);
	l->notify_fd = p.fd[MST_SHM_FD_UP_NOTIFY_FD];
	l->wait_fd = p.fd[MST_SHM_FD_DOWN_WAIT_FD];
	return 0;
}

int mst_shm_reaches(const char *address, struct mst_reason *why)
{
	mst_reason_clear(why);
	if (access(address, W_OK) == 0)
		return 0;
	return mst_reason_fail(
		why, -ECONNREFUSED,
		"this process sees no listener %.110s (%s): it is on another host than "
		"the server, or in a container without that directory",
		address, strerror(errno));
}

int mst_shm_dial(struct mst_net *n, const struct mst_dial *dial, struct mst_link **out,
		 struct mst_reason *why)
{
	uint64_t now = mst_now_ns();
	uint64_t deadline_ns = dial->timeout_ns < MST_NEVER - now ? now + dial->timeout_ns
								  : MST_NEVER;
	const struct mst_shm_net *net = (const struct mst_shm_net *)n;

	mst_reason_clear(why);
	if (net->link_count == net->cfg.links_max) /* before anybody is asked */
		return -ENOSPC;
	if (dial->export.region != NULL)
		return mst_reason_fail(why, -ENOTSUP,
				       "over shared memory a peer writes to the memory of the "
				       "link only: copy from there");
	struct mst_shm_link *l = mst_shm_link_new();
	if (l == NULL)
		return -ENOMEM;
	int rc = request(l, dial, deadline_ns, why);
	if (rc == 0)
		rc = enter(l, dial, deadline_ns, why);
	if (rc == 0)
		rc = mst_shm_attach(n, &l->link, why);
	if (rc < 0) {
		mst_shm_link_free(&l->link);
		return rc;
	}
	*out = &l->link;
	return 0;
}
