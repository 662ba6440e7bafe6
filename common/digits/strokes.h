/* SPDX-License-Identifier: MIT */
/*
 * Digits drawn by the program itself, for when no data are at hand: pen strokes, bent, turned,
 * sheared, scaled, moved, thick or thin, on noisy paper. A task worth learning: a linear model
 * learns it clearly less well than a network with a hidden layer.
 */
#ifndef MST_DIGITS_STROKES_H
#define MST_DIGITS_STROKES_H

#include <stdint.h>

#include "common/base/rand.h"

#define MST_STROKES_SIDE 28u
#define MST_STROKES_PIXELS (MST_STROKES_SIDE * MST_STROKES_SIDE)

/* Draws @digit (0 to 9) into @image, rows from the top, 0 paper to 255 ink. All chance comes from
 * @chance: same state, same image. */
void mst_strokes_draw(struct mst_rand *chance, unsigned digit, uint8_t image[MST_STROKES_PIXELS]);

#endif
