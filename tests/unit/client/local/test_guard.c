/* SPDX-License-Identifier: MIT */
/* What is infinite or NaN and handed over: under --guard the call says -EDOM, the contribution is
 * given up, and the worker goes on. */
#include <errno.h>
#include <math.h>

#include "client/api/handle.h"
#include "client/local/clip.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

static float own[FAKE_ELEMS];

static bool begin_only(struct fake_leader *f)
{
	return fake_begin(f) && fake_stay(f);
}

static bool guard_worker(struct fake_leader *f)
{
	f->welcome.guard = MST_GUARD_WORKER;
	return fake_begin(f) && fake_stay(f);
}

static bool guard_full(struct fake_leader *f)
{
	f->welcome.guard = MST_GUARD_FULL;
	return fake_begin(f) && fake_stay(f);
}

/* The next outcome is about nothing that was pushed: the worker is as after muster_abandon(). */
static void expect_given_up(int rc, const char *what)
{
	CU_ASSERT_EQUAL(rc, -EDOM);
	CU_ASSERT(client_says(muster_error(client_handle), what));
	CU_ASSERT(client_says(muster_error(client_handle), "rank 1"));
	CU_ASSERT_EQUAL(client_handle->worker.tickets.sent, 0);
	CU_ASSERT(client_handle->worker.abandoned);
	CU_ASSERT_PTR_NOT_NULL(muster_gradient(client_handle));
}

static void a_copy_of_what_is_not_finite_is_refused(void)
{
	static float bad[FAKE_ELEMS];

	client_begin(guard_worker);
	bad[5] = INFINITY;
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 5, bad), 0);
	expect_given_up(muster_push_range(client_handle, 5, 10, bad + 5),
			"element 5 of the gradient");
	/* All of it can be given again; over itself too, which is no copy. */
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 5, bad), 0);
	float *slot = muster_gradient(client_handle);
	slot[7] = -NAN;
	expect_given_up(muster_push_range(client_handle, 7, 1, slot + 7), "is NaN");
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 6, FAKE_ELEMS - 6, own), 0);
	client_close();
}

static void a_loss_that_is_not_finite_is_refused(void)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1, .has_loss = true };

	client_begin(guard_worker);
	c.loss = NAN;
	expect_given_up(muster_push(client_handle, &c, NULL), "loss that is told is NaN");
	c.loss = INFINITY;
	expect_given_up(muster_push(client_handle, &c, NULL), "loss that is told is infinite");
	c.has_loss = false;
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), 0);
	client_close();
}

static void what_lies_in_place_is_looked_at_under_full_alone(void)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1 };

	for (int full = 0; full < 2; full++) {
		client_begin(full ? guard_full : guard_worker);
		float *slot = muster_gradient(client_handle);
		for (int i = 0; i < (int)FAKE_ELEMS; i++)
			slot[i] = i == 9 || i == 11 ? NAN : 1;
		CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 9, NULL), 0);
		if (full) {
			expect_given_up(muster_push_range(client_handle, 9, 1, NULL), "element 9");
			slot[9] = 1;
			expect_given_up(muster_push(client_handle, &c, NULL), "element 11");
			slot[11] = 1;
		}
		CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), 0);
		client_close();
	}
}

/* The leader does not hear of it, and another can be offered. */
static void a_start_state_that_is_not_finite_is_not_offered(void)
{
	static float state[FAKE_ELEMS];

	CU_ASSERT_EQUAL_FATAL(client_open(guard_worker, CLIENT_LONG_MS), 0);
	state[3] = -INFINITY;
	state[5] = NAN;
	CU_ASSERT_EQUAL(muster_start(client_handle, state, &client_outcome), -EDOM);
	CU_ASSERT(client_says(muster_error(client_handle),
			      "rank 1: element 3 of the start state is minus infinite"));
	CU_ASSERT_EQUAL(client_handle->worker.phase, MST_WORKER_JOINED);
	state[3] = state[5] = 1;
	CU_ASSERT_EQUAL(client_start(state, &client_outcome), 0);
	client_close();
}

static void a_start_state_passes_without_a_guard(void)
{
	static const float state[FAKE_ELEMS] = { NAN };

	CU_ASSERT_EQUAL_FATAL(client_open(begin_only, CLIENT_LONG_MS), 0);
	CU_ASSERT_EQUAL(client_start(state, &client_outcome), 0);
	client_close();
}

static void without_a_guard_all_is_sent(void)
{
	struct muster_contribution c = {
		.size = sizeof(c), .weight = 1, .loss = NAN, .has_loss = true
	};
	static const float bad[1] = { NAN };

	client_begin(begin_only);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 1, bad), 0);
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), 0);
	client_close();
}

/* ---- norms ---- */

static bool wants_norms(struct fake_leader *f)
{
	f->welcome.norms = 1;
	return begin_only(f);
}

