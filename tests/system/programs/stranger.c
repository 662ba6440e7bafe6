/* SPDX-License-Identifier: MIT */
/* Somebody who asks for a link at a server's listener without a welcome: stranger ADDRESS. Ends
 * with 0 if it was sent away. */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/transport/transport.h"

int main(int argc, char **argv)
{
	const struct mst_transport *t = argc == 2 ? mst_transport_of(argv[1]) : NULL;
	struct mst_net_cfg cfg = { .links_max = 1 };
	struct mst_dial how = { .lanes = { 1 << 16, 1 << 16, 8, 8 },
				.timeout_ns = 60 * MST_SECOND };
	struct mst_link *link;
	struct mst_net *net;
	struct mst_reason why; /* not told: the caller looks for the error */

	if (t == NULL || t->net_open(&cfg, &net, &why) != 0) {
		fprintf(stderr, "usage: stranger ADDRESS\n");
		return 2;
	}
	how.address = argv[1];
	memset(how.token, 0x5a, sizeof(how.token));
	int rc = t->dial(net, &how, &link, &why);
	if (rc == 0) {
		t->detach(link);
		t->link_free(link);
	}
	t->net_close(net);
	printf("%s\n", rc == 0 ? "let in" : strerror(-rc));
	return rc == 0;
}
