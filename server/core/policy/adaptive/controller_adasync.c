/* SPDX-License-Identifier: MIT */
/*
 * AdaSync (Dutta et al. 2020, arXiv 2003.10579): few gradients a step at first, when the loss falls
 * fast whatever their noise, and more of them as the loss falls.
 *
 * The paper's bound of the error after an interval is, as a function of K,
 *
 *     2 F(w) E[T(K)] / (interval x rate)  +  rate x L x variance / (K x batch)
 *
 * where T(K) is the time of a step. It is least where K^2 x dE[T]/dK is in proportion to 1 / F(w).
 * So only the ratio of losses has to be known:
 *
 *     E[T] in proportion to K          K = K_0 x sqrt(F(w_0) / F(w))
 *     the K fastest of P workers       K^2 / (P - K) = K_0^2 / (P - K_0) x F(w_0) / F(w)
 *
 * The first holds where anybody may contribute again in a step. The second is for distinct workers,
 * whose times are exponential, with or without a constant part.
 *
 * Under ksync T is not assumed but measured (arrival_times.h): the first steps wait for all
 * workers. K begins where the most gradients a second are counted, unless the user says where, and
 * is the one for which T(K) F(w) + b / K is least, with the b for which the start is right at the
 * first loss. A step with a small K does not tell the times of larger ones. So now and then, for a
 * fiftieth of the time at most, a step waits for all.
 *
 * F is the mean loss of the gradients of an interval. An interval is a number of gradients, so that
 * every mean is equally exact, whatever K is.
 *
 * Or F is what workers report under a name, such as the loss of samples that nobody learns from:
 * the mean of all that was reported in the interval. They report rarely, so an interval goes on
 * until something has been reported.
 *
 * Whatever finite losses there are, every figure here is finite: sums have the unit MST_LOSS_UNIT.
 * A loss that is not finite counts as one that was not told.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/crc32c.h"
#include "common/base/reason.h"
#include "common/base/text.h"
#include "common/wire/range.h"
#include "server/core/policy/controller_row.h"
#include "server/core/policy/rule.h"

#define START_DEFAULT 1u
#define INTERVAL_DEFAULT 100u
#define NAMED ",loss="
#define PAPER ",paper"
/* Steps that wait for all before K is first chosen. */
#define FIRST_LOOKS 4u
/* A look costs its time. The next one comes after so many times as much. */
#define LOOK_AFTER 50.0

static const char *const forms[] = { "ksync", "kasync", "kbatchsync", "kbatchasync" };
enum { FORM_KSYNC, FORMS = sizeof(forms) / sizeof(forms[0]) };

/* ---- reading ---- */

/* Return: what follows the name, or NULL: it is none of the forms. */
static const char *form_parse(const char *text, uint32_t *out)
{
	size_t len = strcspn(text, ",");

	for (uint32_t i = 0; i < FORMS; i++) {
		if (strlen(forms[i]) == len && memcmp(forms[i], text, len) == 0) {
			*out = i;
			return text + len;
		}
	}
	return NULL;
}

static bool is_named(const struct mst_adasync *a)
{
	return a->metric[0] != '\0';
}

/* ",loss=NAME", or nothing. The name may have commas. */
static bool metric_parse(const char *text, struct mst_adasync *a)
{
	if (*text == '\0')
		return true;
	if (strncmp(text, NAMED, strlen(NAMED)) != 0)
		return false;
	text += strlen(NAMED);
	if (strlen(text) >= sizeof(a->metric) || !mst_text_is_clean(text))
		return false;
	memcpy(a->metric, text, strlen(text) + 1);
	return is_named(a);
}

/* Return: what follows ",paper", if that is what @text begins with; else @text. */
static const char *paper_parse(const char *text, struct mst_adasync *a)
{
	size_t len = strlen(PAPER);

	a->paper = strncmp(text, PAPER, len) == 0 && (text[len] == ',' || text[len] == '\0');
	return a->paper ? text + len : text;
}

