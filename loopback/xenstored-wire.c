// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sockets and bytes of the xenstore server: connections, messages in, answers and events out.
 *
 * Owns: the sockets, their connections, the current tree.
 * Trusts / does not trust: every byte may be hostile; a malformed message ends its connection.
 * Runs on: the host's one thread, from its event loop; never blocks.
 * Must not know: grants, event channels, blkif.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "container.h"
#include "loopback/loopback-protocol.h"
#include "loopback/xenstored-internal.h"

/* Unsent bytes at which we stop reading requests, and at which a connection is given up. */
#define BACKLOG_PAUSE_BYTES (64u * 1024)
#define BACKLOG_MAX_GUEST_BYTES (256u * 1024)
#define BACKLOG_MAX_DOM0_BYTES (64u * 1024 * 1024)

/* --- Output --- */

static size_t backlog_bytes(const struct connection *connection)
{
	return connection->out_len - connection->out_sent;
}

void connection_flush(struct connection *connection)
{
	uint32_t events;

	while (backlog_bytes(connection)) {
		ssize_t sent = send(connection->watch.fd, connection->out + connection->out_sent,
				    backlog_bytes(connection), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno != EAGAIN)
			connection->broken = true;
		if (sent < 0)
			break;
		connection->out_sent += (size_t)sent;
	}
	if (!backlog_bytes(connection)) {
		connection->out_sent = connection->out_len = 0;
		if (connection->out_size > BACKLOG_PAUSE_BYTES) {
			free(connection->out);
			connection->out = NULL;
			connection->out_size = 0;
		}
	}
	/* Who does not read answers gets no new requests served. */
	events = backlog_bytes(connection) < BACKLOG_PAUSE_BYTES ? EPOLLIN : 0;
	if (backlog_bytes(connection))
		events |= EPOLLOUT;
	if (events != connection->events && !connection->broken) {
		if (loop_rewatch(connection->xenstored->loop, &connection->watch, events))
			connection->broken = true;
		connection->events = events;
	}
}

void connection_queue(struct connection *connection, const void *bytes, size_t len)
{
	size_t max = connection->domid ? BACKLOG_MAX_GUEST_BYTES : BACKLOG_MAX_DOM0_BYTES;

	if (connection->broken || !len)
		return;
	if (backlog_bytes(connection) + len > max) {
		log_limited(&connection->xenstored->slow_limit, LOG_LEVEL_WARNING,
			    "xenstore client of domain %u, pid %u: does not read its events, "
			    "disconnected",
			    connection->domid, connection->pid);
		connection->broken = true;
		return;
	}
	if (connection->out_sent && connection->out_len + len > connection->out_size) {
		memmove(connection->out, connection->out + connection->out_sent,
			backlog_bytes(connection));
		connection->out_len -= connection->out_sent;
		connection->out_sent = 0;
	}
	if (connection->out_len + len > connection->out_size) {
		size_t size = 2 * (connection->out_len + len);
		uint8_t *out = realloc(connection->out, size);

		if (!out) {
			log_error("no memory for a xenstore client, disconnected");
			connection->broken = true;
			return;
		}
		connection->out = out;
		connection->out_size = size;
	}
	memcpy(connection->out + connection->out_len, bytes, len);
	connection->out_len += len;
}

/* --- Connections --- */

static void connection_close(struct connection *connection)
{
	watches_free(connection);
	transactions_close(connection);
	loop_unwatch(connection->xenstored->loop, &connection->watch);
	close(connection->watch.fd);
	LIST_REMOVE(connection, link);
	free(connection->out);
	free(connection);
}

static void connections_reap(struct xenstored *xenstored)
{
	struct connection *connection = LIST_FIRST(&xenstored->connections);

	while (connection) {
		struct connection *next = LIST_NEXT(connection, link);

		if (connection->broken)
			connection_close(connection);
		connection = next;
	}
}

/* Serve the whole messages that are there, as long as the answers are read. */
static void messages_serve(struct connection *connection)
{
	struct xsd_sockmsg header;
	size_t at = 0;

	while (!connection->broken && connection->in_len - at >= sizeof(header) &&
	       backlog_bytes(connection) < BACKLOG_PAUSE_BYTES) {
		memcpy(&header, connection->in + at, sizeof(header));
		if (header.len > XENSTORE_PAYLOAD_MAX) {
			log_limited(&connection->xenstored->malformed_limit, LOG_LEVEL_WARNING,
				    "xenstore client of domain %u, pid %u: message of %u bytes, "
				    "disconnected",
				    connection->domid, connection->pid, header.len);
			connection->broken = true;
			break;
		}
		if (connection->in_len - at < sizeof(header) + header.len)
			break;
		message_serve(connection, &header, (char *)connection->in + at + sizeof(header));
		at += sizeof(header) + header.len;
	}
	memmove(connection->in, connection->in + at, connection->in_len - at);
	connection->in_len -= at;
}

