#!/bin/sh
# SPDX-License-Identifier: MIT
# What `debian.sh try` runs as root in a fresh Debian that has been booted: the unit at work.
# Arguments: the command of a worker, which ends the job.
set -eu

fail() {
	echo "try: $*" >&2
	systemctl --no-pager --full status musterd@try >&2 || true
	journalctl --no-pager -u musterd@try >&2 || true
	exit 1
}

property() {
	systemctl show --value --property "$1" musterd@try
}

until_true() {
	tries=300
	until "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.2
	done
}

was_restarted() {
	[ "$(property NRestarts)" -ge 1 ] && [ "$(property ActiveState)" = active ]
}

has_ended() {
	[ "$(property ActiveState)" != active ]
}

cat >/etc/muster/try.conf <<'CONF'
workers = 2;
join_timeout = "never";
state = "/var/lib/muster/try";
resume = "/var/lib/muster/try";
or_begin = true;
CONF
mkdir -p /etc/systemd/system/musterd@try.service.d
printf '[Service]\nWatchdogSec=8s\n' >/etc/systemd/system/musterd@try.service.d/watchdog.conf
systemctl daemon-reload

systemctl start musterd@try || fail "it does not start"
case $(property StatusText) in
"listening on "*) ;;
*) fail "its status is \"$(property StatusText)\"" ;;
esac
pid=$(property MainPID)
uid=$(awk '/^Uid:/ { print $2 }' "/proc/$pid/status")
[ "$uid" = "$(id -u muster)" ] || fail "it runs as uid $uid"
echo "try: it is ready, as the user muster: $(property StatusText)"

kill -STOP "$pid"
until_true was_restarted || fail "a server that stands still is not restarted"
[ "$(property MainPID)" != "$pid" ] || fail "it has the same process"
echo "try: the watchdog has ended a server that stood still, and there is another"

useradd --no-create-home --groups muster worker
for rank in 0 1; do
	MUSTER_RANK=$rank setpriv --reuid worker --regid worker --init-groups "$@" &
done
until_true has_ended || fail "the job does not end"
wait
[ "$(property Result)" = success ] || fail "the job ends with $(property Result)"
muster checkpoint /var/lib/muster/try --verify || fail "there is no checkpoint"
systemd-analyze security --no-pager musterd@try | tail -n 1
echo "try: a job ran over shared memory under the unit, and its last version is saved"