/* ",2,500,paper,loss=test_loss": each may be left out, of the numbers from the last one on. */
static bool rest_parse(const char *text, struct mst_adasync *a)
{
	static const struct mst_number number = { 1, INT32_MAX, true };
	uint32_t *to[] = { &a->start, &a->interval };
	double value;

	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]) && *text == ','; i++) {
		if (strncmp(text, NAMED, strlen(NAMED)) == 0 ||
		    strncmp(text, PAPER, strlen(PAPER)) == 0)
			break;
		text = mst_number_parse(text + 1, &number, &value);
		if (text == NULL)
			return false;
		*to[i] = (uint32_t)value;
	}
	return metric_parse(paper_parse(text, a), a);
}

/* Nothing that is late is lost under the other forms, or they are not of distinct workers. */
static bool may_measure(const struct mst_adasync *a)
{
	return !a->paper && a->form == FORM_KSYNC;
}

static uint32_t least_start(const struct mst_adasync *a)
{
	return a->start > 0 ? a->start : START_DEFAULT;
}

static int parse(const char *text, struct mst_controller *c, struct mst_rule *rule,
		 struct mst_reason *why)
{
	struct mst_adasync *a = &c->adasync;
	char first[48];

	a->interval = INTERVAL_DEFAULT;
	const char *behind = form_parse(text, &a->form);
	if (behind == NULL || !rest_parse(behind, a)) {
		mst_reason_set(
			why,
			"policy \"adasync:%.40s\": adasync needs ksync, kasync, kbatchsync or "
			"kbatchasync. After it may come, each after a comma, the K to start with "
			"and the number of gradients after which K is chosen anew, both 1 or more, "
			"the word paper, and the name of a loss that workers report, as in "
			"adasync:ksync,1,%u%stest_loss",
			text, INTERVAL_DEFAULT, NAMED);
		return -EINVAL;
	}
	a->wanted = least_start(a);
	a->measures = may_measure(a);
	a->looks = a->measures ? FIRST_LOOKS : 0;
	snprintf(first, sizeof(first), "%s:%" PRIu32, forms[a->form], a->wanted);
	int rc = mst_rule_parse(first, rule, why);
	if (rc == 0 && a->measures)
		rule->quorum = 0; /* all workers, however many there are */
	return rc;
}

/* ---- what it may become ---- */

static struct mst_rule *then(struct mst_controller *c)
{
	(void)c;
	return NULL;
}

static struct mst_rule last(const struct mst_controller *c, const struct mst_rule *first,
			    uint32_t workers)
{
	struct mst_rule rule = *first;

	(void)c;
	rule.quorum = (int32_t)workers;
	return rule;
}

static int check(const struct mst_controller *c, const struct mst_rule_context *ctx,
		 struct mst_reason *why)
{
	if (least_start(&c->adasync) <= ctx->workers)
		return 0;
	mst_reason_set(why,
		       "K starts at %" PRIu32
		       ", and is never more than the number of workers, which is "
		       "%" PRIu32,
		       least_start(&c->adasync), ctx->workers);
	return -EINVAL;
}

/* ---- deciding ---- */

/* The root is written so that it holds for every ratio from 0 to infinity. */
double mst_adasync_k(const struct mst_adasync_at *at)
{
	double k = at->start, p = at->workers;

	if (k >= p)
		return p;
	if (at->in_proportion) {
		k *= sqrt(at->ratio);
	} else {
		double beta = k * k / (p - k) * at->ratio;
		k = 2 * p / (1 + sqrt(1 + 4 * p / beta));
	}
	k = k < p ? k : p;
	return k > 1 ? k : 1;
}

