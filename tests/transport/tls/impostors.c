/* SPDX-License-Identifier: MIT */
/*
 * Callers that a server must not believe, many in a second:
 *
 *     impostors HOST PORT CERT KEY PER_SECOND COUNT [MOST]
 *
 * Each shakes hands by TLS 1.3 and proves itself by that certificate, which the server's authority
 * has not made. It calls COUNT times in all, PER_SECOND times in a second if the server keeps up,
 * and has at most MOST (64) callers at a time. Each begins a handshake of its own, so each costs
 * the server a signature. With "-" as CERT and KEY the callers stop where they would prove
 * themselves, and wait until they are sent away.
 *
 * Says after each ten how many were sent away, and at the end in which time. At the end of its
 * standard input it calls no more. Ends with 1 if one of them was believed.
 */
#include <inttypes.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/config/option.h"

#define MOST_MAX 2048
#define NAP_MS 100
#define TOLD_EVERY 10ul

struct impostor {
	SSL *ssl; /* NULL: this place is free */
	bool stops, waits_for_room;
};

static struct {
	SSL_CTX *ctx;
	struct addrinfo *server;
	bool proves;
	int most, open;
	unsigned long sent_away, told, failed, believed;
	struct impostor caller[MOST_MAX];
	struct pollfd poll[MOST_MAX + 1]; /* the last is the standard input */
} all;

static void leave(int i)
{
	int fd = all.poll[i].fd;

	if (all.sent_away == all.told + TOLD_EVERY) {
		all.told = all.sent_away;
		printf("%lu were sent away\n", all.told);
	}

	SSL_free(all.caller[i].ssl);
	close(fd);
	all.caller[i] = (struct impostor){ 0 };
	all.poll[i].fd = -1;
	all.open--;
}

static bool would_block(struct impostor *c, int rc)
{
	int error = SSL_get_error(c->ssl, rc);

	c->waits_for_room = error == SSL_ERROR_WANT_WRITE;
	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

/* The end of a connection, or an alert, is how callers are sent away. */
static void go_on(int i)
{
	struct impostor *c = &all.caller[i];
	char byte;

	ERR_clear_error();
	if (c->stops) {
		if (recv(all.poll[i].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0 ||
		    (all.poll[i].revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0) {
			all.sent_away++;
			leave(i);
		}
		return;
	}
	int rc = SSL_is_init_finished(c->ssl) ? 1 : SSL_do_handshake(c->ssl);
	if (rc == 1 && SSL_is_init_finished(c->ssl))
		rc = SSL_read(c->ssl, &byte, 1);
	if (rc == 1) {
		all.believed++;
		leave(i);
	} else if (!would_block(c, rc)) {
		all.sent_away++;
		leave(i);
	} else if (!all.proves) {
		c->stops = true; /* its hello is on its way */
	}
}

static void call(void)
{
	int fd = socket(all.server->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int i = 0;

	if (fd < 0 || connect(fd, all.server->ai_addr, all.server->ai_addrlen) != 0) {
		all.failed++;
		if (fd >= 0)
			close(fd);
		return;
	}
	(void)BIO_socket_nbio(fd, 1);
	while (all.caller[i].ssl != NULL)
		i++;
	all.caller[i].ssl = SSL_new(all.ctx);
	if (all.caller[i].ssl == NULL || SSL_set_fd(all.caller[i].ssl, fd) != 1)
		exit(2);
	SSL_set_connect_state(all.caller[i].ssl);
	all.poll[i].fd = fd;
	all.open++;
	go_on(i);
}

/* Return: false: the standard input has ended. */
static bool look(int timeout_ms)
{
	char byte;

	for (int i = 0; i < all.most; i++)
		all.poll[i].events = all.caller[i].stops            ? POLLRDHUP
				     : all.caller[i].waits_for_room ? POLLOUT
								    : POLLIN;
	if (poll(all.poll, (nfds_t)all.most + 1, timeout_ms) <= 0)
		return true;
	for (int i = 0; i < all.most; i++)
		if (all.caller[i].ssl != NULL && all.poll[i].revents != 0)
			go_on(i);
	return all.poll[all.most].revents == 0 || read(STDIN_FILENO, &byte, 1) > 0;
}

static void flood(double per_second, uint64_t count)
{
	uint64_t begin_ns = mst_now_ns();
	uint64_t called = 0;
	bool over = false;

	while (all.open > 0 || (!over && called < count)) {
		double due = (double)(mst_now_ns() - begin_ns) / (double)MST_SECOND * per_second;
		/* who was held up does not make up for it: the rate is a limit */
		bool may = !over && called < count && all.open < all.most;
		if (may && (double)called <= due) {
			call();
			called++;
		}
		double ahead_ms = ((double)called - due) * 1e3 / per_second;
		over |= !look(!may ? NAP_MS : ahead_ms > 1 ? 1 : 0);
	}
	double seconds = (double)(mst_now_ns() - begin_ns) / (double)MST_SECOND;
	printf("%" PRIu64
	       " callers in %.2f s: %lu were sent away, %lu found no place, %lu were believed\n",
	       called, seconds, all.sent_away, all.failed, all.believed);
}

static SSL_CTX *prepare(const char *cert, const char *key)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	all.proves = strcmp(cert, "-") != 0;
	if (ctx == NULL || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1)
		return NULL;
	if (all.proves && (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1 ||
			   SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1))
		return NULL;
	return ctx;
}

int main(int argc, char **argv)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM };
	uint64_t per_second, count, most = 64;

	if (argc < 7 || mst_parse_u64(argv[5], &per_second) != 0 ||
	    mst_parse_u64(argv[6], &count) != 0 || per_second == 0)
		return 2;
	if ((argc > 7 && mst_parse_u64(argv[7], &most) != 0) || most < 1 || most > MOST_MAX)
		return 2;
	if (getaddrinfo(argv[1], argv[2], &hint, &all.server) != 0)
		return 2;
	all.ctx = prepare(argv[3], argv[4]);
	all.most = (int)most;
	if (all.ctx == NULL)
		return 2;
	for (int i = 0; i < all.most; i++)
		all.poll[i].fd = -1;
	all.poll[all.most] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	(void)signal(SIGPIPE, SIG_IGN);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	flood((double)per_second, count);
	SSL_CTX_free(all.ctx);
	freeaddrinfo(all.server);
	return all.believed == 0 ? 0 : 1;
}
