/* SPDX-License-Identifier: MIT */
/*
 * Links over shared memory, between processes of one host or threads of one process.
 *
 *   memory of a link, made by its connector:   control | up landing | down landing
 *   memory of a net, made by its owner:        published | board
 *
 * Each is one memfd, mapped whole by both ends. A link's is writable at both; a net's only by the
 * net itself, which seals it against further writers before anybody sees it. The descriptors travel
 * over an abstract UNIX socket and are closed once mapped, so nothing is left in the file system.
 * The socket stays open and silent: its end is how a peer's death is noticed.
 *
 * The bells. A sleeper raises an `asleep` flag that the peer can see, and whoever puts something
 * rings only then. Both bells of a link are eventfds made by the acceptor, each watched
 * edge-triggered and never read. The connector gets the `up` bell itself, to write to: it could
 * clear O_NONBLOCK or fill the counter, so the acceptor neither reads nor writes that one. The
 * `down` bell never leaves the acceptor; what the connector gets is an epoll descriptor that
 * watches it, through which one can listen but not write. So no peer can make the acceptor block.
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
		       struct mst_shm_memory **out);

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

/* ---- parcel.c: what is said over the socket ---- */

#define MST_SHM_MAGIC 0x6d68736du
#define MST_SHM_VERSION 1u

struct mst_shm_hello { /* with the link's memory */
	uint32_t magic, version;
	uint8_t token[MST_TOKEN_LEN];
	uint64_t up_bytes, down_bytes;
	uint32_t up_credits, down_credits;
};

struct mst_shm_welcome { /* with the net's memory, the up bell, an ear for the down bell */
	uint32_t magic, version;
	int32_t error; /* negative errno: sent away, and no descriptors */
	uint32_t flags;
	uint64_t published_bytes;
};
#define MST_SHM_WELCOME_HUGE 1u /* large memory is to be had in huge pages */
enum { MST_SHM_FD_NET, MST_SHM_FD_UP_BELL, MST_SHM_FD_DOWN_EAR, MST_SHM_WELCOME_FDS };

#define MST_SHM_PARCEL_FDS 4 /* more than any message has, so that one too many is seen */

struct mst_shm_parcel {
	void *body;
	size_t bytes;
	int fd[MST_SHM_PARCEL_FDS];
	unsigned fd_count;
};

/* Neither blocks. 0; -EAGAIN; -EPIPE the peer has closed; other errno of the socket's. */
int mst_shm_send(int socket, const struct mst_shm_parcel *p);
/* Also -EPROTO: not exactly p->bytes, or too many descriptors. On failure none is left open. */
int mst_shm_receive(int socket, struct mst_shm_parcel *p);
void mst_shm_parcel_close(struct mst_shm_parcel *p);

/* Is the process at the other end this one? The kernel says so. */
bool mst_shm_own_process(int socket);
void mst_shm_close(int *fd); /* and makes it -1; -1 is fine */

/* ---- link.c: one end of a session ---- */

#define MST_SHM_CREDITS_MAX (1u << 20)

struct mst_shm_control { /* at the head of a link's memory; the slots of both rings follow */
	struct mst_shm_ring_words up, down;
	alignas(64) _Atomic uint32_t asleep; /* the connector's */
};

struct mst_shm_layout {
	size_t up_slots, down_slots, up_landing, down_landing, bytes;
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
	_Atomic uint32_t *own_asleep;        /* connector: where this end says so; else NULL */
	int socket;
	int ear;  /* polls readable when the peer has rung */
	int bell; /* rings the peer */
	struct mst_shm_memory *memory;
	struct mst_shm_memory *peer_net; /* connector: the acceptor's published memory and board */
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
bool mst_shm_link_stirs(const struct mst_shm_link *l);
void mst_shm_link_close_fds(struct mst_shm_link *l);

/* ---- net.c: the poller; door.c, dial.c: how links begin ---- */

struct mst_shm_board { /* the page after the published memory */
	_Atomic uint32_t asleep;
};

struct mst_shm_net {
	struct mst_net net;
	struct mst_net_cfg cfg;
	bool huge_pages;
	struct mst_spin spin;
	struct mst_shm_memory *memory;
	struct mst_shm_board *board;
	int epoll;            /* the ears and sockets of all links, and */
	int bell;             /* an eventfd that wake() rings */
	_Atomic bool woken;   /* since the last wait */
	uint32_t polls;       /* counted, to look at the sockets now and then */
	uint64_t listened_ns; /* when that was last done */
	uint32_t first;       /* link that the next poll begins with */
	uint32_t link_count;
	struct mst_shm_link *links[]; /* cfg.links_max */
};

/* The board of a net with so much published memory. */
struct mst_shm_board *mst_shm_board(const struct mst_shm_memory *m, size_t published_bytes);
int mst_shm_attach(struct mst_net *net, struct mst_link *link);
/* The link's descriptors are not listened to any more. */
void mst_shm_net_ignore(struct mst_shm_net *net, const struct mst_shm_link *l);

extern const struct mst_door_ops mst_shm_door;
/* "@name" as a socket address. -EINVAL: not that. */
int mst_shm_address(const char *address, struct sockaddr_un *out, socklen_t *len);
int mst_shm_dial(struct mst_net *net, const struct mst_dial *dial, struct mst_link **out);

#endif
