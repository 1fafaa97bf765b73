/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A xenstore transaction: one snapshot to work on, committed whole or not at all.
 *
 * Owns: the snapshot, the list of what was looked at, the list of changes.
 * Trusts / does not trust: the owner is maybe a guest; what it may pile up is bounded.
 * Runs on: one thread; never blocks.
 * Must not know: messages, watches.
 */
#ifndef VBDISK_XENSTORED_TRANSACTION_H
#define VBDISK_XENSTORED_TRANSACTION_H

#include "loopback/xenstored-tree.h"

/* Nodes that a guest may touch in one transaction (C xenstored's default). */
#define TRANSACTION_QUOTA_NODES 1024u

struct transaction;

/* Start from @tree's present content, as @domid. NULL if there is no memory. */
struct transaction *transaction_start(const struct tree *tree, uint32_t domid);

/* Forget it all. NULL is fine. */
void transaction_abort(struct transaction *transaction);

/* The tree as the transaction sees it. */
const struct tree *transaction_view(const struct transaction *transaction);

/* Note that @path was looked at: what it was decides over the commit. 0, -ENOSPC, -ENOMEM. */
int transaction_look(struct transaction *transaction, const char *path);

/* Apply @change to the transaction's view. As tree_apply(). */
int transaction_apply(struct transaction *transaction, const struct tree_change *change);

/* Bring the changes to *@tree, as one. 0: *@before_out is the tree before, the caller's to free.
 * -EAGAIN: something that was read or written has changed since the start; -ENOSPC, -ENOMEM:
 * nothing changed either. */
int transaction_commit(struct transaction *transaction, struct tree **tree,
		       struct tree **before_out);

/* Call @changed once for each path that the transaction changed, in the order of first change;
 * @removed: the node was removed, whatever came after. */
void transaction_changes(const struct transaction *transaction,
			 void (*changed)(void *arg, const char *path, bool removed), void *arg);

#endif
