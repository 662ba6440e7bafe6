/* SPDX-License-Identifier: MIT */
/* What jobs over TCP need of this host. Pure. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/doctor/judge.h"

#define FEW_CALLERS 128u /* that may call at once where no job is told */

static const struct mst_doctor_netdev *netdev_of(const struct mst_doctor_facts *f, const char *name)
{
	for (uint32_t i = 0; i < f->netdev_count; i++)
		if (strcmp(f->netdev[i].name, name) == 0)
			return &f->netdev[i];
	return NULL;
}

static bool is_link_local(const uint8_t raw[16])
{
	return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
}

/* Adds "eth0 10.0.0.1 (MTU 1500)". Return: the new length. */
static size_t add_address(const struct mst_doctor_facts *f, const struct mst_doctor_address *a,
			  char *out, size_t used, size_t len)
{
	const struct mst_doctor_netdev *n = netdev_of(f, a->netdev);

	if ((n != NULL && n->loopback) || is_link_local(a->raw) || used + 80 > len)
		return used;
	int more = snprintf(out + used, len - used, "%s%s %s", used > 0 ? ", " : "", a->netdev,
			    mst_doctor_ip(a->raw).text);
	used += more > 0 ? (size_t)more : 0;
	if (n != NULL && n->mtu > 0)
		more = snprintf(out + used, len - used, " (MTU %u)", n->mtu);
	else
		more = 0;
	return used + (more > 0 ? (size_t)more : 0);
}

static void judge_addresses(const struct mst_doctor_facts *f, struct mst_findings *out)
{
	char text[300] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < f->address_count; i++)
		used = add_address(f, &f->address[i], text, used, sizeof(text));
	if (used > 0) {
		(void)mst_finding_add(out, MST_FINDING_OK, "addresses", "%s", text);
		return;
	}
	struct mst_finding *new = mst_finding_add(out, MST_FINDING_WARNING, "addresses",
						  "none that other hosts can call");
	mst_finding_cause(new, "no interface but loopback has an IP address");
	mst_finding_fix(new, "ip -br address shows the interfaces; as root: "
			     "ip addr add ADDRESS/24 dev IFACE");
}

/* All workers of a job may call at once. */
static void judge_sockets(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			  struct mst_findings *out)
{
	uint32_t callers = wish->workers > 0 ? wish->workers : FEW_CALLERS;
	bool few = f->somaxconn < callers && wish->role != MST_DOCTOR_WORKER;
	char text[64] = "";

	if (f->somaxconn == 0 || f->send_max == 0 || f->receive_max == 0)
		return;
	if (f->congestion[0] != '\0')
		(void)snprintf(text, sizeof(text), ", %.40s", f->congestion);
	struct mst_finding *new = mst_finding_add(
		out, few ? MST_FINDING_WARNING : MST_FINDING_OK, "sockets",
		"%" PRIu64 " callers may wait at a port; a connection sends from up to %s and "
		"receives into up to %s%s",
		f->somaxconn, mst_bytes_text(f->send_max).text, mst_bytes_text(f->receive_max).text,
		text);
	if (!few)
		return;
	mst_finding_cause(new,
			  "%u workers may call at once, and one that finds no room calls again a "
			  "second later",
			  callers);
	mst_finding_fix(new, "as root: sysctl -w net.core.somaxconn=4096");
}

void mst_doctor_judge_tcp(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			  struct mst_findings *out)
{
	judge_addresses(f, out);
	judge_sockets(f, wish, out);
}
