/* SPDX-License-Identifier: MIT */
/* What a server's process needs of its host, over whatever it serves: a directory for its sockets,
 * and file descriptors. Pure. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/control/connections/descriptors.h"
#include "tools/doctor/judge.h"

/* Jobs to speak of where none is told. */
#define FEW_WORKERS 64u
#define MANY_WORKERS 1000u

/* ---- the directory ---- */

/* A sentence about it ends with what fixes it, after the last colon or semicolon. */
static const char *fix_in(const char *reason)
{
	const char *found = NULL;

	for (const char *at = reason; *at != '\0'; at++)
		if ((at[0] == ':' || at[0] == ';') && at[1] == ' ')
			found = at;
	return found;
}

static void judge_directory(const struct mst_doctor_facts *f, struct mst_findings *out)
{
	const char *fix = fix_in(f->directory_why.text);

	if (f->directory_why.text[0] == '\0') {
		(void)mst_finding_add(out, MST_FINDING_OK, MST_DOCTOR_DIRECTORY,
				      "%s keeps sockets of jobs on this host from other users",
				      f->directory);
		return;
	}
	struct mst_finding *new = mst_finding_add(
		out, MST_FINDING_FAIL, MST_DOCTOR_DIRECTORY,
		"no place for the sockets of jobs over shared memory");
	mst_finding_cause(new, "%.*s",
			  (int)(fix != NULL ? fix - f->directory_why.text : (ptrdiff_t)300),
			  f->directory_why.text);
	mst_finding_fix(new, "%s", fix != NULL ? fix + 2 : "set XDG_RUNTIME_DIR");
}

/* ---- certificates ---- */

/* A server takes no certificate without its role, and serves only those that have one. */
static void judge_certificate(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			      struct mst_findings *out)
{
	static const struct {
		uint32_t role;
		const char *word;
	} needs[] = {
		[MST_DOCTOR_BOTH] = { MST_ROLES_ALL, "worker or server" },
		[MST_DOCTOR_WORKER] = { MST_ROLE_WORKER, "worker" },
		[MST_DOCTOR_SERVER] = { MST_ROLE_SERVER, "server" },
	};
	char roles[MST_ROLES_TEXT_LEN];

	if (!f->has_certificate)
		return;
	mst_roles_text(f->identity.roles, roles);
	if (f->certificate_why.text[0] != '\0') {
		struct mst_finding *new = mst_finding_add(out, MST_FINDING_FAIL, "identity",
							  "the files of TLS cannot be used");
		mst_finding_cause(new, "%s", f->certificate_why.text);
		mst_finding_fix(new, "muster key new DIR makes files for a job; muster key show "
				     "FILE says what a certificate holds");
	} else if ((f->identity.roles & needs[wish->role].role) == 0) {
		struct mst_finding *new = mst_finding_add(out, MST_FINDING_FAIL, "identity",
							  "certificate \"%s\" has not the role %s",
							  f->identity.name, needs[wish->role].word);
		mst_finding_cause(new, "it has: %s", roles);
		mst_finding_fix(new,
				"use the certificate of a %s; muster key show FILE says what "
				"one has",
				needs[wish->role].word);
	} else {
		(void)mst_finding_add(out, MST_FINDING_OK, "identity",
				      "certificate \"%s\" and its key are in order: %s",
				      f->identity.name, roles);
	}
}

/* ---- file descriptors ---- */

static struct mst_descriptors need_of(const struct mst_transport *t,
				      const struct mst_doctor_wish *wish, uint32_t workers)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg net = { .fabric = &fabric };
	struct mst_descriptors_cfg cfg = { .transport = t, .net = &net, .workers = workers };
	struct mst_descriptors out;

	fabric.devices = wish->devices;
	mst_descriptors_of(&cfg, &out);
	return out;
}

static uint64_t all_of(const struct mst_transport *t, const struct mst_doctor_facts *f,
		       const struct mst_doctor_wish *wish, uint32_t workers)
{
	struct mst_descriptors need = need_of(t, wish, workers);

	return f->files_open + mst_descriptors_all(&need);
}

/* The transports over which the workers take the most descriptors, and the fewest. */
struct extremes {
	const struct mst_transport *most, *least;
};

