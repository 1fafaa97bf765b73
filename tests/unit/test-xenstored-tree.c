// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The xenstore tree as a pure module: nodes, permissions, quotas, snapshots, transactions.
 *
 * Owns: nothing. Trusts: nothing. Runs on: the test. Must not know: messages.
 */
#include "config.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "loopback/xenstored-transaction.h"
#include "loopback/xenstored-tree.h"

static int apply(struct tree *tree, uint32_t domid, const struct tree_change *change)
{
	bool changed;

	return tree_apply(tree, domid, change, &changed);
}

static struct tree_change writing(const char *path, const char *value)
{
	return (struct tree_change){.kind = TREE_CHANGE_WRITE,
				    .path = path,
				    .value = value,
				    .value_len = strlen(value)};
}

static int put(struct tree *tree, uint32_t domid, const char *path, const char *value)
{
	struct tree_change change = writing(path, value);

	return apply(tree, domid, &change);
}

static int take(struct tree *tree, uint32_t domid, const char *path)
{
	struct tree_change change = {.kind = TREE_CHANGE_REMOVE, .path = path};

	return apply(tree, domid, &change);
}

static int permit(struct tree *tree, uint32_t domid, const char *path, uint32_t owner,
		  uint32_t other, uint32_t bits)
{
	struct tree_permission permissions[] = {{owner, 0}, {other, bits}};
	struct tree_change change = {
		.kind = TREE_CHANGE_PERMISSIONS,
		.path = path,
		.permissions = permissions,
		.nr_permissions = 2,
	};

	return apply(tree, domid, &change);
}

static void assert_value(const struct tree *tree, const char *path, const char *value)
{
	const struct tree_node *node = tree_find(tree, path);

	assert_non_null(node);
	assert_int_equal(node->value_len, strlen(value));
	assert_memory_equal(node->value, value, strlen(value));
}

static void test_write_read_remove(void **state)
{
	struct tree *tree = tree_create();
	const struct tree_node *node;

	(void)state;
	assert_int_equal(put(tree, 0, "/a/b/c", "one"), 0);
	assert_int_equal(put(tree, 0, "/a/b/c", "two"), 0);
	assert_int_equal(put(tree, 0, "/a/b/bb", ""), 0);
	assert_value(tree, "/a/b/c", "two");
	assert_value(tree, "/a/b", "");
	assert_null(tree_find(tree, "/a/b/cc"));
	assert_null(tree_find(tree, "/a/bb"));
	assert_int_equal(tree_get(tree, 0, "/a/x/y", TREE_READ, &node), -ENOENT);
	node = tree_find(tree, "/a/b");
	assert_int_equal(node->nr_children, 2);
	assert_string_equal(node->children[0]->name, "bb");
	assert_string_equal(node->children[1]->name, "c");
	assert_int_equal(tree_nr_nodes(tree), 5);

	assert_int_equal(take(tree, 0, "/a/b"), 0);
	assert_null(tree_find(tree, "/a/b/c"));
	assert_int_equal(tree_nr_nodes(tree), 2);
	/* Already gone is fine, as long as its directory is there. */
	assert_int_equal(take(tree, 0, "/a/b"), 0);
	assert_int_equal(take(tree, 0, "/a/b/c"), -ENOENT);
	assert_int_equal(take(tree, 0, "/"), -EINVAL);
	tree_free(tree);
}

static void test_mkdir_keeps_value(void **state)
{
	struct tree *tree = tree_create();
	struct tree_change change = {.kind = TREE_CHANGE_MKDIR, .path = "/a"};
	bool changed;

	(void)state;
	assert_int_equal(put(tree, 0, "/a", "v"), 0);
	assert_int_equal(tree_apply(tree, 0, &change, &changed), 0);
	assert_false(changed);
	assert_value(tree, "/a", "v");
	tree_free(tree);
}

