/* SPDX-License-Identifier: MIT */
/*
 * message_inputs FILE ...: every first input of the fuzzer of messages is a message of this
 * protocol. After a change of a message the old inputs are refused before any field is read, and
 * the fuzzer would try nothing else; `test_unit_wire FOLDER` writes new ones.
 */
#include <stdint.h>
#include <stdio.h>

#include "common/wire/message.h"

static uint8_t frame[MST_FRAME_HEADER + MST_FRAME_BODY_MAX];
static struct mst_message message;

static int is_refused(const char *path)
{
	FILE *f = fopen(path, "rb");

	if (f == NULL) {
		(void)fprintf(stderr, "%s: cannot be read\n", path);
		return 1;
	}
	size_t length = fread(frame, 1, sizeof(frame), f);
	(void)fclose(f);
	if (mst_message_decode(frame, length, &message, NULL) == 0)
		return 0;
	(void)fprintf(stderr,
		      "%s: no message of protocol %u; test_unit_wire FOLDER writes new inputs\n",
		      path, MST_PROTOCOL);
	return 1;
}

int main(int argc, char **argv)
{
	int refused = argc < 2;

	for (int i = 1; i < argc; i++)
		refused += is_refused(argv[i]);
	return refused > 0;
}
