/* SPDX-License-Identifier: MIT */
/*
 * Digits drawn by the program itself, for when no data are at hand: pen strokes, bent, turned,
 * sheared, scaled, moved, thick or thin, on noisy paper. A task worth learning: a linear model
 * learns it clearly less well than a network with a hidden layer.
 *
 * A digit is a few lines and elliptic arcs in the unit square (x to the right, y down). They are
 * cut into short segments, each end of which goes through the writer's hand: a smooth bend, then
 * an affine map to pixels. A pixel's ink is how deep it lies within the pen's radius of the
 * nearest segment, with one pixel of soft edge.
 */
#include "common/digits/dataset.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define TURN 6.2831853f
#define DEGREE (TURN / 360.0f)
#define STROKES_MAX 4
#define PIECES 12 /* segments per stroke */

enum stroke_kind { END, LINE, ARC };

struct stroke {
	enum stroke_kind kind;
	float x, y;     /* line: first end; arc: centre */
	float u, v;     /* line: second end; arc: radii */
	float from, to; /* arc: degrees, clockwise from the right */
};

static const struct stroke shapes[10][STROKES_MAX] = {
	{ { ARC, .50f, .50f, .30f, .42f, 0, 360 } },
	{ { LINE, .52f, .08f, .50f, .92f, 0, 0 }, { LINE, .52f, .08f, .33f, .27f, 0, 0 } },
	{ { ARC, .50f, .32f, .27f, .24f, 190, 395 },
	  { LINE, .72f, .46f, .23f, .92f, 0, 0 },
	  { LINE, .23f, .92f, .79f, .92f, 0, 0 } },
	{ { ARC, .48f, .29f, .25f, .21f, 200, 450 }, { ARC, .48f, .71f, .29f, .21f, 270, 520 } },
	{ { LINE, .62f, .08f, .20f, .64f, 0, 0 },
	  { LINE, .20f, .64f, .84f, .64f, 0, 0 },
	  { LINE, .63f, .08f, .61f, .92f, 0, 0 } },
	{ { LINE, .74f, .08f, .32f, .08f, 0, 0 },
	  { LINE, .32f, .08f, .28f, .46f, 0, 0 },
	  { ARC, .47f, .65f, .28f, .26f, 225, 505 } },
	{ { ARC, .50f, .68f, .26f, .24f, 0, 360 }, { ARC, .72f, .62f, .48f, .54f, 180, 262 } },
	{ { LINE, .22f, .10f, .78f, .10f, 0, 0 }, { LINE, .78f, .10f, .42f, .92f, 0, 0 } },
	{ { ARC, .50f, .29f, .22f, .20f, 0, 360 }, { ARC, .50f, .71f, .27f, .22f, 0, 360 } },
	{ { ARC, .50f, .32f, .26f, .24f, 0, 360 }, { ARC, .28f, .38f, .48f, .54f, 0, 82 } },
};

struct point {
	float x, y;
};

/* How this one digit is written. */
struct hand {
	struct point bend, wave, phase; /* x moves by bend.x sin(wave.x y + phase.x), y likewise */
	float xx, xy, yx, yy;           /* the affine map, to pixels */
	struct point middle;            /* where the square's middle comes to lie, in pixels */
	float radius;                   /* of the pen, in pixels */
};

static float between(struct mst_rand *chance, float low, float high)
{
	return low + (high - low) * (float)mst_rand_unit(chance);
}

static void hand_draw(struct hand *h, struct mst_rand *chance)
{
	float turn = between(chance, -18 * DEGREE, 18 * DEGREE);
	float shear = between(chance, -.35f, .35f);
	float wide = between(chance, 14, 23);
	float high = between(chance, 17, 24);

	h->bend = (struct point){ between(chance, -.09f, .09f), between(chance, -.09f, .09f) };
	h->wave = (struct point){ between(chance, 3, 8), between(chance, 3, 8) };
	h->phase = (struct point){ between(chance, 0, TURN), between(chance, 0, TURN) };
	h->xx = wide * cosf(turn);
	h->xy = high * (shear * cosf(turn) - sinf(turn));
	h->yx = wide * sinf(turn);
	h->yy = high * (shear * sinf(turn) + cosf(turn));
	h->middle = (struct point){ between(chance, 11.5f, 15.5f), between(chance, 11.5f, 15.5f) };
	h->radius = between(chance, .6f, 1.8f);
}

