#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# In a machine that one case after another uses: undoes what a case may have done to it, or shows
# what there is. shared.py compares what is shown with what it was when the machine had booted, so
# nothing here needs to succeed.
# usage: clean.sh undo MTU PID ...  of the cards; the processes that live on
#        clean.sh show
set -u
shopt -s nullglob dotglob

# Processes, but for the kernel's and those of this command, which leads a session.
processes() {
	ps -N --ppid 2 -p 2 -o pid=,sid=,args= | while read -r pid session words; do
		[ "$session" = $$ ] || echo "process $pid $words"
	done
}

undo() {
	local mtu=$1 pid path
	shift

	processes | while read -r _ pid _; do
		case " $* " in
		*" $pid "*) ;;
		*) kill -KILL "$pid" ;;
		esac
	done
	# Not what is mounted there, such as the checkout.
	find /tmp /dev/shm -xdev -mindepth 1 -delete
	for path in /sys/class/infiniband/*; do
		[ "${path##*/}" = rxe0 ] || rdma link del "${path##*/}"
	done
	{
		for path in /sys/class/net/*; do
			case ${path##*/} in
			lo | data | control) ;;
			*) echo "link del ${path##*/}" ;;
			esac
		done
		echo "link set data mtu $mtu"
		echo "neigh flush all"
		echo "neigh flush all nud permanent"
	} | ip -force -batch -
	printf 'qdisc del dev %s\n' "data root" "data clsact" "data ingress" "control root" \
		"control clsact" "control ingress" | tc -force -batch -
	[ -e /sys/class/infiniband/rxe0 ] || rdma link add rxe0 type rxe netdev data
}

show() {
	processes
	rdma link
	rdma resource | sed 's/^[0-9]*: //' # a device that was made anew has another number
	ip -o link
	ip -o addr
	ip neigh show nud permanent
	tc qdisc show
	cat /proc/mounts
	printf 'file %s\n' /tmp/* /dev/shm/*
}

case $1 in
undo)
	shift
	undo "$@"
	;;
show) show ;;
esac
exit 0
