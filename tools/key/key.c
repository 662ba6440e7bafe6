/* SPDX-License-Identifier: MIT */
/* muster key: makes the certificates and keys of a job, and shows what certificates say. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/transport/tls/authority.h"
#include "common/transport/tls/credentials.h"
#include "tools/command.h"
#include "tools/key/options.h"

#define NAME_LEN_MAX 48u
#define PATH_LEN 4096u

static int print_help(void)
{
	(void)puts(
		"usage: muster key new DIR [options]\n"
		"       muster key show FILE|DIR\n\n"
		"new makes an authority of a job's own, ca.pem and ca.key, and certificates and\n"
		"keys of its server, worker, operator and observer. Give each machine only the\n"
		"pair of its role and ca.pem; keep ca.key away from all of them.\n"
		"show says whose certificates there are, and until when they are valid.\n\n"
		"Options:");
	mst_options_help(mst_key_table, stdout);
	return MST_EXIT_DONE;
}

static int make(const struct mst_key_options *options, const char *dir)
{
	struct mst_authority_cfg cfg = { .dir = dir, .name = options->name, .days = options->days };
	struct mst_reason why;

	if (options->name[0] == '\0' || strlen(options->name) > NAME_LEN_MAX ||
	    !mst_text_is_clean(options->name))
		return mst_refuse(
			"key",
			"option --name: 1 to %u characters without control characters are "
			"wanted",
			NAME_LEN_MAX);
	int rc = mst_authority_new(&cfg, &why);
	if (rc != 0) {
		mst_error("%s", why.text);
		return rc == -EINVAL ? MST_EXIT_USAGE : MST_EXIT_FAILED;
	}
	(void)printf("%s holds ca, server, worker, operator and observer, each .pem and .key, "
		     "valid for %u days\n"
		     "the server: musterd --tls-ca %s/ca.pem --tls-cert %s/server.pem --tls-key "
		     "%s/server.key\n",
		     dir, options->days, dir, dir, dir);
	return MST_EXIT_DONE;
}

static void show_certificate(const char *path, unsigned index, const struct mst_certificate *c)
{
	char roles[MST_ROLES_TEXT_LEN], which[32] = "";

	mst_roles_text(c->who.roles, roles);
	if (index > 0)
		(void)snprintf(which, sizeof(which), ", certificate %u", index + 1);
	(void)printf("%s%s: \"%s\", %s, from \"%s\", valid from %s until %s%s\n", path, which,
		     c->who.name, c->is_authority ? "an authority" : roles, c->issuer, c->from,
		     c->until,
		     c->has_expired ? " (expired)"
		     : c->is_early  ? " (not valid yet)"
				    : "");
}

/* A file may hold several, such as those between a certificate and its authority. */
static bool show_file(const char *path)
{
	struct mst_certificate c;
	struct mst_reason why;

	for (unsigned index = 0;; index++) {
		int rc = mst_certificate_read(path, index, &c, &why);
		if (rc == -ENOENT)
			return true;
		if (rc != 0) {
			mst_error("%s", why.text);
			return false;
		}
		show_certificate(path, index, &c);
	}
}

static int show(const char *path)
{
	static const char *const words[] = { "ca", "server", "worker", "operator", "observer" };
	bool all = true, any = false;
	char file[PATH_LEN];
	struct stat st;

	if (stat(path, &st) != 0)
		return mst_refuse("key", "cannot read %.300s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return show_file(path) ? MST_EXIT_DONE : MST_EXIT_USAGE;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		(void)snprintf(file, sizeof(file), "%.4000s/%s.pem", path, words[i]);
		if (stat(file, &st) != 0)
			continue;
		any = true;
		all = show_file(file) && all;
	}
	if (!any)
		return mst_refuse("key",
				  "%.300s has no ca.pem, server.pem, worker.pem, operator.pem or "
				  "observer.pem",
				  path);
	return all ? MST_EXIT_DONE : MST_EXIT_USAGE;
}

static int key(const struct mst_key_options *options, const struct mst_operands *operands)
{
	if (options->help)
		return print_help();
	if (operands->count != 2)
		return mst_refuse("key", "what is to be done, and where? As in muster key new DIR");
	if (strcmp(operands->text[0], "new") == 0)
		return make(options, operands->text[1]);
	if (strcmp(operands->text[0], "show") == 0)
		return show(operands->text[1]);
	return mst_refuse("key", "\"%.60s\" is neither new nor show", operands->text[0]);
}

int mst_key_command(int argc, char **argv)
{
	struct mst_key_options options;
	struct mst_operands operands;
	struct mst_options parsed;

	if (mst_options_init(&parsed, mst_key_table, &options) < 0)
		return MST_EXIT_FAILED;
	int rc = mst_operands_read(&parsed, argc, argv, &operands);
	int exit_status = rc < 0 ? mst_refuse("key", "%s", parsed.why.text)
				 : key(&options, &operands);
	mst_options_free(&parsed);
	return exit_status;
}
