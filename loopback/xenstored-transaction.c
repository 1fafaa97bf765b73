// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A xenstore transaction: one snapshot to work on, committed whole or not at all.
 *
 * Owns: the snapshot, the list of what was looked at, the list of changes.
 * Trusts / does not trust: the owner is maybe a guest; what it may pile up is bounded.
 * Runs on: one thread; never blocks.
 * Must not know: messages, watches.
 *
 * A node counts as looked at when it was read, listed, written, created or removed, and so does the
 * parent of what was created or removed, because its list of children changed. If each of them is
 * in the current tree what it was in the snapshot, replaying the changes there gives what the
 * transaction saw.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "loopback/xenstored-transaction.h"

struct look {
	STAILQ_ENTRY(look) link;
	bool whole_subtree;
	char path[];
};

struct change {
	STAILQ_ENTRY(change) link;
	struct tree_change change; /* its pointers are ours */
	char *path;
	void *payload;
};

struct transaction {
	uint32_t domid;
	struct tree *base; /* at the start */
	struct tree *view; /* base plus the changes */
	unsigned nr_looks, nr_changes;
	STAILQ_HEAD(, look) looks;
	STAILQ_HEAD(, change) changes;
};

struct transaction *transaction_start(const struct tree *tree, uint32_t domid)
{
	struct transaction *transaction = calloc(1, sizeof(*transaction));

	if (!transaction)
		return NULL;
	STAILQ_INIT(&transaction->looks);
	STAILQ_INIT(&transaction->changes);
	transaction->domid = domid;
	transaction->base = tree_snapshot(tree);
	transaction->view = tree_snapshot(tree);
	if (!transaction->base || !transaction->view) {
		transaction_abort(transaction);
		return NULL;
	}
	return transaction;
}

static void change_free(struct change *change)
{
	if (!change)
		return;
	free(change->path);
	free(change->payload);
	free(change);
}

void transaction_abort(struct transaction *transaction)
{
	struct look *look;
	struct change *change;

	if (!transaction)
		return;
	while ((look = STAILQ_FIRST(&transaction->looks))) {
		STAILQ_REMOVE_HEAD(&transaction->looks, link);
		free(look);
	}
	while ((change = STAILQ_FIRST(&transaction->changes))) {
		STAILQ_REMOVE_HEAD(&transaction->changes, link);
		change_free(change);
	}
	tree_free(transaction->view);
	tree_free(transaction->base);
	free(transaction);
}

const struct tree *transaction_view(const struct transaction *transaction)
{
	return transaction->view;
}

static int look_add(struct transaction *transaction, const char *path, bool whole_subtree)
{
	struct look *look;
	size_t size = strlen(path) + 1;

	STAILQ_FOREACH(look, &transaction->looks, link) {
		if (strcmp(look->path, path))
			continue;
		look->whole_subtree |= whole_subtree;
		return 0;
	}
	if (transaction->domid && transaction->nr_looks >= TRANSACTION_QUOTA_NODES)
		return -ENOSPC;
	look = malloc(sizeof(*look) + size);
	if (!look)
		return -ENOMEM;
	look->whole_subtree = whole_subtree;
	memcpy(look->path, path, size);
	STAILQ_INSERT_TAIL(&transaction->looks, look, link);
	transaction->nr_looks++;
	return 0;
}

int transaction_look(struct transaction *transaction, const char *path)
{
	return look_add(transaction, path, false);
}

static struct change *change_copy(const struct tree_change *from)
{
	struct change *change = calloc(1, sizeof(*change));
	size_t payload_len = from->kind == TREE_CHANGE_PERMISSIONS
				     ? from->nr_permissions * sizeof(from->permissions[0])
				     : from->value_len;

	if (!change)
		return NULL;
	change->path = strdup(from->path);
	change->payload = malloc(payload_len + 1);
	if (!change->path || !change->payload) {
		change_free(change);
		return NULL;
	}
	change->change = *from;
	change->change.path = change->path;
	if (from->kind == TREE_CHANGE_PERMISSIONS) {
		memcpy(change->payload, from->permissions, payload_len);
		change->change.permissions = change->payload;
	} else {
		if (payload_len)
			memcpy(change->payload, from->value, payload_len);
		change->change.value = change->payload;
	}
	return change;
}

/* Note the nodes that @change is about to touch. */
static int change_look(struct transaction *transaction, const struct tree_change *change)
{
	bool exists = tree_find(transaction->view, change->path) != NULL;
	char *ancestor;
	int err = look_add(transaction, change->path, change->kind == TREE_CHANGE_REMOVE);

	if (err || exists != (change->kind == TREE_CHANGE_REMOVE))
		return err;
	ancestor = malloc(strlen(change->path) + 2);
	if (!ancestor)
		return -ENOMEM;
	tree_ancestor(transaction->view, change->path, ancestor);
	err = look_add(transaction, ancestor, false);
	free(ancestor);
	return err;
}

int transaction_apply(struct transaction *transaction, const struct tree_change *change)
{
	struct change *copy;
	bool changed;
	int err;

	/* A guest that writes one node for ever must not fill our memory either. */
	if (transaction->domid && transaction->nr_changes >= 4 * TRANSACTION_QUOTA_NODES)
		return -ENOSPC;
	err = change_look(transaction, change);
	if (err)
		return err;
	copy = change_copy(change);
	if (!copy)
		return -ENOMEM;
	err = tree_apply(transaction->view, transaction->domid, change, &changed);
	if (err || !changed) {
		change_free(copy);
		return err;
	}
	STAILQ_INSERT_TAIL(&transaction->changes, copy, link);
	transaction->nr_changes++;
	return 0;
}

static bool subtree_same(const struct tree_node *one, const struct tree_node *other)
{
	if (one == other)
		return true;
	if (!one || !other || one->generation != other->generation)
		return false;
	/* The same generation means the same names, in the same order. */
	for (unsigned i = 0; i < one->nr_children; i++)
		if (!subtree_same(one->children[i], other->children[i]))
			return false;
	return true;
}

static bool look_holds(const struct transaction *transaction, const struct look *look,
		       const struct tree *tree)
{
	const struct tree_node *then = tree_find(transaction->base, look->path);
	const struct tree_node *now = tree_find(tree, look->path);

	if (look->whole_subtree)
		return subtree_same(then, now);
	return (then ? then->generation : 0) == (now ? now->generation : 0);
}

int transaction_commit(struct transaction *transaction, struct tree **tree,
		       struct tree **before_out)
{
	struct tree *after;
	const struct look *look;
	const struct change *change;
	bool changed;
	int err;

	STAILQ_FOREACH(look, &transaction->looks, link)
		if (!look_holds(transaction, look, *tree))
			return -EAGAIN;
	after = tree_snapshot(*tree);
	if (!after)
		return -ENOMEM;
	STAILQ_FOREACH(change, &transaction->changes, link) {
		err = tree_apply(after, transaction->domid, &change->change, &changed);
		if (err) {
			tree_free(after);
			return err;
		}
	}
	*before_out = *tree;
	*tree = after;
	return 0;
}

void transaction_changes(const struct transaction *transaction,
			 void (*changed)(void *arg, const char *path, bool removed), void *arg)
{
	const struct change *change, *other;

	STAILQ_FOREACH(change, &transaction->changes, link) {
		const struct change *first = NULL;
		bool removed = false;

		STAILQ_FOREACH(other, &transaction->changes, link) {
			if (strcmp(other->path, change->path))
				continue;
			if (!first)
				first = other;
			removed |= other->change.kind == TREE_CHANGE_REMOVE;
		}
		if (first == change)
			changed(arg, change->path, removed);
	}
}
