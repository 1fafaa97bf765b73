// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vbdisk-front: the frontend of one virtual disk, in user space.
 *
 * Owns: the connections to xenstore and to the host, signals, the exit status.
 * Trusts / does not trust: its command line; not the backend.
 * Runs on: one thread (a hostile row may add one for its duration).
 * Must not know: how a job or a row works.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/clock.h"
#include "loopback/front-hostile.h"
#include "loopback/front-options.h"

enum exit_status {
	EXIT_GOOD = 0,
	EXIT_BAD = 1,
	EXIT_USAGE = 2,
	EXIT_NO_CONNECTION = 3,
	EXIT_TIMEOUT = 4,
};

struct session {
	const struct front_options *options;
	struct front front;
	struct front_job *job;
	struct front_stats stats;
	struct error *error;
};

static void signal_received(void *arg, int signal_number)
{
	struct session *session = arg;

	(void)signal_number;
	session->front.link.stop = true;
}

static enum exit_status status_of(int err, enum exit_status otherwise)
{
	switch (err) {
	case 0:
		return EXIT_GOOD;
	case -ETIMEDOUT:
		return EXIT_TIMEOUT;
	case -ECONNREFUSED:
		return EXIT_NO_CONNECTION;
	case -EINVAL:
		return EXIT_USAGE;
	}
	return otherwise;
}

/* Stay connected, asleep. */
static int linger(struct session *session)
{
	uint64_t end_ns = clock_now_ns() + session->options->linger_ns;
	struct front_link *link = &session->front.link;
	int err = 0;

	while (!err && !link->stop && !link->peer_gone)
		err = front_link_wait(link, end_ns);
	if (err && err != -ETIMEDOUT)
		return error_set(session->error, -err, "cannot wait for events: %s",
				 strerror(-err));
	return 0;
}

/* Wait for the disk to grow beyond @old_sectors512 (it may have, while the job ran); then another job writes
 * all that is new, and reads it back. */
static int growth_run(struct session *session, uint64_t old_sectors512)
{
	uint64_t end_ns = clock_now_ns() + session->options->grow_ns;
	struct front_job_config config = session->options->job;
	struct front *front = &session->front;
	struct front_job *job;
	int err = 0;

	while (!err && front->disk.nr_sectors512 <= old_sectors512)
		err = front_link_wait(&front->link, end_ns);
	if (err)
		return error_set(session->error, -err,
				 "the disk still has %llu sectors: it has not grown",
				 (unsigned long long)front->disk.nr_sectors512);
	config.kind = FRONT_JOB_SEQ_WRITE;
	config.verify = true;
	config.verify_only = false;
	config.offset_bytes = old_sectors512 * BLKIF_SECTOR_BYTES;
	config.size_bytes = config.count = config.runtime_ns = 0;
	err = front_job_create(&config, front->disk.nr_sectors512, &job, session->error);
	if (err)
		return err;
	err = front_job_run(job, &front->link, &session->stats, session->error);
	front_job_destroy(job);
	return err;
}

static int indirect_check(struct session *session)
{
	const struct front_job_config *job = &session->options->job;
	uint64_t offered = session->front.disk.max_indirect_segments;

	if (job->max_segments <= BLKIF_MAX_SEGMENTS || job->max_segments <= offered)
		return 0;
	return error_set(session->error, EINVAL, "--indirect=%u: the backend offers %llu segments",
			 job->max_segments, (unsigned long long)offered);
}

/* While connected. */
static int job_run(struct session *session)
{
	const struct front_options *options = session->options;
	struct front *front = &session->front;
	uint64_t old_sectors512 = front->disk.nr_sectors512;
	int err = indirect_check(session);

	if (!err && options->has_job && !session->job)
		err = front_job_create(&options->job, front->disk.nr_sectors512, &session->job,
				       session->error);
	if (!err && session->job)
		err = front_job_run(session->job, &front->link, &session->stats, session->error);
	if (!err && options->grow_ns)
		err = growth_run(session, old_sectors512);
	if (!err && options->linger_ns)
		err = linger(session);
	return err;
}

/* One round: connect, run, disconnect. The first error is kept; closing is tried in any case. */
static int round_run(struct session *session, enum exit_status *status)
{
	struct front *front = &session->front;
	int close_err, err = front_connect(front, session->error);

	if (err) {
		*status = status_of(err, EXIT_NO_CONNECTION);
	} else {
		front_connect_add(&session->stats, front->connect_us);
		err = job_run(session);
		*status = status_of(err, EXIT_BAD);
		if (session->options->leave)
			return err;
	}
	close_err = front_disconnect(front, err ? NULL : session->error);
	if (!err && close_err) {
		err = close_err;
		*status = status_of(err, EXIT_BAD);
	}
	return err;
}