/* K by the measured times. Where the user has not said it, the start is where these say. */
static double measured_k(const struct mst_adasync *a, uint32_t workers, uint32_t live)
{
	uint32_t start = a->start > 0 ? a->start
				      : mst_arrival_times_start(&a->times, workers, live);

	return mst_arrival_times_k(&a->times, workers, live, start,
				   a->has_first ? a->first / a->newest : 1);
}

/* K goes up when the rounded figure is more, and down when the figure itself is a whole one less:
 * otherwise the noise of the losses would move K to and fro between two numbers. */
static uint32_t choose(const struct mst_adasync *a, const struct mst_rule *rule,
		       const struct mst_commit_view *commit)
{
	uint32_t live = commit->live;
	double k = a->measures ? measured_k(a, commit->workers, live)
			       : mst_adasync_k(&(struct mst_adasync_at){ mst_rule_repeats(rule),
									 least_start(a), live,
									 a->first / a->newest });
	uint32_t rounded = (uint32_t)(k + 0.5);
	bool stays = rounded < a->wanted && k > a->wanted - 1.0;

	return stays ? a->wanted : rounded;
}

/* No loss falls like this from one interval to the next. */
#define MOST_FALL 0x1p40

/* Have damaged batches made the first mean what it is? All later ones would be next to nothing
 * beside it, and K the number of workers for good. The first sane interval tells, however many have
 * gone before it. */
static bool is_no_measure(const struct mst_adasync *a, double before, double mean)
{
	return mean > 0 && before / MOST_FALL > mean && a->first / MOST_FALL > mean;
}

/* The losses of one interval do not differ like this. */
#define MOST_SPREAD 0x1p20

/* Adds to the sums of the interval. What is far beyond the others comes from damaged batches, and
 * is left out, whichever of them comes first. */
static void add_loss(struct mst_adasync *a, double loss, double samples)
{
	double mean = mst_mean_loss(a->loss, a->samples);

	if (a->samples > 0 && mean > 0 && loss / MOST_SPREAD > mean)
		return;
	if (a->samples > 0 && loss > 0 && mean / MOST_SPREAD > loss)
		a->loss = a->samples = 0;
	a->loss += mst_loss_share(loss, samples);
	a->samples += samples;
}

/* Takes the mean loss of the interval that has ended.
 * Return: true if there is a ratio of losses. */
static bool take_loss(struct mst_adasync *a)
{
	double mean = mst_mean_loss(a->loss, a->samples);

	if (!(a->samples > 0)) {
		a->trouble = MST_ADASYNC_UNTOLD;
		return false;
	}
	double before = a->newest;
	a->newest = mean;
	a->trouble = mean > 0 || (a->has_first && mean >= 0) ? MST_ADASYNC_FINE
							     : MST_ADASYNC_NO_RATIO;
	if (a->trouble != MST_ADASYNC_FINE)
		return false;
	if (!a->has_first || is_no_measure(a, before, mean))
		a->first = mean;
	a->has_first = true;
	return true;
}

static void add(struct mst_adasync *a, const struct mst_commit_view *commit)
{
	bool ended = commit->gradients >= a->interval - a->gradients;

	a->gradients = ended ? a->interval : a->gradients + commit->gradients;
	if (is_named(a) || !(commit->loss_samples > 0))
		return;
	add_loss(a, commit->loss, commit->loss_samples);
}

static void reported(struct mst_controller *c, const struct mst_metric *said)
{
	struct mst_adasync *a = &c->adasync;

	if (!is_named(a) || strcmp(a->metric, said->name) != 0)
		return;
	add_loss(a, said->value, 1);
}

static const char *metric(const struct mst_controller *c)
{
	return is_named(&c->adasync) ? c->adasync.metric : NULL;
}

/* Once a loss has been reported, it is no trouble that the next one takes longer than an interval.
 */
static bool has_to_wait(struct mst_adasync *a)
{
	bool waits = is_named(a) && !(a->samples > 0);

	if (waits && !a->has_first)
		a->trouble = MST_ADASYNC_UNTOLD;
	return waits;
}

