// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The xenstore server of the loopback host: messages, connections, watches.
 *
 * Owns: the sockets, their connections with watches and transactions, the current tree.
 * Trusts / does not trust: every byte may be hostile; a malformed message ends its connection.
 * Runs on: the host's one thread, from its event loop; never blocks.
 * Must not know: grants, event channels, blkif.
 *
 * While a message is served, events for any connection are queued; connections found broken are only
 * marked, and closed when the message is done, so that no list changes under a walk.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <xen/io/xs_wire.h>

#include "backend/log.h"
#include "container.h"
#include "loopback/loopback-protocol.h"
#include "loopback/xenstored-transaction.h"
#include "loopback/xenstored-tree.h"
#include "loopback/xenstored-wire.h"

/* Unsent bytes at which we stop reading requests, and at which a connection is given up. */
#define BACKLOG_PAUSE_BYTES (64u * 1024)
#define BACKLOG_MAX_GUEST_BYTES (256u * 1024)
#define BACKLOG_MAX_DOM0_BYTES (64u * 1024 * 1024)

#define MESSAGE_MAX_BYTES (sizeof(struct xsd_sockmsg) + XENSTORE_PAYLOAD_MAX)

#define PERMISSIONS_MAX (XENSTORE_PAYLOAD_MAX / 3) /* "n0" and its NUL */

struct watch {
	TAILQ_ENTRY(watch) link;
	char *path;  /* absolute, or "@..." */
	char *token;
	size_t nr_hidden; /* what is cut off events: "/local/domain/N/" of a relative path */
};

struct open_transaction {
	LIST_ENTRY(open_transaction) link;
	uint32_t id;
	struct transaction *transaction;
};

struct connection {
	LIST_ENTRY(connection) link;
	struct xenstored *xenstored;
	struct loop_watch watch;
	uint32_t domid, pid;
	bool broken;
	uint32_t events; /* what the loop watches for */
	uint32_t next_transaction_id;
	unsigned nr_watches, nr_transactions;
	TAILQ_HEAD(, watch) watches;
	LIST_HEAD(, open_transaction) transactions;

	uint8_t in[MESSAGE_MAX_BYTES];
	size_t in_len;
	uint8_t *out; /* bytes [out_sent, out_len) wait to be sent */
	size_t out_sent, out_len, out_size;
};

struct listener {
	LIST_ENTRY(listener) link;
	struct xenstored *xenstored;
	struct loop_watch watch;
	struct sockaddr_un address;
	uint32_t domid;
	bool introduced;
};

/* "@introduceDomain" and "@releaseDomain": not in the tree, but with permissions. */
struct special {
	const char *name;
	struct tree_permission permissions[TREE_QUOTA_PERMISSIONS];
	unsigned nr_permissions;
};

struct xenstored {
	struct loop *loop;
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct tree *tree;
	struct special specials[2];
	LIST_HEAD(, listener) listeners;
	LIST_HEAD(, connection) connections;
	struct log_limit malformed_limit, slow_limit;
};

/* A request in hand. */
struct call {
	struct connection *connection;
	const struct xsd_sockmsg *header;
	const char *payload;
	size_t len;
	struct transaction *transaction; /* NULL: none */
};

/* --- Output --- */

static size_t backlog_bytes(const struct connection *connection)
{
	return connection->out_len - connection->out_sent;
}

static void connection_flush(struct connection *connection)
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

