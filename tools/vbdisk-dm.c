// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vbdisk-dm: the stand-in device model of a Xen PV or PVH guest whose disks vbdisk serves.
 *
 * Owns: the QMP sockets of one guest, the node device-model/N/state, and the exec of the real QEMU for
 *   guests that need more than disks.
 * Trusts / does not trust: who may open the sockets (mode 0600) is root, but no connection is waited
 *   for, and each is bounded; see qmp.h for what they say and dm-args.h for the command line.
 * Runs on: one thread, one event loop; may block in start-up only (xenstore), never once it serves.
 * Must not know: rings, images, the processes that serve the disks. It has no children.
 *
 * libxl starts it, waits for the state node, asks a few questions by QMP, and sends SIGHUP when the
 * domain goes (xen: tools/libs/light/libxl_dm.c). All the time between it sleeps.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backend/clock.h"
#include "backend/event-loop.h"
#include "backend/log.h"
#include "container.h"
#include "tools/dm-args.h"
#include "tools/qmp.h"
#include "xenstore/store.h"

/* Exit statuses, in vbdisk-dm(8) as well. */
#define EXIT_USAGE 2
#define EXIT_NO_QEMU 3

/* libxl has one connection, each xentop one for a moment; more is somebody's leak. */
#define MAX_CONNECTIONS 16
#define LISTEN_BACKLOG 16
#define RECEIVE_BYTES 4096

/* After `quit`, how long a peer may leave its answer unread. */
#define QUIT_LINGER_NS NSEC_PER_SEC
/* When no descriptor is left for a connection, how long until we try again. */
#define ACCEPT_RETRY_NS NSEC_PER_SEC
/* libxl gives its probe 60 s (LIBXL_DEVICE_MODEL_START_TIMEOUT), and sends SIGHUP right after it has
 * closed the connection. If it cannot, nobody else ends us. */
#define PROBE_LIMIT_NS (70 * NSEC_PER_SEC)
#define PROBE_LINGER_NS (5 * NSEC_PER_SEC)

struct dm;

struct listener {
	struct dm *dm;
	struct loop_watch watch; /* fd -1: not in use */
	struct loop_timer accept_retry;
	const char *path; /* NULL: inherited, and not ours to remove */
	dev_t dev;	  /* of the socket file we made */
	ino_t ino;
	unsigned nr_connections;
	struct log_limit refusals;
};

struct connection {
	struct listener *listener;
	struct loop_watch watch;
	uint32_t events; /* what is watched for */
	struct qmp *qmp;
	LIST_ENTRY(connection) link;
};

struct dm {
	struct loop *loop;
	struct dm_args args;
	enum dm_role role;
	struct listener libxl;
	struct listener xenstat;
	LIST_HEAD(, connection) connections;
	struct loop_timer end_timer;
	bool probe_talked; /* the probe's connection came, and went */
	int exit_status;
};

static void connection_close(struct connection *connection)
{
	struct listener *listener = connection->listener;
	struct dm *dm = listener->dm;

	loop_unwatch(dm->loop, &connection->watch);
	close(connection->watch.fd);
	LIST_REMOVE(connection, link);
	qmp_destroy(connection->qmp);
	free(connection);
	listener->nr_connections--;
	if (dm->role == DM_ROLE_PROBE && !listener->nr_connections) {
		dm->probe_talked = true;
		loop_timer_start(dm->loop, &dm->end_timer, PROBE_LINGER_NS);
	}
}

