/* SPDX-License-Identifier: MIT */
/*
 * Digits drawn by the program itself, for when no data are at hand: pen strokes, bent, turned,
 * sheared, scaled, moved, thick or thin, on noisy paper. A task worth learning: a linear model
 * stays well behind a network with a hidden layer.
 */
#ifndef DIGITS_STROKES_H
#define DIGITS_STROKES_H

#include <stdint.h>

#include "common/base/rand.h"

#define STROKES_SIDE 28u
#define STROKES_PIXELS (STROKES_SIDE * STROKES_SIDE)

/* Draws @digit (0 to 9) into @image, rows from the top, 0 paper to 255 ink. All chance comes from
 * @chance: same state, same image. */
void strokes_draw(struct mst_rand *chance, unsigned digit, uint8_t image[STROKES_PIXELS]);

#endif
