/* SPDX-License-Identifier: MIT */
/*
 * Links over TCP, for hosts between which there is no RDMA.
 *
 *   net's thread                    io: the net's thread, or one of its own     peer
 *   queue of puts --- writes --->   out: headers and sources, sendmsg  ------>  in
 *                 <-- completed --
 *   poll()        <-- arrivals ---  in: checked, received into place   <------  out
 *                 <-- the end ----
 *
 * A link has one connection, which carries frames both ways (frame.h). The thread that calls recv()
 * copies: so nothing over TCP is one-sided, and who receives is a choice. Each link belongs to one
 * `io`, which alone touches its connection and its inbound region. With 0 I/O threads that is the
 * net's own thread, inside poll() and wait(); with several, threads of the net. The only thread of
 * a net shares its io with the net's own: that one does the work while it polls or waits, so that a
 * small put takes no other thread, and the io's thread does while that one computes. Either way
 * what an io and the net's thread tell each other goes through rings, which have their size when
 * the link is made.
 *
 * All bytes of a connection, from the hello on, go through mst_tcp_send() and mst_tcp_receive():
 * plain, or through a channel (common/transport/channel.h), which encrypts them.
 *
 * Order and credits are those of the queue of puts (common/transport/queue.h), over one rail. The
 * credit word is a frame of its own kind, and no part of the inbound region.
 */
#ifndef MST_TRANSPORT_TCP_TCP_H
#define MST_TRANSPORT_TCP_TCP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/base/spsc.h"
#include "common/transport/endpoint.h"
#include "common/transport/queue.h"
#include "common/transport/spin.h"
#include "common/transport/tcp/frame.h"
#include "common/transport/transport.h"

#define MST_TCP_PAGE ((size_t)4096)
/* A put is cut into frames of this. Frames of 128 KiB cost 1.2 to 1.6 times the CPU. */
#define MST_TCP_MESSAGE ((size_t)1 << 20)

/* ---- memory.c ---- */

struct mst_tcp_memory {
	uint8_t *base;
	size_t bytes;
};

static inline size_t mst_tcp_round(size_t bytes)
{
	return (bytes + MST_TCP_PAGE - 1) / MST_TCP_PAGE * MST_TCP_PAGE;
}

/* Zeroed, a page at least. @viewed: there can be views of it; then children do not have it. 0, or
 * -ENOMEM, -EFBIG with a sentence. */
int mst_tcp_memory_new(size_t bytes, bool viewed, struct mst_tcp_memory *out,
		       struct mst_reason *why);
void mst_tcp_memory_free(struct mst_tcp_memory *m); /* of zeroed, too */

/* ---- socket.c: the bytes of a connection ---- */

struct mst_tcp_link;

struct mst_tcp_conn {
	int fd;                                /* -1: there is none */
	const struct mst_channel_ops *channel; /* NULL: its bytes are plain */
	struct mst_stream *stream;             /* of a channel; the descriptor is its own */
};

#define MST_TCP_NO_CONN                                                                            \
	(struct mst_tcp_conn)                                                                      \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* Does not block, and raises no signal. Bytes that the kernel has; -EAGAIN, or another -errno.
 * Where it took fewer, the next call has to begin with the rest, and not have fewer. */
ssize_t mst_tcp_send(struct mst_tcp_conn *c, struct iovec *from, uint32_t count);
/* Bytes received; 0: the peer has ended the connection; -EAGAIN, or another -errno. Where there is
 * room left, and not mst_tcp_holds(), the descriptor tells of what comes later. */
ssize_t mst_tcp_receive(struct mst_tcp_conn *c, struct iovec *to, uint32_t count);
/* Has it more than its descriptor knows of? */
bool mst_tcp_holds(const struct mst_tcp_conn *c);
/* What is known beyond the error of receive(), a sentence; or NULL. Valid while it is there. */
const char *mst_tcp_why(const struct mst_tcp_conn *c);
/* From now on there is none. In a child of fork() parent and peer notice nothing of it. */
void mst_tcp_hang_up(struct mst_tcp_conn *c);
/* The same, also where a child of fork() has the descriptor still. */
void mst_tcp_cut(struct mst_tcp_conn *c);
/* Small frames go at once, and what waits, waits in the queue: of a kernel that refuses there is
 * nothing to fear. */
