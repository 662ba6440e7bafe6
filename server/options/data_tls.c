/* SPDX-License-Identifier: MIT */
#include "server/options/data_tls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/transport/reach.h"
#include "common/transport/transport.h"
#include "server/options/access.h"

static const char *control_address(const struct mst_server_options *o)
{
	return o->join != NULL ? o->join : o->listen;
}

static bool has_data_addresses(const struct mst_server_options *o)
{
	return o->fabric.data_address != NULL && o->fabric.data_address[0] != '\0';
}

/* The furthest of a list, "10.0.0.1,fd00::1". What is no address the network refuses. */
static enum mst_reach reach_of_list(const char *list)
{
	char one[MST_FABRIC_TEXT_LEN + 8];

	while (*list != '\0') {
		size_t len = strcspn(list, ",");
		(void)snprintf(one, sizeof(one), "[%.*s]:0", (int)len, list);
		if (mst_reach_of(one) == MST_REACH_BEYOND)
			return MST_REACH_BEYOND;
		list += len + (list[len] == ',');
	}
	return MST_REACH_LOOPBACK;
}

static enum mst_reach data_reach(const struct mst_server_options *o)
{
	return has_data_addresses(o) ? reach_of_list(o->fabric.data_address)
				     : mst_reach_of(control_address(o));
}

bool mst_server_options_may_encrypt(const struct mst_server_options *o)
{
	struct mst_networks networks;
	struct mst_reason why;
	bool any = false;

	if (mst_server_options_networks(o, &networks, &why) != 0)
		return false; /* which has its sentence elsewhere */
	for (uint32_t i = 0; i < networks.count; i++)
		any |= networks.item[i]->encrypts;
	return any;
}

bool mst_server_options_encrypts(const struct mst_server_options *o)
{
	return mst_server_options_tls(o) && o->fabric.data_tls != MST_DATA_TLS_OFF;
}

bool mst_server_options_is_local(const struct mst_server_options *o)
{
	const char *address = control_address(o);

	return address != NULL && mst_reach_of(address) == MST_REACH_LOOPBACK;
}

bool mst_server_options_is_near(const struct mst_server_options *o)
{
	return !has_data_addresses(o) && mst_server_options_is_local(o);
}

int mst_server_options_access(const struct mst_server_options *o, enum mst_access *out,
			      struct mst_reason *why)
{
	const char *address = control_address(o);
	/* The fabrics of other networks are trusted (docs/security.md). */
	bool open = mst_server_options_may_encrypt(o);
	struct mst_access_facts facts = { .address = address,
					  .joins = o->join != NULL,
					  .reach = mst_reach_of(address),
					  .data_address = o->fabric.data_address,
					  .data_reach = open ? data_reach(o) : MST_REACH_LOOPBACK,
					  .has_certificates = mst_server_options_tls(o),
					  .insecure = o->insecure };

	return mst_access_judge(&facts, out, why);
}

static int on_check(const struct mst_server_options *o, const struct mst_transport *t,
		    struct mst_reason *why)
{
	if (t->maps)
		return 0; /* shared memory does not leave the host */
	if (!t->encrypts && data_reach(o) == MST_REACH_BEYOND)
		return mst_reason_fail(
			why, -EINVAL,
			"--data-tls on wants gradients encrypted, and %s sends plain bytes: use "
			"--transport tcp, or leave --data-tls at auto if its fabric is trusted",
			t->medium);
	if (!t->encrypts || mst_server_options_tls(o))
		return 0;
	return mst_reason_fail(why, -EINVAL,
			       "--data-tls on needs certificates: make some with `muster key new "
			       "DIR` and give --tls-ca, --tls-cert and --tls-key");
}

int mst_data_tls_check(const struct mst_server_options *o, struct mst_reason *why)
{
	if (o->join != NULL && o->fabric.data_tls != MST_DATA_TLS_AUTO)
		return mst_reason_fail(why, -EINVAL,
				       "--data-tls is for the leader to say, and followers do as "
				       "it says: leave it out beside --join");
	struct mst_networks networks;
	int rc = 0;

	if (o->fabric.data_tls == MST_DATA_TLS_ON)
		rc = mst_server_options_networks(o, &networks, why);
	for (uint32_t i = 0; o->fabric.data_tls == MST_DATA_TLS_ON && rc == 0 && i < networks.count;
	     i++)
		rc = on_check(o, networks.item[i], why);
	return rc;
}
