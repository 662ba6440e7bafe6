/* SPDX-License-Identifier: MIT */
#include "client/session/end_cause.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WHOSE_LEN (MST_LINKS_NAME_LEN + 32)

/* A lost link whose server has not ended the session, so that the link broke by itself; NULL: there
 * is none. */
static const struct mst_part *broken(const struct mst_end_cause *e)
{
	for (uint32_t k = 0; k < e->links->count; k++)
		if (e->links->part[k].lost && &e->links->part[k] != e->inbound->ended_by)
			return &e->links->part[k];
	return NULL;
}

/* Why that link broke, in its own words; NULL: no link broke. */
static const char *why_broken(const struct mst_end_cause *e)
{
	const struct mst_part *p = broken(e);

	return p != NULL ? p->link->why.text : NULL;
}

static const char *reason_of(const struct mst_end_cause *e, int error)
{
	const char *why = why_broken(e);

	if (error == -ENOTCONN && why != NULL && why[0] != '\0')
		return why;
	switch (error) {
	case -EPROTO:
		if (e->links->count > 1)
			return "what it sent the protocol does not allow at this point, or it "
			       "differs from what other servers sent";
		return "the server sent what the protocol does not allow at this point";
	case -EHOSTDOWN:
		return "the job has failed: too few live workers, or a server of it is gone";
	case -ESTALE:
		return "this worker is further behind than the server keeps versions";
	default:
		return "the server has ended the session, or is gone";
	}
}

/* How it looked from here that a link broke by itself. "" if none did, or if the leader has said
 * the same. */
static const char *own_reason(const struct mst_end_cause *e)
{
	const char *why = e->inbound->ended_by != NULL ? NULL : why_broken(e);

	return why != NULL && strstr(e->session->told.reason.text, why) == NULL ? why : "";
}

/* Where there are several servers: which one's link broke, or which one has ended the session. The
 * latter may have lost another server, as this worker did. */
static const char *whose(const struct mst_end_cause *e, char *out)
{
	const struct mst_part *p = e->inbound->odd != NULL ? NULL : broken(e);
	const struct mst_part *said = e->inbound->odd != NULL ? e->inbound->odd
							      : e->inbound->ended_by;
	char name[MST_LINKS_NAME_LEN];

	out[0] = '\0';
	if (e->links->count > 1 && p != NULL)
		(void)snprintf(out, WHOSE_LEN,
			       "the link to %s is lost: ", mst_links_name(e->links, p, name));
	else if (e->links->count > 1 && said != NULL)
		(void)snprintf(out, WHOSE_LEN, "%s: ", mst_links_name(e->links, said, name));
	return out;
}

/* A leader that closes the connection may have had no time to say why. Then the session word that a
 * server has put before says more. */
static bool link_knows_better(const struct mst_end_cause *e)
{
	return e->inbound->ended_by != NULL && e->session->told.error == -ENOTCONN &&
	       e->worker->error != 0 && e->worker->error != -ENOTCONN;
}

/* Does the error concern one server, so that the sentence should name it? */
static bool names_server(const struct mst_end_cause *e, int error)
{
	return error == -ENOTCONN || (error == -EPROTO && e->inbound->odd != NULL);
}

/* A server other than the leader that is gone; NULL: there is none. */
static const struct mst_part *deserter(const struct mst_end_cause *e)
{
	const struct mst_part *p = broken(e) != NULL ? broken(e) : e->inbound->ended_by;

	return p != e->links->part ? p : NULL;
}

/* The leader notices at once when a server is gone, and says so. If it has said nothing although
 * this worker has waited for it, then the leader itself stands still, and the server has left the
 * job because of that. This is not so for a link that has a reason of its own: it may have broken
 * at this end alone. */
static bool leader_is_silent(const struct mst_end_cause *e, int error)
{
	const struct mst_part *p = deserter(e);

	return error == -ENOTCONN && e->waited && !e->session->told.closed && p != NULL &&
	       p->link->why.text[0] == '\0';
}

static int blame_leader(const struct mst_end_cause *e, int error)
{
	char name[MST_LINKS_NAME_LEN];

	(void)mst_links_name(e->links, deserter(e), name);
	return mst_reason_fail(
		e->failure, error,
		"rank %" PRIu32 " in job \"%s\": the leader, server 0 at %.200s, is "
		"silent: it stands still, or is cut off; %s has ended its link with "
		"this worker, as servers do whose leader is silent for --server-lease",
		e->session->job.rank, e->session->job.name, e->session->settings->server, name);
}

#define REFUSED_LEN 96u

/* The leader has seen a worker that hands nothing in, and cannot know why. */
static const char *refused(const struct mst_end_cause *e, char *out)
{
	out[0] = '\0';
	if (e->worker->refused > 0)
		(void)snprintf(out, REFUSED_LEN,
			       "; since the last that counted, %" PRIu64 " gradient%s not finite",
			       e->worker->refused, e->worker->refused == 1 ? " was" : "s were");
	return out;
}

/* The leader's own words are better than what a link could tell. They may have arrived without
 * having been read, so the connection is read first. */
int mst_end_cause_tell(const struct mst_end_cause *e)
{
	char of[WHOSE_LEN], more[REFUSED_LEN];

	if (e->session->told.error == 0 && !e->session->told.closed) {
		(void)mst_control_step(e->session->control, mst_now_ns());
		mst_control_look(e->session->control, &e->session->told);
	}
	bool leader = e->session->told.error != 0 && !link_knows_better(e);
	int error = leader ? e->session->told.error : e->worker->error;
	const char *said = leader ? e->session->told.reason.text : reason_of(e, error);
	const char *own = leader ? own_reason(e) : "";

	if (!leader && leader_is_silent(e, error))
		return blame_leader(e, error);
	(void)whose(e, of);
	(void)refused(e, more);
	if (own[0] != '\0')
		return mst_reason_fail(
			e->failure, error, "rank %" PRIu32 " in job \"%s\": %s; here: %s%s%s",
			e->session->job.rank, e->session->job.name, said, of, own, more);
	return mst_reason_fail(e->failure, error, "rank %" PRIu32 " in job \"%s\": %s%s%s",
			       e->session->job.rank, e->session->job.name,
			       leader || !names_server(e, error) ? "" : of, said, more);
}