/* Send what there is, as far as the peer takes it. 0, -EAGAIN if something is left, -errno. */
static int connection_send(struct connection *connection)
{
	const char *bytes;
	size_t len;

	while ((len = qmp_output(connection->qmp, &bytes))) {
		ssize_t sent = send(connection->watch.fd, bytes, len, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
		qmp_output_sent(connection->qmp, (size_t)sent);
	}
	return 0;
}

/* The probe is ended by libxl's signal; anything else ends as it was told, answer sent or not. */
static void quit_take(struct dm *dm, bool sent)
{
	if (dm->role == DM_ROLE_PROBE)
		return;
	if (sent) {
		log_info("ending: QMP quit");
		loop_stop(dm->loop);
	} else if (!dm->end_timer.active) {
		loop_timer_start(dm->loop, &dm->end_timer, QUIT_LINGER_NS);
	}
}

/* Send, then wait for whichever is next: room for the rest of the answers, or new commands. Commands
 * are not read before all answers are taken, so a peer which does not read costs a bounded amount. */
static void connection_advance(struct connection *connection)
{
	struct dm *dm = connection->listener->dm;
	int err = connection_send(connection);
	uint32_t events = err == -EAGAIN ? EPOLLOUT : EPOLLIN;

	if (qmp_quit_asked(connection->qmp))
		quit_take(dm, err != -EAGAIN);
	if (err && err != -EAGAIN) {
		log_debug("QMP: connection lost: %s", strerror(-err));
		connection_close(connection);
		return;
	}
	if (events == connection->events)
		return;
	err = loop_rewatch(dm->loop, &connection->watch, events);
	if (err) {
		log_error("QMP: cannot watch a connection: %s", strerror(-err));
		connection_close(connection);
		return;
	}
	connection->events = events;
}

static void connection_ready(struct loop_watch *watch, uint32_t events)
{
	struct connection *connection = container_of(watch, struct connection, watch);
	char bytes[RECEIVE_BYTES];
	ssize_t len;
	int err;

	(void)events;
	if (connection->events == EPOLLIN) {
		len = recv(watch->fd, bytes, sizeof(bytes), 0);
		if (len < 0 && (errno == EINTR || errno == EAGAIN))
			return;
		if (len <= 0) {
			connection_close(connection);
			return;
		}
		err = qmp_input(connection->qmp, bytes, (size_t)len);
		if (err) {
			log_error("QMP: connection closed: %s", strerror(-err));
			connection_close(connection);
			return;
		}
	}
	connection_advance(connection);
}

/* Take over @fd, which is closed on failure. */
static int connection_open(struct listener *listener, int fd)
{
	struct dm *dm = listener->dm;
	struct connection *connection = calloc(1, sizeof(*connection));
	int err;

	if (!connection) {
		err = -ENOMEM;
		goto close_fd;
	}
	connection->listener = listener;
	connection->watch.fd = fd;
	connection->watch.ready = connection_ready;
	connection->events = EPOLLIN;
	err = qmp_create(dm->args.name, &connection->qmp);
	if (err)
		goto free_connection;
	err = loop_watch(dm->loop, &connection->watch, EPOLLIN);
	if (err)
		goto destroy_qmp;
	LIST_INSERT_HEAD(&dm->connections, connection, link);
	listener->nr_connections++;
	connection_advance(connection);
	return 0;

destroy_qmp:
	qmp_destroy(connection->qmp);
free_connection:
	free(connection);
close_fd:
	close(fd);
	return err;
}

static void accept_retry_expired(struct loop_timer *timer)
{
	struct listener *listener = container_of(timer, struct listener, accept_retry);
	int err = loop_watch(listener->dm->loop, &listener->watch, EPOLLIN);

	if (err) {
		log_limited(&listener->refusals, LOG_LEVEL_ERROR,
			    "QMP: cannot watch the socket: %s", strerror(-err));
		loop_timer_start(listener->dm->loop, timer, ACCEPT_RETRY_NS);
	}
}

static void listener_ready(struct loop_watch *watch, uint32_t events)
{
	struct listener *listener = container_of(watch, struct listener, watch);
	struct dm *dm = listener->dm;
	int err, fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)events;
	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		/* The waiting connection keeps the socket readable; without a pause we would spin. */
		log_limited(&listener->refusals, LOG_LEVEL_ERROR,
			    "QMP: cannot accept a connection: %s", strerror(errno));
		loop_unwatch(dm->loop, watch);
		loop_timer_start(dm->loop, &listener->accept_retry, ACCEPT_RETRY_NS);
		return;
	}
	if (listener->nr_connections >= MAX_CONNECTIONS) {
		log_limited(
			&listener->refusals, LOG_LEVEL_WARNING,
			"QMP: connection refused on %s: %u are open; look for a program that leaks them",
			listener->path ? listener->path : "the inherited socket",
			listener->nr_connections);
		close(fd);
		return;
	}
	err = connection_open(listener, fd);
	if (err)
		log_limited(&listener->refusals, LOG_LEVEL_ERROR, "QMP: connection refused: %s",
			    strerror(-err));
	else if (dm->role == DM_ROLE_PROBE && dm->probe_talked)
		loop_timer_start(dm->loop, &dm->end_timer, PROBE_LIMIT_NS);
}

