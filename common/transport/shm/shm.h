/* SPDX-License-Identifier: MIT */
/*
 * Links over shared memory, between processes of one host or threads of one process.
 *
 *   memory of a link, made by its connector:   control | up inbound region | down inbound region
 *   memory of a net, made by its owner:        published | shared flags
 *
 * Each is one memfd, mapped whole by both ends. A link's is writable at both; a net's only by the
 * net itself, which seals it against further writers before anybody sees it. The descriptors travel
 * over a UNIX socket, in a directory that keeps strangers out (directory.c), and are closed once
 * mapped: of a listener nothing else is in the file system.
 * The socket stays open and silent: its end is how a peer's death is noticed. What an acceptor gets
 * from its callers it has closed by a thread that may sleep (closer.c).
 *
 * The notify descriptors. A sleeper raises an `asleep` flag that the peer can see, and the peer
 * that puts something rings only then. Both notify descriptors of a link are eventfds made by the
 * acceptor, each watched edge-triggered and never read. The connector gets the `up` notify
 * descriptor itself, to write to: it could clear O_NONBLOCK or fill the counter, so the acceptor
 * neither reads nor writes that one. The `down` notify descriptor never leaves the acceptor; what
 * the connector gets is an epoll descriptor that watches it, through which one can listen but not
 * write. So no peer can make the acceptor block.
 *
 * Two ends in one process find that they hold the same memfd and share one mapping of it: both use
 * the same addresses, and the thread sanitizer sees what they do to each other.
 */
#ifndef MST_TRANSPORT_SHM_SHM_H
#define MST_TRANSPORT_SHM_SHM_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "common/transport/shm/ring.h"
#include "common/transport/spin.h"
#include "common/transport/transport.h"

static_assert(ATOMIC_INT_LOCK_FREE == 2 && sizeof(_Atomic uint32_t) == 4,
	      "words shared between processes must be plain words");

/* ---- memory.c: memfds, made, checked, mapped ---- */

struct mst_shm_memory {
	uint8_t *base;
	size_t bytes;
	int fd; /* of memory made here, until mst_shm_memory_close_fd(); else -1 */
	dev_t device;
	ino_t inode;
	unsigned refs;               /* under the lock of memory.c, as is */
	struct mst_shm_memory *next; /* the list of all memory of this process */
};

/* Sizes and offsets are multiples of this; more than any real lane is refused, so sums fit. */
#define MST_SHM_PAGE ((size_t)4096)
#define MST_SHM_BYTES_MAX ((size_t)1 << 44)

static inline size_t mst_shm_round(size_t bytes)
{
	return (bytes + MST_SHM_PAGE - 1) / MST_SHM_PAGE * MST_SHM_PAGE;
}

enum mst_shm_access {
	MST_SHM_WRITABLE, /* by all who hold the descriptor */
	MST_SHM_READABLE, /* writable in the mapping of its maker only */
};

/* Zeroed memory, mapped writable here, then sealed. @huge_pages: READABLE memory is had in them if
 * it can be; other is to be gathered where it is used. */
int mst_shm_memory_new(size_t bytes, enum mst_shm_access access, bool huge_pages,
		       struct mst_shm_memory **out, struct mst_reason *why);

/* Can @fd be mapped, and never fault or change its size, whatever its maker does? 0 or -EPROTO. */
int mst_shm_memory_check(int fd, size_t bytes, enum mst_shm_access access);

/* Maps memory that the check has passed; shares the mapping there is if the peer is of this
 * process. @fd stays the caller's. */
struct mst_shm_mapping {
	int fd;
	size_t bytes;
	enum mst_shm_access access;
	bool own_process;
};
int mst_shm_memory_map(const struct mst_shm_mapping *how, struct mst_shm_memory **out);

struct mst_shm_memory *mst_shm_memory_keep(struct mst_shm_memory *m);
void mst_shm_memory_drop(struct mst_shm_memory *m); /* accepts NULL */
void mst_shm_memory_close_fd(struct mst_shm_memory *m);

/* ---- fd_message.c: what is said over the socket ---- */

#define MST_SHM_MAGIC 0x6d68736du
#define MST_SHM_VERSION 1u

struct mst_shm_hello { /* with the link's memory */
	uint32_t magic, version;
	uint8_t token[MST_TOKEN_LEN];
	uint64_t up_bytes, down_bytes;
	uint32_t up_credits, down_credits;
};