void mst_tcp_socket_prepare(int fd);
/* The kernel takes no more while it holds so many bytes that it has not sent. What waits then waits
 * in the queue of puts, where a small put passes it. A kernel that refuses only holds more. */
void mst_tcp_socket_hold(int fd, uint32_t bytes);
#define MST_TCP_HELD_MIN (UINT32_C(256) << 10)
#define MST_TCP_HELD_MAX (UINT32_C(1) << 30)
/* The descriptor tells of bytes once there are so many, or the window is full, or no more come. It
 * tells at once if there are. 0; -errno: nothing has changed. */
int mst_tcp_socket_wake_at(int fd, uint32_t bytes);
/* Makes it repeat what is not acknowledged often enough for a peer that counts as dead after
 * @dead_ns, where it can be told. */
void mst_tcp_socket_hasten(int fd, uint64_t dead_ns);
/* Has the kernel got acknowledgements for all that it was given? */
bool mst_tcp_socket_is_empty(int fd);

/* ---- held.c: how much of a connection its kernel holds ---- */

/* Tells it how much to hold unsent at most, by the rate that it has measured of late. @held_bytes:
 * as it was told before; 0: it was not. To be called each mst_tcp_look_ns(). */
void mst_tcp_held_adjust(uint32_t *held_bytes, int fd);

/* ---- pulse.c: is the host at the other end alive? ---- */

struct mst_tcp_pulse {
	uint64_t asked_ns;  /* 0: nothing is unanswered */
	uint64_t looked_ns; /* last; 0: not yet */
};

enum mst_tcp_life {
	MST_TCP_HEARD, /* of late */
	MST_TCP_QUIET, /* nothing was asked, and nothing heard: it is to be asked */
	MST_TCP_ASKED, /* the answer is not here */
	MST_TCP_DEAD,  /* for too long */
};

/* Looks at the connection at @now_ns. To be called each mst_tcp_look_ns(). */
enum mst_tcp_life mst_tcp_pulse_look(struct mst_tcp_pulse *p, int fd, uint64_t now_ns,
				     uint64_t dead_ns);

static inline uint64_t mst_tcp_look_ns(uint64_t dead_ns)
{
	return dead_ns / 8;
}

/* ---- in.c: what the peer sends ---- */

/* What is read beyond a payload: headers, and payloads that are small. */
#define MST_TCP_STASH_BYTES 8192u
/* Payloads of so many bytes are stored in whole words, once all of them are here. */
#define MST_TCP_SMALL_BYTES 64u

struct mst_tcp_in {
	struct mst_tcp_bounds bounds;
	uint8_t stash[MST_TCP_STASH_BYTES];
	size_t at, end; /* of the stash: bytes that are not taken yet */
	bool open;      /* a payload is being received: */
	struct mst_tcp_frame frame;
	size_t done;
	uint32_t wake_at;  /* bytes that the kernel tells of, at least; 0: of each */
	uint64_t arrived;  /* immediates of the peer */
	uint64_t credited; /* immediates of this end that the peer has polled, as it says */
};

/* Receives what there is, of a bounded length. 0: nothing more for now; 1: there may be more;
 * -errno: the link has ended, and link.why tells why. */
int mst_tcp_in_step(struct mst_tcp_link *l);
/* Receives what there is, and drops it. Return: the peer can still send. */
bool mst_tcp_in_discard(struct mst_tcp_link *l);

/* ---- out.c: puts on their way ---- */

#define MST_TCP_BATCH 16u /* frames that are composed at a time, and one for an urgent word */
#define MST_TCP_PARTS (2u * MST_TCP_BATCH + 1u)
/* Writes that may be handed to the io, and are not with the kernel yet. */
#define MST_TCP_SENDS MST_QUEUE_SENDS_MIN