/* A socket of an earlier life may be in the way; anything else at that place is not ours to remove. */
static int stale_socket_remove(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

/* Bind and listen at @path, for root alone from the first moment on. */
static int socket_listen(struct listener *listener, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;
	mode_t umask_before;
	int fd, err = stale_socket_remove(path);

	if (err)
		return err;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	umask_before = umask(0177);
	err = bind(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
	umask(umask_before);
	if (err)
		goto close_fd;
	if (listen(fd, LISTEN_BACKLOG) || stat(path, &st)) {
		err = -errno;
		unlink(path);
		goto close_fd;
	}
	listener->watch.fd = fd;
	listener->path = path;
	listener->dev = st.st_dev;
	listener->ino = st.st_ino;
	return 0;

close_fd:
	close(fd);
	return err;
}

/* Use the listening socket that libxl left open for us as @fd. */
static int socket_inherit(struct listener *listener, int fd)
{
	int listening = 0, flags = fcntl(fd, F_GETFL);
	socklen_t size = sizeof(listening);

	if (flags < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size))
		return -errno;
	if (!listening)
		return -EINVAL;
	if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC))
		return -errno;
	listener->watch.fd = fd;
	return 0;
}

static int listener_open(struct dm *dm, struct listener *listener, const struct dm_socket *place)
{
	int err;

	if (!place->given)
		return 0;
	err = place->fd >= 0 ? socket_inherit(listener, place->fd)
			     : socket_listen(listener, place->path);
	if (!err)
		err = loop_watch(dm->loop, &listener->watch, EPOLLIN);
	if (err && place->fd >= 0)
		log_error("cannot use fd=%d as a listening socket: %s; libxl has to hand it over",
			  place->fd, strerror(-err));
	else if (err == -EEXIST)
		log_error("%s is in the way and no socket: remove it", place->path);
	else if (err)
		log_error("cannot listen on %s: %s; does its directory exist, and are we root?",
			  place->path, strerror(-err));
	return err;
}

static void listener_init(struct dm *dm, struct listener *listener)
{
	listener->dm = dm;
	listener->watch.fd = -1;
	listener->watch.ready = listener_ready;
	listener->accept_retry.expired = accept_retry_expired;
}

static void listener_close(struct listener *listener)
{
	struct stat st;

	if (listener->watch.fd < 0)
		return;
	loop_unwatch(listener->dm->loop, &listener->watch);
	loop_timer_stop(&listener->accept_retry);
	close(listener->watch.fd);
	/* A successor may have put its own socket there already. */
	if (listener->path && !lstat(listener->path, &st) && st.st_dev == listener->dev &&
	    st.st_ino == listener->ino && unlink(listener->path))
		log_warning("cannot remove %s: %s", listener->path, strerror(errno));
}

static void signal_received(void *arg, int signal_number)
{
	struct dm *dm = arg;

	log_info("ending: signal %d (%s)", signal_number, strsignal(signal_number));
	loop_stop(dm->loop);
}

