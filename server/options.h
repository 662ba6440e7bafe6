/* SPDX-License-Identifier: MIT */
/* The server's options: one table for flags, the libconfig file, --help and the man page. */
#ifndef MST_SERVER_OPTIONS_H
#define MST_SERVER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config/option.h"
#include "common/transport/transport.h"
#include "common/wire/part.h"
#include "common/wire/rule.h"

#define MST_SHARDS_MAX 16u /* of a server: more threads than any memory keeps up with */

#define MST_CHUNK_UNIT 4096u
#define MST_OPTIMIZER_DEFAULT "sgd:lr=0.1,momentum=0.9"

enum mst_transport_choice { MST_CHOOSE_AUTO, MST_CHOOSE_SHM, MST_CHOOSE_VERBS };

enum mst_optimizer_kind { MST_OPTIMIZER_SGD, MST_OPTIMIZER_ADD };

/* What --optimizer says, parsed: "sgd:lr=0.1,momentum=0.9" or "add". */
struct mst_optimizer {
	enum mst_optimizer_kind kind;
	double lr, momentum;
};

/* Fields as typed; each row of mst_server_table fills one. */
struct mst_server_options {
	const char *config; /* -c FILE */
	const char *listen; /* HOST:PORT of the control port */
	const char *join;   /* HOST:PORT of the lead's: this is a member; NULL: it leads */
	const char *spread; /* "even", or a weight for each server, "2,1,1" */
	uint32_t servers;
	const char *job;
	const char *policy;
	const char *optimizer;
	const char *log_level;
	uint32_t workers;
	uint32_t owner;     /* enum muster_owner: "servers|workers" */
	uint32_t lr_scale;  /* "linear|none" */
	uint32_t transport; /* enum mst_transport_choice: "auto|shm|verbs" */
	/* Of the fabric, as struct mst_fabric has them. */
	const char *data_address, *device; /* NULL: found */
	const char *gid_index, *pkey;      /* "auto", or a number */
	uint32_t traffic_class, service_level, ack_timeout, retries;
	bool relaxed_ordering;
	uint32_t huge_pages; /* "auto|off" */
	uint32_t on_loss;    /* enum mst_loss: "shrink|fail" */
	uint32_t slots;      /* 0: auto */
	uint64_t memory;     /* bytes; 0: auto */
	bool force;
	uint64_t commits; /* 0: no end */
	double samples;   /* 0: no end */
	uint64_t lease_ns, patience_ns, join_timeout_ns;
	uint32_t min_workers;
	uint64_t chunk; /* bytes */
	uint32_t group, history, buffers;
	uint32_t shards;  /* 0: auto */
	const char *cpus; /* "auto", or a list such as 0-3,8 */
	uint32_t spin_pauses, spin_yields;
	uint64_t budget; /* bytes of a gradient; 0: not asked for */
	bool print_config, help, version;
};

extern const struct mst_option mst_server_table[];

/* Reads --optimizer. @why: a sentence. Return: 0 or -EINVAL. */
int mst_optimizer_parse(const char *text, struct mst_optimizer *out, char *why, size_t why_len);

/* The rule these options stand for: --policy, --optimizer, --patience, --on-loss, --min-workers.
 * Return: 0 or -EINVAL. */
int mst_server_options_rule(const struct mst_server_options *o, struct mst_rule *out, char *why,
			    size_t why_len);

/* A weight for each of o->servers, as mst_part_border() takes them. Return: 0 or -EINVAL. */
int mst_server_options_spread(const struct mst_server_options *o, uint32_t weights[MST_SERVERS_MAX],
			      char *why, size_t why_len);

/* What a transport over a fabric is told. Its strings are those of @o. @why: a sentence.
 * Return: 0 or -EINVAL. */
int mst_server_options_fabric(const struct mst_server_options *o, struct mst_fabric *out, char *why,
			      size_t why_len);

/* Checks what one row cannot: what is missing, policy, optimiser and addresses as text, policy and
 * optimiser against owner, workers and slots. @why: a sentence. Return: 0 or -EINVAL. */
int mst_server_options_check(const struct mst_server_options *o, char *why, size_t why_len);

#endif