/* To the io. */
struct mst_tcp_write {
	struct mst_tcp_frame frame;
	const uint8_t *src;
	uint64_t number;
	bool report;
	uint8_t small[MST_TCP_SMALL_BYTES]; /* the payload, if it is small */
};

struct mst_tcp_out {
	uint8_t head[MST_TCP_BATCH + 1u][MST_TCP_FRAME_BYTES + MST_TCP_SMALL_BYTES];
	struct iovec part[MST_TCP_PARTS];
	uint64_t number[MST_TCP_PARTS]; /* of the write that ends with this part; 0: none does */
	bool report[MST_TCP_PARTS];
	uint32_t at, count; /* parts: sent, and composed */
	uint64_t notified;  /* immediates of this end */
	uint64_t told;      /* immediates of the peer that were polled, as the last credit says */
	uint64_t urged;     /* urgent puts of which the word is composed */
};

extern const struct mst_queue_ops mst_tcp_queue;

/* Sends what is waiting, as far as the kernel takes it, of a bounded length. 0: nothing more for
 * now; 1: there may be more; -errno: the connection takes nothing any more. */
int mst_tcp_out_step(struct mst_tcp_link *l);
/* Is nothing composed that the kernel does not have? */
static inline bool mst_tcp_out_is_idle(const struct mst_tcp_out *out)
{
	return out->at == out->count;
}
/* Adds a frame that asks the peer's kernel for an acknowledgement. Only while it is idle. */
void mst_tcp_out_ask(struct mst_tcp_out *out);
/* The net's thread: an urgent put. It passes what the kernel does not have, but for a frame that is
 * begun. 1; -EINVAL; -EPIPE. */
int mst_tcp_out_urge(struct mst_tcp_link *l, const struct mst_put *put);
/* Is an urgent word waiting to be composed? */
bool mst_tcp_out_is_urged(const struct mst_tcp_link *l);

/* ---- io.c: who receives and sends ---- */

struct mst_tcp_net;

struct mst_tcp_io {
	struct mst_tcp_net *net;
	int epoll;     /* watches the links, and notify_fd */
	int notify_fd; /* an eventfd that ends a sleep */
	bool own;      /* the net's thread takes the steps */
	bool shared;   /* whoever has time does: the net's thread while it polls, else the io's */
	bool started;
	pthread_t thread;
	/* A step holds `work`. A thread that wants it next waits at `turn`, so that the steps of a
	 * busy thread leave room between them. Not used where it is the net's own. */
	pthread_mutex_t turn, work;
	_Atomic bool stop, asleep;
	_Atomic bool on_standby; /* asleep while the net's thread does the work */
	_Atomic bool parked;     /* on standby until the net's thread unparks it */
	bool may_park;           /* the net's thread has not polled since the last look */
	_Atomic uint32_t wanted; /* by threads that wait for a step to end */
	uint32_t first;          /* link that the next step begins with, modulo their number */
	_Atomic bool called;     /* there is something to send */
	bool news;               /* for the net's thread */
	uint64_t polls;          /* that the net had counted when the io's thread looked last */
	uint64_t standby_ns;     /* how long the io's thread stands by before it looks again */
	uint64_t keep_until_ns;  /* until then the io's thread keeps the work, whoever polls */
	uint64_t looked_ns;      /* when it was last looked whether peers are alive */
	uint32_t link_count;
	struct mst_tcp_link **links;
};

/* 0, or an error with a sentence. */
int mst_tcp_io_open(struct mst_tcp_io *io, struct mst_tcp_net *net, bool own,
		    struct mst_reason *why);
void mst_tcp_io_close(struct mst_tcp_io *io); /* of zeroed, too; there are no links */
/* In a child of fork(): closes what it has inherited; from now on there are no links and no
 * thread. */
void mst_tcp_io_disown(struct mst_tcp_io *io);
/* From now on the io has the link. 0 or -errno. */
int mst_tcp_io_add(struct mst_tcp_io *io, struct mst_tcp_link *l);
/* From now on it does not touch the link any more. */
void mst_tcp_io_remove(struct mst_tcp_io *io, struct mst_tcp_link *l);
/* Net's thread: the link has something to send. */
void mst_tcp_io_call(struct mst_tcp_io *io, struct mst_tcp_link *l);
/* Net's thread: a step of its own, or of a shared one that is not in a step just now; of others
 * nothing, and nothing of a shared one that is (net->io_busy). Return: there is more to do at
 * once. */