/* Each range is in the sum once, copied or in place. What is given up is not in the next sum. */
static void squares_are_those_of_all_that_is_handed_over(void)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 1 };
	static float three[FAKE_ELEMS];
	float *slot;

	for (unsigned i = 0; i < FAKE_ELEMS; i++)
		three[i] = 3;
	client_begin(wants_norms);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 5, three), 0);
	CU_ASSERT_EQUAL(client_handle->worker.squares, 45);
	CU_ASSERT_EQUAL(muster_abandon(client_handle), 0);
	slot = muster_gradient(client_handle);
	for (unsigned i = 0; i < FAKE_ELEMS; i++)
		slot[i] = 2;
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 5, three), 0);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 5, 5, NULL), 0);
	CU_ASSERT_EQUAL(client_handle->worker.squares, 65);
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), 0);
	CU_ASSERT_EQUAL(client_handle->worker.squares, 65 + 4 * (FAKE_ELEMS - 10));
	client_close();
}

static void nobody_squares_what_nobody_asks_for(void)
{
	static const float three[1] = { 3 };

	client_begin(begin_only);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 1, three), 0);
	CU_ASSERT_EQUAL(client_handle->worker.squares, 0);
	client_close();
}

static void sixteen_bits_are_squared_as_what_they_mean(void)
{
	static uint16_t bf16[2000], f16[2000];

	for (unsigned i = 0; i < 2000; i++) {
		bf16[i] = 0xc000; /* -2 */
		f16[i] = 0x4200;  /* 3 */
	}
	CU_ASSERT_EQUAL(mst_client_squares(bf16, MUSTER_BF16, 2000), 8000);
	CU_ASSERT_EQUAL(mst_client_squares(f16, MUSTER_F16, 2000), 18000);
	CU_ASSERT_EQUAL(mst_client_squares(f16, MUSTER_F16, 0), 0);
}

static void a_tensor_is_named_with_its_own_element(void)
{
	const struct muster_tensor tensor[] = { { "first", 0, 4, 1, 1 }, { NULL, 4, 4, 1, 1 } };
	struct mst_tensors *t;
	char place[160];

	CU_ASSERT_EQUAL_FATAL(mst_tensors_copy(tensor, 2, &t), 0);
	CU_ASSERT(client_says(mst_tensors_place(t, 3, place, sizeof(place)),
			      "element 3 of tensor \"first\""));
	CU_ASSERT(client_says(mst_tensors_place(t, 4, place, sizeof(place)),
			      "element 0 of tensor number 1"));
	CU_ASSERT_STRING_EQUAL(mst_tensors_place(t, 8, place, sizeof(place)), "");
	CU_ASSERT_STRING_EQUAL(mst_tensors_place(NULL, 0, place, sizeof(place)), "");
	mst_tensors_free(t);
}

static bool table_refused(const struct muster_tensor *tensor, uint32_t count, const char *said)
{
	struct mst_reason why = { "" };
	struct muster_options opt = { .tensors = tensor, .tensor_count = count, .elems = 10 };
	int rc = mst_tensors_check(&opt, &why);

	return rc == -EINVAL && client_says(why.text, said);
}

static void a_table_names_every_element_once(void)
{
	struct muster_tensor t[] = { { "a", 0, 4, 1, 1 }, { "b", 4, 6, 1, 1 } };
	const struct muster_tensor good[] = { t[0], t[1] };
	struct muster_options opt = { .tensors = t, .tensor_count = 2, .elems = 10 };
	struct mst_reason why;

	CU_ASSERT_EQUAL(mst_tensors_check(&opt, &why), 0);
	t[1].first = 3, t[1].count = 7;
	CU_ASSERT(table_refused(t, 2,
				"\"b\" begins at element 3, tensor \"a\" ends at element 4: "
				"they share 1 elements"));
	t[1].first = 6, t[1].count = 4;
	CU_ASSERT(table_refused(t, 2,
				"\"b\" begins at element 6, tensor \"a\" ends at element 4: "
				"nobody names 2 elements"));
	t[1] = good[1], t[1].count = 5;
	CU_ASSERT(table_refused(t, 2, "\"b\" ends at element 9, the vector has 10"));
	t[1].count = 7;
	CU_ASSERT(table_refused(t, 2, "7 elements from 4 on, the vector has 10"));
	t[1].count = 0;
	CU_ASSERT(table_refused(t, 2, "0 elements"));
	t[1] = good[1], t[1].name = NULL, t[0].first = 1, t[0].count = 3;
	CU_ASSERT(table_refused(t, 2, "\"a\" begins at element 1, the vector begins at element 0"));
	t[0] = good[0], t[1].first = 5, t[1].count = 5;
	CU_ASSERT(table_refused(t, 2, "tensor number 1 begins"));
}

