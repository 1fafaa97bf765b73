// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Watches of the xenstore server: who is told of which change.
 *
 * Owns: the rules by which a watch fires.
 * Trusts / does not trust: a watch shows its owner nothing that he could not read himself.
 * Runs on: the host's one thread; never blocks.
 * Must not know: requests, grants, event channels.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "loopback/xenstored-internal.h"

void watch_send(struct connection *connection, const struct watch *watch, const char *path)
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

void watches_fire(struct xenstored *xenstored, const struct tree *before, const struct tree *after,
		  const char *path, bool removed)
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

struct special *special_find(struct xenstored *xenstored, const char *name)
{
	for (size_t i = 0; i < 2; i++)
		if (!strcmp(xenstored->specials[i].name, name))
			return &xenstored->specials[i];
	return NULL;
}

void special_fire(struct xenstored *xenstored, const char *name)
{
	const struct special *special = special_find(xenstored, name);
	struct connection *connection;
	const struct watch *watch;

	LIST_FOREACH(connection, &xenstored->connections, link) {
		if (!(tree_permission_bits(special->permissions, special->nr_permissions,
					   connection->domid) &
		      TREE_READ))
			continue;
		TAILQ_FOREACH(watch, &connection->watches, link)
			if (!strcmp(watch->path, name))
				watch_send(connection, watch, name);
		connection_flush(connection);
	}
}

void watch_free(struct connection *connection, struct watch *watch)
{
	TAILQ_REMOVE(&connection->watches, watch, link);
	connection->nr_watches--;
	free(watch->path);
	free(watch->token);
	free(watch);
}

void watches_free(struct connection *connection)
{
	struct watch *watch;

	while ((watch = TAILQ_FIRST(&connection->watches)))
		watch_free(connection, watch);
}