static struct extremes extremes_of(const struct mst_doctor_facts *f,
				   const struct mst_doctor_wish *wish, uint32_t workers)
{
	const struct mst_transport *t;
	struct extremes out = { mst_transport_at(0), mst_transport_at(0) };

	for (uint32_t i = 1; (t = mst_transport_at(i)) != NULL; i++) {
		if (all_of(t, f, wish, workers) > all_of(out.most, f, wish, workers))
			out.most = t;
		if (all_of(t, f, wish, workers) < all_of(out.least, f, wish, workers))
			out.least = t;
	}
	return out;
}

static uint64_t workers_at_most(const struct mst_transport *t, const struct mst_doctor_facts *f,
				const struct mst_doctor_wish *wish)
{
	uint64_t none = all_of(t, f, wish, 0);

	return f->files_hard <= none ? 0 : (f->files_hard - none) / need_of(t, wish, 1).worker;
}

static void fix_files(const struct mst_doctor_facts *f, uint64_t wanted, struct mst_finding *new)
{
	if (f->container[0] != '\0') {
		mst_finding_cause(new, "containers (%s) begin with the limit of their engine",
				  f->container);
		mst_finding_fix(new, "start the container with --ulimit nofile=%" PRIu64, wanted);
	} else if (f->unit[0] != '\0') {
		mst_finding_cause(new, "it is that of the systemd unit %s", f->unit);
		mst_finding_fix(new,
				"systemctl edit %s, with the lines [Service] and "
				"LimitNOFILE=%" PRIu64 "; then systemctl restart %s",
				f->unit, wanted, f->unit);
	} else {
		mst_finding_cause(new, "it is the hard limit of this login, or of what started it "
				       "(ulimit -Hn)");
		mst_finding_fix(new,
				"as root: printf '* - nofile %" PRIu64 "\\n' "
				">/etc/security/limits.d/zz-muster-files.conf; then log in anew",
				wanted);
	}
}

static void tell_limit(const struct mst_doctor_facts *f, char *out, size_t len)
{
	if (f->files_soft < f->files_hard)
		(void)snprintf(out, len,
			       "a server may open %" PRIu64 " files (it raises the soft limit, "
			       "%" PRIu64 ", itself)",
			       f->files_hard, f->files_soft);
	else
		(void)snprintf(out, len, "a server may open %" PRIu64 " files", f->files_hard);
}

static void tell_need(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
		      uint32_t workers, char *out, size_t len)
{
	const struct mst_transport *t;
	size_t used = strlen(out);

	(void)snprintf(out + used, len - used, "; %" PRIu32 " worker%s take", workers,
		       workers == 1 ? "" : "s");
	for (uint32_t i = 0; (t = mst_transport_at(i)) != NULL; i++) {
		used = strlen(out);
		(void)snprintf(out + used, len - used, "%s %" PRIu64 " over %s", i == 0 ? "" : ",",
			       all_of(t, f, wish, workers), t->medium);
	}
}

/* A worker's process has a handful. */
static void judge_files(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			struct mst_findings *out)
{
	uint32_t workers = wish->workers > 0 ? wish->workers : FEW_WORKERS;
	struct extremes over = extremes_of(f, wish, workers);
	uint64_t wanted = all_of(over.most, f, wish, workers);
	enum mst_finding_level bad = MST_FINDING_WARNING;
	char text[300];

	if (wish->role == MST_DOCTOR_WORKER)
		return;
	if (wish->workers > 0 && all_of(over.least, f, wish, workers) > f->files_hard)
		bad = MST_FINDING_FAIL;
	tell_limit(f, text, sizeof(text));
	tell_need(f, wish, workers, text, sizeof(text));
	if (wish->workers == 0)
		tell_need(f, wish, MANY_WORKERS, text, sizeof(text));
	struct mst_finding *new = mst_finding_add(
		out, wanted > f->files_hard ? bad : MST_FINDING_OK, "files", "%s", text);
	if (wanted <= f->files_hard)
		return;
	fix_files(f, wanted, new);
	mst_finding_fix(new, "or no more than %" PRIu64 " workers over %s",
			workers_at_most(over.most, f, wish), over.most->medium);
}

void mst_doctor_judge_process(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			      struct mst_findings *out)
{
	judge_directory(f, out);
	judge_certificate(f, wish, out);
	judge_files(f, wish, out);
}
