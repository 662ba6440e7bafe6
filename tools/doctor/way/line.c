/* SPDX-License-Identifier: MIT */
/* Lines of JSON over a control stream. */
#include "tools/doctor/way/way.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/text.h"

#define LOOK_MS 50u

static int await(struct mst_way_stream *s, short events, struct mst_reason *why)
{
	struct pollfd pfd = { .fd = s->ops->stream_fd(s->stream), .events = events };

	for (;;) {
		uint64_t left_ms = mst_left_ns(s->deadline_ns) / MST_MS;
		if (s->stop != NULL && atomic_load_explicit(s->stop, memory_order_relaxed))
			return mst_reason_fail(why, -ECANCELED, "this end was told to stop");
		if (left_ms == 0)
			return mst_reason_fail(why, -ETIMEDOUT, "%s says nothing any more",
					       s->peer);
		if (poll(&pfd, 1, (int)(left_ms < LOOK_MS ? left_ms : LOOK_MS)) > 0)
			return 0;
	}
}

static int broken(const struct mst_way_stream *s, int error, struct mst_reason *why)
{
	const char *more = s->ops->why(s->stream);

	return mst_reason_fail(why, error, "%s: %s", s->peer,
			       more != NULL ? more : strerror(-error));
}

static int send_all(struct mst_way_stream *s, const char *data, size_t len, struct mst_reason *why)
{
	while (len > 0) {
		ssize_t sent = s->ops->send(s->stream, data, len);
		int rc = 0;
		if (sent == -EAGAIN)
			rc = await(s, POLLOUT, why);
		else if (sent < 0)
			rc = broken(s, (int)sent, why);
		if (rc != 0)
			return rc;
		data += sent > 0 ? sent : 0;
		len -= sent > 0 ? (size_t)sent : 0;
	}
	return 0;
}

/* Some bytes, at least one. Return: how many; -errno with a sentence. */
static ssize_t receive_some(struct mst_way_stream *s, char *to, size_t len, struct mst_reason *why)
{
	for (;;) {
		ssize_t got = s->ops->receive(s->stream, to, len);
		if (got > 0)
			return got;
		if (got == 0)
			return mst_reason_fail(why, -EPIPE, "%s has closed the connection",
					       s->peer);
		if (got != -EAGAIN)
			return broken(s, (int)got, why);
		int rc = await(s, POLLIN, why);
		if (rc != 0)
			return rc;
	}
}

int mst_way_say(struct mst_way_stream *s, json_t *say, struct mst_reason *why)
{
	char *line = say != NULL ? json_dumps(say, JSON_COMPACT) : NULL;
	int rc = -ENOMEM;

	mst_reason_clear(why);
	json_decref(say);
	if (line != NULL)
		rc = send_all(s, line, strlen(line), why);
	if (rc == 0)
		rc = send_all(s, "\n", 1, why);
	free(line);
	return rc;
}

/* What somebody says who is no muster doctor. */
static int other(const struct mst_way_stream *s, struct mst_reason *why)
{
	char said[61];

	/* to a caller without TLS a listener with certificates says so in a message of muster's */
	if (s->has >= 4 && memcmp(s->text, "mstr", 4) == 0 &&
	    memmem(s->text, s->has, "by TLS", 6) != NULL)
		return mst_reason_fail(why, -EPROTO,
				       "%s, a muster doctor --listen or a server of a job, has "
				       "certificates, and this end has none",
				       s->peer);
	if (s->has >= 4 && memcmp(s->text, "mstr", 4) == 0)
		return mst_reason_fail(why, -EPROTO,
				       "at %s there is a server of a job (musterd), which answers "
				       "muster status, and not muster doctor --listen",
				       s->peer);
	if (s->has >= 2 && s->text[0] == 0x15 && s->text[1] == 0x03)
		return mst_reason_fail(why, -EPROTO,
				       "%s speaks TLS, and this end has no certificate", s->peer);
	(void)snprintf(said, sizeof(said), "%.*s", (int)s->has, s->text);
	said[strcspn(said, "\r\n")] = '\0';
	mst_text_clean(said);
	return mst_reason_fail(why, -EPROTO, "%s is no muster doctor: it says \"%s\"", s->peer,
			       said);
}

/* The line that has come, of @len bytes. */
static int take(struct mst_way_stream *s, size_t len, json_t **out, struct mst_reason *why)
{
	json_t *line = json_loadb(s->text, len, JSON_REJECT_DUPLICATES, NULL);

	if (!json_is_object(line)) {
		json_decref(line);
		return other(s, why);
	}
	s->has -= len + 1;
	memmove(s->text, s->text + len + 1, s->has);
	*out = line;
	return 0;
}

int mst_way_hear(struct mst_way_stream *s, json_t **out, struct mst_reason *why)
{
	mst_reason_clear(why);
	for (;;) {
		const char *end = memchr(s->text, '\n', s->has);
		if (end != NULL)
			return take(s, (size_t)(end - s->text), out, why);
		if (s->has == sizeof(s->text) || (s->has > 0 && s->text[0] != '{'))
			return other(s, why);
		ssize_t got = receive_some(s, s->text + s->has, sizeof(s->text) - s->has, why);
		if (got < 0)
			return (int)got;
		s->has += (size_t)got;
	}
}

void mst_way_text(const json_t *object, const char *key, char *out, size_t len)
{
	const char *text = json_string_value(json_object_get(object, key));

	(void)snprintf(out, len, "%s", text != NULL ? text : "");
	mst_text_clean(out);
}

int64_t mst_way_number(const json_t *object, const char *key, int64_t max, int64_t none)
{
	const json_t *value = json_object_get(object, key);
	json_int_t number = json_integer_value(value);

	return json_is_integer(value) && number >= 0 && number <= max ? number : none;
}
