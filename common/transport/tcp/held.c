/* SPDX-License-Identifier: MIT */
/* How much of a connection its kernel holds unsent, by the rate at which the connection takes it
 * (TCP_INFO). */
#include <linux/tcp.h>

#include "common/base/clock.h"
#include "common/transport/tcp/tcp.h"

/* So long the kernel takes to send what it holds unsent. A small put waits for that, if it comes
 * after a large one. And where a connection is fast, little that is held makes the thread which
 * sends wake often: with 256 KiB instead of 4 MiB a step of 100 MiB took about a tenth longer over
 * loopback. */
#define HELD_NS (8 * MST_MS)

/* What the kernel may hold of a connection that takes so much. */
static uint32_t bytes_at(uint64_t bytes_per_second)
{
	uint64_t bytes = MST_TCP_HELD_MIN, sent;

	if (bytes_per_second > MST_TCP_HELD_MAX * (MST_SECOND / HELD_NS))
		return MST_TCP_HELD_MAX;
	sent = bytes_per_second / (MST_SECOND / HELD_NS);
	while (bytes < sent)
		bytes *= 2;
	return (uint32_t)bytes;
}

/* A rate that the sender itself has limited tells only that the connection is no slower. */
void mst_tcp_held_adjust(uint32_t *held_bytes, int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return; /* the socket itself will tell what is wrong */
	uint32_t bytes = bytes_at(info.tcpi_delivery_rate);
	if (bytes == *held_bytes || (bytes < *held_bytes && info.tcpi_delivery_rate_app_limited))
		return;
	mst_tcp_socket_hold(fd, bytes);
	*held_bytes = bytes;
}
