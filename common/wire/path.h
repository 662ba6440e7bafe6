/* SPDX-License-Identifier: MIT */
/* The settings of the network path that both ends of every link of a job use. The leader decides
 * it; welcomes and appointments carry it. common/transport/fabric.h says where the values come
 * from. */
#ifndef MST_WIRE_PATH_H
#define MST_WIRE_PATH_H

#include <stdint.h>

struct mst_path {
	uint64_t link_timeout_ns;
	uint32_t traffic_class, service_level;
	int32_t pkey;       /* -1: the path's own */
	uint32_t encrypted; /* 1: links are, over networks that can encrypt them */
};

#endif