/* With the net's memory, the descriptor that notifies `up`, and one to wait for `down` by. */
struct mst_shm_welcome {
	uint32_t magic, version;
	int32_t error; /* negative errno: sent away, and no descriptors */
	uint32_t flags;
	uint64_t published_bytes;
};
#define MST_SHM_WELCOME_HUGE 1u /* large memory is to be had in huge pages */
enum { MST_SHM_FD_NET, MST_SHM_FD_UP_NOTIFY_FD, MST_SHM_FD_DOWN_WAIT_FD, MST_SHM_WELCOME_FDS };

#define MST_SHM_FD_MESSAGE_FDS 4 /* more than any message has, so that one too many is seen */

struct mst_shm_fd_message {
	void *body;
	size_t bytes;
	int fd[MST_SHM_FD_MESSAGE_FDS];
	unsigned fd_count;
};

/* Neither blocks. 0; -EAGAIN; -EPIPE the peer has closed; other errno of the socket's. */
int mst_shm_send(int socket, const struct mst_shm_fd_message *p);
/* Also -EPROTO: not exactly p->bytes, or too many descriptors; -EMFILE: descriptors have come that
 * this process has no number left for. What has come is in p->fd and the caller's to close, on
 * failure too. */
int mst_shm_receive(int socket, struct mst_shm_fd_message *p);
void mst_shm_fd_message_close(struct mst_shm_fd_message *p);

/* Is the process at the other end this one? The kernel says so. */
bool mst_shm_own_process(int socket);
void mst_shm_close(int *fd); /* and makes it -1; -1 is fine */

/* ---- directory.c: where the sockets of listeners lie ---- */

#define MST_SHM_PATH_LEN sizeof(((struct sockaddr_un *)NULL)->sun_path) /* with its NUL */

/* A path as a socket address. -EINVAL: not that. */
int mst_shm_address(const char *path, struct sockaddr_un *out, socklen_t *len);
/* The directory, made if need be and found to keep out everybody but this user and @group, if that
 * is not -1; what killed servers have left in it is removed. 0, or -errno with a sentence. */
int mst_shm_directory(int64_t group, char out[MST_SHM_PATH_LEN], struct mst_reason *why);
/* Makes @socket listen there. @path: to be removed by the caller in the end. 0, or -errno, with a
 * sentence unless there are no random numbers. */
int mst_shm_listen(int socket, int64_t group, char path[MST_SHM_PATH_LEN], struct mst_reason *why);
/* Is the process at the other end this user's, or of the group? The file's mode should have seen to
 * it; this is for a mode that somebody has changed. */
bool mst_shm_may_call(int socket, int64_t group);

/* ---- closer.c: the thread that closes what callers have brought ---- */

/* While this number of callers wait to be closed, the listener lets nobody in. */
#define MST_SHM_UNCLOSED_MAX 256u

struct mst_shm_closer;

/* All of one caller that a close() may sleep over, and the memory that goes with it. */
struct mst_shm_foreign {
	int socket;
	struct mst_shm_fd_message passed; /* its descriptors only */
	struct mst_shm_memory *memory;    /* dropped, too; NULL: none */
	struct mst_shm_closer *closer;
	struct mst_shm_foreign *next;
};

/* Starts the thread. It ends by itself when there is no user any more and all is closed. 0 or
 * -errno. */
int mst_shm_closer_new(struct mst_shm_closer **out);
void mst_shm_closer_drop(struct mst_shm_closer *c); /* accepts NULL */
/* Has the closer so much to close that the listener should wait? */
bool mst_shm_closer_is_behind(struct mst_shm_closer *c);

/* Takes @socket, which may be -1, in charge. NULL: no memory, and it stays the caller's. */
struct mst_shm_foreign *mst_shm_foreign_new(struct mst_shm_closer *c, int socket);
/* Ends the connection at once, and has all of it closed later; frees @f. It neither blocks nor
 * fails. Accepts NULL. */
void mst_shm_foreign_close(struct mst_shm_foreign *f);

/* ---- link.c: one end of a session ---- */

#define MST_SHM_CREDITS_MAX (1u << 20)

struct mst_shm_control { /* at the head of a link's memory; the slots of both rings follow */
	struct mst_shm_ring_words up, down;
	alignas(64) _Atomic uint32_t asleep; /* the connector's */
};

struct mst_shm_layout {
	size_t up_slots, down_slots, up_inbound, down_inbound, bytes;
};

