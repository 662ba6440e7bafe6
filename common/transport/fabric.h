/* SPDX-License-Identifier: MIT */
/*
 * Options of networks: devices, paths, timers, rights. One table for all networks and programs.
 *
 * A row of MST_FABRIC_ROWS is an option of musterd, and belongs to a field of struct
 * mst_fabric_options. What a worker's host has to say for itself is also a variable of its
 * environment (fabric.c names it). What both ends of every link must agree on travels from the
 * leader to workers and followers as struct mst_path. A new option is a row, a field and a line in
 * fabric.c, and the network that reads the field of struct mst_fabric.
 */
#ifndef MST_TRANSPORT_FABRIC_H
#define MST_TRANSPORT_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/wire/path.h"

/* Linux sends over TCP what is lost again after 200 ms and 600 ms, and by itself ends a connection
 * of which nothing is acknowledged for a quarter of an hour. Over verbs seven tries of 134 ms fit
 * into the least. */
#define MST_LINK_TIMEOUT_MIN_NS UINT64_C(1000000000)
#define MST_LINK_TIMEOUT_MAX_NS UINT64_C(600000000000)
#define MST_FABRIC_IO_THREADS_MAX 64u
#define MST_FABRIC_TEXT_LEN 512u /* of a list of addresses or devices, with its NUL */

/* The options as networks read them. Strings belong to the caller, and stay valid. */
struct mst_fabric {
	const char *addresses; /* of this host, "10.0.0.1,fd00::1", one a rail; NULL: found */
	const char *devices;   /* "mlx5_0,mlx5_1:2": only these, one a rail; NULL: any */
	int gid_index;         /* -1: as the address asks for */
	int32_t pkey;          /* partition key, 0xffff; -1: the path's own */
	uint8_t traffic_class, service_level;
	/* A link is lost whose other host has acknowledged nothing for so long. */
	uint64_t link_timeout_ns;
	bool relaxed_ordering;
	bool huge_pages; /* for what is large, where they can be had; an acceptor's say */
	/* A group whose processes may call at a listener of this host, beside those of the own
	 * user; -1: there is none. */
	int64_t group;
	uint16_t data_port; /* TCP: of a listener; 0: the kernel chooses */
	/* TCP: threads of a net that receive and send; 0: the thread that polls it does. */
	uint32_t io_threads;
	/* Links are encrypted, over networks that can (struct mst_transport); both ends agree. */
	bool encrypted;
	/* Without addresses, a listener over TCP is at loopback: all of the job is on this host. */
	bool loopback;
};

#define MST_FABRIC_DEFAULT                                                                         \
	{                                                                                          \
		.gid_index = -1, .pkey = -1, .huge_pages = true, .group = -1,                      \
		.link_timeout_ns = UINT64_C(2000000000)                                            \
	}

/* As typed: each row of the table fills one. */
struct mst_fabric_options {
	const char *data_address, *device; /* NULL: found */
	const char *gid_index, *pkey;      /* "auto", or a number */
	const char *shm_group;             /* a name or a number; NULL: none */
	uint64_t link_timeout_ns;
	uint32_t traffic_class, service_level, io_threads, data_port;
	bool relaxed_ordering;
	uint32_t huge_pages; /* "auto|off" */
	uint32_t data_tls;   /* enum mst_data_tls: "auto|on|off" */
};

/* May links be encrypted, where there are certificates? */
enum mst_data_tls {
	MST_DATA_TLS_AUTO, /* over the networks that can */
	MST_DATA_TLS_ON,   /* they must */
	MST_DATA_TLS_OFF,
};

/* What was typed, as networks read it; strings are those of @typed. @why: a sentence. Return: 0 or
 * -EINVAL. */
int mst_fabric_read(const struct mst_fabric_options *typed, struct mst_fabric *out,
		    struct mst_reason *why);

/* What this process's environment says of its own host; other fields are left alone. The strings
 * are the environment's. An empty variable counts as unset. Return: 0 or -EINVAL, with a sentence
 * that names the variable. */
int mst_fabric_environment(struct mst_fabric *fabric, struct mst_reason *why);

/* What of it both ends of a link must agree on, and the other end's part of that. */
void mst_fabric_tell(const struct mst_fabric *fabric, struct mst_path *out);
void mst_fabric_follow(struct mst_fabric *fabric, const struct mst_path *path);
/* Is it a path at all? It may have come from a peer, who could be broken. */
bool mst_path_is_sane(const struct mst_path *path);