static void connection_queue(struct connection *connection, const void *bytes, size_t len)
{
	size_t max = connection->domid ? BACKLOG_MAX_GUEST_BYTES : BACKLOG_MAX_DOM0_BYTES;

	if (connection->broken || !len)
		return;
	if (backlog_bytes(connection) + len > max) {
		log_limited(&connection->xenstored->slow_limit, LOG_LEVEL_WARNING,
			    "xenstore client of domain %u, pid %u: does not read its events, "
			    "disconnected", connection->domid, connection->pid);
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

static void call_reply(struct call *call, const void *payload, size_t len)
{
	struct xsd_sockmsg header = *call->header;

	header.len = (uint32_t)len;
	connection_queue(call->connection, &header, sizeof(header));
	connection_queue(call->connection, payload, len);
}

static void call_reply_text(struct call *call, const char *text)
{
	call_reply(call, text, strlen(text) + 1);
}

static void call_reply_error(struct call *call, int err)
{
	struct xsd_sockmsg header = *call->header;
	const char *name = "EINVAL";

	for (size_t i = 0; i < sizeof(xsd_errors) / sizeof(xsd_errors[0]); i++)
		if (xsd_errors[i].errnum == -err)
			name = xsd_errors[i].errstring;
	header.type = XS_ERROR;
	header.len = (uint32_t)strlen(name) + 1;
	connection_queue(call->connection, &header, sizeof(header));
	connection_queue(call->connection, name, header.len);
}

/* --- Watches --- */

static void watch_send(struct connection *connection, const struct watch *watch, const char *path)
{
	struct xsd_sockmsg header = {.type = XS_WATCH_EVENT};
	size_t path_len, token_len = strlen(watch->token) + 1;

	path += watch->nr_hidden; /* every event is at or below the watched path */
	path_len = strlen(path) + 1;
	if (path_len + token_len > XENSTORE_PAYLOAD_MAX)
		return; /* cannot be said in one message; C xenstored drops it, too */
	header.len = (uint32_t)(path_len + token_len);
	connection_queue(connection, &header, sizeof(header));
	connection_queue(connection, path, path_len);
	connection_queue(connection, watch->token, token_len);
}

static bool path_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	if (!strcmp(top, "/"))
		return path[0] == '/' && path[1];
	return !strncmp(path, top, len) && path[len] == '/';
}

/* Whether @domid may know that @path is another one in @after than in @before. */
static bool change_visible(const struct tree *before, const struct tree *after, uint32_t domid,
			   const char *path)
{
	const struct tree_node *node;
	char *ancestor;
	bool visible;

	if (!domid || !tree_get(before, domid, path, TREE_READ, &node) ||
	    !tree_get(after, domid, path, TREE_READ, &node))
		return true;
	/* Coming and going shows in the parent's list. */
	if (!tree_find(before, path) == !tree_find(after, path))
		return false;
	ancestor = malloc(strlen(path) + 2);
	if (!ancestor)
		return false;
	tree_ancestor(after, path, ancestor);
	visible = !tree_get(after, domid, ancestor, TREE_READ, &node);
	free(ancestor);
	return visible;
}

/* Tell every watch about @path, which changed from @before to @after. */
static void watches_fire(struct xenstored *xenstored, const struct tree *before,
			 const struct tree *after, const char *path, bool removed)
{
	struct connection *connection;
	const struct watch *watch;

	LIST_FOREACH(connection, &xenstored->connections, link) {
		TAILQ_FOREACH(watch, &connection->watches, link) {
			const char *changed = NULL;

			if (!strcmp(watch->path, path) || path_below(path, watch->path))
				changed = path;
			else if (removed && path_below(watch->path, path) &&
				 tree_find(before, watch->path) && !tree_find(after, watch->path))
				changed = watch->path; /* went with the subtree */
			if (changed && change_visible(before, after, connection->domid, changed))
				watch_send(connection, watch, changed);
		}
		connection_flush(connection);
	}
}

static struct special *special_find(struct xenstored *xenstored, const char *name)
{
	for (size_t i = 0; i < 2; i++)
		if (!strcmp(xenstored->specials[i].name, name))
			return &xenstored->specials[i];
	return NULL;
}

static void special_fire(struct xenstored *xenstored, const char *name)
{
	const struct special *special = special_find(xenstored, name);
	struct connection *connection;
	const struct watch *watch;

	LIST_FOREACH(connection, &xenstored->connections, link) {
		if (!(tree_permission_bits(special->permissions, special->nr_permissions,
					   connection->domid) & TREE_READ))
			continue;
		TAILQ_FOREACH(watch, &connection->watches, link)
			if (!strcmp(watch->path, name))
				watch_send(connection, watch, name);
		connection_flush(connection);
	}
}

static void watch_free(struct connection *connection, struct watch *watch)
{
	TAILQ_REMOVE(&connection->watches, watch, link);
	connection->nr_watches--;
	free(watch->path);
	free(watch->token);
	free(watch);
}

static void watches_free(struct connection *connection)
{
	struct watch *watch;

	while ((watch = TAILQ_FIRST(&connection->watches)))
		watch_free(connection, watch);
}

/* --- Transactions --- */

static struct open_transaction *transaction_find(struct connection *connection, uint32_t id)
{
	struct open_transaction *open;

	LIST_FOREACH(open, &connection->transactions, link)
		if (open->id == id)
			return open;
	return NULL;
}

static void transaction_close(struct connection *connection, struct open_transaction *open)
{
	transaction_abort(open->transaction);
	LIST_REMOVE(open, link);
	connection->nr_transactions--;
	free(open);
}

static void transactions_close(struct connection *connection)
{
	struct open_transaction *open;

	while ((open = LIST_FIRST(&connection->transactions)))
		transaction_close(connection, open);
}

/* --- Reading requests --- */

/* Cut the payload into NUL-terminated strings. How many there are, -EINVAL if the last is open or
 * there are more than @max. */
static int call_strings(const struct call *call, const char **strings, int max)
{
	const char *at = call->payload, *end = call->payload + call->len;
	int nr = 0;

	if (!call->len || end[-1])
		return -EINVAL;
	for (; at < end; at += strlen(at) + 1) {
		if (nr == max)
			return -EINVAL;
		strings[nr++] = at;
	}
	return nr;
}

static int domid_parse(const char *text, uint32_t *domid_out)
{
	uint32_t domid = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		domid = domid * 10 + (uint32_t)(*text - '0');
		if (domid > LOOPBACK_DOMID_MAX)
			return -EINVAL;
	}
	*domid_out = domid;
	return 0;
}

