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

#define MST_FABRIC_IO_THREADS_MAX 64u
#define MST_FABRIC_TEXT_LEN 512u /* of a list of addresses or devices, with its NUL */

/* The options as networks read them. Strings belong to the caller, and stay valid. */
struct mst_fabric {
	const char *addresses; /* of this host, "10.0.0.1,fd00::1", one a rail; NULL: found */
	const char *devices;   /* "mlx5_0,mlx5_1:2": only these, one a rail; NULL: any */
	int gid_index;         /* -1: as the address asks for */
	int32_t pkey;          /* partition key, 0xffff; -1: the path's own */
	uint8_t traffic_class, service_level;
	uint8_t ack_timeout; /* a try waits 4.096 us x 2^this for its acknowledgement */
	uint8_t retries;     /* more attempts, at most 6: 7 is for ever on some devices */
	bool relaxed_ordering;
	bool huge_pages; /* for what is large, where they can be had; an acceptor's say */
	/* A group whose processes may call at a listener of this host, beside those of the own
	 * user; -1: there is none. */
	int64_t group;
	/* TCP: threads of a net that receive and send; 0: the thread that polls it does. */
	uint32_t io_threads;
	uint64_t dead_ns; /* TCP: a peer whose host has acknowledged nothing for so long is lost */
};

#define MST_FABRIC_DEFAULT                                                                         \
	{                                                                                          \
		.gid_index = -1, .pkey = -1, .ack_timeout = 16, .retries = 6, .huge_pages = true,  \
		.group = -1, .dead_ns = UINT64_C(2000000000)                                       \
	}

/* As typed: each row of the table fills one. */
struct mst_fabric_options {
	const char *data_address, *device; /* NULL: found */
	const char *gid_index, *pkey;      /* "auto", or a number */
	const char *shm_group;             /* a name or a number; NULL: none */
	uint32_t traffic_class, service_level, ack_timeout, retries, io_threads;
	bool relaxed_ordering;
	uint32_t huge_pages; /* "auto|off" */
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
	{ MST_FABRIC_ROW(STRING, "shm-group", program, member, shm_group), \
	  .value = "NAME|GID", \
	  .help = "shm: let processes of this group link, too; by default only those of the " \
		  "server's own user" }, \
	{ MST_FABRIC_ROW(STRING, "data-address", program, member, data_address), \
	  .value = "LIST", \
	  .help = "verbs: addresses of this host on the data network, one per rail, such as " \
		  "10.0.0.1,10.0.1.1; by default the first that has an RDMA device" }, \
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
	{ MST_FABRIC_ROW(U32, "ack-timeout", program, member, ack_timeout), \
	  .fallback = "16", \
	  .min = 1, \
	  .max = 31, \
	  .help = "verbs: a try waits 4.096 us x 2^N for its acknowledgement, 14 is 67 ms, 16 " \
		  "is 0.27 s, 18 is 1.07 s; with 16 and 6 retries a dead path shows after " \
		  "1.9 s" }, \
	{ MST_FABRIC_ROW(U32, "retries", program, member, retries), \
	  .fallback = "6", \
	  .max = 6, /* 7 is for ever on some devices, which never notice a dead worker */ \
	  .help = "verbs: how often a packet is sent again before its worker is lost; with " \
		  "--ack-timeout 16 each takes 0.27 s" }, \
	{ MST_FABRIC_ROW(FLAG, "relaxed-ordering", program, member, relaxed_ordering), \
	  .help = "verbs: let the device write a gradient's bytes to memory in any order, which " \
		  "is faster on some hosts" }, \
	{ MST_FABRIC_ROW(U32, "io-threads", program, member, io_threads), \
	  .fallback = "1", \
	  .max = MST_FABRIC_IO_THREADS_MAX, \
	  .help = "tcp: threads that receive and send beside the data thread, which then decides " \
		  "and sums while they copy; with 0 it does all" }, \
	{ MST_FABRIC_ROW(CHOICE, "huge-pages", program, member, huge_pages), \
	  .fallback = "auto", \
	  .choices = "auto|off", \
	  .help = "use huge pages for slots and versions where the host has them" }
/* clang-format on */

#endif
