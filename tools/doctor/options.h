/* SPDX-License-Identifier: MIT */
/* The options of `muster doctor`. */
#ifndef MST_TOOLS_DOCTOR_OPTIONS_H
#define MST_TOOLS_DOCTOR_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/option.h"
#include "common/transport/tls/credentials.h"

struct mst_doctor_options {
	const char *devices, *addresses, *peer, *json;
	uint32_t workers;
	uint64_t elems;
	uint32_t type; /* enum muster_type: "f32|bf16|f16" */
	uint32_t slots;
	uint32_t role;      /* enum mst_doctor_role: "both|worker|server" */
	uint32_t transport; /* MST_DOCTOR_ALL, or one more than mst_transport_at() takes */
	uint32_t port;      /* control port of --listen */
	uint32_t data_port; /* 0: the kernel's choice */
	bool listen;
	uint64_t span_ns; /* of listening; 0: no end */
	uint64_t timeout_ns;
	struct mst_tls_files tls;
	bool help;
};

extern const struct mst_option mst_doctor_table[];

/* Is a job over the network of this scheme what was asked for: by name, or as one of all? */
bool mst_doctor_asks_for(const struct mst_doctor_options *o, const char *scheme);

/* Is it a host, to be tested over TCP and what else there is? If not, it is the address of a
 * listener of another network, as --listen prints it. */
bool mst_doctor_is_way(const char *peer);

/* What one row cannot check. @why: a sentence. Return: 0 or -EINVAL. */
int mst_doctor_options_check(const struct mst_doctor_options *o, struct mst_reason *why);

/* Does standard output belong to the JSON? */
bool mst_doctor_prints_json(const struct mst_doctor_options *o);

#endif
