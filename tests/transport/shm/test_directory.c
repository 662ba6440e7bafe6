/* SPDX-License-Identifier: MIT */
/*
 * The directory of the listeners over shared memory: which are taken and which refused, by which
 * sentence; who may call at a listener; and what becomes of the files. As root it also plays other
 * users and groups; else those cases are left out.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/transport/shm/shm.h"
#include "tests/ut.h"

#define STRANGER 54321 /* a user and */
#define TEAM 54322     /* a group that nobody has */

static char runtime[] = "/tmp/muster-test-XXXXXX"; /* $XDG_RUNTIME_DIR */
static char directory[64];                         /* in it */

static void begin(void)
{
	memcpy(runtime + sizeof(runtime) - 7, "XXXXXX", 6);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(runtime));
	CU_ASSERT_EQUAL(setenv("XDG_RUNTIME_DIR", runtime, 1), 0);
	(void)snprintf(directory, sizeof(directory), "%s/muster", runtime);
}

static unsigned sockets(void)
{
	DIR *dir = opendir(directory);
	unsigned count = 0;

	for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
		count += e->d_name[0] != '.';
	if (dir != NULL)
		closedir(dir);
	return count;
}

static void end(void)
{
	CU_ASSERT_EQUAL(sockets(), 0);
	(void)rmdir(directory);
	CU_ASSERT_EQUAL(rmdir(runtime), 0);
}

/* A net and its listener, for the group if that is not -1. */
struct directory_listener {
	struct mst_net *net;
	struct mst_link_listener *listener;
	int rc;
	struct mst_reason why;
};

static struct directory_listener directory_listener_open(int64_t group)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg cfg = { .links_max = 1, .fabric = &fabric };
	struct directory_listener h = { 0 };

	fabric.group = group;
	CU_ASSERT_EQUAL_FATAL(mst_shm.net_open(&cfg, &h.net, UT_UNREAD), 0);
	h.rc = mst_shm.listener->open(h.net, &h.listener, &h.why);
	CU_ASSERT_EQUAL(h.rc == 0, h.listener != NULL);
	return h;
}

static void directory_listener_close(struct directory_listener *h)
{
	mst_shm.listener->close(h->listener);
	mst_shm.net_close(h->net);
}

static void expect_refused(int64_t group, int error, const char *words)
{
	struct directory_listener h = directory_listener_open(group);
	bool said = strstr(h.why.text, words) != NULL;

	CU_ASSERT_EQUAL(h.rc, error);
	CU_ASSERT(said);
	if (h.rc != error || !said)
		printf("\n\t%s: %d: %s\n", words, h.rc, h.why.text);
	directory_listener_close(&h);
}

