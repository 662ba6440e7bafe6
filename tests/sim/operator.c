/* SPDX-License-Identifier: MIT */
#include "tests/sim/operator.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/message.h"
#include "tests/sim/observer.h"
#include "tests/sim/stream.h"
#include "tests/sim/world.h"

#define ADDRESS "127.0.0.1:17077"
#define PATIENCE_NS (20 * MST_SECOND)
#define FRAME_BYTES 2048u

/* NULL: nothing was asked for. The observer may not ask for what it asks for. */
static struct sim_process *process, *observer;

void operator_begin(void)
{
	process = observer = NULL;
}

bool operator_is_home(void)
{
	return (process == NULL || process->fibers == 0) &&
	       (observer == NULL || observer->fibers == 0);
}

static size_t write_request(const struct sim_fault *f, void *frame)
{
	struct mst_message *m = sim_alloc(sizeof(*m));

	if (f->kind == SIM_FAULT_POLICY) {
		m->kind = MST_MSG_POLICY;
		(void)snprintf(m->change.policy, sizeof(m->change.policy), "%s", f->policy);
	} else {
		m->kind = MST_MSG_REST;
		m->rest.rank = (uint32_t)f->target;
		m->rest.rests = f->kind == SIM_FAULT_REST;
	}
	return (size_t)mst_message_encode(m, frame, FRAME_BYTES);
}

/* The job may not run yet, or not any more; a worker may be gone. But plans ask for nothing that
 * the figures of the job do not allow. */
static void hear(const struct sim_fault *f, const void *frame, size_t length)
{
	struct mst_message *m = sim_alloc(sizeof(*m));

	if (mst_message_decode(frame, length, m, NULL) != 0) {
		obs_violated("the operator is answered with what nobody can read");
		return;
	}
	bool done = m->kind == MST_MSG_DONE;
	if (sim_self() == observer && (done || m->error.code != -EACCES))
		obs_violated("the observer's request is not refused because of its role");
	sim_say("the operator hears: %s", done ? m->why : m->error.reason);
	if (!done && f->kind == SIM_FAULT_POLICY && m->error.code == -EINVAL)
		obs_violated("%s is refused: %s", f->policy, m->error.reason);
}

/* Return: the bytes of the answer; 0: none has come. */
static size_t await_answer(struct mst_stream *stream, unsigned char *frame)
{
	uint64_t end_ns = sim_now() + PATIENCE_NS;
	size_t have = 0;

	while (sim_now() < end_ns) {
		ssize_t got = sim_stream.receive(stream, frame + have, FRAME_BYTES - have);
		if (got == 0 || (got < 0 && got != -EAGAIN))
			return 0;
		have += got > 0 ? (size_t)got : 0;
		uint32_t protocol = 0;
		int64_t length = mst_frame_length(frame, have, &protocol);
		if (length > 0 && length <= (int64_t)have)
			return (size_t)length;
		sim_sleep(MST_MS);
	}
	return 0;
}

static void ask(void *arg)
{
	const struct sim_fault *f = arg;
	struct mst_stream *stream;
	unsigned char *frame = sim_alloc(FRAME_BYTES);

	if (sim_stream.connect(ADDRESS, MST_SECOND, NULL, &stream) != 0)
		return;
	size_t length = write_request(f, frame);
	if (sim_stream.send(stream, frame, length) == (ssize_t)length) {
		length = await_answer(stream, frame);
		if (length > 0)
			hear(f, frame, length);
	}
	sim_stream.close(stream);
}

void operator_asks(const struct sim_fault *change)
{
	if (process == NULL)
		process = sim_process_new("operator");
	if (observer == NULL)
		observer = sim_process_new("observer");
	sim_spawn(process, ask, (void *)(uintptr_t)change);
	sim_spawn(observer, ask, (void *)(uintptr_t)change);
}