static void end_timer_expired(struct loop_timer *timer)
{
	struct dm *dm = container_of(timer, struct dm, end_timer);

	if (dm->role == DM_ROLE_PROBE && !dm->probe_talked) {
		log_error("libxl's probe did not come to its end in %d s; is libxl gone?",
			  (int)(PROBE_LIMIT_NS / NSEC_PER_SEC));
		dm->exit_status = EXIT_FAILURE;
	}
	loop_stop(dm->loop);
}

/* Tell libxl that we are up. Only now: it connects at once. */
static int state_announce(struct dm *dm, struct store *store)
{
	char dir[32];
	int err;

	snprintf(dir, sizeof(dir), "device-model/%" PRIu32, dm->args.domid);
	err = store_write_key(store, dir, "state", "running");
	if (err)
		log_error(
			"cannot write \"running\" to xenstore node %s/state: %s; the toolstack will give up waiting",
			dir, strerror(-err));
	return err;
}

/* Serve until a signal or `quit`. @store is NULL for the probe. Returns the exit status. */
static int dm_serve(struct dm *dm, struct store **store)
{
	static const int signals[] = {SIGHUP, SIGTERM, SIGINT};
	int err;

	dm->exit_status = EXIT_SUCCESS;
	dm->end_timer.expired = end_timer_expired;
	LIST_INIT(&dm->connections);
	listener_init(dm, &dm->libxl);
	listener_init(dm, &dm->xenstat);
	/* A log that nobody reads any more must not end us. */
	signal(SIGPIPE, SIG_IGN);

	err = loop_create(&dm->loop);
	if (err) {
		log_error("cannot start the event loop: %s", strerror(-err));
		return EXIT_FAILURE;
	}
	err = loop_signals(dm->loop, signals, sizeof(signals) / sizeof(signals[0]), signal_received,
			   dm);
	if (err) {
		log_error("cannot receive signals: %s", strerror(-err));
		goto out;
	}
	err = listener_open(dm, &dm->libxl, &dm->args.libxl);
	if (!err)
		err = listener_open(dm, &dm->xenstat, &dm->args.xenstat);
	if (err)
		goto out;
	if (*store) {
		err = state_announce(dm, *store);
		if (err)
			goto out;
		store_close(*store);
		*store = NULL;
		log_info("running: stands in for QEMU; the disks are served by vbdisk");
	} else {
		loop_timer_start(dm->loop, &dm->end_timer, PROBE_LIMIT_NS);
	}
	err = loop_run(dm->loop);
	if (err)
		log_error("the event loop failed: %s", strerror(-err));
out:
	while (!LIST_EMPTY(&dm->connections))
		connection_close(LIST_FIRST(&dm->connections));
	loop_timer_stop(&dm->end_timer);
	listener_close(&dm->xenstat);
	listener_close(&dm->libxl);
	loop_destroy(dm->loop);
	return err ? EXIT_FAILURE : dm->exit_status;
}

/* Backends of other kinds that QEMU serves for this guest: a reason for QEMU, written into @args.
 * 0 or -errno. */
static int backends_check(struct store *store, struct dm_args *args)
{
	static const char *const kinds[] = {"vfb", "vkbd", "9pfs", "qusb"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char path[64], **names;
		unsigned nr;
		int err;

		snprintf(path, sizeof(path), "backend/%s/%" PRIu32, kinds[i], args->domid);
		err = store_list(store, path, &names, &nr);
		if (err == -ENOENT)
			continue;
		if (err) {
			log_error("cannot read xenstore node %s: %s", path, strerror(-err));
			return err;
		}
		free(names);
		/* The toolstack may leave the empty directory of an earlier domain of this number. */
		if (nr) {
			snprintf(args->qemu_reason, sizeof(args->qemu_reason),
				 "the guest has a %s backend (xenstore: %s)", kinds[i], path);
			return 0;
		}
	}
	return 0;
}

