/* SPDX-License-Identifier: MIT */
#include "server/control/members/linking.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/log.h"
#include "common/base/reason.h"
#include "common/transport/origins.h"
#include "server/cluster/peer.h"
#include "server/control/members/token.h"

/* Strangers may ask for links as fast as they are refused, so a step answers only a few.
 * The transport has a bound of its own for requests that it, or the filter, refuses. */
#define REQUESTS_PER_STEP 8

/* ---- beginning and end ---- */

static void wake(void *ctx)
{
	mst_frontend_wake(ctx);
}

static bool expects(void *ctx, const uint8_t token[MST_TOKEN_LEN], const struct mst_origin *from);

int mst_linking_init(struct mst_linking *l, bool aside)
{
	l->job->filter = (struct mst_link_filter){ expects, l };
	return mst_link_maker_new(aside ? wake : NULL, l->front, &l->maker);
}

void mst_linking_fini(struct mst_linking *l)
{
	mst_link_maker_free(l->maker);
	l->maker = NULL;
}

void mst_linking_forget(struct mst_linking *l)
{
	l->listener_broken = false;
}

/* ---- links that have been made ---- */

static bool lanes_match(const struct mst_lanes *lanes, const struct mst_lanes *wanted)
{
	return lanes->up_bytes == wanted->up_bytes && lanes->down_bytes == wanted->down_bytes &&
	       lanes->up_credits == wanted->up_credits &&
	       lanes->down_credits == wanted->down_credits;
}

/* Tells the worker why there is no link. The end of the session, which follows, says less. */
static void no_link(struct mst_linking *l, struct mst_identity who,
		    const struct mst_link_made *made, uint64_t now_ns)
{
	struct mst_conn *c = mst_frontend_worker(l->front, who);
	struct mst_reason reason;

	mst_reason_set(&reason, "rank %" PRIu32 ": its link could not be set up: %s", who.rank,
		       mst_reason_or_errno(&made->why, made->error));
	mst_warn("%s", reason.text);
	if (c != NULL) {
		c->left = true;
		mst_frontend_error(l->front, c, made->error, reason.text, now_ns);
	}
	mst_requests_lose(&l->job->requests, who);
}

static void let_worker_in(struct mst_linking *l, struct mst_pending_session *p,
			  const struct mst_link_made *made, uint64_t now_ns)
{
	struct mst_request request = { .kind = MST_REQ_LINKED, .session = &p->session };

	if (made->error != 0) {
		no_link(l, p->session.who, made, now_ns);
		return;
	}
	const struct mst_transport *over = made->link->ops;
	if (!over->maps)
		mst_info("rank %" PRIu32 " is linked over %s, %s", p->session.who.rank,
			 over->scheme, mst_transport_privacy(over, l->job->terms.fabric.encrypted));
	l->sessions->over[p->session.who.rank] = over;
	p->session.link = made->link;
	(void)mst_pending_enter(&p->state, MST_PENDING_LEND);
	mst_requests_put(&l->job->requests, &request);
}

/* Gives a link to the session or the server that it was made for. If that has gone, frees the
 * link. */
static void hand_over(struct mst_linking *l, const struct mst_link_made *made, uint64_t now_ns)
{
	struct mst_pending_session *p = mst_sessions_linking(l->sessions, made->token);

	if (p != NULL)
		let_worker_in(l, p, made, now_ns);
	else if ((l->servers == NULL || !l->servers->made(l->ctx, made)) && made->link != NULL)
		made->link->ops->link_free(made->link);
}

static void take_links(struct mst_linking *l, uint64_t now_ns)
{
	struct mst_link_made made;

	while (mst_link_maker_take(l->maker, &made))
		hand_over(l, &made, now_ns);
}

/* ---- requests ---- */

/* How long a token is good for. A worker makes its memory before it asks for links, and asks one
 * server after the other. A follower also makes its memory first; if it is too late, it is offered
 * another token. A follower is told of a session before its worker is welcomed, which waits for the
 * other followers, at most until one that says nothing is given up. */
static uint64_t token_ns(const struct mst_linking *l)
{
	uint64_t bytes = l->job->session_bytes * mst_job_servers(l->job);
	uint64_t most_ns = MST_TOKEN_NS + bytes / MST_TOKEN_BYTES * MST_SECOND;

	if (mst_job_follows(l->job))
		most_ns += mst_server_options_server_lease(l->job->o);
	return most_ns;
}

/* Somebody has shown a token that is good, but not from there. */
static void complain_of_origin(struct mst_linking *l, const struct mst_origins *origins,
			       const struct mst_origins *announced, const char *whose,
			       const char *option)
{
	char from[MST_ORIGINS_TEXT_LEN], known[MST_ORIGINS_TEXT_LEN];

	mst_complain(&l->front->complaints, MST_COMPLAINT_ORIGIN,
		     "somebody at %s asked for the link of %s, which has announced %s; sent away, "
		     "and the token stays good: if it was %s, give it its addresses on the data "
		     "network with %s, else somebody else has read its token",
		     mst_origins_text(origins, from, sizeof(from)), whose,
		     mst_origins_text(announced, known, sizeof(known)), whose, option);
}

