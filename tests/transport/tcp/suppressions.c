/* SPDX-License-Identifier: MIT */
/*
 * What the thread sanitizer is not to report of links over TCP. It takes what sendmsg() reads for
 * read when the call returns, and by then the peer may have the first part of it, and have said so,
 * and the owner may have written there again. Nothing else of a link is left out.
 */
const char *__tsan_default_suppressions(void);

__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void)
{
	return "race:mst_tcp_send\n";
}
