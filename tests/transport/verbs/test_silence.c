/* SPDX-License-Identifier: MIT */
/*
 * A peer that does not answer is one thing, and a device that is missing another, whoever notices:
 * the timer of this tree, or the kernel's. The linker puts stand-ins before the connection manager,
 * so no device is needed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/transport/verbs/verbs.h"
#include "tests/ut.h"

/* What the connection manager says of the next address; 0: nothing. */
static int status;
static struct rdma_cm_id id;
static struct rdma_cm_event event;
static struct mst_reason why;
static int ids;

int __wrap_rdma_create_id(struct rdma_event_channel *cm, struct rdma_cm_id **out, void *context,
			  enum rdma_port_space space);
int __wrap_rdma_destroy_id(struct rdma_cm_id *of);
int __wrap_rdma_disconnect(struct rdma_cm_id *of);
int __wrap_rdma_resolve_addr(struct rdma_cm_id *of, struct sockaddr *own, struct sockaddr *far,
			     int timeout_ms);
int __wrap_rdma_get_cm_event(struct rdma_event_channel *cm, struct rdma_cm_event **out);
int __wrap_rdma_ack_cm_event(struct rdma_cm_event *of);

int __wrap_rdma_create_id(struct rdma_event_channel *cm, struct rdma_cm_id **out, void *context,
			  enum rdma_port_space space)
{
	id = (struct rdma_cm_id){ .channel = cm, .context = context, .ps = space };
	ids++;
	*out = &id;
	return 0;
}

int __wrap_rdma_destroy_id(struct rdma_cm_id *of)
{
	ids -= of == &id;
	return 0;
}

int __wrap_rdma_disconnect(struct rdma_cm_id *of)
{
	(void)of;
	return 0;
}

int __wrap_rdma_resolve_addr(struct rdma_cm_id *of, struct sockaddr *own, struct sockaddr *far,
			     int timeout_ms)
{
	(void)own;
	(void)far;
	(void)timeout_ms;
	event = (struct rdma_cm_event){ .id = of,
					.event = RDMA_CM_EVENT_ADDR_ERROR,
					.status = status };
	return 0;
}

int __wrap_rdma_get_cm_event(struct rdma_event_channel *cm, struct rdma_cm_event **out)
{
	(void)cm;
	if (event.status == 0) {
		errno = EAGAIN;
		return -1;
	}
	*out = &event;
	return 0;
}

int __wrap_rdma_ack_cm_event(struct rdma_cm_event *of)
{
	of->status = 0;
	return 0;
}

/* Dials an address of which the connection manager says @says.
 * Return: the error; `why` has the sentence. */
static int dial(int says, uint64_t timeout_ns)
{
	struct mst_verbs_net *n = calloc(1, sizeof(*n) + sizeof(struct mst_verbs_link *));
	struct mst_dial to = { .address = "verbs:127.0.0.1:4000",
			       .lanes = { 1 << 16, 1 << 16, 4, 4 },
			       .timeout_ns = timeout_ns };
	struct rdma_event_channel channel;
	struct mst_link *link = NULL;
	int ends[2];

	CU_ASSERT_FATAL(n != NULL && pipe(ends) == 0);
	channel.fd = ends[0];
	n->cm = &channel;
	n->cfg.links_max = 1;
	status = says;
	int rc = mst_verbs_dial(&n->net, &to, &link, &why);
	CU_ASSERT_PTR_NULL(link);
	CU_ASSERT_EQUAL(ids, 0);
	close(ends[0]);
	close(ends[1]);
	free(n);
	return rc;
}

static void says(const char *words)
{
	if (strstr(why.text, words) == NULL)
		printf("\n\"%s\" has no \"%s\"\n", why.text, words);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, words));
}

#define SILENT "127.0.0.1 does not answer when 127.0.0.1 asks for it (for "

/* In a whole that is longer than the step, and in one that is shorter. */
static void timer_of_the_kernel_says_the_same(void)
{
	CU_ASSERT_EQUAL(dial(-ETIMEDOUT, 600 * MST_SECOND), -EHOSTUNREACH);
	says(SILENT);
	says("MUSTER_DATA_ADDRESS");
	CU_ASSERT_EQUAL(dial(-ETIMEDOUT, 2 * MST_SECOND), -ETIMEDOUT);
	says(SILENT);
}

static void own_timer_says_that_the_peer_does_not_answer(void)
{
	CU_ASSERT_EQUAL(dial(0, MST_MS), -ETIMEDOUT);
	says(SILENT);
	says("MUSTER_DATA_ADDRESS");
}

static void missing_device_is_named(void)
{
	CU_ASSERT_EQUAL(dial(-ENODEV, 600 * MST_SECOND), -ENODEV);
	says("no RDMA device of this host reaches 127.0.0.1");
	CU_ASSERT_EQUAL(dial(-ENETUNREACH, 600 * MST_SECOND), -ENETUNREACH);
	says("no RDMA device of this host reaches 127.0.0.1");
}

static CU_TestInfo cases[] = {
	{ "a peer that does not answer in time is called so",
	  own_timer_says_that_the_peer_does_not_answer },
	{ "so it is when the kernel's timer is over first", timer_of_the_kernel_says_the_same },
	{ "a device that is missing is named", missing_device_is_named },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("verbs_silence", cases);
}