/* Is this token expected from there? If not, the log says why. */
static bool is_expected(struct mst_linking *l, const uint8_t *token,
			const struct mst_origins *origins)
{
	const struct mst_pending_session *p = mst_sessions_expecting(l->sessions, token);
	const struct mst_origins *announced = p != NULL ? &p->origins : NULL;
	char from[MST_ORIGINS_TEXT_LEN], whose[32];
	uint32_t server = 0;

	if (p == NULL && l->servers != NULL)
		server = l->servers->expecting(l->ctx, token, &announced);
	if (announced == NULL) {
		mst_complain(&l->front->complaints, MST_COMPLAINT_REQUEST,
			     "somebody%s%s asked for a link with no valid token; sent away",
			     origins->count > 0 ? " at " : "",
			     mst_origins_text(origins, from, sizeof(from)));
		return false;
	}
	if (mst_origins_cover(announced, origins))
		return true;
	if (p != NULL)
		(void)snprintf(whose, sizeof(whose), "rank %" PRIu32, p->session.who.rank);
	else
		(void)snprintf(whose, sizeof(whose), "server %" PRIu32, server);
	complain_of_origin(l, origins, announced, whose,
			   p != NULL ? "MUSTER_DATA_ADDRESS" : "--data-address");
	return false;
}

/* The filter of the listener. */
static bool expects(void *ctx, const uint8_t token[MST_TOKEN_LEN], const struct mst_origin *from)
{
	return is_expected(ctx, token, &(struct mst_origins){ 1, { *from } });
}

static void send_away(struct mst_linking *l, const struct mst_link_request *request, bool expected,
		      bool old)
{
	struct mst_reason unused;

	if (expected)
		mst_complain(&l->front->complaints, MST_COMPLAINT_REQUEST,
			     "somebody asked for a link with %s; sent away",
			     old ? "a token whose time is over"
				 : "other figures than its welcome has");
	else
		(void)is_expected(l, request->token, &request->from); /* which says why */
	(void)mst_job_transport(l->job)->listener->answer(l->job->listener, request, NULL, &unused);
}

static void answer(struct mst_linking *l, const struct mst_link_request *request)
{
	const struct mst_lane_layout *layout = &l->job->plan.layout;
	struct mst_pending_session *p = mst_sessions_spend(l->sessions, request);
	uint64_t age_ns = p != NULL ? mst_sessions_waited(l->sessions, p) : 0;
	uint32_t server = 0;
	struct mst_lanes workers = mst_plan_lanes(layout);
	struct mst_lanes servers = mst_peer_lanes(
		mst_peer_window(l->job->o->workers, layout->slots));

	if (p == NULL && l->servers != NULL)
		server = l->servers->spend(l->ctx, request, &age_ns);
	bool old = age_ns > token_ns(l);
	if (p != NULL && !old && lanes_match(&request->lanes, &workers)) {
		mst_link_maker_make(l->maker, mst_job_transport(l->job)->listener, l->job->listener,
				    request);
	} else if (server != 0 && !old && lanes_match(&request->lanes, &servers)) {
		l->servers->begins(l->ctx, server);
		mst_link_maker_make(l->maker, mst_job_transport(l->job)->listener, l->job->listener,
				    request);
	} else {
		send_away(l, request, p != NULL || server != 0, old);
	}
}

void mst_linking_step(struct mst_linking *l, uint64_t now_ns)
{
	const struct mst_link_listener_ops *listener = mst_job_transport(l->job)->listener;
	struct mst_link_request request;
	struct mst_reason why;
	int rc = 0;

	mst_sessions_look(l->sessions, now_ns);
	take_links(l, now_ns);
	for (int i = 0; i < REQUESTS_PER_STEP && rc == 0 && mst_link_maker_has_room(l->maker);
	     i++) {
		rc = listener->next_request(l->job->listener, &request, &why);
		if (rc == 0)
			answer(l, &request);
		take_links(l, now_ns); /* links are ready at once if the maker has no threads */
	}
	if (rc == -EAGAIN)
		mst_sessions_answered(l->sessions, now_ns);
	if (rc == 0 && mst_link_maker_has_room(l->maker))
		mst_frontend_wake(l->front); /* others may be asking, too */
	if (rc == -ENODEV && !l->listener_broken) {
		mst_error("nobody can join any more: %s", mst_reason_or_errno(&why, rc));
		l->listener_broken = true;
	}
}

bool mst_linking_is_busy(const struct mst_linking *l)
{
	return mst_link_maker_count(l->maker) > 0;
}