bool mst_tcp_io_step(struct mst_tcp_io *io);
/* Net's thread: what has come for the link is taken in now. May wait for a step to end. */
void mst_tcp_io_catch_up(struct mst_tcp_io *io, struct mst_tcp_link *l);
/* Net's thread: its last step has left something to do, and it may not come again soon. */
void mst_tcp_io_pass_on(struct mst_tcp_io *io);
/* Net's thread: a wait is over in which the io's thread may have parked. */
void mst_tcp_io_unpark(struct mst_tcp_io *io);
/* Net's thread: from now on it neither polls nor waits for a while. */
void mst_tcp_io_leave(struct mst_tcp_io *io);
void mst_tcp_io_notify(const struct mst_tcp_io *io);
/* An io without links has been notified, and that has been noticed. */
void mst_tcp_io_clear_notice(const struct mst_tcp_io *io);

/* ---- link.c: one end of a session ---- */

struct mst_tcp_link {
	struct mst_link link;

	/* The net's thread: */
	struct mst_tcp_net *net; /* it is attached to */
	uint32_t index;          /* in net->links */
	struct mst_queue queue;
	size_t composed_bytes; /* in writes that the io has not been told of */
	bool composed_any;     /* there are such writes */
	struct mst_tcp_io *io; /* that has it; NULL: the net's thread does what an io would */

	/* The io: */
	struct mst_tcp_conn conn;
	uint32_t place; /* in io->links */
	bool readable, writable, hung_up, ended;
	bool io_news; /* for the net's thread */
	int broken;   /* what sending has failed with; the end is known once all is received */
	struct mst_tcp_pulse pulse;
	uint32_t held_bytes; /* unsent, at most, as the kernel was told; 0: it was not */
	struct mst_tcp_in in;
	struct mst_tcp_out out;

	/* Between the two: */
	struct mst_spsc *writes;   /* to the io */
	struct mst_spsc *arrivals; /* immediates, to the net's thread */
	_Atomic uint64_t sent;     /* number of the last write that the kernel has */
	_Atomic int end;           /* 0, or what has ended it; link.why is written before */
	_Atomic uint64_t in_word, out_word; /* credits, see queue.h */
	_Atomic uint64_t urgent, urges;     /* the last urgent word, and how many there were */
	uint64_t urgent_at; /* its place, which never changes; set before the first */

	char peer[MST_ENDPOINT_TEXT_LEN]; /* for sentences */
	bool connector, views;
	struct mst_tcp_memory inbound, outbound;
	struct mst_export export;   /* connector: what of the inbound region lies elsewhere */
	struct mst_region composed; /* the outbound region; in no domain: it is this link's own */
};

/* What an end is to be. */
struct mst_tcp_link_cfg {
	bool connector;
	struct mst_lanes lanes;
	struct mst_export export; /* connector: its own */
	uint64_t at, bytes;       /* acceptor: of the peer's, as the hello tells */
	const struct sockaddr *peer;
};

/* An end without its connection. 0, or -ENOMEM with a sentence. */
int mst_tcp_link_new(struct mst_tcp_net *net, const struct mst_tcp_link_cfg *cfg,
		     struct mst_tcp_link **out, struct mst_reason *why);
/* As transport.h has them. */
void mst_tcp_link_free(struct mst_link *link);
int mst_tcp_link_view(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes,
		      void *at);

/* The io: one step of the link. Return: there is more to do at once. */
bool mst_tcp_link_step(struct mst_tcp_link *l);
/* The io: sends what is waiting. Return: there is more to do at once. */
bool mst_tcp_link_send(struct mst_tcp_link *l);
/* The io: looks whether the peer's host answers, and how fast it takes what is sent. */
void mst_tcp_link_look(struct mst_tcp_link *l, uint64_t now_ns);

