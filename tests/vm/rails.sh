#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Jobs over paths of every kind that one machine of tests/vm has: IPv6, a second device, two rails,
# and what else can be asked of a path. Each job checks its sums.
# usage: rails.sh MUSTER BENCH_STEP, in a machine with rxe0 at 10.77.0.1 and fd77::1
set -euo pipefail

muster=$1 step=$2

ip link add second type dummy
ip addr add 10.79.0.1/24 dev second
ip link set second mtu 4200 up
rdma link add rxe1 type rxe netdev second

# Sums of 2 MB go in pieces, over all rails.
job() {
	echo "rails: $*"
	"$muster" run -n 2 --owner workers --transport verbs --listen 127.0.0.1:0 --log-level warn \
		"$@" -- "$step" 500000 4
}

packets() {
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/sent_pkts"
}

# What went over a device since its count was $2.
expect_traffic() {
	local now
	now=$(packets "$1")
	[ "$((now - $2))" -gt 1000 ] || {
		echo "rails: only $((now - $2)) packets went over $1" >&2
		exit 1
	}
}

job --data-address fd77::1
before=$(packets rxe1)
job --device rxe1
expect_traffic rxe1 "$before"
first=$(packets rxe0) before=$(packets rxe1)
job --data-address 10.77.0.1,10.79.0.1
expect_traffic rxe0 "$first"
expect_traffic rxe1 "$before"
job --data-address fd77::1,10.79.0.1 --chunk 4K
job --device rxe0,rxe1 --link-timeout 1s --traffic-class 32 --service-level 3 \
	--relaxed-ordering --pkey 0xffff --huge-pages off
MUSTER_DEVICE=rxe1 job --data-address 10.79.0.1
