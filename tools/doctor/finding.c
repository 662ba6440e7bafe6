/* SPDX-License-Identifier: MIT */
#include "tools/doctor/finding.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct mst_finding *mst_finding_add(struct mst_findings *list, enum mst_finding_level level,
				    const char *check, const char *fmt, ...)
{
	struct mst_finding *f;
	va_list args;

	if (list->count < MST_FINDINGS_MAX)
		list->count++;
	f = &list->item[list->count - 1];
	*f = (struct mst_finding){ .level = level };
	(void)snprintf(f->check, sizeof(f->check), "%s", check);
	va_start(args, fmt);
	(void)vsnprintf(f->found, sizeof(f->found), fmt, args);
	va_end(args);
	return f;
}

void mst_finding_subject(struct mst_finding *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(f->subject, sizeof(f->subject), fmt, args);
	va_end(args);
}

void mst_finding_cause(struct mst_finding *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(f->cause, sizeof(f->cause), fmt, args);
	va_end(args);
}

void mst_finding_fix(struct mst_finding *f, const char *fmt, ...)
{
	size_t used = strlen(f->fix);
	va_list args;

	if (used > 0 && used + 1 < sizeof(f->fix))
		f->fix[used++] = '\n';
	va_start(args, fmt);
	(void)vsnprintf(f->fix + used, sizeof(f->fix) - used, fmt, args);
	va_end(args);
}

void mst_findings_spare(struct mst_findings *list, bool (*is_spare)(const char *check),
			const char *what)
{
	for (uint32_t i = 0; i < list->count; i++) {
		struct mst_finding *f = &list->item[i];
		size_t used = strlen(f->found);
		if (f->level == MST_FINDING_OK || !is_spare(f->check))
			continue;
		f->level = MST_FINDING_WARNING;
		(void)snprintf(f->found + used, sizeof(f->found) - used, " (only for %s)", what);
	}
}

static bool has(const struct mst_findings *list, enum mst_finding_level level, const char *check)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->item[i].level == level && strcmp(list->item[i].check, check) == 0)
			return true;
	return false;
}

bool mst_findings_ok(const struct mst_findings *list, const char *check)
{
	return has(list, MST_FINDING_OK, check);
}

bool mst_findings_failed(const struct mst_findings *list, const char *check)
{
	return has(list, MST_FINDING_FAIL, check);
}

uint32_t mst_findings_of(const struct mst_findings *list, enum mst_finding_level level)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < list->count; i++)
		count += list->item[i].level == level;
	return count;
}

const char *mst_finding_word(enum mst_finding_level level)
{
	static const char *const words[] = {
		[MST_FINDING_OK] = "ok",
		[MST_FINDING_WARNING] = "warning",
		[MST_FINDING_FAIL] = "FAIL",
	};

	return words[level];
}

struct mst_bytes_text mst_bytes_text(uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	struct mst_bytes_text t;
	double value = (double)bytes / 1024;
	unsigned unit = 0;

	for (; value >= 999.5 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		value /= 1024;
	if (bytes < 1024)
		(void)snprintf(t.text, sizeof(t.text), "%" PRIu64 " bytes", bytes);
	else
		(void)snprintf(t.text, sizeof(t.text), "%.*f %s",
			       value < 9.995   ? 2
			       : value < 99.95 ? 1
					       : 0,
			       value, units[unit]);
	return t;
}
