// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The log: one line per event on stderr, with a severity and the VBD it is about.
 *
 * Owns: the format of log lines and the rate limit of lines a guest can cause.
 * Trusts / does not trust: arguments may hold guest text; control characters are shown as '?'.
 * Runs on: any thread; does not wait for a reader that has stalled: lines are lost then, and counted.
 * Must not know: what is logged.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/clock.h"
#include "backend/log.h"

#define LIMIT_WINDOW_NS (10 * NSEC_PER_SEC)
#define LIMIT_LINES 10

static const char *log_program = "vbdisk";
static char log_subject[64];
static enum log_level log_threshold = LOG_LEVEL_INFO;
static bool log_to_journal;
static unsigned nr_lost; /* lines that stderr could not take */

static const struct {
	const char *word;
	int priority; /* syslog(3)'s number */
} levels[] = {
	[LOG_LEVEL_ERROR] = {"error", 3},
	[LOG_LEVEL_WARNING] = {"warning", 4},
	[LOG_LEVEL_INFO] = {"info", 6},
	[LOG_LEVEL_DEBUG] = {"debug", 7},
};

/* JOURNAL_STREAM is "device:inode" of the journal's stream (systemd.exec(5)); it is inherited, so it
 * counts only if our stderr is still that stream. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
}

void log_descriptors_secure(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

void log_init(const char *program, const char *subject, enum log_level level)
{
	log_program = program;
	snprintf(log_subject, sizeof(log_subject), "%s", subject);
	log_threshold = level;
	log_to_journal = stderr_is_journal();
}

int log_level_parse(const char *word, enum log_level *level_out)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (!strcmp(word, levels[i].word)) {
			*level_out = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

static size_t prefix_format(char *line, size_t size, enum log_level level)
{
	const char *separator = log_subject[0] ? ": " : "";
	struct timespec now;
	struct tm tm;
	char stamp[32];

	if (log_to_journal)
		return (size_t)snprintf(line, size, "<%d>%s: %s%s", levels[level].priority,
					log_program, log_subject, separator);
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	return (size_t)snprintf(line, size, "%s.%03ld %s[%d]: %s: %s%s", stamp,
				now.tv_nsec / 1000000, log_program, (int)getpid(),
				levels[level].word, log_subject, separator);
}

void log_line(enum log_level level, const char *format, ...)
{
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
	char line[2048];
	size_t start, len;
	unsigned lost;
	va_list ap;

	if (level > log_threshold)
		return;
	start = prefix_format(line, sizeof(line), level);
	va_start(ap, format);
	vsnprintf(line + start, sizeof(line) - start - 1, format, ap);
	va_end(ap);
	len = strlen(line);
	for (size_t i = start; i < len; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	lost = __atomic_exchange_n(&nr_lost, 0, __ATOMIC_RELAXED);
	if (lost)
		len += (size_t)snprintf(line + len, sizeof(line) - len - 1,
					" (%u lines before were lost)", lost);
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	/* A reader that has stalled must not stall a guest's I/O: what it cannot take now is lost. */
	if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT)) {
		__atomic_add_fetch(&nr_lost, lost + 1, __ATOMIC_RELAXED);
		return;
	}
	/* One write, so that lines of several processes on one pipe do not mix. A log that cannot be
	 * written has nowhere to complain. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

/* Several queues may share a limit; lines that have one are none of a good guest's path. */
static pthread_mutex_t limit_lock = PTHREAD_MUTEX_INITIALIZER;

static bool limit_pass_locked(struct log_limit *limit, uint64_t now_ns)
{
	if (!limit->window_start_ns || now_ns - limit->window_start_ns > LIMIT_WINDOW_NS) {
		if (limit->nr_dropped)
			log_warning("%lu more lines like the next one were not logged",
				    limit->nr_dropped);
		limit->window_start_ns = now_ns;
		limit->nr_in_window = 0;
		limit->nr_dropped = 0;
	}
	if (limit->nr_in_window < LIMIT_LINES) {
		limit->nr_in_window++;
		return true;
	}
	limit->nr_dropped++;
	return false;
}

bool log_limit_pass(struct log_limit *limit)
{
	uint64_t now_ns = clock_now_ns();
	bool pass;

	pthread_mutex_lock(&limit_lock);
	pass = limit_pass_locked(limit, now_ns);
	pthread_mutex_unlock(&limit_lock);
	return pass;
}