static bool path_valid(const char *path)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-/_@";
	size_t len = strlen(path);

	return len && len <= XENSTORE_ABS_PATH_MAX && path[0] == '/' && !strstr(path, "//") &&
	       (len == 1 || path[len - 1] != '/') && strspn(path, allowed) == len;
}

/* The absolute form of @given in @path[XENSTORE_ABS_PATH_MAX + 1], and how many bytes of it the caller
 * did not say (may be NULL). 0 or -EINVAL. */
static int path_resolve(const struct connection *connection, const char *given, char *path,
			size_t *nr_hidden_out)
{
	size_t given_len = strlen(given), nr_hidden = 0;

	if (given[0] != '/') {
		/* "@releaseDomain" and its kind are not in the tree. */
		if (!given_len || given_len > XENSTORE_REL_PATH_MAX || given[0] == '@')
			return -EINVAL;
		nr_hidden = (size_t)snprintf(path, XENSTORE_ABS_PATH_MAX, "/local/domain/%u/",
					     connection->domid);
	}
	if (nr_hidden + given_len > XENSTORE_ABS_PATH_MAX)
		return -EINVAL;
	memcpy(path + nr_hidden, given, given_len + 1);
	if (!path_valid(path))
		return -EINVAL;
	if (nr_hidden_out)
		*nr_hidden_out = nr_hidden;
	return 0;
}

/* The one path that the request consists of. */
static int call_path(const struct call *call, char *path)
{
	const char *given;

	return call_strings(call, &given, 1) != 1 ? -EINVAL : path_resolve(call->connection, given, path, NULL);
}

/* --- Serving: looking --- */

static int call_get(struct call *call, const char *path, unsigned bits,
		    const struct tree_node **node_out)
{
	if (call->transaction) {
		int err = transaction_look(call->transaction, path);

		if (err)
			return err;
	}
	return tree_get(call->transaction ? transaction_view(call->transaction)
					  : call->connection->xenstored->tree,
			call->connection->domid, path, bits, node_out);
}

static int serve_read(struct call *call)
{
	char path[XENSTORE_ABS_PATH_MAX + 1];
	const struct tree_node *node;
	int err = call_path(call, path);

	if (!err)
		err = call_get(call, path, TREE_READ, &node);
	if (!err)
		call_reply(call, node->value, node->value_len);
	return err;
}

/* Add child names from byte @offset of the whole list on, as far as they fit. *@nr_out: bytes added;
 * returns true if the list's end was reached. */
