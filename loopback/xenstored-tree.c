// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tree of xenstore nodes: values, permissions, quotas; a snapshot costs nothing.
 *
 * Owns: nodes and their reference counts.
 * Trusts / does not trust: paths are valid and absolute; everything else comes from guests.
 * Runs on: one thread; never blocks.
 * Must not know: messages, connections, watches.
 *
 * A node is changed in place only if it belongs to one tree alone. That is known on the way down: a
 * node reached through owned nodes and with one reference is owned; any other is copied first.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loopback/xenstored-tree.h"

struct tree_owner {
	uint32_t domid;
	unsigned nr_nodes;
};

struct tree {
	struct tree_node *root;
	struct tree_owner *owners; /* domain 0 is not counted */
	unsigned nr_owners;
	unsigned nr_nodes;
};

static uint64_t next_generation = 1;

/* --- Nodes --- */

static void node_put(struct tree_node *node)
{
	if (--node->nr_refs)
		return;
	for (unsigned i = 0; i < node->nr_children; i++)
		node_put(node->children[i]);
	free(node->children);
	free(node->permissions);
	free(node->value);
	free(node->name);
	free(node);
}

/* memdup() that gives a pointer for 0 bytes, too: NULL is out of memory. */
static void *bytes_copy(const void *bytes, size_t len)
{
	void *copy = malloc(len ? len : 1);

	if (copy && len)
		memcpy(copy, bytes, len);
	return copy;
}

static struct tree_node *node_create(const char *name, size_t name_len,
				     const struct tree_permission *permissions,
				     unsigned nr_permissions, const void *value, size_t value_len)
{
	struct tree_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->nr_refs = 1;
	node->generation = next_generation++;
	node->name = malloc(name_len + 1);
	node->permissions = bytes_copy(permissions, nr_permissions * sizeof(permissions[0]));
	node->nr_permissions = nr_permissions;
	node->value = bytes_copy(value, value_len);
	node->value_len = value_len;
	if (!node->name || !node->permissions || !node->value) {
		node_put(node);
		return NULL;
	}
	memcpy(node->name, name, name_len);
	node->name[name_len] = '\0';
	return node;
}

/* The node in *@slot, made the tree's own. NULL if there is no memory; nothing changed then. */
static struct tree_node *node_own(struct tree_node **slot)
{
	struct tree_node *node = *slot, *copy;

	if (node->nr_refs == 1)
		return node;
	copy = node_create(node->name, strlen(node->name), node->permissions, node->nr_permissions,
			   node->value, node->value_len);
	if (!copy)
		return NULL;
	copy->generation = node->generation;
	copy->children = malloc((node->nr_children + 1) * sizeof(copy->children[0]));
	if (!copy->children) {
		node_put(copy);
		return NULL;
	}
	for (unsigned i = 0; i < node->nr_children; i++) {
		copy->children[i] = node->children[i];
		copy->children[i]->nr_refs++;
	}
	copy->nr_children = node->nr_children;
	node->nr_refs--;
	*slot = copy;
	return copy;
}

