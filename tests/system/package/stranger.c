/* SPDX-License-Identifier: MIT */
/* The smallest program outside the tree: it calls the installed library and expects to be told, in
 * words, that a vector of no elements is no job. */
#include <muster/muster.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	struct muster_options opt = MUSTER_OPTIONS;
	struct muster *m = NULL;

	opt.elems = 0;
	opt.join_ms = 1;
	int rc = muster_open(&opt, &m);

	if (rc >= 0 || m != NULL || strlen(muster_error(NULL)) == 0) {
		fprintf(stderr, "muster_open() of nothing: %d, \"%s\"\n", rc, muster_error(NULL));
		return 1;
	}
	printf("%s\n", muster_error(NULL));
	muster_close(m);
	return 0;
}
