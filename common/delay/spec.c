/* SPDX-License-Identifier: MIT */
/*
 * Specs: "exp:20", "3:const:500". Every rank checks all of them, so that a wrong one stops all
 * workers, not only the one that it is for.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/delay/model.h"

#define DIGITS "0123456789"

const char *mst_delay_number(const char *text, double *out)
{
	char *end;

	if (*text == '\0' || strchr(DIGITS ".", *text) == NULL ||
	    (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')))
		return NULL;
	double value = mst_text_real(text, &end);
	if (end == text || !isfinite(value))
		return NULL;
	*out = value;
	return end;
}

/* Skips "RANK:" at the front.
 * Return: false: there are digits that are no rank. */
static bool rank_parse(const char **at, struct mst_spec *out)
{
	size_t len = strspn(*at, DIGITS);

	out->for_all = len == 0;
	if (out->for_all)
		return true;
	errno = 0;
	unsigned long long rank = strtoull(*at, NULL, 10);
	if ((*at)[len] != ':' || errno != 0 || rank > UINT32_MAX)
		return false;
	out->rank = (uint32_t)rank;
	*at += len + 1;
	return true;
}

/* Reads as many numbers as the model takes.
 * Return: false: the text has other numbers. */
static bool params_parse(const char *at, struct mst_spec *out)
{
	for (unsigned i = 0; i < out->model->params; i++) {
		at = mst_delay_number(at + (i > 0), &out->p[i]);
		char behind = i + 1 < out->model->params ? ',' : '\0';
		if (at == NULL || *at != behind)
			return false;
	}
	return true;
}

int mst_spec_refuse(const char *spec, const char *wrong, struct mst_reason *why)
{
	mst_reason_set(why, "delay \"%.80s\": %s", spec, wrong);
	return -EINVAL;
}

static int model_refuse(const char *spec, struct mst_reason *why)
{
	struct mst_reason known = { "a model is one of" };

	for (const struct mst_model *m = mst_models; m->form != NULL; m++)
		mst_reason_add(&known, " %s", m->form);
	return mst_spec_refuse(spec, known.text, why);
}

static int spec_parse(const char *text, struct mst_spec *out, struct mst_reason *why)
{
	const char *at = text;

	*out = (struct mst_spec){ .text = text };
	if (!rank_parse(&at, out))
		return mst_spec_refuse(text,
				       "has to begin with a model, as const:20 and exp:20 do, or "
				       "with a rank and ':'",
				       why);
	size_t name = strcspn(at, ":");
	out->model = mst_model_find(at, name);
	if (out->model == NULL)
		return model_refuse(text, why);
	at += name + (at[name] == ':');
	out->file = at;
	if (!params_parse(at, out) || (out->model->kind == MST_MODEL_TRACE && *at == '\0')) {
		mst_reason_set(why, "has to be %s%s", out->model->form,
			       out->model->params > 0 ? ", in decimal numbers from 0 on" : "");
		return mst_spec_refuse(text, why->text, why);
	}
	const char *unfit = out->model->check != NULL ? out->model->check(out->p) : NULL;
	return unfit != NULL ? mst_spec_refuse(text, unfit, why) : 0;
}

/* Return: the model (or the mix) that is given for the same ranks before @end, or NULL. */
static struct mst_spec *spec_find(const struct mst_specs *all, size_t end,
				  const struct mst_spec *like, bool want_mix)
{
	for (size_t i = 0; i < end; i++) {
		struct mst_spec *s = &all->spec[i];
		if ((s->model->kind == MST_MODEL_MIX) == want_mix && s->for_all == like->for_all &&
		    s->rank == like->rank)
			return s;
	}
	return NULL;
}

struct mst_spec *mst_specs_for_all(const struct mst_specs *all, bool want_mix)
{
	return spec_find(all, all->count, &(struct mst_spec){ .for_all = true }, want_mix);
}

struct mst_spec *mst_specs_for_rank(const struct mst_specs *all, uint32_t rank, bool want_mix)
{
	return spec_find(all, all->count, &(struct mst_spec){ .rank = rank }, want_mix);
}

/* Checks the specs together: none may be given twice, and a mix needs a model that it
 * multiplies. */
static int specs_check(const struct mst_specs *all, struct mst_reason *why)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct mst_spec *s = &all->spec[i];
		const struct mst_spec *twice = spec_find(all, i, s,
							 s->model->kind == MST_MODEL_MIX);
		if (twice != NULL) {
			mst_reason_set(why, "\"%.60s\" is already given for %s", twice->text,
				       s->for_all ? "all ranks" : "this rank");
			return mst_spec_refuse(s->text, why->text, why);
		}
		if (s->model->kind == MST_MODEL_MIX && mst_specs_for_all(all, false) == NULL &&
		    (s->for_all || mst_specs_for_rank(all, s->rank, false) == NULL))
			return mst_spec_refuse(
				s->text,
				"multiplies another model's delays; give one beside it,"
				" such as const:20",
				why);
	}
	return 0;
}

int mst_specs_parse(struct mst_specs *out, const char *const *text, struct mst_reason *why)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < out->count; i++)
		rc = spec_parse(text[i], &out->spec[i], why);
	return rc != 0 ? rc : specs_check(out, why);
}