static bool names_fill(const struct tree_node *node, size_t offset, char *buffer, size_t size,
		       size_t *nr_out)
{
	size_t at = 0, nr = 0;

	*nr_out = 0;
	for (unsigned i = 0; i < node->nr_children; i++) {
		size_t len = strlen(node->children[i]->name) + 1;

		if (at >= offset) {
			if (nr + len > size)
				return false;
			memcpy(buffer + nr, node->children[i]->name, len);
			nr += len;
			*nr_out = nr;
		}
		at += len;
	}
	return true;
}

static int serve_directory(struct call *call)
{
	char path[XENSTORE_ABS_PATH_MAX + 1], names[XENSTORE_PAYLOAD_MAX];
	const struct tree_node *node;
	size_t len;
	int err = call_path(call, path);

	if (!err)
		err = call_get(call, path, TREE_READ, &node);
	if (err)
		return err;
	if (!names_fill(node, 0, names, sizeof(names), &len))
		return -E2BIG; /* the client goes on with DIRECTORY_PART */
	call_reply(call, names, len);
	return 0;
}

static int serve_directory_part(struct call *call)
{
	char path[XENSTORE_ABS_PATH_MAX + 1], reply[XENSTORE_PAYLOAD_MAX];
	const struct tree_node *node;
	const char *strings[2];
	size_t head, len, offset = 0;
	int err;

	if (call_strings(call, strings, 2) != 2 || !*strings[1] || strlen(strings[1]) > 9 ||
	    strspn(strings[1], "0123456789") != strlen(strings[1]))
		return -EINVAL;
	for (const char *digit = strings[1]; *digit; digit++)
		offset = offset * 10 + (size_t)(*digit - '0');
	err = path_resolve(call->connection, strings[0], path, NULL);
	if (!err)
		err = call_get(call, path, TREE_READ, &node);
	if (err)
		return err;
	head = (size_t)snprintf(reply, sizeof(reply), "%llu", (unsigned long long)node->generation) + 1;
	/* One byte is kept for the empty name that says "this was all". */
	if (names_fill(node, offset, reply + head, sizeof(reply) - head - 1, &len))
		reply[head + len++] = '\0';
	call_reply(call, reply, head + len);
	return 0;
}

/* --- Serving: permissions --- */

static size_t permissions_print(const struct tree_permission *permissions, unsigned nr, char *text,
				size_t size)
{
	static const char letters[] = {'n', 'r', 'w', 'b'};
	size_t len = 0;

	for (unsigned i = 0; i < nr && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%c%u", letters[permissions[i].bits & 3],
					permissions[i].domid) + 1;
	return len;
}

static int permission_parse(const char *text, struct tree_permission *permission)
{
	switch (*text) {
	case 'n':
		permission->bits = 0;
		break;
	case 'r':
		permission->bits = TREE_READ;
		break;
	case 'w':
		permission->bits = TREE_WRITE;
		break;
	case 'b':
		permission->bits = TREE_READ | TREE_WRITE;
		break;
	default:
		return -EINVAL;
	}
	return domid_parse(text + 1, &permission->domid);
}

static int serve_get_perms(struct call *call)
{
	char path[XENSTORE_ABS_PATH_MAX + 1], text[XENSTORE_PAYLOAD_MAX];
	const struct tree_node *node;
	const struct special *special;
	size_t len;
	int err;

	if (call->len && call->payload[0] == '@') {
		special = call->payload[call->len - 1]
				  ? NULL
				  : special_find(call->connection->xenstored, call->payload);
		if (!special)
			return -EINVAL;
		len = permissions_print(special->permissions, special->nr_permissions, text,
					sizeof(text));
	} else {
		err = call_path(call, path);
		if (!err)
			err = call_get(call, path, TREE_READ, &node);
		if (err)
			return err;
		len = permissions_print(node->permissions, node->nr_permissions, text, sizeof(text));
	}
	if (len > sizeof(text))
		return -E2BIG;
	call_reply(call, text, len);
	return 0;
}

/* --- Serving: changing --- */

struct fire_context {
	struct xenstored *xenstored;
	const struct tree *before;
};

static void change_fire(void *arg, const char *path, bool removed)
{
	const struct fire_context *context = arg;

	watches_fire(context->xenstored, context->before, context->xenstored->tree, path, removed);
}

