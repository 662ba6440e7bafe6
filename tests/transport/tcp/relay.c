/* SPDX-License-Identifier: MIT */
#include "tests/transport/tcp/relay.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/transport/tcp/tcp.h"
#include "tests/ut.h"

/* Return: false: the connection is over. */
static bool pass(struct relay *r, enum relay_way way)
{
	char bytes[4096];
	ssize_t got = recv(r->end[way], bytes, sizeof(bytes), MSG_DONTWAIT);
	size_t before = r->passed[way], at = way == r->way ? r->at : SIZE_MAX;

	if (got < 0)
		return true;
	bool hits = got > 0 && at < before + (size_t)got;
	if (hits && r->changes && at >= before)
		bytes[at - before] ^= 1;
	if (hits && !r->changes)
		got = (ssize_t)(at > before ? at - before : 0);
	if (got > 0)
		(void)send(r->end[1 - way], bytes, (size_t)got, MSG_NOSIGNAL);
	r->passed[way] += (size_t)got;
	return got > 0 && !(hits && !r->changes);
}

static void *run(void *arg)
{
	struct relay *r = arg;
	struct pollfd in = { .fd = r->socket, .events = POLLIN };

	while (!r->stops && poll(&in, 1, 20) == 0)
		;
	if (r->stops)
		return NULL;
	r->end[0] = accept4(r->socket, NULL, NULL, SOCK_CLOEXEC);
	close(r->socket); /* who calls again finds nobody */
	r->socket = -1;
	r->end[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool goes = connect(r->end[1], (struct sockaddr *)r->far, sizeof(struct sockaddr_in)) == 0;
	while (goes && !r->stops) {
		struct pollfd p[2] = { { .fd = r->end[0], .events = POLLIN },
				       { .fd = r->end[1], .events = POLLIN } };
		(void)poll(p, 2, 20);
		for (int way = 0; way < 2 && goes; way++)
			if (p[way].revents != 0)
				goes = pass(r, (enum relay_way)way);
	}
	close(r->end[0]);
	close(r->end[1]);
	return NULL;
}

void relay_open(struct relay *r, const char *address)
{
	struct mst_endpoints far;
	struct sockaddr_in own = { .sin_family = AF_INET };
	socklen_t len = sizeof(own);
	char text[MST_ENDPOINT_TEXT_LEN];

	r->far = calloc(1, sizeof(*r->far));
	CU_ASSERT_EQUAL_FATAL(mst_endpoints_parse(address, &mst_tcp, &far, UT_UNREAD), 0);
	*(union mst_endpoint *)r->far = far.at[0];
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL_FATAL(bind(r->socket, (struct sockaddr *)&own, sizeof(own)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(r->socket, 4), 0);
	CU_ASSERT_EQUAL_FATAL(getsockname(r->socket, (struct sockaddr *)&own, &len), 0);
	(void)snprintf(r->address, sizeof(r->address), "tcp:%s",
		       mst_endpoint_text((struct sockaddr *)&own, text));
	r->stops = false;
	r->passed[0] = r->passed[1] = 0;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&r->thread, NULL, run, r), 0);
}

void relay_close(struct relay *r)
{
	r->stops = true;
	pthread_join(r->thread, NULL);
	if (r->socket >= 0)
		close(r->socket);
	free(r->far);
}