/* Scales that were forgotten are 0. */
static void a_scale_that_means_nothing_is_refused(void)
{
	struct muster_tensor t = { "a", 0, 10, 0, 0 };
	struct muster_options opt = { .tensors = &t, .tensor_count = 1, .elems = 10 };
	struct mst_reason why;

	CU_ASSERT(table_refused(&t, 1, "\"a\" has lr_scale 0 and decay_scale 0: set both to 1"));
	t.lr_scale = -1, t.decay_scale = 1;
	CU_ASSERT(table_refused(&t, 1, "lr_scale -1 and decay_scale 1: a scale is a number from"));
	t.lr_scale = 1, t.decay_scale = NAN;
	CU_ASSERT(table_refused(&t, 1, "a scale is a number from 0 on"));
	t.lr_scale = 0, t.decay_scale = 1;
	CU_ASSERT_EQUAL(mst_tensors_check(&opt, &why), 0);
	opt.owner = MUSTER_WORKERS_OWN;
	CU_ASSERT_EQUAL(mst_tensors_check(&opt, &why), -EINVAL);
	CU_ASSERT(client_says(why.text, "workers own the parameters"));
}

static void a_table_has_no_more_tensors_than_may_be(void)
{
	struct muster_tensor t = { "a", 0, 10, 1, 1 };

	CU_ASSERT(table_refused(&t, MUSTER_TENSORS_MAX + 1, "65537 tensors are more"));
}

/* What the servers keep of it, other programs show. */
static void a_name_that_cannot_travel_is_refused(void)
{
	struct muster_tensor t = { "a", 0, 10, 1, 1 };
	struct muster_options opt = { .tensors = &t, .tensor_count = 1, .elems = 10 };
	char name[MUSTER_TENSOR_NAME_MAX + 2];
	struct mst_reason why;

	memset(name, 'n', sizeof(name));
	name[MUSTER_TENSOR_NAME_MAX + 1] = '\0';
	t.name = name;
	CU_ASSERT(table_refused(&t, 1, "tensor number 0 has a name of 256 bytes, \"nnn"));
	name[MUSTER_TENSOR_NAME_MAX] = '\0';
	CU_ASSERT_EQUAL(mst_tensors_check(&opt, &why), 0);
	t.name = "a\nb";
	CU_ASSERT(table_refused(&t, 1, "tensor number 0 has control characters, or is not UTF-8"));
}

/* Each piece goes on where the one before ends. */
static void a_table_is_cut_into_pieces(void)
{
	static struct muster_tensor tensor[2 * MST_TENSORS_PIECE + 2];
	static struct mst_tensor_piece piece;
	uint32_t count = sizeof(tensor) / sizeof(tensor[0]), at = 0;
	struct mst_tensors *t;

	for (uint32_t i = 0; i < count; i++)
		tensor[i] = (struct muster_tensor){ NULL, i, 1, (float)i + 1, 1 };
	CU_ASSERT_EQUAL_FATAL(mst_tensors_copy(tensor, count, &t), 0);
	CU_ASSERT_EQUAL(mst_tensors_table(t).tensors, count);
	for (uint32_t next; at < count; at = next) {
		next = mst_tensors_piece(t, at, MST_TENSORS_PIECE, &piece);
		CU_ASSERT(piece.at == at && piece.total == count && piece.count == next - at);
		CU_ASSERT_EQUAL(piece.row[0].lr_scale, (float)at + 1);
	}
	mst_tensors_free(t);
}

static CU_TestInfo cases[] = {
	{ "a copy of what is not finite is refused", a_copy_of_what_is_not_finite_is_refused },
	{ "a loss that is not finite is refused", a_loss_that_is_not_finite_is_refused },
	{ "what lies in place is looked at under full alone",
	  what_lies_in_place_is_looked_at_under_full_alone },
	{ "a start state that is not finite is not offered",
	  a_start_state_that_is_not_finite_is_not_offered },
	{ "a start state passes without a guard", a_start_state_passes_without_a_guard },
	{ "squares are those of all that is handed over",
	  squares_are_those_of_all_that_is_handed_over },
	{ "nobody squares what nobody asks for", nobody_squares_what_nobody_asks_for },
	{ "sixteen bits are squared as what they mean",
	  sixteen_bits_are_squared_as_what_they_mean },
	{ "without a guard all is sent", without_a_guard_all_is_sent },
	{ "a tensor is named with its own element", a_tensor_is_named_with_its_own_element },
	{ "a table names every element once", a_table_names_every_element_once },
	{ "a scale that means nothing is refused", a_scale_that_means_nothing_is_refused },
	{ "a table has no more tensors than may be", a_table_has_no_more_tensors_than_may_be },
	{ "a name that cannot travel is refused", a_name_that_cannot_travel_is_refused },
	{ "a table is cut into pieces", a_table_is_cut_into_pieces },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client guard", cases);
}