static mode_t mode_of(const char *path)
{
	struct stat st = { 0 };

	CU_ASSERT_EQUAL(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void a_listener_is_a_file_for_this_user_alone(void)
{
	begin();
	mode_t was = umask(0);
	struct directory_listener h = directory_listener_open(-1);
	CU_ASSERT_EQUAL_FATAL(h.rc, 0);
	CU_ASSERT_EQUAL(strncmp(h.listener->address, directory, strlen(directory)), 0);
	CU_ASSERT_EQUAL(mode_of(directory), 0700);
	CU_ASSERT_EQUAL(mode_of(h.listener->address), 0600);
	struct directory_listener other = directory_listener_open(-1);
	CU_ASSERT_EQUAL(sockets(), 2);
	directory_listener_close(&other);
	CU_ASSERT_EQUAL(sockets(), 1);
	directory_listener_close(&h);
	(void)umask(was);
	end();
}

static void without_a_login_it_is_in_tmp(void)
{
	char wanted[64];

	(void)snprintf(wanted, sizeof(wanted), "/tmp/muster-%u/", (unsigned)geteuid());
	(void)unsetenv("XDG_RUNTIME_DIR");
	struct directory_listener h = directory_listener_open(-1);
	CU_ASSERT_EQUAL_FATAL(h.rc, 0);
	CU_ASSERT_EQUAL(strncmp(h.listener->address, wanted, strlen(wanted)), 0);
	directory_listener_close(&h);
}

static void directories_that_let_others_in_are_refused(void)
{
	begin();
	CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
	CU_ASSERT_EQUAL(chmod(directory, 0755), 0);
	expect_refused(-1, -EPERM, "has mode 0755, and must have 0700 without --shm-group: chmod");
	CU_ASSERT_EQUAL(chmod(directory, 0700), 0);
	expect_refused(TEAM, -EPERM, "cannot get to"); /* the one above is of mode 0700 */
	CU_ASSERT_EQUAL(chmod(runtime, 0777), 0);
	expect_refused(-1, -EPERM, "has mode 0777, so that others could put another directory");
	CU_ASSERT_EQUAL(chmod(runtime, 0755), 0);
	expect_refused(getegid(), -EPERM, "has mode 0700, and must have 0750 with --shm-group");
	CU_ASSERT_EQUAL(rmdir(directory), 0);
	CU_ASSERT_EQUAL(symlink("/tmp", directory), 0);
	expect_refused(-1, -ENOTDIR, "is no directory");
	CU_ASSERT_EQUAL(unlink(directory), 0);
	end();
}

static void paths_that_cannot_be_are_refused(void)
{
	char path[300] = "relative/way";

	CU_ASSERT_EQUAL(setenv("XDG_RUNTIME_DIR", path, 1), 0);
	expect_refused(-1, -EINVAL, "relative/way, which is no absolute path");
	CU_ASSERT_EQUAL(setenv("XDG_RUNTIME_DIR", "/nowhere/at/all", 1), 0);
	expect_refused(-1, -ENOENT, "/nowhere/at/all: No such file or directory; set XDG");
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	CU_ASSERT_EQUAL(setenv("XDG_RUNTIME_DIR", path, 1), 0);
	expect_refused(-1, -ENAMETOOLONG, "is 299 bytes long");
	expect_refused(-1, -ENAMETOOLONG, "It may have at most 78, because");
	expect_refused(-1, -ENAMETOOLONG, "is appended to it: set it to a shorter path");
	/* One more than fits, and as much as does. */
	path[79] = '\0';
	CU_ASSERT_EQUAL(setenv("XDG_RUNTIME_DIR", path, 1), 0);
	expect_refused(-1, -ENAMETOOLONG, "is 79 bytes long");
	path[78] = '\0';
	CU_ASSERT_EQUAL(setenv("XDG_RUNTIME_DIR", path, 1), 0);
	expect_refused(-1, -ENOENT, "No such file");
}

/* Runs @f as that user and group. Return: its exit status; 0 too where this is not root. */
static int as(uid_t uid, gid_t gid, int (*f)(const void *), const void *arg)
{
	int status = -1;

	if (geteuid() != 0)
		return 0;
	pid_t child = fork();
	if (child == 0) {
		if (setgroups(0, NULL) != 0 || setgid(gid) != 0 || setuid(uid) != 0)
			_exit(99);
		_exit(f(arg));
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int open_listener(const void *words)
{
	struct directory_listener h = directory_listener_open(-1);

	if (words == NULL)
		return h.rc == 0 ? 0 : 1;
	return h.rc < 0 && strstr(h.why.text, words) != NULL ? 0 : 1;
}

static void directories_of_others_are_refused(void)
{
	begin();
	CU_ASSERT_EQUAL(chmod(runtime, 0755), 0);
	CU_ASSERT_EQUAL(as(STRANGER, STRANGER, open_listener, "Permission denied"), 0);
	CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
	CU_ASSERT_EQUAL(as(STRANGER, STRANGER, open_listener,
			   "belongs to uid 0, and this server is "
			   "run by uid 54321"),
			0);
	if (geteuid() == 0) { /* and root takes no one else's either */
		CU_ASSERT_EQUAL(chown(directory, STRANGER, 0), 0);
		expect_refused(-1, -EPERM, "belongs to uid 54321, and this server is run by uid 0");
		CU_ASSERT_EQUAL(chown(runtime, STRANGER, 0), 0);
		expect_refused(-1, -EPERM, "belongs to uid 54321, and this server is run by uid 0");
	}
	end();
}

static int connect_to(const void *address)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un at;
	socklen_t len;

	if (mst_shm_address(address, &at, &len) != 0)
		return 98;
	return connect(s, (struct sockaddr *)&at, len) < 0 ? errno : 0;
}

/* 0 or the error of a dial. */
static int dial_listener(const void *address)
{
	struct mst_dial dial = { .address = address, .timeout_ns = 1 };
	struct directory_listener h = directory_listener_open(-1);
	struct mst_link *link;
	int rc = mst_shm.dial(h.net, &dial, &link, &h.why);

	return strstr(h.why.text, "uid 54321 may not open") != NULL ? -rc : 97;
}

static void strangers_do_not_reach_a_listener(void)
{
	begin();
	CU_ASSERT_EQUAL(chmod(runtime, 0755), 0);
	struct directory_listener h = directory_listener_open(-1);
	CU_ASSERT_EQUAL_FATAL(h.rc, 0);
	CU_ASSERT_EQUAL(connect_to(h.listener->address), 0);
	if (geteuid() == 0) {
		CU_ASSERT_EQUAL(as(STRANGER, TEAM, connect_to, h.listener->address), EACCES);
		CU_ASSERT_EQUAL(as(STRANGER, TEAM, dial_listener, h.listener->address), EACCES);
	}
	directory_listener_close(&h);
	end();
}

static void a_group_reaches_a_listener_that_is_for_it(void)
{
	begin();
	CU_ASSERT_EQUAL(chmod(runtime, 0755), 0);
	if (geteuid() != 0) {
		end();
		return;
	}
	struct directory_listener h = directory_listener_open(TEAM);
	CU_ASSERT_EQUAL_FATAL(h.rc, 0);
	CU_ASSERT_EQUAL(mode_of(directory), 0750);
	CU_ASSERT_EQUAL(mode_of(h.listener->address), 0660);
	CU_ASSERT_EQUAL(as(STRANGER, TEAM, connect_to, h.listener->address), 0);
	CU_ASSERT_EQUAL(as(STRANGER, STRANGER, connect_to, h.listener->address), EACCES);
	expect_refused(TEAM + 1, -EPERM, "is of group 54322, and --shm-group says 54323: chgrp");
	expect_refused(-1, -EPERM, "has mode 0750, and must have 0700 without --shm-group");
	directory_listener_close(&h);
	end();
}

static int say_hello(const void *address)
{
	struct mst_shm_welcome welcome = { 0 };
	struct mst_shm_fd_message p = { .body = &welcome, .bytes = sizeof(welcome) };
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un at;
	socklen_t len;

	if (mst_shm_address(address, &at, &len) != 0 || connect(s, (struct sockaddr *)&at, len) < 0)
		return 98;
	int rc = -EAGAIN;
	for (int i = 0; i < 60000 && rc == -EAGAIN; i++) {
		usleep(1000);
		rc = mst_shm_receive(s, &p);
	}
	return rc == 0 ? -welcome.error : 97;
}

/* Modes that were opened by hand do not let a stranger in yet. */
static void strangers_at_an_open_listener_are_sent_away(void)
{
	struct mst_link_request request;
	int status = -1;

	begin();
	struct directory_listener h = directory_listener_open(-1);
	CU_ASSERT_EQUAL_FATAL(h.rc, 0);
	CU_ASSERT_EQUAL(chmod(runtime, 0755) | chmod(directory, 0755), 0);
	CU_ASSERT_EQUAL(chmod(h.listener->address, 0666), 0);
	pid_t child = geteuid() == 0 ? fork() : -1;
	if (child == 0)
		_exit(setgid(TEAM) != 0 || setuid(STRANGER) != 0 ? 99
								 : say_hello(h.listener->address));
	for (int i = 0; child > 0 && i < 60000 && waitpid(child, &status, WNOHANG) == 0; i++) {
		CU_ASSERT_EQUAL(mst_shm.listener->next_request(h.listener, &request, UT_UNREAD),
				-EAGAIN);
		usleep(1000);
	}
	if (child > 0)
		CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == EACCES);
	directory_listener_close(&h);
	end();
}

/* A server that is killed while it has a listener open; waited for. */
static void be_killed(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		(void)open_listener(NULL);
		raise(SIGKILL);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT(WIFSIGNALED(status));
}

static void what_killed_servers_left_is_removed(void)
{
	char other[80];

	begin();
	struct directory_listener alive = directory_listener_open(-1);
	be_killed();
	be_killed();
	CU_ASSERT_EQUAL(sockets(), 2); /* the second removed the first one's */
	(void)snprintf(other, sizeof(other), "%s/notes.txt", directory);
	int notes = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	struct directory_listener h = directory_listener_open(-1);
	CU_ASSERT_EQUAL(h.rc, 0);
	CU_ASSERT_EQUAL(sockets(), 3); /* the two that live, and what is none of a server's */
	CU_ASSERT_EQUAL(connect_to(alive.listener->address), 0);
	CU_ASSERT_EQUAL(unlink(other), 0);
	close(notes);
	directory_listener_close(&h);
	directory_listener_close(&alive);
	end();
}

static CU_TestInfo cases[] = {
	{ "a listener is a file for this user alone", a_listener_is_a_file_for_this_user_alone },
	{ "without a login it is in /tmp", without_a_login_it_is_in_tmp },
	{ "directories that let others in are refused",
	  directories_that_let_others_in_are_refused },
	{ "paths that cannot be are refused", paths_that_cannot_be_are_refused },
	{ "directories of others are refused", directories_of_others_are_refused },
	{ "strangers do not reach a listener", strangers_do_not_reach_a_listener },
	{ "a group reaches a listener that is for it", a_group_reaches_a_listener_that_is_for_it },
	{ "strangers at an open listener are sent away",
	  strangers_at_an_open_listener_are_sent_away },
	{ "what killed servers left is removed", what_killed_servers_left_is_removed },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("shm directory", cases);
}