static void test_ancestor(void **state)
{
	struct tree *tree = tree_create();
	char ancestor[32];

	(void)state;
	assert_int_equal(put(tree, 0, "/a/b", ""), 0);
	tree_ancestor(tree, "/a/b/c/d", ancestor);
	assert_string_equal(ancestor, "/a/b");
	tree_ancestor(tree, "/a/b", ancestor);
	assert_string_equal(ancestor, "/a");
	tree_ancestor(tree, "/x", ancestor);
	assert_string_equal(ancestor, "/");
	tree_ancestor(tree, "/", ancestor);
	assert_string_equal(ancestor, "/");
	tree_free(tree);
}

static void test_permissions(void **state)
{
	struct tree *tree = tree_create();
	const struct tree_node *node;

	(void)state;
	assert_int_equal(put(tree, 0, "/be", "x"), 0);
	assert_int_equal(permit(tree, 0, "/be", 0, 1, TREE_READ), 0);
	assert_int_equal(put(tree, 0, "/fe", "x"), 0);
	assert_int_equal(permit(tree, 0, "/fe", 1, 2, TREE_READ), 0);

	/* Read only for 1, nothing for 2. */
	assert_int_equal(tree_get(tree, 1, "/be", TREE_READ, &node), 0);
	assert_int_equal(tree_get(tree, 2, "/be", TREE_READ, &node), -EACCES);
	assert_int_equal(put(tree, 1, "/be", "y"), -EACCES);
	assert_int_equal(put(tree, 1, "/be/new", "y"), -EACCES);
	assert_int_equal(take(tree, 1, "/be"), -EACCES);
	/* Missing nodes say so only to those who may look. */
	assert_int_equal(tree_get(tree, 1, "/be/no/such", TREE_READ, &node), -ENOENT);
	assert_int_equal(tree_get(tree, 2, "/be/no/such", TREE_READ, &node), -EACCES);
	assert_int_equal(tree_get(tree, 1, "/no", TREE_READ, &node), -EACCES);

	/* The owner may do all; children inherit, and belong to who made them. */
	assert_int_equal(put(tree, 1, "/fe/ring/ref", "8"), 0);
	node = tree_find(tree, "/fe/ring");
	assert_int_equal(node->nr_permissions, 2);
	assert_int_equal(node->permissions[0].domid, 1);
	assert_int_equal(node->permissions[1].domid, 2);
	assert_int_equal(node->permissions[1].bits, TREE_READ);
	assert_int_equal(tree_get(tree, 2, "/fe/ring/ref", TREE_READ, &node), 0);
	assert_int_equal(tree_nr_nodes_of(tree, 1), 3);
	/* What domain 0 creates below belongs to the parent's owner. */
	assert_int_equal(put(tree, 0, "/fe/by-dom0", ""), 0);
	assert_int_equal(tree_find(tree, "/fe/by-dom0")->permissions[0].domid, 1);
	assert_int_equal(tree_nr_nodes_of(tree, 1), 4);

	/* A guest neither gives its nodes away nor changes others'. */
	assert_int_equal(permit(tree, 1, "/fe", 0, 1, TREE_READ), -EPERM);
	assert_int_equal(permit(tree, 1, "/be", 1, 0, TREE_READ), -EACCES);
	assert_int_equal(permit(tree, 1, "/fe", 1, 3, TREE_READ | TREE_WRITE), 0);
	/* Who may write need not be the owner, and then may not grant. */
	assert_int_equal(put(tree, 3, "/fe", "z"), 0);
	assert_int_equal(permit(tree, 3, "/fe", 3, 1, 0), -EACCES);
	assert_int_equal(put(tree, 3, "/fe/of3", ""), 0);
	assert_int_equal(tree_find(tree, "/fe/of3")->permissions[0].domid, 3);

	assert_int_equal(take(tree, 0, "/fe"), 0);
	assert_int_equal(tree_nr_nodes_of(tree, 1), 0);
	assert_int_equal(tree_nr_nodes_of(tree, 3), 0);
	tree_free(tree);
}

