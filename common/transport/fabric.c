/* SPDX-License-Identifier: MIT */
#include "common/transport/fabric.h"

#include <errno.h>
#include <grp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts, by kind; @name: of the option or variable, for sentences ---- */

typedef int reader(const char *name, const char *text, void *field, struct mst_reason *why);

/* A name of a group, or anything else that begins with no digit, is no number. */
static bool read_number(const char *text, int base, unsigned long max, unsigned long *out)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*out = strtoul(text, &end, base);
	return errno == 0 && *end == '\0' && *out <= max;
}

static int read_list(const char *name, const char *text, void *field, struct mst_reason *why)
{
	if (strlen(text) >= MST_FABRIC_TEXT_LEN)
		return mst_reason_fail(why, -EINVAL,
				       "%s: \"%.60s...\" is too long: %zu characters, at most %u",
				       name, text, strlen(text), MST_FABRIC_TEXT_LEN - 1);
	*(const char **)field = text;
	return 0;
}

static int read_index(const char *name, const char *text, void *field, struct mst_reason *why)
{
	unsigned long index;

	if (strcmp(text, "auto") == 0)
		return 0;
	if (!read_number(text, 10, UINT8_MAX, &index))
		return mst_reason_fail(why, -EINVAL,
				       "%s: \"%.60s\" is not a whole number from 0 to 255, or auto",
				       name, text);
	*(int *)field = (int)index;
	return 0;
}

/* "0x8001", "32769". The keys 0 and 0x8000 are of no partition. */
static int read_key(const char *name, const char *text, void *field, struct mst_reason *why)
{
	unsigned long key;

	if (strcmp(text, "auto") == 0)
		return 0;
	if (!read_number(text, 0, UINT16_MAX, &key) || (key & 0x7fff) == 0)
		return mst_reason_fail(
			why, -EINVAL,
			"%s: \"%.60s\" is not a partition key from 0x0001 to 0xffff, or auto", name,
			text);
	*(int32_t *)field = (int32_t)key;
	return 0;
}

/* A name that looks like a number is a number. */
static int read_group(const char *name, const char *text, void *field, struct mst_reason *why)
{
	unsigned long number;

	if (read_number(text, 10, UINT32_MAX - 1ul, &number)) { /* UINT32_MAX is no group */
		*(int64_t *)field = (int64_t)number;
		return 0;
	}
	const struct group *group = getgrnam(text);
	if (group == NULL)
		return mst_reason_fail(
			why, -EINVAL,
			"%s: there is no group \"%.60s\" on this host (getent group shows "
			"them)",
			name, text);
	*(int64_t *)field = (int64_t)group->gr_gid;
	return 0;
}

/* ---- the texts there are ---- */

#define AT(typed_field, fabric_field)                                                              \
	offsetof(struct mst_fabric_options, typed_field), offsetof(struct mst_fabric, fabric_field)

static const struct row {
	const char *option, *variable; /* variable NULL: only the servers have a say in it */
	reader *read;
	size_t typed, field;
} rows[] = {
	{ "option --data-address", "MUSTER_DATA_ADDRESS", read_list, AT(data_address, addresses) },
	{ "option --device", "MUSTER_DEVICE", read_list, AT(device, devices) },
	{ "option --gid-index", "MUSTER_GID_INDEX", read_index, AT(gid_index, gid_index) },
	{ "option --pkey", NULL, read_key, AT(pkey, pkey) },
	{ "option --shm-group", NULL, read_group, AT(shm_group, group) },
};

int mst_fabric_read(const struct mst_fabric_options *typed, struct mst_fabric *out,
		    struct mst_reason *why)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	int rc = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && rc == 0; i++) {
		const char *text = *(const char *const *)((const char *)typed + rows[i].typed);
		if (text != NULL)
			rc = rows[i].read(rows[i].option, text, (char *)&fabric + rows[i].field,
					  why);
	}
	if (rc != 0)
		return rc;
	fabric.traffic_class = (uint8_t)typed->traffic_class;
	fabric.service_level = (uint8_t)typed->service_level;
	fabric.link_timeout_ns = typed->link_timeout_ns;
	fabric.io_threads = typed->io_threads;
	fabric.data_port = (uint16_t)typed->data_port;
	fabric.relaxed_ordering = typed->relaxed_ordering;
	fabric.huge_pages = typed->huge_pages == 0;
	*out = fabric;
	return 0;
}

int mst_fabric_environment(struct mst_fabric *fabric, struct mst_reason *why)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && rc == 0; i++) {
		const char *name = rows[i].variable;
		const char *text = name != NULL ? getenv(name) : NULL;
		if (text != NULL && text[0] != '\0')
			rc = rows[i].read(name, text, (char *)fabric + rows[i].field, why);
	}
	return rc;
}

/* ---- what travels ---- */

void mst_fabric_tell(const struct mst_fabric *fabric, struct mst_path *out)
{
	*out = (struct mst_path){ .link_timeout_ns = fabric->link_timeout_ns,
				  .traffic_class = fabric->traffic_class,
				  .service_level = fabric->service_level,
				  .pkey = fabric->pkey,
				  .encrypted = fabric->encrypted };
}

void mst_fabric_follow(struct mst_fabric *fabric, const struct mst_path *path)
{
	fabric->link_timeout_ns = path->link_timeout_ns;
	fabric->traffic_class = (uint8_t)path->traffic_class;
	fabric->service_level = (uint8_t)path->service_level;
	fabric->pkey = path->pkey;
	fabric->encrypted = path->encrypted != 0;
}

bool mst_path_is_sane(const struct mst_path *path)
{
	return path->link_timeout_ns >= MST_LINK_TIMEOUT_MIN_NS &&
	       path->link_timeout_ns <= MST_LINK_TIMEOUT_MAX_NS && path->pkey >= -1 &&
	       path->pkey <= UINT16_MAX;
}
