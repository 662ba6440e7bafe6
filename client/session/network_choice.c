/* SPDX-License-Identifier: MIT */
#include "client/session/network_choice.h"

#include <errno.h>
#include <string.h>

void mst_network_choice_init(struct mst_network_choice *c, const struct mst_networks *may)
{
	*c = (struct mst_network_choice){ .may = *may, .left = *may };
}

static void remove_network(struct mst_networks *n, const struct mst_transport *t)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n->count; i++)
		if (strcmp(n->item[i]->scheme, t->scheme) != 0)
			n->item[kept++] = n->item[i];
	n->count = kept;
}

bool mst_network_choice_pass(struct mst_network_choice *c, const struct mst_transport *failed,
			     const char *why)
{
	remove_network(&c->left, failed);
	mst_reason_add(&c->passed, "%snot %s: %s", c->passed.text[0] != '\0' ? "; " : "",
		       failed->scheme, why);
	return c->left.count > 0;
}

/* The networks of a listener that this build has, "shm,tcp"; "": none. Return: @out. */
static const char *offered(const char *address, char out[MST_NETWORKS_TEXT_LEN])
{
	struct mst_networks all;
	struct mst_reason why;

	(void)mst_networks_read("auto", &all, &why);
	mst_networks_keep(&all, address);
	return mst_networks_text(&all, out);
}

static int none_left(const struct mst_welcome *w, uint32_t server, const char *may,
		     struct mst_reason *why)
{
	char first[MST_NETWORKS_TEXT_LEN], theirs[MST_NETWORKS_TEXT_LEN];

	if (offered(w->server[server].address, theirs)[0] == '\0')
		return mst_reason_fail(
			why, -EPROTONOSUPPORT,
			"the server's listener %.200s is for a network that this build "
			"does not have",
			w->server[server].address);
	if (server == 0)
		return mst_reason_fail(
			why, -EINVAL,
			"the server offers links over %s, and MUSTER_TRANSPORT is %s: set "
			"it to auto, or start the server with --transport %s",
			theirs, may, may);
	return mst_reason_fail(
		why, -EPROTO,
		"the servers of the job offer links over %s and over %s, and a worker links "
		"with all of them over one network: start all servers with the same "
		"--transport, and MUSTER_TRANSPORT, which is %s, has to name one of "
		"theirs",
		offered(w->server[0].address, first), theirs, may);
}

/* Leaves those of the list that all servers offer. */
static struct mst_networks of_all_servers(struct mst_networks list, const struct mst_welcome *w)
{
	for (uint32_t k = 0; k < w->server_count; k++)
		mst_networks_keep(&list, w->server[k].address);
	return list;
}

/* All that were left have failed. */
static int none_leads(const struct mst_network_choice *c, const struct mst_welcome *w, int error,
		      struct mst_reason *why)
{
	char offers[MST_NETWORKS_TEXT_LEN], may[MST_NETWORKS_TEXT_LEN];
	struct mst_networks all, usable = of_all_servers(c->may, w);

	(void)mst_networks_read("auto", &all, why);
	all = of_all_servers(all, w);
	(void)mst_networks_text(&all, offers);
	if (usable.count < all.count)
		return mst_reason_fail(why, error,
				       "no network leads from here to the server: it offers %s, "
				       "and MUSTER_TRANSPORT is %s (%s): set it to auto",
				       offers, mst_networks_text(&c->may, may), c->passed.text);
	return mst_reason_fail(why, error,
			       "no network leads from here to the server, which offers %s (%s): "
			       "start it with --transport tcp, or shm,tcp",
			       offers, c->passed.text);
}

/* Keeps the networks that all servers offer. */
static int keep_offered(struct mst_network_choice *c, const struct mst_welcome *w,
			struct mst_reason *why)
{
	char may[MST_NETWORKS_TEXT_LEN];

	(void)mst_networks_text(&c->left, may);
	for (uint32_t k = 0; k < w->server_count; k++) {
		mst_networks_keep(&c->left, w->server[k].address);
		if (c->left.count == 0)
			return none_left(w, k, may, why);
	}
	return 0;
}

/* Can this host tell by itself that there is no way to some server? */
static int look_around(const struct mst_transport *t, const struct mst_welcome *w,
		       struct mst_reason *why)
{
	char address[MST_ADDRESS_LEN];
	int rc = 0;

	for (uint32_t k = 0; k < w->server_count && rc == 0 && t->reaches != NULL; k++)
		if (mst_transport_address(t, w->server[k].address, address))
			rc = t->reaches(address, why);
	return rc;
}

int mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *w,
			    const struct mst_transport **out, struct mst_reason *why)
{
	struct mst_reason one;
	int error = 0, rc = keep_offered(c, w, why);

	for (uint32_t tries = c->left.count; rc == 0 && tries > 0; tries--) {
		*out = c->left.item[0];
		error = look_around(*out, w, &one);
		if (error == 0)
			return 0;
		(void)mst_network_choice_pass(c, *out, mst_reason_or_errno(&one, error));
	}
	return rc != 0 ? rc : none_leads(c, w, error, why);
}