/* The rows, to stand in a table of struct mst_option (common/config/option.h) whose fields are a
 * @program with a @member of struct mst_fabric_options. */
/* clang-format off */
#define MST_FABRIC_ROW(type, row_name, program, member, field) \
	.name = row_name, .kind = MST_OPTION_##type, .offset = offsetof(program, member.field)
#define MST_FABRIC_ROWS(program, member) \
	{ MST_FABRIC_ROW(DURATION, "link-timeout", program, member, link_timeout_ns), \
	  .fallback = "2s", \
	  .min = MST_LINK_TIMEOUT_MIN_NS, \
	  .max = MST_LINK_TIMEOUT_MAX_NS, \
	  .help = "tcp and verbs: a link whose other host has acknowledged nothing for so long " \
		  "is lost, and the worker with it; a process that is only stopped loses none, " \
		  "since its host answers for it; shm needs no such time, because the kernel " \
		  "tells at once when a process has ended" }, \
	{ MST_FABRIC_ROW(STRING, "shm-group", program, member, shm_group), \
	  .value = "NAME|GID", \
	  .help = "shm: let processes of this group link, too; by default only those of the " \
		  "server's own user" }, \
	{ MST_FABRIC_ROW(STRING, "data-address", program, member, data_address), \
	  .value = "LIST", \
	  .help = "tcp and verbs: addresses of this host on the data network, such as " \
		  "10.0.0.1,10.0.1.1 or fe80::1%eth0; over tcp workers try one after the other, " \
		  "by default first the address that they call the server at, then all others of " \
		  "this host; over verbs one per rail, by default the first that has an RDMA " \
		  "device" }, \
	{ MST_FABRIC_ROW(U32, "data-port", program, member, data_port), \
	  .fallback = "0", \
	  .max = UINT16_MAX, \
	  .help = "tcp: port at which workers and servers ask for links, to be opened in a " \
		  "firewall beside that of --listen; with 0 the kernel chooses one; verbs has no " \
		  "use for it, since all packets of RoCE go to UDP port 4791" }, \
	{ MST_FABRIC_ROW(STRING, "device", program, member, device), \
	  .value = "LIST", \
	  .help = "verbs: devices and ports to use, one per rail, such as mlx5_0,mlx5_1:2; by " \
		  "default those that the data addresses belong to" }, \
	{ MST_FABRIC_ROW(STRING, "gid-index", program, member, gid_index), \
	  .fallback = "auto", \
	  .value = "N", \
	  .help = "verbs: entry of the port's GID table; auto is the one of the data address" }, \
	{ MST_FABRIC_ROW(STRING, "pkey", program, member, pkey), \
	  .fallback = "auto", \
	  .value = "KEY", \
	  .help = "verbs: partition key, such as 0x8001; auto is the path's own" }, \
	{ MST_FABRIC_ROW(U32, "traffic-class", program, member, traffic_class), \
	  .fallback = "0", \
	  .max = UINT8_MAX, \
	  .help = "verbs: traffic class of all packets, both ways; on RoCE it holds the DSCP: " \
		  "four times the DSCP is the class, 104 for DSCP 26" }, \
	{ MST_FABRIC_ROW(U32, "service-level", program, member, service_level), \
	  .fallback = "0", \
	  .max = 15, \
	  .help = "verbs: service level of all packets, both ways" }, \
	{ MST_FABRIC_ROW(FLAG, "relaxed-ordering", program, member, relaxed_ordering), \
	  .help = "verbs: let the device write a gradient's bytes to memory in any order, which " \
		  "is faster on some hosts" }, \
	{ MST_FABRIC_ROW(U32, "io-threads", program, member, io_threads), \
	  .fallback = "1", \
	  .max = MST_FABRIC_IO_THREADS_MAX, \
	  .help = "tcp: threads that receive and send beside the data thread, which then decides " \
		  "and sums while they copy; with 0 it does all" }, \
	{ MST_FABRIC_ROW(CHOICE, "data-tls", program, member, data_tls), \
	  .fallback = "auto", \
	  .choices = "auto|on|off", \
	  .help = "tcp: encrypt gradients and results by TLS 1.3: auto does with certificates " \
		  "(--tls-cert), on refuses to start where they would travel plain between " \
		  "hosts, off sends them plain" }, \
	{ MST_FABRIC_ROW(CHOICE, "huge-pages", program, member, huge_pages), \
	  .fallback = "auto", \
	  .choices = "auto|off", \
	  .help = "use huge pages for slots and versions where the host has them" }
/* clang-format on */

#endif
