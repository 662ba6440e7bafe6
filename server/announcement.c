/* SPDX-License-Identifier: MIT */
#include "server/announcement.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/hostport.h"
#include "server/core/policy/majority.h"

/* A job of this host alone is left in peace: muster run makes such ones, also in containers, whose
 * only user is root. */
static void tell_rights(enum mst_access access)
{
	if (access != MST_ACCESS_LOCAL && geteuid() == 0)
		mst_warn("this server is run by root, whose rights it does not need once it has "
			 "started: give them up with --user NAME");
}

/* Checkpoints of such a job are of use only with what a worker has saved. */
static void tell_checkpoints(const struct mst_server_options *o)
{
	if (mst_server_options_saves(o) && o->owner == MUSTER_WORKERS_OWN && o->join == NULL)
		mst_warn(
			"no parameters will be in the checkpoints in %s (--state), for workers own "
			"them (--owner workers): let a worker save them; a checkpoint has the "
			"version, samples and clocks that a resumed job goes on with",
			o->state);
}

static void tell_access(const struct mst_server_options *o, enum mst_access access,
			const struct mst_plane *plane)
{
	if (access == MST_ACCESS_INSECURE && o->join == NULL && mst_server_options_is_local(o))
		mst_warn("INSECURE: whoever is on the way to %s reads all gradients and "
			 "parameters (--data-address, --insecure)",
			 o->fabric.data_address);
	else if (access == MST_ACCESS_INSECURE && o->join == NULL)
		mst_warn("INSECURE: %s is beyond loopback, and whoever reaches it may join, read "
			 "all parameters and end the job (--insecure)",
			 mst_plane_address(plane));
	else if (access == MST_ACCESS_INSECURE)
		mst_warn("INSECURE: whoever answers at %s is taken for the leader (--insecure)",
			 o->join);
}

/* Workers wait for other servers only after they have given one up. */
static void tell_server_patience(const struct mst_server_options *o)
{
	uint64_t lease_ns = mst_server_options_server_lease(o);

	if (o->join == NULL && mst_server_options_goes_on(o) && o->server_patience_ns < lease_ns)
		mst_warn("--server-patience %.3g s is shorter than --server-lease %.3g s: a server "
			 "that falls silent is given up so late that nobody waits for another one; "
			 "give a longer --server-patience, or a shorter --server-lease",
			 (double)o->server_patience_ns / (double)MST_SECOND,
			 (double)lease_ns / (double)MST_SECOND);
}

/* An old leader could go on with those that a start goes without. */
static void tell_start(const struct mst_server_options *o)
{
	uint32_t least = mst_majority_least(o->workers);

	if (o->join != NULL || !mst_server_options_goes_on(o))
		return;
	if (o->join_timeout_ns != 0 && o->join_timeout_ns <= o->return_timeout_ns)
		mst_warn(
			"--join-timeout %.3g s is not above --return-timeout %.3g s: after the "
			"loss of a server no start goes without workers that do not come back, but "
			"fails before",
			(double)o->join_timeout_ns / (double)MST_SECOND,
			(double)o->return_timeout_ns / (double)MST_SECOND);
	if (mst_server_options_min_workers(o) < least)
		mst_warn("--min-workers %" PRIu32 " is at most half of %" PRIu32
			 " workers: if a server is lost, a new start will need all %" PRIu32
			 "; with --min-workers %" PRIu32
			 " or more it goes without those that do not come back",
			 o->min_workers, o->workers, o->workers, least);
}

/* A follower knows it when its leader has said it. */
static void tell_privacy(const struct mst_server_options *o, const struct mst_networks *n)
{
	if (o->join == NULL)
		mst_networks_tell(n, mst_server_options_encrypts(o));
}

void mst_announcement_tell(const struct mst_server_options *o, enum mst_access access,
			   const struct mst_plane *plane)
{
	tell_access(o, access, plane);
	tell_rights(access);
	tell_checkpoints(o);
	tell_server_patience(o);
	tell_start(o);
	tell_privacy(o, mst_plane_networks(plane));
}

/* Many systems have the name of the host itself in /etc/hosts, at an address that no other host
 * reaches. */
void mst_announcement_tell_name(const struct mst_server_options *o, const char *bound)
{
	if (mst_hostport_is_name(o->listen) && !mst_hostport_is_here(o->listen) &&
	    mst_hostport_is_here(bound))
		mst_warn("--listen %.100s is %s here, and only this host can join there: give "
			 "--listen 0.0.0.0:%s for all addresses of this host, or one that other "
			 "hosts can reach (ip address shows them)",
			 o->listen, bound, strrchr(bound, ':') + 1);
}
