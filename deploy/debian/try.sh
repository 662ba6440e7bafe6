#!/bin/sh
# SPDX-License-Identifier: MIT
# What `debian.sh try` runs as root in a fresh Debian in which the packages are installed.
set -eu

fail() {
	echo "try: $*" >&2
	exit 1
}

cd "$(dirname "$0")"
export LC_ALL=C.UTF-8

# A program is built against libmuster-dev, and a job of three workers runs.
# shellcheck disable=SC2046 # flags are words
gcc -std=c17 -Wall -Wextra -Werror -D_GNU_SOURCE 01_push_pull.c \
	$(pkg-config --cflags --libs muster) -lm -o push_pull
muster run -n 3 --commits 1 -- ./push_pull

# Python finds the module, and the module the library.
muster run -n 3 --commits 10 -- python3 worker.py

# A server that root starts becomes the service user, and lets the group in over shared memory.
getent passwd muster >/dev/null || fail "there is no user muster"
install -d -o muster -g muster -m 0750 /run/muster-try
XDG_RUNTIME_DIR=/run/muster-try musterd -n 1 --commits 1 --user muster --shm-group muster --no-core &
server=$!
useradd --no-create-home --groups muster worker
MUSTER_RANK=0 setpriv --reuid worker --regid worker --init-groups ./push_pull ||
	fail "a worker of the group muster cannot work"
wait "$server" || fail "the server failed"
userdel worker

man_pages=$(dpkg -L muster | grep -c '/man/man[18]/.*\.gz$')
[ "$man_pages" -ge 12 ] || fail "there are $man_pages man pages"
[ -f /lib/systemd/system/musterd@.service ] || fail "the unit is missing"
echo "try: programs in C and Python run as root, and one as a user of the group muster"
