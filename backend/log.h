/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The log: one line per event on stderr, with a severity and the VBD it is about.
 *
 * Owns: the format of log lines and the rate limit of lines a guest can cause.
 * Trusts / does not trust: arguments may hold guest text; control characters are shown as '?'.
 * Runs on: any thread; does not wait for a reader that has stalled: lines are lost then, and counted.
 * Must not know: what is logged.
 *
 * Under systemd (JOURNAL_STREAM names our stderr) a line begins with "<N>", which the journal takes as
 * its priority; elsewhere with a time stamp and the word.
 */
#ifndef VBDISK_LOG_H
#define VBDISK_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Open on /dev/null whichever of stdin, stdout and stderr is closed, so that no later descriptor (a
 * socket, an image) gets its number and the log's lines. First thing in main(). */
void log_descriptors_secure(void);

/* Set program name (a literal, in each line), subject ("vbd 3/51712", copied; may be "") and level. */
void log_init(const char *program, const char *subject, enum log_level level);

/* "error" "warning" "info" "debug" -> level. 0 or -EINVAL. */
int log_level_parse(const char *word, enum log_level *level_out);

__attribute__((format(printf, 2, 3))) void log_line(enum log_level level, const char *format, ...);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* A budget for lines of one kind which a guest can cause: 10 lines per 10 s, then one line that says
 * how many were dropped. Zero-initialise. */
struct log_limit {
	uint64_t window_start_ns;
	unsigned nr_in_window;
	unsigned long nr_dropped;
};

/* True if a line of this kind may be logged now. */
bool log_limit_pass(struct log_limit *limit);

#define log_limited(limit, level, ...)                                                             \
	do {                                                                                       \
		if (log_limit_pass(limit))                                                         \
			log_line(level, __VA_ARGS__);                                              \
	} while (0)

#endif
