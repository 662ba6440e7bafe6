/* SPDX-License-Identifier: MIT */
/* Lists of networks, and of the addresses of their listeners. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/transport/transport.h"

static void add(struct mst_networks *n, const struct mst_transport *t)
{
	n->item[n->count++] = t;
}

bool mst_networks_map(const struct mst_networks *n)
{
	bool any = false;

	for (uint32_t i = 0; i < n->count; i++)
		any |= n->item[i]->maps;
	return any;
}

const struct mst_transport *mst_networks_transport(const struct mst_networks *n)
{
	if (n->count == 0)
		return NULL;
	return n->count == 1 ? n->item[0] : &mst_joint;
}

const char *mst_networks_text(const struct mst_networks *n, char out[MST_NETWORKS_TEXT_LEN])
{
	size_t used = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < n->count && used < MST_NETWORKS_TEXT_LEN; i++)
		used += (size_t)snprintf(out + used, MST_NETWORKS_TEXT_LEN - used, "%s%s",
					 i > 0 ? "," : "", n->item[i]->scheme);
	return out;
}

int mst_networks_hold(const struct mst_networks *n, const struct mst_fabric *fabric,
		      struct mst_ports *out, struct mst_reason *why)
{
	mst_reason_clear(why);
	*out = (struct mst_ports){ 0 };
	for (uint32_t i = 0; i < n->count; i++)
		if (n->item[i]->listener->hold != NULL)
			return n->item[i]->listener->hold(fabric, out, why);
	return 0;
}

void mst_ports_close(struct mst_ports *ports)
{
	while (ports->count > 0)
		(void)close(ports->socket[--ports->count]);
}

void mst_networks_tell(const struct mst_networks *n, bool encrypted)
{
	for (uint32_t i = 0; i < n->count; i++)
		if (!n->item[i]->maps)
			mst_info("gradients and results %s over %s, %s",
				 n->count > 1 ? "may travel" : "travel", n->item[i]->medium,
				 mst_transport_privacy(n->item[i], encrypted));
}

/* ---- from text ---- */

static void all(struct mst_networks *out)
{
	const struct mst_transport *t;

	*out = (struct mst_networks){ .optional = true };
	for (uint32_t i = 0; (t = mst_transport_at(i)) != NULL; i++)
		add(out, t);
}

/* Is @scheme one of the words of @text, which are separated by commas? */
static bool names(const char *text, const char *scheme)
{
	size_t len = strlen(scheme);

	for (const char *at = text; at != NULL; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, scheme, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return true;
	}
	return false;
}

bool mst_networks_share(const struct mst_networks *n, const char *schemes)
{
	bool any = false;

	for (uint32_t i = 0; i < n->count; i++)
		any |= names(schemes, n->item[i]->scheme);
	return any;
}

static uint32_t words_of(const char *text)
{
	uint32_t count = 1;

	for (; *text != '\0'; text++)
		count += *text == ',';
	return count;
}

int mst_networks_read(const char *text, struct mst_networks *out, struct mst_reason *why)
{
	const struct mst_transport *t;
	struct mst_networks known;

	all(&known);
	*out = known;
	if (strcmp(text, "auto") == 0)
		return 0;
	*out = (struct mst_networks){ 0 };
	for (uint32_t i = 0; (t = mst_transport_at(i)) != NULL; i++)
		if (names(text, t->scheme))
			add(out, t);
	if (out->count == words_of(text)) /* each word is one of them, and none comes twice */
		return 0;
	return mst_reason_fail(why, -EINVAL,
			       "\"%.60s\" is not one of auto|" MST_TRANSPORT_SCHEMES
			       ", nor several of them with commas between, as in shm,tcp",
			       text);
}

/* ---- addresses ---- */

/* The address in the list that begins at @at. Return: its length. */
static size_t address_at(const char *at)
{
	return strcspn(at, "|");
}

bool mst_transport_address(const struct mst_transport *t, const char *list,
			   char out[MST_ADDRESS_LEN])
{
	const char *at = list;

	while (*at != '\0') {
		size_t len = address_at(at);
		if (strncmp(at, t->prefix, strlen(t->prefix)) == 0 && len < MST_ADDRESS_LEN) {
			memcpy(out, at, len);
			out[len] = '\0';
			return true;
		}
		at += len + (at[len] == '|');
	}
	return false;
}

/* Is it one of those in @list, "10.0.0.1:4711, [fd00::1]:4711"? */
static bool is_listed(const char *list, const char *place, size_t len)
{
	for (const char *at = list; *at != '\0'; at += strspn(at, ", ")) {
		size_t one = strcspn(at, ",");
		if (one == len && memcmp(at, place, len) == 0)
			return true;
		at += one;
	}
	return false;
}

/* Adds those of "10.0.0.1:4711,*:4711", of @len characters. */
static void add_places(const char *places, size_t len, char out[MST_ADDRESS_LEN])
{
	const char *end = places + len;

	for (const char *at = places; at < end;) {
		size_t used = strlen(out), one = strcspn(at, ",|");
		if (*at != '*' && !is_listed(out, at, one))
			(void)snprintf(out + used, MST_ADDRESS_LEN - used, "%s%.*s",
				       used > 0 ? ", " : "", (int)one, at);
		at += one + 1;
	}
}

const char *mst_networks_places(const char *address, char out[MST_ADDRESS_LEN])
{
	char one[MST_ADDRESS_LEN];
	const struct mst_transport *t;

	out[0] = '\0';
	for (uint32_t i = 0; (t = mst_transport_at(i)) != NULL; i++) {
		size_t prefix = strlen(t->prefix);
		if (!t->maps && mst_transport_address(t, address, one))
			add_places(one + prefix, strlen(one) - prefix, out);
	}
	if (out[0] == '\0')
		(void)snprintf(out, MST_ADDRESS_LEN, "%s", address);
	return out;
}

void mst_networks_keep(struct mst_networks *n, const char *address)
{
	char unused[MST_ADDRESS_LEN];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n->count; i++)
		if (mst_transport_address(n->item[i], address, unused))
			n->item[kept++] = n->item[i];
	n->count = kept;
}