/* Apply a change within the call's transaction, or at once; then acknowledge, then tell. */
static int call_apply(struct call *call, const struct tree_change *change)
{
	struct xenstored *xenstored = call->connection->xenstored;
	struct fire_context context = {.xenstored = xenstored};
	struct tree *before;
	bool changed;
	int err;

	if (call->transaction) {
		err = transaction_apply(call->transaction, change);
		if (!err)
			call_reply_text(call, "OK");
		return err;
	}
	before = tree_snapshot(xenstored->tree);
	if (!before)
		return -ENOMEM;
	err = tree_apply(xenstored->tree, call->connection->domid, change, &changed);
	if (!err) {
		call_reply_text(call, "OK");
		context.before = before;
		if (changed)
			change_fire(&context, change->path, change->kind == TREE_CHANGE_REMOVE);
	}
	tree_free(before);
	return err;
}

static int serve_write(struct call *call)
{
	char path[XENSTORE_ABS_PATH_MAX + 1];
	struct tree_change change = {.kind = TREE_CHANGE_WRITE, .path = path};
	const char *end = call->len ? memchr(call->payload, '\0', call->len) : NULL;
	int err;

	if (!end)
		return -EINVAL;
	err = path_resolve(call->connection, call->payload, path, NULL);
	if (err)
		return err;
	change.value = end + 1;
	change.value_len = call->len - (size_t)(end + 1 - call->payload);
	return call_apply(call, &change);
}

static int serve_path_change(struct call *call, enum tree_change_kind kind)
{
	char path[XENSTORE_ABS_PATH_MAX + 1];
	struct tree_change change = {.kind = kind, .path = path};
	int err = call_path(call, path);

	return err ? err : call_apply(call, &change);
}

static int special_set_perms(struct call *call, struct special *special,
			     const struct tree_permission *permissions, unsigned nr)
{
	if (!special)
		return -EINVAL;
	if (call->connection->domid)
		return -EACCES;
	if (nr > TREE_QUOTA_PERMISSIONS)
		return -ENOSPC;
	memcpy(special->permissions, permissions, nr * sizeof(permissions[0]));
	special->nr_permissions = nr;
	call_reply_text(call, "OK");
	return 0;
}

static int serve_set_perms(struct call *call)
{
	char path[XENSTORE_ABS_PATH_MAX + 1];
	const char *strings[PERMISSIONS_MAX + 1];
	struct tree_permission permissions[PERMISSIONS_MAX];
	struct tree_change change = {.kind = TREE_CHANGE_PERMISSIONS, .path = path};
	int err, nr = call_strings(call, strings, PERMISSIONS_MAX + 1);

	if (nr < 2)
		return -EINVAL;
	for (int i = 1; i < nr; i++) {
		err = permission_parse(strings[i], &permissions[i - 1]);
		if (err)
			return err;
	}
	if (strings[0][0] == '@')
		return special_set_perms(call, special_find(call->connection->xenstored, strings[0]),
					 permissions, (unsigned)nr - 1);
	err = path_resolve(call->connection, strings[0], path, NULL);
	if (err)
		return err;
	change.permissions = permissions;
	change.nr_permissions = (unsigned)nr - 1;
	return call_apply(call, &change);
}

/* --- Serving: watches --- */

/* The watch of this path and token, or NULL; and the path resolved. */
static int watch_lookup(struct call *call, char *path, const char **token_out, size_t *nr_hidden_out,
			struct watch **watch_out)
{
	const char *strings[2];
	struct watch *watch;
	int err;

	if (call_strings(call, strings, 2) != 2)
		return -EINVAL;
	*token_out = strings[1];
	*nr_hidden_out = 0;
	if (strings[0][0] == '@') {
		if (strlen(strings[0]) > XENSTORE_REL_PATH_MAX)
			return -EINVAL;
		strcpy(path, strings[0]);
	} else {
		err = path_resolve(call->connection, strings[0], path, nr_hidden_out);
		if (err)
			return err;
	}
	*watch_out = NULL;
	TAILQ_FOREACH(watch, &call->connection->watches, link)
		if (!strcmp(watch->path, path) && !strcmp(watch->token, *token_out))
			*watch_out = watch;
	return 0;
}