/* 0; -EINVAL: more than any real lane. */
int mst_shm_layout(const struct mst_lanes *lanes, struct mst_shm_layout *out);

enum mst_shm_state {
	MST_SHM_IDLE,   /* attached to no net: not yet, or no more */
	MST_SHM_LIVE,   /* attached */
	MST_SHM_ENDING, /* the peer is gone or broke the rules; poll() has not said so yet */
	MST_SHM_LOST,   /* it has: nothing comes from this link any more */
};

struct mst_shm_net;

struct mst_shm_link {
	struct mst_link link;
	enum mst_shm_state state;
	int error;               /* ENDING, LOST: why */
	struct mst_shm_net *net; /* LIVE, ENDING, LOST */
	uint32_t index;          /* in net->links */
	struct mst_shm_ring in, out;
	const _Atomic uint32_t *peer_asleep; /* ring if it is set */
	_Atomic uint32_t *own_asleep;        /* connector: set while this end sleeps; else NULL */
	int socket;                          /* watched for its end, and never read */
	struct mst_shm_foreign *foreign;     /* acceptor: in charge of the socket; else NULL */
	int wait_fd;                         /* polls readable when the peer has rung */
	int notify_fd;                       /* rings the peer */
	struct mst_shm_memory *memory;
	struct mst_shm_memory *peer_net; /* connector: the acceptor's published memory, flags */
};

enum mst_shm_side { MST_SHM_ACCEPTOR, MST_SHM_CONNECTOR };

/* An end with nothing in it yet; NULL: no memory. mst_shm_link_free() releases what it has. */
struct mst_shm_link *mst_shm_link_new(void);
void mst_shm_link_free(struct mst_link *link);
/* Sets the pointers of a link whose memory is mapped. */
void mst_shm_link_arrange(struct mst_shm_link *l, enum mst_shm_side side,
			  const struct mst_lanes *lanes);
int mst_shm_link_put(struct mst_link *link, const struct mst_put *put);
int mst_shm_link_view(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes,
		      void *at);
/* Up to @max events. */
int mst_shm_link_poll(struct mst_shm_link *l, struct mst_net_event *ev, int max);
/* Ends a LIVE link. -EPIPE: the peer is gone, what it put before still arrives. -EPROTO: it broke
 * the rules, and nothing more arrives. */
void mst_shm_link_end(struct mst_shm_link *l, int error);
/* May mst_shm_link_poll() have something? */
bool mst_shm_link_has_work(const struct mst_shm_link *l);
/* Ends the connection, and closes what is this end's own. */
void mst_shm_link_hang_up(struct mst_shm_link *l);
/* In a forked child: closes what it has inherited, and the parent's connection goes on. */
void mst_shm_link_disown(struct mst_shm_link *l);

/* ---- net.c: the poller; listener.c, dial.c: how links begin ---- */

struct mst_shm_flags { /* the page after the published memory */
	_Atomic uint32_t asleep;
};

struct mst_shm_net {
	struct mst_net net;
	struct mst_net_cfg cfg;
	bool huge_pages;
	int64_t group;
	struct mst_spin spin;
	struct mst_shm_memory *memory;
	struct mst_shm_flags *flags;
	int epoll;            /* the wait descriptors and sockets of all links, and */
	int notify_fd;        /* an eventfd that wake() rings */
	_Atomic bool woken;   /* since the last wait */
	uint32_t polls;       /* counted, to look at the sockets now and then */
	uint64_t listened_ns; /* when that was last done */
	uint32_t first;       /* link that the next poll begins with */
	uint32_t link_count;
	struct mst_shm_link *links[]; /* cfg.links_max */
};

/* The shared flags of a net that publishes @published_bytes. */
struct mst_shm_flags *mst_shm_flags(const struct mst_shm_memory *m, size_t published_bytes);
int mst_shm_attach(struct mst_net *net, struct mst_link *link, struct mst_reason *why);
/* The link's descriptors are not listened to any more. */
void mst_shm_net_ignore(struct mst_shm_net *net, const struct mst_shm_link *l);

extern const struct mst_link_listener_ops mst_shm_listener;
/* Descriptors that a listener has open, at most. */
uint32_t mst_shm_listener_descriptors(void);
int mst_shm_reaches(const char *address, struct mst_reason *why);
int mst_shm_dial(struct mst_net *net, const struct mst_dial *dial, struct mst_link **out,
		 struct mst_reason *why);

#endif
