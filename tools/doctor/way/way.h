/* SPDX-License-Identifier: MIT */
/*
 * The test of the way between two hosts by TCP, which needs neither RDMA nor root.
 *
 * The end that listens has two ports, as a server has: a control port, at which both ends talk in
 * lines of JSON, and a port for data, at which it is the peer of write tests (write.h) over
 * mst_tcp. With certificates it has another one, whose links are encrypted. The end that calls does
 * what a worker does: it connects to both. Then it asks the other end to do the same, so that a
 * firewall that lets calls in on one side alone is found.
 */
#ifndef MST_TOOLS_DOCTOR_WAY_WAY_H
#define MST_TOOLS_DOCTOR_WAY_WAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/transport/stream.h"
#include "common/transport/transport.h"
#include "tools/doctor/write.h"

#define MST_WAY_PORT 17077 /* of a server, unless it is told another */
#define MST_WAY_HOST_LEN 256u
#define MST_WAY_TEXT_LEN (MST_WAY_HOST_LEN + 16u)

/* ---- address.c: what is typed ---- */

/* "HOST", "HOST:PORT", "fd00::1", "[fd00::1]:PORT", "[fe80::1%eth0]", each also after "tcp:".
 * @out: HOST:PORT, with brackets where they are needed. Return: 0; -EINVAL with a sentence. */
int mst_way_address(const char *typed, char out[MST_WAY_TEXT_LEN], struct mst_reason *why);
/* HOST:PORT without its port and brackets. */
void mst_way_host(const char *address, char out[MST_WAY_HOST_LEN]);

/* ---- line.c: what both ends say ---- */

#define MST_WAY_LINE 4096u
#define MST_WAY_GREETING "muster doctor" /* a key of each end's first line; its value is */
#define MST_WAY_VERSION 2

struct mst_way_stream {
	const struct mst_stream_ops *ops;
	struct mst_stream *stream;
	const _Atomic bool *stop; /* NULL, or ends all waiting when it is set */
	uint64_t deadline_ns;
	char peer[MST_WAY_TEXT_LEN];
	char text[MST_WAY_LINE]; /* read, and not taken yet */
	size_t has;
};

/* Sends a line. @say belongs to it from now on; NULL: memory is short. 0; -errno with a sentence.
 */
int mst_way_say(struct mst_way_stream *s, json_t *say, struct mst_reason *why);
/* Receives a line that is a JSON object. 0; -errno with a sentence. */
int mst_way_hear(struct mst_way_stream *s, json_t **out, struct mst_reason *why);
/* A member of the object as a clean text; "" if it has none. */
void mst_way_text(const json_t *object, const char *key, char *out, size_t len);
/* As a number; @none if there is none, or it lies outside of 0 .. @max. */
int64_t mst_way_number(const json_t *object, const char *key, int64_t max, int64_t none);

/* ---- call.c and serve.c ---- */

/* A line about a caller, and what came of its call. From a thread of the peer. */
typedef void mst_way_seen(void *ctx, const char *line);

/* What an end is, and what it says of itself. */
struct mst_way_end {
	struct mst_fabric fabric;
	struct mst_credentials *own; /* NULL: plain */
	uint64_t timeout_ns;
	uint32_t cores;
	uint64_t send_max, receive_max; /* bytes: a connection's largest buffers; 0: not known */
	const char *rdma;               /* an address of a write test over RDMA; NULL: none */
	mst_way_seen *seen;             /* NULL: nobody wants to know */
	void *ctx;
};

/* One step of the test: what it came to. */
struct mst_way_step {
	bool tried;
	int error; /* 0, or -errno, and why */
	struct mst_reason why;
};

/* With more of them several workers or servers share a network. */
#define MST_WAY_COUNTS 3u
static const uint32_t mst_way_count[MST_WAY_COUNTS] = { 1, 2, 4 };

/* What is known of the way; of what failed, no figure is. */
struct mst_way_report {
	char address[MST_WAY_TEXT_LEN]; /* control port */
	char host[MST_WRITE_NAME_LEN];  /* as it calls itself */
	char data[MST_ADDRESS_LEN];     /* of the port for data, as a worker dials it */
	char secure[MST_ADDRESS_LEN];   /* of that for encrypted data; "": none */
	char rdma[MST_ADDRESS_LEN];     /* "": none */
	bool encrypted;                 /* the control connection */
	struct mst_way_step control, moved, rates, tls, back_control, back_data;
	bool linked;                     /* the port for data could be called */
	uint64_t connect_ns;             /* until the control port had accepted */
	uint64_t round_trip_ns;          /* of a put of 8 bytes, the median */
	double up[MST_WAY_COUNTS], down; /* bytes a second; down: of one connection */
	double encrypted_up[MST_WAY_COUNTS], encrypted_down; /* the same by TLS */
	uint32_t mtu;                       /* of the path, as the kernel knows it; 0: not known */
	uint32_t cores;                     /* of the peer */
	uint64_t send_max, receive_max;     /* of the peer */
	uint16_t back_port, back_data_port; /* of this end */
};

struct mst_way_peer;

/* Calls @address, HOST:PORT. @back: the port at which the other end is to call this one, without
 * certificates, for a caller's are not those of a server; as mst_way_peer_open() takes it. Takes
 * some seconds; of those in which nothing comes, no more than own->timeout_ns for each step. */
void mst_way_call(const struct mst_way_end *own, const char *address, uint16_t back,
		  struct mst_way_report *out);
/* The same without rates, to the data port @data_port at the address that is called. */
void mst_way_call_back(const struct mst_way_end *own, const char *address, uint16_t data_port,
		       struct mst_way_report *out);
/* What this end says first. NULL: no memory. */
json_t *mst_way_card(const struct mst_way_end *own);

/* The end that listens; a thread of its own serves. @port 0: any; a port that is taken is replaced
 * by any other, which mst_way_peer_port() tells. The port for data is that of own->fabric, if it
 * names one, and the next one is for encrypted data, if nobody has it. 0; -EADDRINUSE: somebody has
 * the port for data; -errno; with a sentence. */
int mst_way_peer_open(const struct mst_way_end *own, uint16_t port, struct mst_way_peer **out,
		      struct mst_reason *why);
void mst_way_peer_close(struct mst_way_peer *p); /* accepts NULL */
uint16_t mst_way_peer_port(const struct mst_way_peer *p);
uint16_t mst_way_peer_data_port(const struct mst_way_peer *p);
/* The port for encrypted data; 0: without certificates there is none. */
uint16_t mst_way_peer_secure_port(const struct mst_way_peer *p);
#endif