static int serve_watch(struct call *call)
{
	struct connection *connection = call->connection;
	char path[XENSTORE_ABS_PATH_MAX + 1];
	struct watch *watch;
	const char *token;
	size_t nr_hidden;
	int err = watch_lookup(call, path, &token, &nr_hidden, &watch);

	if (err)
		return err;
	if (watch)
		return -EEXIST;
	if (connection->domid && connection->nr_watches >= XENSTORED_QUOTA_WATCHES)
		return -E2BIG;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	watch->path = strdup(path);
	watch->token = strdup(token);
	watch->nr_hidden = nr_hidden;
	TAILQ_INSERT_TAIL(&connection->watches, watch, link);
	connection->nr_watches++;
	if (!watch->path || !watch->token) {
		watch_free(connection, watch);
		return -ENOMEM;
	}
	call_reply_text(call, "OK");
	/* Once at the start, so that a client needs no other way to see what is there. */
	watch_send(connection, watch, watch->path);
	return 0;
}

static int serve_unwatch(struct call *call)
{
	char path[XENSTORE_ABS_PATH_MAX + 1];
	struct watch *watch;
	const char *token;
	size_t nr_hidden;
	int err = watch_lookup(call, path, &token, &nr_hidden, &watch);

	if (err)
		return err;
	if (!watch)
		return -ENOENT;
	watch_free(call->connection, watch);
	call_reply_text(call, "OK");
	return 0;
}

/* --- Serving: transactions --- */

static int serve_transaction_start(struct call *call)
{
	struct connection *connection = call->connection;
	struct open_transaction *open;
	char text[16];

	if (call->transaction)
		return -EBUSY;
	if (connection->domid && connection->nr_transactions >= XENSTORED_QUOTA_TRANSACTIONS)
		return -ENOSPC;
	open = calloc(1, sizeof(*open));
	if (!open)
		return -ENOMEM;
	open->transaction = transaction_start(connection->xenstored->tree, connection->domid);
	if (!open->transaction) {
		free(open);
		return -ENOMEM;
	}
	do
		open->id = connection->next_transaction_id++;
	while (!open->id || transaction_find(connection, open->id));
	LIST_INSERT_HEAD(&connection->transactions, open, link);
	connection->nr_transactions++;
	snprintf(text, sizeof(text), "%u", open->id);
	call_reply_text(call, text);
	return 0;
}

static int serve_transaction_end(struct call *call)
{
	struct connection *connection = call->connection;
	struct xenstored *xenstored = connection->xenstored;
	struct open_transaction *open = transaction_find(connection, call->header->tx_id);
	struct fire_context context = {.xenstored = xenstored};
	struct tree *before;
	const char *commit;
	int err = 0;

	if (call_strings(call, &commit, 1) != 1 || (strcmp(commit, "T") && strcmp(commit, "F")))
		return -EINVAL;
	if (!open)
		return -ENOENT;
	if (*commit == 'T')
		err = transaction_commit(open->transaction, &xenstored->tree, &before);
	if (!err)
		call_reply_text(call, "OK");
	if (!err && *commit == 'T') {
		context.before = before;
		transaction_changes(open->transaction, change_fire, &context);
		tree_free(before);
	}
	transaction_close(connection, open);
	return err;
}

/* --- Serving: domains --- */

static struct listener *listener_find(struct xenstored *xenstored, uint32_t domid)
{
	struct listener *listener;

	LIST_FOREACH(listener, &xenstored->listeners, link)
		if (listener->domid == domid)
			return listener;
	return NULL;
}