static void test_quotas(void **state)
{
	struct tree *tree = tree_create();
	char path[64], big[TREE_QUOTA_NODE_BYTES + 1];
	unsigned nr = 0;

	(void)state;
	assert_int_equal(put(tree, 0, "/g", ""), 0);
	assert_int_equal(permit(tree, 0, "/g", 1, 0, TREE_READ), 0);
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(put(tree, 1, "/g/big", big), -ENOSPC);
	assert_int_equal(put(tree, 0, "/g/big", big), 0);
	for (;; nr++) {
		snprintf(path, sizeof(path), "/g/%u/x", nr);
		if (put(tree, 1, path, ""))
			break;
	}
	assert_int_equal(put(tree, 1, path, ""), -ENOSPC);
	/* All or nothing: not half of the path. */
	snprintf(path, sizeof(path), "/g/%u", nr);
	assert_null(tree_find(tree, path));
	assert_true(tree_nr_nodes_of(tree, 1) <= TREE_QUOTA_NODES);
	assert_true(tree_nr_nodes_of(tree, 1) >= TREE_QUOTA_NODES - 1);
	assert_int_equal(take(tree, 1, "/g/0"), 0);
	assert_int_equal(put(tree, 1, path, ""), 0);
	tree_free(tree);
}

static void test_snapshot(void **state)
{
	struct tree *tree = tree_create(), *before;

	(void)state;
	assert_int_equal(put(tree, 0, "/a/b", "1"), 0);
	assert_int_equal(put(tree, 0, "/a/c", "1"), 0);
	before = tree_snapshot(tree);
	assert_int_equal(put(tree, 0, "/a/b", "2"), 0);
	assert_int_equal(take(tree, 0, "/a/c"), 0);
	assert_int_equal(put(tree, 0, "/a/d/e", "2"), 0);
	assert_int_equal(permit(tree, 0, "/a", 1, 0, 0), 0);
	assert_value(before, "/a/b", "1");
	assert_value(before, "/a/c", "1");
	assert_null(tree_find(before, "/a/d"));
	assert_int_equal(tree_find(before, "/a")->permissions[0].domid, 0);
	assert_int_equal(tree_nr_nodes(before), 4);
	tree_free(tree);
	assert_value(before, "/a/b", "1");
	tree_free(before);
}

/* --- Transactions --- */

static int transaction_put(struct transaction *transaction, const char *path, const char *value)
{
	struct tree_change change = writing(path, value);

	return transaction_apply(transaction, &change);
}

static int transaction_take(struct transaction *transaction, const char *path)
{
	struct tree_change change = {.kind = TREE_CHANGE_REMOVE, .path = path};

	return transaction_apply(transaction, &change);
}

static int commit(struct transaction *transaction, struct tree **tree)
{
	struct tree *before;
	int err = transaction_commit(transaction, tree, &before);

	if (!err)
		tree_free(before);
	transaction_abort(transaction);
	return err;
}

static void test_transaction_applies(void **state)
{
	struct tree *tree = tree_create();
	struct transaction *transaction;

	(void)state;
	assert_int_equal(put(tree, 0, "/a", "1"), 0);
	assert_int_equal(put(tree, 0, "/z", "1"), 0);
	transaction = transaction_start(tree, 0);
	assert_int_equal(transaction_put(transaction, "/a", "2"), 0);
	assert_int_equal(transaction_put(transaction, "/b/c", "2"), 0);
	assert_value(transaction_view(transaction), "/a", "2");
	assert_value(tree, "/a", "1");
	assert_null(tree_find(tree, "/b"));
	/* Somebody else's work elsewhere is no conflict, and is kept. */
	assert_int_equal(put(tree, 0, "/z", "2"), 0);
	assert_value(transaction_view(transaction), "/z", "1");
	assert_int_equal(commit(transaction, &tree), 0);
	assert_value(tree, "/a", "2");
	assert_value(tree, "/b/c", "2");
	assert_value(tree, "/z", "2");
	tree_free(tree);
}

