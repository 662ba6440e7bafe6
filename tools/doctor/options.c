/* SPDX-License-Identifier: MIT */
#include "tools/doctor/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/base/reason.h"
#include "common/config/shared_rows.h"
#include "common/transport/tls/options.h"
#include "common/transport/transport.h"
#include "common/wire/lane.h"
#include "tools/doctor/network.h"
#include "tools/doctor/way/way.h"

#define FIELD(name) .offset = offsetof(struct mst_doctor_options, name)

const struct mst_option mst_doctor_table[] = {
	{ .name = "device",
	  .kind = MST_OPTION_STRING,
	  FIELD(devices),
	  .value = "LIST",
	  .help = "check only these RDMA devices, and insist on them: mlx5_0,mlx5_1:2" },
	MST_WORKERS_ROW(FIELD(workers), MST_WORKERS_MAX,
			"with --elems: check that memory limit and devices suffice for such a job"),
	{ .name = "elems",
	  .kind = MST_OPTION_U64,
	  FIELD(elems),
	  .min = 1,
	  .max = (double)MST_ELEMS_MAX,
	  .value = "N",
	  .help = "length of the job's gradients" },
	{ .name = "type",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(type),
	  .fallback = "f32",
	  .choices = "f32|bf16|f16",
	  .help = "their type" },
	{ .name = "slots",
	  .kind = MST_OPTION_U32,
	  FIELD(slots),
	  .fallback = "2",
	  .min = 1,
	  .max = MST_SLOTS_MAX,
	  .value = "K",
	  .help = "gradients a worker may have in flight" },
	{ .name = "role",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(role),
	  .fallback = "both",
	  .choices = "both|worker|server",
	  .help = "what of the job this host shall run" },
	{ .name = "peer",
	  .kind = MST_OPTION_STRING,
	  FIELD(peer),
	  .value = "HOST",
	  .help = "test the way to another host, where muster doctor --listen runs: HOST or "
		  "HOST:PORT, or another address that it prints" },
	{ .name = "listen",
	  .kind = MST_OPTION_FLAG,
	  FIELD(listen),
	  .help = "after the checks, be the peer of another host's test" },
	{ .name = "port",
	  .kind = MST_OPTION_U32,
	  FIELD(port),
	  .fallback = "17077",
	  .min = 1,
	  .max = UINT16_MAX,
	  .value = "PORT",
	  .help = "the control port at which --listen listens; that of the job's server shows "
		  "whether a firewall lets it through" },
	{ .name = "data-address",
	  .kind = MST_OPTION_STRING,
	  FIELD(addresses),
	  .value = "LIST",
	  .help = "addresses of this host that --listen listens at and --peer writes from" },
	{ .name = "data-port",
	  .kind = MST_OPTION_U32,
	  FIELD(data_port),
	  .fallback = "0",
	  .max = UINT16_MAX,
	  .value = "PORT",
	  .help = "the port for data, as musterd has it: check that it is free here, and that the "
		  "other end of --listen and --peer can call it; with 0 the kernel chooses one" },
	{ .name = "transport",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(transport),
	  .fallback = "auto",
	  .choices = MST_DOCTOR_TRANSPORTS,
	  .help = "test this network only; with verbs the host has to have RDMA; auto is TCP, and "
		  "RDMA where there is some" },
	{ .name = "for",
	  .kind = MST_OPTION_DURATION,
	  FIELD(span_ns),
	  .fallback = "0s",
	  .max = 3600e9,
	  .help = "how long --listen stays; 0s is until it is interrupted" },
	MST_TIMEOUT_ROW(FIELD(timeout_ns), "5s", "how long a peer may take to answer"),
	MST_TLS_COMMAND_OPTIONS(struct mst_doctor_options, tls),
	MST_FILE_ROW("json", FIELD(json),
		     "write what was found there as JSON; - is standard output, instead of the "
		     "text"),
	MST_HELP_ROW(FIELD(help)),
	{ .name = NULL },
};

bool mst_doctor_asks_for(const struct mst_doctor_options *o, const char *scheme)
{
	return o->transport == MST_DOCTOR_ALL ||
	       strcmp(mst_transport_at(o->transport - 1)->scheme, scheme) == 0;
}

bool mst_doctor_is_way(const char *peer)
{
	const struct mst_transport *t = mst_transport_of(peer);

	return t == NULL || t == &mst_tcp;
}

int mst_doctor_options_check(const struct mst_doctor_options *o, struct mst_reason *why)
{
	char unused[MST_WAY_TEXT_LEN];

	if ((o->workers == 0) != (o->elems == 0))
		return mst_reason_fail(why, -EINVAL, "--workers and --elems belong together");
	if (o->peer != NULL && o->listen)
		return mst_reason_fail(why, -EINVAL, "--listen on one host, --peer on the other");
	if (o->peer == NULL || !mst_doctor_is_way(o->peer))
		return 0;
	if (o->transport != MST_DOCTOR_ALL && mst_transport_at(o->transport - 1)->maps)
		return mst_reason_fail(
			why, -EINVAL,
			"--transport %s is for one host, and --peer %.100s is another: "
			"leave --transport out",
			mst_transport_at(o->transport - 1)->scheme, o->peer);
	return mst_way_address(o->peer, unused, why);
}

bool mst_doctor_prints_json(const struct mst_doctor_options *o)
{
	return o->json != NULL && strcmp(o->json, "-") == 0;
}