static void connection_ready(struct loop_watch *watch, uint32_t events)
{
	struct connection *connection = container_of(watch, struct connection, watch);
	struct xenstored *xenstored = connection->xenstored;
	ssize_t len;

	connection_flush(connection);
	messages_serve(connection); /* what waited for room */
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !connection->broken &&
	    backlog_bytes(connection) < BACKLOG_PAUSE_BYTES) {
		len = recv(watch->fd, connection->in + connection->in_len,
			   sizeof(connection->in) - connection->in_len, MSG_DONTWAIT);
		if (len > 0) {
			connection->in_len += (size_t)len;
			messages_serve(connection);
		} else if (len == 0 || (errno != EAGAIN && errno != EINTR)) {
			connection->broken = true;
		}
	}
	connections_reap(xenstored);
}

static void listener_ready(struct loop_watch *watch, uint32_t events)
{
	struct listener *listener = container_of(watch, struct listener, watch);
	struct ucred credentials = {0};
	socklen_t len = sizeof(credentials);
	struct connection *connection;
	int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
			log_limited(&listener->xenstored->accept_limit, LOG_LEVEL_ERROR,
				    "cannot accept a xenstore client: %s", strerror(errno));
		return;
	}
	connection = calloc(1, sizeof(*connection));
	if (!connection) {
		log_error("no memory for a xenstore client");
		close(fd);
		return;
	}
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len))
		connection->pid = (uint32_t)credentials.pid;
	connection->xenstored = listener->xenstored;
	connection->domid = listener->domid;
	connection->next_transaction_id = 1;
	connection->events = EPOLLIN;
	connection->watch = (struct loop_watch){.fd = fd, .ready = connection_ready};
	TAILQ_INIT(&connection->watches);
	LIST_INIT(&connection->transactions);
	LIST_INSERT_HEAD(&listener->xenstored->connections, connection, link);
	if (loop_watch(listener->xenstored->loop, &connection->watch, EPOLLIN)) {
		log_error("cannot watch a xenstore client");
		connection_close(connection);
	}
}

struct listener *listener_find(struct xenstored *xenstored, uint32_t domid)
{
	struct listener *listener;

	LIST_FOREACH(listener, &xenstored->listeners, link)
		if (listener->domid == domid)
			return listener;
	return NULL;
}

static void listener_close(struct listener *listener)
{
	loop_unwatch(listener->xenstored->loop, &listener->watch);
	unlink(listener->address.sun_path);
	close(listener->watch.fd);
	LIST_REMOVE(listener, link);
	free(listener);
}

int xenstored_add_domain(struct xenstored *xenstored, uint32_t domid)
{
	struct listener *listener;
	char name[32];
	int err;

	if (listener_find(xenstored, domid))
		return 0;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return -ENOMEM;
	listener->xenstored = xenstored;
	listener->domid = domid;
	listener->watch.ready = listener_ready;
	if (domid)
		snprintf(name, sizeof(name), "xenstored-%u", domid);
	else
		snprintf(name, sizeof(name), "xenstored");
	err = loopback_address(xenstored->dir, name, &listener->address);
	if (err)
		goto err_free;
	listener->watch.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener->watch.fd < 0) {
		err = -errno;
		goto err_free;
	}
	/* The directory is this host's alone (it holds its lock), so a socket left there is dead.
	 */
	unlink(listener->address.sun_path);
	if (bind(listener->watch.fd, (struct sockaddr *)&listener->address,
		 sizeof(listener->address)) ||
	    listen(listener->watch.fd, 128)) {
		err = -errno;
		goto err_close;
	}
	err = loop_watch(xenstored->loop, &listener->watch, EPOLLIN);
	if (err)
		goto err_unlink;
	LIST_INSERT_HEAD(&xenstored->listeners, listener, link);
	return 0;

err_unlink:
	unlink(listener->address.sun_path);
err_close:
	close(listener->watch.fd);
err_free:
	free(listener);
	return err;
}