/* Become QEMU, with the command line as it came. Returns an exit status if that fails. */
static int qemu_exec(const struct dm_args *args, char *argv[])
{
	const char *path = getenv("VBDISK_DM_QEMU");
	struct stat qemu, self;
	int err;

	if (!path || !*path)
		path = DEFAULT_QEMU;
	log_info("handing over to QEMU, %s: %s", path, args->qemu_reason);
	/* A wrapper or a link may lead back here, and would do so for ever. */
	if (!stat(path, &qemu) && !stat("/proc/self/exe", &self) && qemu.st_dev == self.st_dev &&
	    qemu.st_ino == self.st_ino) {
		log_error("%s is vbdisk-dm itself: let $VBDISK_DM_QEMU name the real QEMU", path);
		return EXIT_NO_QEMU;
	}
	if (access(path, X_OK)) {
		err = errno;
		goto no_qemu;
	}
	log_warning(
		"this QEMU also claims those of the guest's qdisk backends that no other process has taken yet");
	argv[0] = (char *)path;
	execv(path, argv);
	err = errno;
no_qemu:
	log_error(
		"cannot run QEMU, %s: %s; install it (Debian: qemu-system-xen), or let $VBDISK_DM_QEMU name it, or take from the guest's configuration what needs it (%s)",
		path, strerror(err), args->qemu_reason);
	return EXIT_NO_QEMU;
}

static void usage_print(FILE *out)
{
	fprintf(out,
		"Usage: vbdisk-dm -xen-domid N [QEMU's options]\n"
		"\n"
		"The device model of a Xen PV or PVH guest whose disks vbdisk serves. The toolstack\n"
		"starts it, in place of QEMU; in the guest's configuration say\n"
		"\n"
		"    device_model_version = \"qemu-xen\"\n"
		"    device_model_override = \"%s\"\n"
		"\n"
		"For guests that need more than disks (HVM, display, channels, USB, 9pfs) it runs QEMU:\n"
		"$VBDISK_DM_QEMU, or else %s.\n"
		"\n"
		"    --help       this text\n"
		"    --version    the version\n"
		"\n"
		"Exit status: 0 ended as told, 1 failure, 2 wrong command line, 3 no QEMU to run.\n",
		LIBEXECDIR "/vbdisk-dm", DEFAULT_QEMU);
}

int main(int argc, char *argv[])
{
	struct dm dm = {0};
	struct store *store = NULL;
	struct error error;
	char subject[32];
	int err, status;

	log_init("vbdisk-dm", "", LOG_LEVEL_INFO);
	if (argc < 2) {
		usage_print(stderr);
		return EXIT_USAGE;
	}
	err = dm_args_parse(argc, argv, &dm.args, &error);
	if (!err && dm.args.help) {
		usage_print(stdout);
		return EXIT_SUCCESS;
	}
	if (!err && dm.args.version) {
		puts("vbdisk-dm " PACKAGE_VERSION);
		return EXIT_SUCCESS;
	}
	if (!err)
		err = dm_args_role(&dm.args, &dm.role, &error);
	if (err) {
		log_error("%s", error.text);
		return EXIT_USAGE;
	}
	if (dm.args.has_domid) {
		snprintf(subject, sizeof(subject), "domain %" PRIu32, dm.args.domid);
		log_init("vbdisk-dm", subject, LOG_LEVEL_INFO);
	}
	if (dm.role == DM_ROLE_SERVE) {
		err = store_open(&store);
		if (err) {
			log_error(
				"cannot reach xenstore: %s; is xenstored running, and are we root?",
				strerror(-err));
			return EXIT_FAILURE;
		}
		err = backends_check(store, &dm.args);
		if (err) {
			store_close(store);
			return EXIT_FAILURE;
		}
		if (dm.args.qemu_reason[0])
			dm.role = DM_ROLE_QEMU;
	}
	if (dm.role == DM_ROLE_QEMU) {
		store_close(store);
		return qemu_exec(&dm.args, argv);
	}
	if (dm.args.background)
		log_warning(
			"-daemonize and -pidfile are not done: vbdisk-dm stays in the foreground");
	status = dm_serve(&dm, &store);
	store_close(store);
	return status;
}
