/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The inside of the xenstore server, shared by its files.
 *
 * Owns: the records of connections, watches, open transactions and sockets.
 * Trusts / does not trust: what a connection sent is unchecked.
 * Runs on: the host's one thread; nothing here blocks.
 * Must not know: grants, event channels, blkif.
 *
 * Files: xenstored-wire.c (sockets and bytes), xenstored-serve.c (requests), xenstored-watch.c.
 *
 * While a message is served, events for any connection are queued; connections found broken are
 * only marked, and closed when the message is done, so that no list changes under a walk.
 */
#ifndef VBDISK_XENSTORED_INTERNAL_H
#define VBDISK_XENSTORED_INTERNAL_H

#include <errno.h> /* xs_wire.h has its table of errors only with it */
#include <stdint.h>
#include <sys/queue.h>
#include <sys/un.h>
#include <xen/io/xs_wire.h>

#include "backend/log.h"
#include "loopback/xenstored-transaction.h"
#include "loopback/xenstored-tree.h"
#include "loopback/xenstored-wire.h"

#define MESSAGE_MAX_BYTES (sizeof(struct xsd_sockmsg) + XENSTORE_PAYLOAD_MAX)

struct watch {
	TAILQ_ENTRY(watch) link;
	char *path; /* absolute, or "@..." */
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
	struct log_limit malformed_limit, slow_limit, accept_limit;
};

/* --- xenstored-wire.c --- */

/* Queue bytes for the connection; one that has too many waiting becomes broken. */
void connection_queue(struct connection *connection, const void *bytes, size_t len);

/* Send what is queued as far as it goes now. */
void connection_flush(struct connection *connection);

/* The socket of a domain, or NULL. */
struct listener *listener_find(struct xenstored *xenstored, uint32_t domid);

/* --- xenstored-watch.c --- */

/* Queue one event of @watch about @path, which is at or below the watched path. */
void watch_send(struct connection *connection, const struct watch *watch, const char *path);

/* Tell every watch about @path, which changed from @before to @after, if its owner may know. */
void watches_fire(struct xenstored *xenstored, const struct tree *before, const struct tree *after,
		  const char *path, bool removed);

/* "@introduceDomain" or "@releaseDomain", or NULL; and tell who watches it. */
struct special *special_find(struct xenstored *xenstored, const char *name);
void special_fire(struct xenstored *xenstored, const char *name);

void watch_free(struct connection *connection, struct watch *watch);
void watches_free(struct connection *connection);

/* --- xenstored-serve.c --- */

/* Serve one request: exactly one answer is queued, events after it. */
void message_serve(struct connection *connection, const struct xsd_sockmsg *header,
		   const char *payload);

/* Abort the connection's open transactions. */
void transactions_close(struct connection *connection);

#endif
