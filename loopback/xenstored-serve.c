// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests of the xenstore server: what each message asks for, and its answer.
 *
 * Owns: the messages of xen/io/xs_wire.h, parsed, checked, done, answered.
 * Trusts / does not trust: every byte may be hostile; a wrong request is an error by name.
 * Runs on: the host's one thread; never blocks.
 * Must not know: sockets, grants, event channels.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loopback/loopback-protocol.h"
#include "loopback/xenstored-internal.h"

/* A request in hand. */
struct call {
	struct connection *connection;
	const struct xsd_sockmsg *header;
	const char *payload;
	size_t len;
	struct transaction *transaction; /* NULL: none */
};

#define PERMISSIONS_MAX (XENSTORE_PAYLOAD_MAX / 3) /* "n0" and its NUL */

/* --- Answers --- */

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

void transactions_close(struct connection *connection)
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
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-/_@";
	size_t len = strlen(path);

	return len && len <= XENSTORE_ABS_PATH_MAX && path[0] == '/' && !strstr(path, "//") &&
	       (len == 1 || path[len - 1] != '/') && strspn(path, allowed) == len;
}

/* The absolute form of @given in @path[XENSTORE_ABS_PATH_MAX + 1], and how many bytes of it the
 * caller did not say (may be NULL). 0 or -EINVAL. */
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

	return call_strings(call, &given, 1) != 1
		       ? -EINVAL
		       : path_resolve(call->connection, given, path, NULL);
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

/* Add child names from byte @offset of the whole list on, as far as they fit. *@nr_out: bytes
 * added; returns true if the list's end was reached. */
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
	head = (size_t)snprintf(reply, sizeof(reply), "%llu",
				(unsigned long long)node->generation) +
	       1;
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
		len += (size_t)snprintf(text + len, size - len, "%c%u",
					letters[permissions[i].bits & 3], permissions[i].domid) +
		       1;
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
		len = permissions_print(node->permissions, node->nr_permissions, text,
					sizeof(text));
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
		return special_set_perms(call,
					 special_find(call->connection->xenstored, strings[0]),
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
static int watch_lookup(struct call *call, char *path, const char **token_out,
			size_t *nr_hidden_out, struct watch **watch_out)
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

void message_serve(struct connection *connection, const struct xsd_sockmsg *header,
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
