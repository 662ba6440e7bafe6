/* SPDX-License-Identifier: MIT */
/* The parts of mst_doctor_gather(): each reads its files below @root. That is "" for this host; a
 * test makes up another. */
#ifndef MST_TOOLS_DOCTOR_SYSFS_H
#define MST_TOOLS_DOCTOR_SYSFS_H

#include "tools/doctor/facts.h"

/* /sys/class/infiniband and /dev/infiniband: devices, ports, GIDs, nodes. 0 or -ENOMEM. */
int mst_doctor_read_devices(const char *root, struct mst_doctor_facts *out);
/* /sys/class/net. 0 or -ENOMEM. */
int mst_doctor_read_netdevs(const char *root, struct mst_doctor_facts *out);
/* Everything else: kernel, modules, container, limits, huge pages. */
void mst_doctor_read_host(const char *root, struct mst_doctor_facts *out);

#endif