/* The net's thread: takes in what the io has told, of a LIVE link. */
void mst_tcp_link_gather(struct mst_tcp_link *l);
/* The net's thread: takes that in, and makes events of it, @max at most. Return: how many. */
int mst_tcp_link_poll(struct mst_tcp_link *l, struct mst_net_event *ev, int max);
/* Before it is detached, and when no io has it any more: what was put goes out, for a short while,
 * and what comes is dropped. */
void mst_tcp_link_linger(struct mst_tcp_link *l);

/* ---- sockets.c: those of a listener ---- */

/* At loopback all callers are of this host, as over shared memory. */
static inline bool mst_tcp_is_near(const struct mst_fabric *fabric)
{
	return fabric->addresses == NULL && fabric->loopback;
}

/* Listens at all addresses that @fabric has, at one port; @told: what connectors dial. What @held
 * has is taken from there; NULL: nothing is. The sockets in @out are the caller's, also after a
 * failure. 0; -errno, with a sentence. */
int mst_tcp_sockets_open(const struct mst_fabric *fabric, const struct mst_ports *held,
			 struct mst_ports *out, struct mst_endpoints *told, struct mst_reason *why);

/* ---- port.c: where callers of a listener come ---- */

struct mst_tcp_port {
	struct mst_tcp_net *net;
	int epoll; /* of the sockets, and of what the owner adds */
	struct mst_ports sockets;
	struct mst_listener *secure; /* of channels, which has the sockets then; NULL: plain */
	uint8_t refusal[MST_TCP_ANSWER_BYTES];
};

/* Listens where the fabric of the net says. @address: what callers dial. To be closed on failure,
 * too. 0, or an error with a sentence. */
int mst_tcp_port_open(struct mst_tcp_port *port, struct mst_tcp_net *net,
		      char address[MST_ADDRESS_LEN], struct mst_reason *why);
void mst_tcp_port_close(struct mst_tcp_port *port);
/* Callers wait in so many queues: one for each socket, or one for all that have proven who they
 * are. */
uint32_t mst_tcp_port_queues(const struct mst_tcp_port *port);
/* Takes the next caller of a queue. Never blocks. 0; 1: it has gone, and there may be others;
 * -EAGAIN: nobody; -EMFILE and the like: it waits, but cannot be taken. */
int mst_tcp_port_take(struct mst_tcp_port *port, uint32_t queue, struct mst_tcp_conn *out,
		      union mst_endpoint *at);

/* ---- net.c, dial.c, listener.c ---- */

struct mst_tcp_net {
	struct mst_net net;
	struct mst_net_cfg cfg;
	struct mst_spin spin;
	struct mst_fabric fabric;
	struct mst_tcp_memory published;
	struct mst_region versions; /* the same, as what it is sent from */
	_Atomic bool woken, asleep;
	_Atomic bool waits; /* asleep, and what comes for a shared io ends that */
	bool io_busy;       /* the io was in a step, when this thread would have taken one */
	_Atomic uint64_t polls;
	uint32_t io_count;     /* 1, and one for each thread */
	struct mst_tcp_io *io; /* the first is the net's own; it has links if there is no other */
	bool more;             /* the own io has something to do at once */
	uint32_t first;        /* link that the next poll begins with */
	uint32_t link_count;
	struct mst_tcp_link *links[]; /* cfg.links_max */
};

/* Ends the present or the next wait, as transport.h has it. */
void mst_tcp_net_wake(struct mst_net *net);
/* Wakes the net's thread if it sleeps. Any thread. */
void mst_tcp_net_notify(struct mst_tcp_net *net);
/* As transport.h has them. */
int mst_tcp_attach(struct mst_net *net, struct mst_link *link, struct mst_reason *why);
int mst_tcp_dial(struct mst_net *net, const struct mst_dial *dial, struct mst_link **out,
		 struct mst_reason *why);

extern const struct mst_link_listener_ops mst_tcp_listener;
/* That a listener has at most, with its callers and with those of a port that is held. */
uint32_t mst_tcp_listener_descriptors(const struct mst_fabric *fabric);

#endif