/* Where @name is among the children, or where it would be. */
static bool child_find(const struct tree_node *node, const char *name, size_t name_len,
		       unsigned *index_out)
{
	unsigned low = 0, high = node->nr_children;

	while (low < high) {
		unsigned middle = (low + high) / 2;
		const char *other = node->children[middle]->name;
		int order = strncmp(other, name, name_len);

		if (!order && other[name_len])
			order = 1;
		if (!order) {
			*index_out = middle;
			return true;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*index_out = low;
	return false;
}

/* Take the first name off *@path ("a/b" -> "a", "b"). False at its end. */
static bool path_next(const char **path, const char **name_out, size_t *len_out)
{
	if (**path == '/')
		(*path)++;
	if (!**path)
		return false;
	*name_out = *path;
	*len_out = strcspn(*path, "/");
	*path += *len_out;
	return true;
}

/* Walk down as far as nodes exist; *@rest_out is what is left of @path, "" if all was found. */
static const struct tree_node *path_walk(const struct tree *tree, const char *path,
					 const char **rest_out)
{
	const struct tree_node *node = tree->root;
	const char *rest = path, *name;
	size_t len;
	unsigned index;

	*rest_out = path;
	while (path_next(&rest, &name, &len)) {
		if (!child_find(node, name, len, &index))
			return node;
		node = node->children[index];
		*rest_out = rest;
	}
	*rest_out = "";
	return node;
}

/* As path_walk(), and every node on the way becomes the tree's own. NULL if there is no memory. */
static struct tree_node *path_own(struct tree *tree, const char *path)
{
	struct tree_node *node = node_own(&tree->root);
	const char *name;
	size_t len;
	unsigned index;

	while (node && path_next(&path, &name, &len) && child_find(node, name, len, &index))
		node = node_own(&node->children[index]);
	return node;
}

/* --- Counting --- */

static struct tree_owner *owner_find(const struct tree *tree, uint32_t domid)
{
	for (unsigned i = 0; i < tree->nr_owners; i++)
		if (tree->owners[i].domid == domid)
			return &tree->owners[i];
	return NULL;
}

/* Make sure that @domid can be counted. */
static int owner_add(struct tree *tree, uint32_t domid)
{
	struct tree_owner *owners;

	if (!domid || owner_find(tree, domid))
		return 0;
	owners = realloc(tree->owners, (tree->nr_owners + 1) * sizeof(owners[0]));
	if (!owners)
		return -ENOMEM;
	tree->owners = owners;
	owners[tree->nr_owners++] = (struct tree_owner){.domid = domid};
	return 0;
}

static void owner_count(struct tree *tree, uint32_t domid, int difference)
{
	struct tree_owner *owner = domid ? owner_find(tree, domid) : NULL;

	if (owner)
		owner->nr_nodes += (unsigned)difference;
}

static void subtree_uncount(struct tree *tree, const struct tree_node *node)
{
	tree->nr_nodes--;
	owner_count(tree, node->permissions[0].domid, -1);
	for (unsigned i = 0; i < node->nr_children; i++)
		subtree_uncount(tree, node->children[i]);
}

unsigned tree_nr_nodes_of(const struct tree *tree, uint32_t domid)
{
	const struct tree_owner *owner = owner_find(tree, domid);

	return owner ? owner->nr_nodes : 0;
}

unsigned tree_nr_nodes(const struct tree *tree)
{
	return tree->nr_nodes;
}

/* --- Trees --- */

struct tree *tree_create(void)
{
	struct tree_permission permission = {.domid = 0, .bits = 0};
	struct tree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return NULL;
	tree->root = node_create("", 0, &permission, 1, NULL, 0);
	if (!tree->root) {
		free(tree);
		return NULL;
	}
	tree->nr_nodes = 1;
	return tree;
}

struct tree *tree_snapshot(const struct tree *tree)
{
	struct tree *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *tree;
	copy->owners = bytes_copy(tree->owners, tree->nr_owners * sizeof(tree->owners[0]));
	if (!copy->owners) {
		free(copy);
		return NULL;
	}
	copy->root->nr_refs++;
	return copy;
}

void tree_free(struct tree *tree)
{
	if (!tree)
		return;
	node_put(tree->root);
	free(tree->owners);
	free(tree);
}

/* --- Looking --- */

unsigned tree_permission_bits(const struct tree_permission *permissions, unsigned nr,
			      uint32_t domid)
{
	if (!domid || permissions[0].domid == domid)
		return TREE_READ | TREE_WRITE;
	for (unsigned i = 1; i < nr; i++)
		if (permissions[i].domid == domid)
			return permissions[i].bits;
	return permissions[0].bits;
}

static bool node_permits(const struct tree_node *node, uint32_t domid, unsigned bits)
{
	return (tree_permission_bits(node->permissions, node->nr_permissions, domid) & bits) ==
	       bits;
}

const struct tree_node *tree_find(const struct tree *tree, const char *path)
{
	const char *rest;
	const struct tree_node *node = path_walk(tree, path, &rest);

	return *rest ? NULL : node;
}

int tree_get(const struct tree *tree, uint32_t domid, const char *path, unsigned bits,
	     const struct tree_node **node_out)
{
	const char *rest;
	const struct tree_node *node = path_walk(tree, path, &rest);

	/* Whether something is missing below a secret node is part of the secret. */
	if (!node_permits(node, domid, bits))
		return -EACCES;
	if (*rest)
		return -ENOENT;
	*node_out = node;
	return 0;
}

void tree_ancestor(const struct tree *tree, const char *path, char *ancestor)
{
	const char *rest;
	size_t len = strlen(path);

	while (len > 1) {
		while (path[--len] != '/')
			;
		memcpy(ancestor, path, len);
		ancestor[len] = '\0';
		if (!len)
			break;
		path_walk(tree, ancestor, &rest);
		if (!*rest)
			return;
	}
	strcpy(ancestor, "/");
}

/* --- Changing --- */

/* Whether a node of this size is too much for a guest. */
static bool node_too_big(uint32_t domid, size_t bytes, unsigned nr_permissions)
{
	return domid &&
	       (bytes + nr_permissions * sizeof(struct tree_permission) > TREE_QUOTA_NODE_BYTES ||
		nr_permissions > TREE_QUOTA_PERMISSIONS);
}

static int child_insert(struct tree_node *parent, struct tree_node *child)
{
	struct tree_node **children;
	unsigned index;

	children = realloc(parent->children, (parent->nr_children + 1) * sizeof(children[0]));
	if (!children)
		return -ENOMEM;
	parent->children = children;
	child_find(parent, child->name, strlen(child->name), &index);
	memmove(&children[index + 1], &children[index],
		(parent->nr_children - index) * sizeof(children[0]));
	children[index] = child;
	parent->nr_children++;
	parent->generation = next_generation++;
	return 0;
}

/* Create what is missing of @path; its last node gets the value, those above are empty. */
static int nodes_create(struct tree *tree, uint32_t domid, const char *path, const char *rest,
			const void *value, size_t value_len)
{
	struct tree_node *parent = path_own(tree, path);
	struct tree_node *top = NULL, *last = NULL;
	struct tree_permission *permissions;
	const char *name;
	unsigned nr_new = 0;
	size_t len;
	int err;

	if (!parent)
		return -ENOMEM;
	/* Permissions come from above; a guest owns what it creates. */
	permissions =
		bytes_copy(parent->permissions, parent->nr_permissions * sizeof(permissions[0]));
	if (!permissions)
		return -ENOMEM;
	if (domid)
		permissions[0].domid = domid;
	err = owner_add(tree, permissions[0].domid);
	if (err)
		goto out_free;

	/* The new branch is made apart and attached in one step. */
	while (path_next(&rest, &name, &len)) {
		struct tree_node *node = node_create(name, len, permissions, parent->nr_permissions,
						     *rest ? NULL : value, *rest ? 0 : value_len);

		err = node ? 0 : -ENOMEM;
		if (node && last) {
			err = child_insert(last, node);
			if (err)
				node_put(node);
		}
		if (err)
			goto out_put;
		if (!top)
			top = node;
		last = node;
		nr_new++;
	}
	err = -ENOSPC;
	if (domid && tree_nr_nodes_of(tree, domid) + nr_new > TREE_QUOTA_NODES)
		goto out_put;
	err = child_insert(parent, top);
	if (err)
		goto out_put;
	owner_count(tree, permissions[0].domid, (int)nr_new);
	tree->nr_nodes += nr_new;
	goto out_free;

out_put:
	if (top)
		node_put(top);
out_free:
	free(permissions);
	return err;
}

static int node_write(struct tree *tree, const char *path, const void *value, size_t value_len)
{
	struct tree_node *node = path_own(tree, path);
	void *copy = bytes_copy(value, value_len);

	if (!node || !copy) {
		free(copy);
		return -ENOMEM;
	}
	free(node->value);
	node->value = copy;
	node->value_len = value_len;
	node->generation = next_generation++;
	return 0;
}

static int node_remove(struct tree *tree, const char *path)
{
	size_t len = strlen(path);
	char *parent_path = malloc(len + 1);
	struct tree_node *parent;
	unsigned index;
	const char *name = strrchr(path, '/') + 1;

	if (!parent_path)
		return -ENOMEM;
	memcpy(parent_path, path, (size_t)(name - path));
	parent_path[name - path] = '\0';
	parent = path_own(tree, parent_path);
	free(parent_path);
	if (!parent)
		return -ENOMEM;
	if (!child_find(parent, name, strlen(name), &index))
		return -ENOENT;
	subtree_uncount(tree, parent->children[index]);
	node_put(parent->children[index]);
	parent->nr_children--;
	memmove(&parent->children[index], &parent->children[index + 1],
		(parent->nr_children - index) * sizeof(parent->children[0]));
	parent->generation = next_generation++;
	return 0;
}

static int node_set_permissions(struct tree *tree, uint32_t domid, const char *path,
				const struct tree_permission *permissions, unsigned nr)
{
	const struct tree_node *old = tree_find(tree, path);
	struct tree_node *node;
	struct tree_permission *copy;
	int err;

	if (domid && old->permissions[0].domid != domid)
		return -EACCES; /* who may write may not grant */
	if (domid && permissions[0].domid != domid)
		return -EPERM; /* a guest cannot give its nodes away, quota and all */
	if (node_too_big(domid, old->value_len, nr))
		return -ENOSPC;
	err = owner_add(tree, permissions[0].domid);
	if (err)
		return err;
	node = path_own(tree, path);
	copy = bytes_copy(permissions, nr * sizeof(permissions[0]));
	if (!node || !copy) {
		free(copy);
		return -ENOMEM;
	}
	owner_count(tree, node->permissions[0].domid, -1);
	owner_count(tree, permissions[0].domid, 1);
	free(node->permissions);
	node->permissions = copy;
	node->nr_permissions = nr;
	node->generation = next_generation++;
	return 0;
}

int tree_apply(struct tree *tree, uint32_t domid, const struct tree_change *change,
	       bool *changed_out)
{
	const char *rest;
	const struct tree_node *node = path_walk(tree, change->path, &rest);

	*changed_out = true;
	if (!node_permits(node, domid, TREE_WRITE))
		return -EACCES;
	switch (change->kind) {
	case TREE_CHANGE_WRITE:
		if (node_too_big(domid, change->value_len, node->nr_permissions))
			return -ENOSPC;
		if (*rest)
			return nodes_create(tree, domid, change->path, rest, change->value,
					    change->value_len);
		return node_write(tree, change->path, change->value, change->value_len);
	case TREE_CHANGE_MKDIR:
		if (*rest)
			return nodes_create(tree, domid, change->path, rest, NULL, 0);
		*changed_out = false;
		return 0;
	case TREE_CHANGE_REMOVE:
		if (!strcmp(change->path, "/"))
			return -EINVAL;
		if (!*rest)
			return node_remove(tree, change->path);
		/* Gone already: fine if its directory is there (as C xenstored has it). */
		*changed_out = false;
		return strchr(rest + 1, '/') ? -ENOENT : 0;
	case TREE_CHANGE_PERMISSIONS:
		if (*rest)
			return -ENOENT;
		return node_set_permissions(tree, domid, change->path, change->permissions,
					    change->nr_permissions);
	}
	return -EINVAL;
}