static int serve_domain(struct call *call)
{
	struct xenstored *xenstored = call->connection->xenstored;
	const struct listener *listener;
	const char *strings[3];
	char path[32];
	uint32_t domid;
	int err, nr = call_strings(call, strings, 3);

	if (nr < 1)
		return -EINVAL;
	err = domid_parse(strings[0], &domid);
	if (err)
		return err;
	switch (call->header->type) {
	case XS_GET_DOMAIN_PATH:
		snprintf(path, sizeof(path), "/local/domain/%u", domid);
		call_reply_text(call, path);
		return 0;
	case XS_IS_DOMAIN_INTRODUCED:
		listener = listener_find(xenstored, domid);
		call_reply_text(call, listener && listener->introduced ? "T" : "F");
		return 0;
	}
	if (call->connection->domid)
		return -EACCES;
	if (call->header->type == XS_INTRODUCE) {
		if (nr != 3 || !domid)
			return -EINVAL;
		err = xenstored_add_domain(xenstored, domid);
		if (err)
			return err;
		call_reply_text(call, "OK");
		xenstored_introduce(xenstored, domid);
		return 0;
	}
	listener = listener_find(xenstored, domid);
	if (!listener || !domid)
		return -ENOENT;
	call_reply_text(call, "OK");
	if (call->header->type == XS_RELEASE)
		xenstored_release(xenstored, domid, true);
	return 0;
}

static int serve_control(struct call *call)
{
	const char *strings[2];

	if (call->connection->domid)
		return -EACCES;
	if (call_strings(call, strings, 2) != 2 || strcmp(strings[0], "print"))
		return -EINVAL;
	log_info("xenstore client pid %u says: %s", call->connection->pid, strings[1]);
	call_reply_text(call, "OK");
	return 0;
}

static int call_dispatch(struct call *call)
{
	struct connection *connection = call->connection;

	if (call->header->tx_id && call->header->type != XS_TRANSACTION_END) {
		struct open_transaction *open = transaction_find(connection, call->header->tx_id);

		if (!open)
			return -ENOENT;
		call->transaction = open->transaction;
	}
	switch (call->header->type) {
	case XS_CONTROL:
		return serve_control(call);
	case XS_DIRECTORY:
		return serve_directory(call);
	case XS_DIRECTORY_PART:
		return serve_directory_part(call);
	case XS_READ:
		return serve_read(call);
	case XS_GET_PERMS:
		return serve_get_perms(call);
	case XS_SET_PERMS:
		return serve_set_perms(call);
	case XS_WATCH:
		return serve_watch(call);
	case XS_UNWATCH:
		return serve_unwatch(call);
	case XS_RESET_WATCHES:
		watches_free(connection);
		transactions_close(connection);
		call_reply_text(call, "OK");
		return 0;
	case XS_TRANSACTION_START:
		return serve_transaction_start(call);
	case XS_TRANSACTION_END:
		return serve_transaction_end(call);
	case XS_GET_DOMAIN_PATH:
	case XS_IS_DOMAIN_INTRODUCED:
	case XS_INTRODUCE:
	case XS_RELEASE:
	case XS_RESUME:
		return serve_domain(call);
	case XS_WRITE:
		return serve_write(call);
	case XS_MKDIR:
		return serve_path_change(call, TREE_CHANGE_MKDIR);
	case XS_RM:
		return serve_path_change(call, TREE_CHANGE_REMOVE);
	default:
		return -ENOSYS;
	}
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

static void message_serve(struct connection *connection, const struct xsd_sockmsg *header,
			  const char *payload)
{
	struct call call = {
		.connection = connection,
		.header = header,
		.payload = payload,
		.len = header->len,
	};
	int err = call_dispatch(&call);

	if (err)
		call_reply_error(&call, err);
	connection_flush(connection);
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
				    "disconnected", connection->domid, connection->pid, header.len);
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
			log_error("cannot accept a xenstore client: %s", strerror(errno));
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
	/* The directory is this host's alone (it holds its lock), so a socket left there is dead. */
	unlink(listener->address.sun_path);
	if (bind(listener->watch.fd, (struct sockaddr *)&listener->address, sizeof(listener->address)) ||
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
		{.kind = TREE_CHANGE_WRITE, .path = "/local/domain/0/domid", .value = "0", .value_len = 1},
		{.kind = TREE_CHANGE_WRITE, .path = "/local/domain/0/name", .value = "Domain-0",
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
	if ((size_t)snprintf(xenstored->dir, sizeof(xenstored->dir), "%s", dir) >= sizeof(xenstored->dir)) {
		err = error_set(error, ENAMETOOLONG,
				"%s: too long for a socket's path, choose a shorter directory", dir);
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
