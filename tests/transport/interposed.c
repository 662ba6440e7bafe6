/* SPDX-License-Identifier: MIT */
#include "tests/transport/interposed.h"

#include "client/session/network_choice.h"
#include "common/base/assert.h"

const struct mst_transport *__real_mst_networks_transport(const struct mst_networks *n);
const struct mst_transport *__wrap_mst_networks_transport(const struct mst_networks *n);
/* Not in a server. */
int __attribute__((weak))
__real_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
			       const struct mst_transport **out, struct mst_reason *why);
int __wrap_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
				   const struct mst_transport **out, struct mst_reason *why);

const struct mst_transport *interposed_real;
struct mst_transport interposed_ours;
static struct mst_link_listener_ops listeners;
static bool stands; /* between the program and the network */

int interposed_net_open(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	int rc = interposed_real->net_open(cfg, out, why);

	if (rc == 0)
		(*out)->ops = &interposed_ours;
	return rc;
}

int interposed_dial(struct mst_net *net, const struct mst_dial *how, struct mst_link **out,
		    struct mst_reason *why)
{
	int rc = interposed_real->dial(net, how, out, why);

	if (rc == 0)
		(*out)->ops = &interposed_ours;
	return rc;
}

static const struct mst_transport *stand_before(const struct mst_transport *found)
{
	if (found == NULL || found == &mst_joint)
		return found;
	if (interposed_real == NULL) {
		interposed_real = found;
		interposed_ours = *found;
		listeners = *found->listener;
		interposed_ours.listener = &listeners;
		interposed_ours.net_open = interposed_net_open;
		interposed_ours.dial = interposed_dial;
		stands = interpose(&interposed_ours, &listeners);
	}
	MST_ASSERT(found == interposed_real || !stands);
	return stands ? &interposed_ours : found;
}

const struct mst_transport *__wrap_mst_networks_transport(const struct mst_networks *n)
{
	return stand_before(__real_mst_networks_transport(n));
}

int __wrap_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
				   const struct mst_transport **out, struct mst_reason *why)
{
	int rc = __real_mst_network_choice_take(c, welcome, out, why);

	if (rc == 0)
		*out = stand_before(*out);
	return rc;
}