static enum exit_status rounds_run(struct session *session)
{
	const struct front_options *options = session->options;
	const char *name = options->has_job ? front_job_name(options->job.kind) : "linger";
	enum exit_status status = EXIT_GOOD;
	int err = 0;

	for (unsigned i = 0; !err && i < options->nr_rounds && !session->front.link.stop; i++)
		err = round_run(session, &status);
	session->stats.nr_notified = session->front.link.nr_notified;
	session->stats.nr_events = session->front.link.nr_events;
	session->stats.nr_resizes = session->front.nr_resizes;
	if (err)
		fprintf(stderr, "vbdisk-front: %s\n", session->error->text);
	if (options->json)
		front_report_json(stdout, name, !err, &session->stats);
	else
		front_report_line(stdout, name, !err, &session->stats);
	if (fflush(stdout))
		status = EXIT_BAD;
	if (options->leave)
		_exit(status); /* no destructor, no goodbye: this is a crash */
	return status;
}

static enum exit_status hostile_run(struct session *session)
{
	int err = front_hostile_run(&session->front, session->options->hostile,
				    session->options->nr_races, stdout, session->error);

	if (err)
		fprintf(stderr, "vbdisk-front: %s\n", session->error->text);
	return status_of(err, EXIT_BAD);
}

static enum exit_status session_run(struct session *session, struct loop *loop, struct store *store,
				    struct xen_host *host)
{
	static const int signals[] = {SIGTERM, SIGINT};
	enum exit_status status = EXIT_NO_CONNECTION;
	int err = front_open(&session->front, loop, store, host, &session->options->connect,
			     session->error);

	if (!err) {
		err = loop_signals(loop, signals, 2, signal_received, session);
		if (err)
			error_set(session->error, -err, "cannot take signals: %s", strerror(-err));
	}
	if (err) {
		fprintf(stderr, "vbdisk-front: %s\n", session->error->text);
	} else {
		status = session->options->hostile ? hostile_run(session) : rounds_run(session);
	}
	front_close(&session->front);
	front_job_destroy(session->job);
	return status;
}

static int host_open(const struct front_options *options, struct xen_host **host_out,
		     struct error *error)
{
	return options->loopback_dir
		       ? xen_loopback_open(options->loopback_dir, options->domid, host_out, error)
		       : xen_hypervisor_open(false, host_out, error);
}

/* On the loopback host each domain has a socket of its own, which is how xenstore knows who calls. */
static int store_open_as(const struct front_options *options, struct store **store_out,
			 struct error *error)
{
	char path[4096];
	int err;

	if (options->loopback_dir) {
		int len = snprintf(path, sizeof(path), "%s/xenstored-%u", options->loopback_dir,
				   options->domid);

		if (len < 0 || (size_t)len >= sizeof(path))
			return error_set(error, ENAMETOOLONG, "--loopback: the path is too long");
		if (setenv("XENSTORED_PATH", path, 1))
			return error_set(error, errno, "cannot set XENSTORED_PATH: %s",
					 strerror(errno));
	}
	err = store_open(store_out);
	if (!err)
		return 0;
	return error_set(error, -err, "cannot connect to xenstore%s%s: %s; is the %s running?",
			 options->loopback_dir ? " at " : "", options->loopback_dir ? path : "",
			 strerror(-err),
			 options->loopback_dir ? "loopback host, and this domain on it,"
					       : "xenstored");
}

static enum exit_status host_run(struct session *session)
{
	enum exit_status status = EXIT_NO_CONNECTION;
	struct xen_host *host;
	struct store *store;
	struct loop *loop;
	int err = loop_create(&loop);

	if (err) {
		error_set(session->error, -err, "cannot make an event loop: %s", strerror(-err));
		goto report;
	}
	err = store_open_as(session->options, &store, session->error);
	if (err)
		goto destroy_loop;
	err = host_open(session->options, &host, session->error);
	if (err)
		goto close_store;
	status = session_run(session, loop, store, host);
	host->ops->close(host);
close_store:
	store_close(store);
destroy_loop:
	loop_destroy(loop);
report:
	if (err)
		fprintf(stderr, "vbdisk-front: %s\n", session->error->text);
	return status;
}

int main(int argc, char **argv)
{
	struct front_options options;
	struct error error;
	struct session session = {.options = &options, .error = &error};

	if (front_options_parse(&options, argc, argv, &error)) {
		fprintf(stderr, "vbdisk-front: %s\nTry 'vbdisk-front --help'.\n", error.text);
		return EXIT_USAGE;
	}
	if (options.help) {
		front_options_usage(stdout);
		return EXIT_GOOD;
	}
	if (options.version) {
		puts("vbdisk-front " PACKAGE_VERSION);
		return EXIT_GOOD;
	}
	log_init("vbdisk-front", "", options.log_level);
	signal(SIGPIPE, SIG_IGN);
	return host_run(&session);
}
