/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * An error that a person will read: what went wrong with which thing, and what cures it.
 *
 * Owns: the text of one error on its way from the place that knows to the place that reports.
 * Trusts / does not trust: text may hold guest- or toolstack-supplied paths; it is never a format.
 * Runs on: any thread; never blocks.
 * Must not know: where the text ends up (log, xenstore error node, terminal).
 */
#ifndef VBDISK_ERROR_H
#define VBDISK_ERROR_H

#include <stdarg.h>
#include <stdio.h>

struct error {
	char text[768]; /* one line without newline: names the thing, says why, says the cure */
};

/* Fill @error's text and return -@errnum, so that `return error_set(...)` reports and fails. @error
 * may be NULL (the text is dropped). Never blocks. */
__attribute__((format(printf, 3, 4))) static inline int error_set(struct error *error, int errnum,
								  const char *format, ...)
{
	if (error) {
		va_list ap;

		va_start(ap, format);
		vsnprintf(error->text, sizeof(error->text), format, ap);
		va_end(ap);
	}
	return -errnum;
}

#endif