/* In a look, the last gradient was there in less than half of its time. So few looks are made that
 * a mean of them would take long to say so. */
static bool is_fast_again(const struct mst_adasync *a, const struct mst_arrival *arrival,
			  uint32_t workers)
{
	return a->looks == 1 && arrival->number == a->live &&
	       mst_arrival_times_known(&a->times, workers, a->live) &&
	       2 * arrival->after_s < mst_arrival_times_of(&a->times, workers, a->live);
}

static void arrived(struct mst_controller *c, const struct mst_arrival *arrival, uint32_t workers)
{
	struct mst_adasync *a = &c->adasync;

	if (!a->measures)
		return;
	if (is_fast_again(a, arrival, workers)) {
		a->times = (struct mst_arrival_times){ 0 };
		a->looks = FIRST_LOOKS + 1; /* this step is none any more */
		return;
	}
	mst_arrival_times_add(&a->times, workers, arrival);
	if (arrival->number == (a->looks > 0 ? a->live : a->quorum))
		a->since_s += arrival->after_s;
}

/* After a commit: is the next step to wait for all? If it was the last look, K is chosen. A step
 * that waits for all anyway is a look, too. */
static void look(struct mst_adasync *a, const struct mst_rule *rule,
		 const struct mst_commit_view *commit)
{
	if (a->looks > 0 && --a->looks == 0) {
		bool known = mst_arrival_times_known(&a->times, commit->workers, commit->live);
		if (known)
			a->wanted = choose(a, rule, commit);
		else
			a->looks = 1; /* workers have died, or passed */
		a->look_s = mst_arrival_times_of(&a->times, commit->workers, commit->live);
		a->since_s = 0;
	} else if (a->looks == 0 && a->wanted < commit->live &&
		   a->since_s > LOOK_AFTER * a->look_s) {
		a->looks = 1;
	}
}

static bool decide(struct mst_controller *c, const struct mst_commit_view *commit,
		   struct mst_rule *rule)
{
	struct mst_adasync *a = &c->adasync;
	int32_t before = rule->quorum;

	if (commit->live == 0)
		return false;
	a->live = commit->live;
	add(a, commit);
	if (a->gradients == a->interval && !has_to_wait(a)) {
		if (take_loss(a) && a->looks == 0)
			a->wanted = choose(a, rule, commit);
		a->gradients = 0;
		a->loss = a->samples = 0;
	}
	if (a->measures)
		look(a, rule, commit);
	rule->quorum = (int32_t)(a->wanted < commit->live ? a->wanted : commit->live);
	if (a->looks > 0)
		rule->quorum = (int32_t)commit->live;
	a->quorum = (uint32_t)rule->quorum;
	return rule->quorum != before;
}

/* ---- checkpoints ---- */

enum { WANTED, FIRST, NEWEST, GRADIENTS, LOSS, SAMPLES, NAME, KEPT };

/* A number that stands for the name of the reported value; 0: the losses come with the
 * gradients. */
static double name_figure(const struct mst_adasync *a)
{
	return is_named(a) ? mst_crc32c(0, a->metric, strlen(a->metric)) : 0;
}

/* What a checkpoint keeps. A first loss of 0 means that there is none, since nothing can be divided
 * by it. The name is kept because losses of two names, or of a name and of gradients, cannot be
 * compared. */
static uint32_t keep(const struct mst_controller *c, struct mst_controller_figure *out)
{
	const struct mst_adasync *a = &c->adasync;

	out[WANTED] = (struct mst_controller_figure){ "adasync.wanted", a->wanted };
	out[FIRST] = (struct mst_controller_figure){ "adasync.first", a->has_first ? a->first : 0 };
	out[NEWEST] = (struct mst_controller_figure){ "adasync.newest", a->newest };
	out[GRADIENTS] = (struct mst_controller_figure){ "adasync.gradients", a->gradients };
	out[LOSS] = (struct mst_controller_figure){ "adasync.loss", mst_mean_loss(a->loss, 1) };
	out[SAMPLES] = (struct mst_controller_figure){ "adasync.samples", a->samples };
	out[NAME] = (struct mst_controller_figure){ "adasync.name", name_figure(a) };
	return KEPT;
}

