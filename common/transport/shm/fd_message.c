/* SPDX-License-Identifier: MIT */
/*
 * One message with descriptors over the link's UNIX socket (SOCK_SEQPACKET: a message arrives whole
 * or not at all). The receiver trusts nothing: what is not exactly as expected is closed and
 * refused.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/host/descriptors.h"
#include "common/transport/shm/shm.h"

union ancillary {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int) * MST_SHM_FD_MESSAGE_FDS)];
};

int mst_shm_send(int socket, const struct mst_shm_fd_message *p)
{
	union ancillary anc = { 0 };
	struct iovec iov = { p->body, p->bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	MST_ASSERT(p->fd_count <= MST_SHM_FD_MESSAGE_FDS);
	if (p->fd_count > 0) {
		msg.msg_control = anc.room;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * p->fd_count);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * p->fd_count);
		memcpy(CMSG_DATA(c), p->fd, sizeof(int) * p->fd_count);
	}
	return sendmsg(socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Moves the descriptors of @msg into @p; those that do not fit were never received (MSG_CTRUNC).
 * Return: false: one could not be moved off the standard files. */
static bool collect_fds(struct msghdr *msg, struct mst_shm_fd_message *p)
{
	bool all = true;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		MST_ASSERT(p->fd_count + n <= MST_SHM_FD_MESSAGE_FDS);
		memcpy(&p->fd[p->fd_count], CMSG_DATA(c), n * sizeof(int));
		p->fd_count += (unsigned)n;
	}
	for (unsigned i = 0; i < p->fd_count; i++) {
		p->fd[i] = mst_descriptor_lift(p->fd[i]);
		all = all && p->fd[i] >= 0;
	}
	return all;
}

int mst_shm_receive(int socket, struct mst_shm_fd_message *p)
{
	union ancillary anc;
	struct iovec iov = { p->body, p->bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	msg.msg_control = anc.room;
	msg.msg_controllen = sizeof(anc.room);
	p->fd_count = 0;
	ssize_t n = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	bool all = collect_fds(&msg, p);
	if (n == 0)
		return -EPIPE;
	if ((size_t)n != p->bytes || (msg.msg_flags & MSG_TRUNC) != 0)
		return -EPROTO;
	if ((msg.msg_flags & MSG_CTRUNC) != 0)
		return p->fd_count == MST_SHM_FD_MESSAGE_FDS ? -EPROTO : -EMFILE;
	return all ? 0 : -EMFILE;
}

void mst_shm_fd_message_close(struct mst_shm_fd_message *p)
{
	while (p->fd_count > 0)
		mst_shm_close(&p->fd[--p->fd_count]);
}

bool mst_shm_own_process(int socket)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       peer.pid == getpid();
}

void mst_shm_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
