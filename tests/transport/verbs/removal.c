/* SPDX-License-Identifier: MIT */
/*
 * A soft device is removed while links are up, and its event not read yet: whatever breaks then is
 * blamed on nobody but the device. For machines of tests/vm only, which lose their device by it.
 */
#include <errno.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/transport/verbs/attack.h"

/* Reads what there is to be read of the beginning, until nothing has come for a while: that a link
 * is up may be told late. */
static void settle(const struct verbs_target *h, struct pollfd *pfd)
{
	uint64_t end = mst_now_ns() + PATIENCE_NS;
	struct mst_net_event none;

	do {
		CU_ASSERT_EQUAL(mst_verbs.poll(h->net, &none, 1), 0);
		CU_ASSERT_EQUAL(mst_verbs.wait(h->net, 20 * MST_MS), 0);
	} while (poll(pfd, 1, 1000) > 0 && mst_now_ns() < end);
}

/* Begins to remove the device. Returns when the target can read the event that says so. The command
 * itself ends when no process has the device open; that is after the end of this process, since
 * librdmacm never closes a device. */
static void remove_device(const struct verbs_target *h, const struct verbs_attack *g)
{
	struct pollfd pfd = { .fd = ((struct mst_verbs_net *)h->net)->cm->fd, .events = POLLIN };
	char name[64];
	char *command[] = { "rdma", "link", "del", name, NULL };
	pid_t child;

	settle(h, &pfd);
	CU_ASSERT_EQUAL_FATAL(poll(&pfd, 1, 0), 0);
	(void)snprintf(name, sizeof(name), "%s", mst_verbs_rail_device(rail_of(g->near)));
	CU_ASSERT_EQUAL_FATAL(posix_spawnp(&child, command[0], NULL, NULL, command, environ), 0);
	CU_ASSERT_EQUAL_FATAL(poll(&pfd, 1, 60000), 1);
}

/* A failed completion of the inbound pair: what it ends the link with. */
static int flush(struct mst_link *near)
{
	struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR };

	return mst_verbs_reason_completion(rail_of(near), &wc);
}

static void hang_up(struct mst_link *near)
{
	struct rdma_cm_event event = { .event = RDMA_CM_EVENT_DISCONNECTED };

	mst_verbs_reason_gone(rail_of(near), &event);
}

static bool blames(const struct mst_link *near, const char *word)
{
	if (strstr(near->why.text, word) != NULL)
		return true;
	printf("\n\"%s\" has no \"%s\"\n", near->why.text, word);
	return false;
}

static void a_device_that_goes_is_to_blame_and_no_peer(void)
{
	struct verbs_attack before[2], after[2];
	struct verbs_target h = target_open();

	for (int i = 0; i < 2; i++) {
		attack_begin(&h, &before[i], &usual_lanes);
		attack_begin(&h, &after[i], &usual_lanes);
	}
	CU_ASSERT_EQUAL(flush(before[0].near), -EPROTO);
	CU_ASSERT(blames(before[0].near, "hostile"));
	hang_up(before[1].near);
	CU_ASSERT(blames(before[1].near, "its process is over"));

	remove_device(&h, &after[0]);
	CU_ASSERT_EQUAL(flush(after[0].near), -EPIPE);
	CU_ASSERT(blames(after[0].near, "was removed"));
	CU_ASSERT(blames(after[0].near, rail_of(after[0].near)->own));
	hang_up(after[1].near);
	CU_ASSERT(blames(after[1].near, "was removed"));

	for (int i = 0; i < 2; i++) {
		attack_lift(&before[i]);
		attack_lift(&after[i]);
	}
	target_close(&h);
}

CU_TestInfo verbs_removal_cases[] = {
	{ "a device that goes is to blame, and no peer",
	  a_device_that_goes_is_to_blame_and_no_peer },
	CU_TEST_INFO_NULL,
};