void xenstored_introduce(struct xenstored *xenstored, uint32_t domid)
{
	struct listener *listener = listener_find(xenstored, domid);

	if (listener)
		listener->introduced = true;
	special_fire(xenstored, "@introduceDomain");
}

void xenstored_release(struct xenstored *xenstored, uint32_t domid, bool dead)
{
	struct listener *listener = listener_find(xenstored, domid);
	struct connection *connection;

	if (dead && listener)
		listener_close(listener);
	if (dead)
		LIST_FOREACH(connection, &xenstored->connections, link)
			if (connection->domid == domid) {
				/* Its process sees the end at once, though we free it later. */
				connection->broken = true;
				shutdown(connection->watch.fd, SHUT_RDWR);
			}
	special_fire(xenstored, "@releaseDomain");
}

void xenstored_settle(struct xenstored *xenstored)
{
	struct connection *connection;

	LIST_FOREACH(connection, &xenstored->connections, link) {
		struct pollfd state = {.fd = connection->watch.fd};

		if (poll(&state, 1, 0) == 1 && state.revents & (POLLHUP | POLLERR))
			connection->broken = true;
	}
	connections_reap(xenstored);
}

static int tree_populate(struct xenstored *xenstored)
{
	static const struct tree_change changes[] = {
		{.kind = TREE_CHANGE_MKDIR, .path = "/tool/xenstored"},
		{.kind = TREE_CHANGE_WRITE,
		 .path = "/local/domain/0/domid",
		 .value = "0",
		 .value_len = 1},
		{.kind = TREE_CHANGE_WRITE,
		 .path = "/local/domain/0/name",
		 .value = "Domain-0",
		 .value_len = 8},
	};
	bool changed;

	xenstored->tree = tree_create();
	if (!xenstored->tree)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		int err = tree_apply(xenstored->tree, 0, &changes[i], &changed);

		if (err)
			return err;
	}
	return 0;
}

int xenstored_start(struct loop *loop, const char *dir, struct xenstored **xenstored_out,
		    struct error *error)
{
	struct xenstored *xenstored = calloc(1, sizeof(*xenstored));
	int err;

	if (!xenstored)
		return error_set(error, ENOMEM, "no memory for the xenstore server");
	xenstored->loop = loop;
	LIST_INIT(&xenstored->listeners);
	LIST_INIT(&xenstored->connections);
	xenstored->specials[0] = (struct special){.name = "@introduceDomain", .nr_permissions = 1};
	xenstored->specials[1] = (struct special){.name = "@releaseDomain", .nr_permissions = 1};
	if ((size_t)snprintf(xenstored->dir, sizeof(xenstored->dir), "%s", dir) >=
	    sizeof(xenstored->dir)) {
		err = error_set(error, ENAMETOOLONG,
				"%s: too long for a socket's path, choose a shorter directory",
				dir);
		goto err_stop;
	}
	err = tree_populate(xenstored);
	if (err) {
		error_set(error, -err, "cannot create the xenstore tree: %s", strerror(-err));
		goto err_stop;
	}
	err = xenstored_add_domain(xenstored, 0);
	if (err) {
		error_set(error, -err, "cannot listen on %s/xenstored: %s", dir, strerror(-err));
		goto err_stop;
	}
	listener_find(xenstored, 0)->introduced = true;
	*xenstored_out = xenstored;
	return 0;

err_stop:
	xenstored_stop(xenstored);
	return err;
}

void xenstored_stop(struct xenstored *xenstored)
{
	struct connection *connection;
	struct listener *listener;

	if (!xenstored)
		return;
	while ((connection = LIST_FIRST(&xenstored->connections)))
		connection_close(connection);
	while ((listener = LIST_FIRST(&xenstored->listeners)))
		listener_close(listener);
	tree_free(xenstored->tree);
	free(xenstored);
}

/* --- Audit --- */

void xenstored_connections(struct xenstored *xenstored,
			   void (*show)(void *arg, const struct xenstored_connection_info *info),
			   void *arg)
{
	const struct connection *connection;

	LIST_FOREACH(connection, &xenstored->connections, link) {
		struct xenstored_connection_info info = {
			.domid = connection->domid,
			.pid = connection->pid,
			.nr_watches = connection->nr_watches,
			.nr_transactions = connection->nr_transactions,
		};

		show(arg, &info);
	}
}

unsigned xenstored_nr_nodes(struct xenstored *xenstored)
{
	return tree_nr_nodes(xenstored->tree);
}