static struct point hand_place(const struct hand *h, struct point p)
{
	float x = p.x - .5f + h->bend.x * sinf(h->wave.x * p.y + h->phase.x);
	float y = p.y - .5f + h->bend.y * sinf(h->wave.y * p.x + h->phase.y);

	return (struct point){ h->middle.x + h->xx * x + h->xy * y,
			       h->middle.y + h->yx * x + h->yy * y };
}

/* The point at @part (0 to 1) of the stroke. */
static struct point stroke_at(const struct stroke *s, float part)
{
	if (s->kind == LINE)
		return (struct point){ s->x + part * (s->u - s->x), s->y + part * (s->v - s->y) };
	float angle = (s->from + part * (s->to - s->from)) * DEGREE;
	return (struct point){ s->x + s->u * cosf(angle), s->y + s->v * sinf(angle) };
}

static float distance(struct point p, struct point a, struct point b)
{
	struct point ab = { b.x - a.x, b.y - a.y };
	struct point ap = { p.x - a.x, p.y - a.y };
	float length = ab.x * ab.x + ab.y * ab.y;
	float part = length > 0 ? (ap.x * ab.x + ap.y * ab.y) / length : 0;

	part = fminf(fmaxf(part, 0), 1);
	return hypotf(ap.x - part * ab.x, ap.y - part * ab.y);
}

/* The first and one past the last pixel that ink between @a and @b can reach. */
static int first_pixel(float a, float b, float reach)
{
	return (int)fmaxf(floorf(fminf(a, b) - reach), 0);
}

static int past_pixel(float a, float b, float reach)
{
	return (int)fminf(ceilf(fmaxf(a, b) + reach) + 1, MST_STROKES_SIDE);
}

static void ink(uint8_t *image, float radius, struct point a, struct point b)
{
	float reach = radius + .5f;
	int left = first_pixel(a.x, b.x, reach), right = past_pixel(a.x, b.x, reach);
	int top = first_pixel(a.y, b.y, reach), bottom = past_pixel(a.y, b.y, reach);

	for (int y = top; y < bottom; y++) {
		for (int x = left; x < right; x++) {
			float depth = reach - distance((struct point){ (float)x, (float)y }, a, b);
			uint8_t *pixel = &image[y * (int)MST_STROKES_SIDE + x];
			uint8_t value = (uint8_t)(255 * fminf(fmaxf(depth, 0), 1));
			if (value > *pixel)
				*pixel = value;
		}
	}
}

/* Each pixel loses or gains up to 1/8: eight of them from one random number. */
static void speckle(uint8_t *image, struct mst_rand *chance)
{
	uint64_t bits = 0;

	for (unsigned i = 0; i < MST_STROKES_PIXELS; i++, bits >>= 8) {
		if (i % 8 == 0)
			bits = mst_rand_next(chance);
		int value = image[i] + (int)(bits & 63) - 32;
		image[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
	}
}

void mst_strokes_draw(struct mst_rand *chance, unsigned digit, uint8_t image[MST_STROKES_PIXELS])
{
	struct hand hand;

	assert(digit < 10);
	hand_draw(&hand, chance);
	memset(image, 0, MST_STROKES_PIXELS);
	for (int i = 0; i < STROKES_MAX && shapes[digit][i].kind != END; i++) {
		const struct stroke *s = &shapes[digit][i];
		struct point here = hand_place(&hand, stroke_at(s, 0));
		for (int piece = 1; piece <= PIECES; piece++) {
			struct point next = hand_place(&hand,
						       stroke_at(s, (float)piece / (float)PIECES));
			ink(image, hand.radius, here, next);
			here = next;
		}
	}
	speckle(image, chance);
}