static bool is_count(double figure, double least)
{
	return figure >= least && figure <= INT32_MAX && figure == floor(figure);
}

static bool resume(struct mst_controller *c, const struct mst_controller_figure *figure,
		   struct mst_rule *rule)
{
	struct mst_adasync *a = &c->adasync;

	if (!is_count(figure[WANTED].value, 1) || !is_count(figure[GRADIENTS].value, 0) ||
	    figure[NAME].value != name_figure(a))
		return false;
	a->wanted = (uint32_t)figure[WANTED].value;
	a->first = figure[FIRST].value;
	a->has_first = a->first > 0;
	a->newest = figure[NEWEST].value;
	a->gradients = (uint32_t)figure[GRADIENTS].value;
	if (a->gradients > a->interval)
		a->gradients = a->interval;
	a->loss = mst_loss_share(figure[LOSS].value, 1);
	a->samples = figure[SAMPLES].value;
	/* Times are learned anew. */
	rule->quorum = a->measures ? 0 : (int32_t)a->wanted;
	return isfinite(a->first) && isfinite(a->newest) && isfinite(a->loss) && a->samples >= 0;
}

/* ---- for people ---- */

static void now(const struct mst_controller *c, const struct mst_rule *rule, char *out, size_t len)
{
	if (rule->quorum == 0)
		snprintf(out, len, "bsp");
	else
		snprintf(out, len, "%s:%" PRId32, forms[c->adasync.form], rule->quorum);
}

static void why(const struct mst_controller *c, const struct mst_rule *rule, char *out, size_t len)
{
	const struct mst_adasync *a = &c->adasync;

	const char *loss = is_named(a) ? a->metric : "loss";

	(void)rule;
	if (a->trouble == MST_ADASYNC_UNTOLD && is_named(a))
		snprintf(out, len, "nobody has reported \"%s\" in %" PRIu32 " gradients", loss,
			 a->interval);
	else if (a->trouble == MST_ADASYNC_UNTOLD)
		snprintf(out, len, "the last %" PRIu32 " gradients told no loss", a->interval);
	else if (a->trouble == MST_ADASYNC_NO_RATIO)
		snprintf(out, len, "a %s of %.3g, of which there is no ratio", loss, a->newest);
	else if (!a->has_first && is_named(a))
		snprintf(out, len, "the first \"%s\" has to be reported", loss);
	else if (!a->has_first)
		snprintf(out, len, "the first loss is known after %" PRIu32 " gradients",
			 a->interval);
	else
		snprintf(out, len, "%s %.3g -> %.3g, %" PRIu32 " live workers", loss, a->first,
			 a->newest, a->live);
}

static bool is_stuck(const struct mst_controller *c)
{
	return c->adasync.trouble != MST_ADASYNC_FINE;
}

const struct mst_controller_row mst_controller_adasync = {
	.name = "adasync",
	.help = "adasync:P[,K[,N]][,paper][,loss=NAME] P is ksync, kasync, kbatchsync or "
		"kbatchasync; from K on, K grows as the loss falls; without K it begins at 1, or "
		"under ksync where the workers' times say; chosen anew after N gradients, 100 if "
		"not given; the loss is that of the gradients, or what workers report as NAME; "
		"paper: ksync by the paper's rule, which takes times for exponential",
	.by_loss = true,
	.parse = parse,
	.then = then,
	.last = last,
	.check = check,
	.arrived = arrived,
	.reported = reported,
	.metric = metric,
	.decide = decide,
	.keep = keep,
	.resume = resume,
	.now = now,
	.why = why,
	.is_stuck = is_stuck,
};
