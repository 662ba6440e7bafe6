/* SPDX-License-Identifier: MIT */
/* What `muster doctor` has to say: findings, each with its figures, and for what is wrong the cause
 * and the command that fixes it. */
#ifndef MST_TOOLS_DOCTOR_FINDING_H
#define MST_TOOLS_DOCTOR_FINDING_H

#include <stdbool.h>
#include <stdint.h>

#define MST_FINDINGS_MAX 200u

enum mst_finding_level { MST_FINDING_OK, MST_FINDING_WARNING, MST_FINDING_FAIL };

struct mst_finding {
	enum mst_finding_level level;
	char check[16];   /* "gid": the same word for the same check */
	char subject[80]; /* "rxe0/1"; "": the host */
	char found[320];
	char cause[320]; /* "": none is known, or nothing is wrong */
	char fix[480];   /* commands or settings, a line each; "": none */
};

struct mst_findings {
	uint32_t count;
	struct mst_finding item[MST_FINDINGS_MAX];
};

/* A new finding, which says what was found; a list that is full reuses its last. */
struct mst_finding *mst_finding_add(struct mst_findings *list, enum mst_finding_level level,
				    const char *check, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void mst_finding_subject(struct mst_finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void mst_finding_cause(struct mst_finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Once more is one more line. */
void mst_finding_fix(struct mst_finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Failures of what a host can do without become warnings, and each warning of that kind says @what
 * it is for. @is_spare: is a check about that? */
void mst_findings_spare(struct mst_findings *list, bool (*is_spare)(const char *check),
			const char *what);

/* Is there one of that check that is in order? */
bool mst_findings_ok(const struct mst_findings *list, const char *check);
/* Is there a failure of that check? */
bool mst_findings_failed(const struct mst_findings *list, const char *check);
uint32_t mst_findings_of(const struct mst_findings *list, enum mst_finding_level level);

/* "ok", "warning", "FAIL" */
const char *mst_finding_word(enum mst_finding_level level);

struct mst_bytes_text {
	char text[24];
};
/* "850 bytes", "8.00 MiB", "1.50 TiB" */
struct mst_bytes_text mst_bytes_text(uint64_t bytes);

#endif