static void test_transaction_conflicts(void **state)
{
	/* What a transaction does, and what somebody else does meanwhile: conflict or not. */
	static const struct {
		const char *look, *put, *take, *other_put, *other_take;
		int expected;
	} rows[] = {
		{.look = "/a", .other_put = "/a", .expected = -EAGAIN},
		{.look = "/a", .other_put = "/q", .expected = 0},
		{.look = "/no", .other_put = "/no", .expected = -EAGAIN},
		{.look = "/no/no", .other_put = "/no/no", .expected = -EAGAIN},
		{.look = "/a", .other_put = "/a/new", .expected = -EAGAIN}, /* list of children */
		{.look = "/a", .other_put = "/a/old", .expected = 0},
		{.look = "/a/old", .other_take = "/a", .expected = -EAGAIN},
		{.put = "/a", .other_put = "/a", .expected = -EAGAIN},
		{.put = "/a/new", .other_put = "/a/new", .expected = -EAGAIN},
		{.put = "/a/new", .other_put = "/a/new2", .expected = -EAGAIN},
		{.put = "/a/old", .other_put = "/a/new", .expected = 0},
		{.put = "/a/old", .other_take = "/a/old", .expected = -EAGAIN},
		{.take = "/a", .other_put = "/a/old", .expected = -EAGAIN}, /* subtree */
		{.take = "/a", .other_put = "/q", .expected = 0},
		{.take = "/a", .other_take = "/a", .expected = -EAGAIN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tree *tree = tree_create();
		struct transaction *transaction;
		int err;

		assert_int_equal(put(tree, 0, "/a/old", "1"), 0);
		assert_int_equal(put(tree, 0, "/q", "1"), 0);
		transaction = transaction_start(tree, 0);
		if (rows[i].look)
			assert_int_equal(transaction_look(transaction, rows[i].look), 0);
		if (rows[i].put)
			assert_int_equal(transaction_put(transaction, rows[i].put, "t"), 0);
		if (rows[i].take)
			assert_int_equal(transaction_take(transaction, rows[i].take), 0);
		if (rows[i].other_put)
			assert_int_equal(put(tree, 0, rows[i].other_put, "o"), 0);
		if (rows[i].other_take)
			assert_int_equal(take(tree, 0, rows[i].other_take), 0);
		err = commit(transaction, &tree);
		if (err != rows[i].expected)
			fail_msg("row %zu: %d, not %d", i, err, rows[i].expected);
		tree_free(tree);
	}
}

static void change_note(void *arg, const char *path, bool removed)
{
	char *text = arg;

	strcat(text, path);
	strcat(text, removed ? "- " : " ");
}

static void test_transaction_changes(void **state)
{
	struct tree *tree = tree_create();
	struct transaction *transaction = transaction_start(tree, 0);
	char text[128] = "";

	(void)state;
	assert_int_equal(transaction_put(transaction, "/b", "1"), 0);
	assert_int_equal(transaction_put(transaction, "/a", "1"), 0);
	assert_int_equal(transaction_take(transaction, "/b"), 0);
	assert_int_equal(transaction_take(transaction, "/never"), 0);
	assert_int_equal(transaction_put(transaction, "/b", "2"), 0);
	transaction_changes(transaction, change_note, text);
	assert_string_equal(text, "/b- /a ");
	assert_int_equal(commit(transaction, &tree), 0);
	tree_free(tree);
}

static void test_transaction_quota(void **state)
{
	struct tree *tree = tree_create();
	struct transaction *transaction = transaction_start(tree, 1);
	char path[32];
	int err = 0;

	(void)state;
	for (unsigned i = 0; i <= TRANSACTION_QUOTA_NODES && !err; i++) {
		snprintf(path, sizeof(path), "/%u", i);
		err = transaction_look(transaction, path);
	}
	assert_int_equal(err, -ENOSPC);
	transaction_abort(transaction);
	tree_free(tree);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(test_write_read_remove),
		cmocka_unit_test(test_mkdir_keeps_value),
		cmocka_unit_test(test_ancestor),
		cmocka_unit_test(test_permissions),
		cmocka_unit_test(test_quotas),
		cmocka_unit_test(test_snapshot),
		cmocka_unit_test(test_transaction_applies),
		cmocka_unit_test(test_transaction_conflicts),
		cmocka_unit_test(test_transaction_changes),
		cmocka_unit_test(test_transaction_quota),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
