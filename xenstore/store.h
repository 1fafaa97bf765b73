/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A connection to xenstore: read, write, list, watch, transactions.
 *
 * Owns: the only use of libxenstore (store.c includes xenstore.h; nobody else does).
 * Trusts / does not trust: values may come from a guest; the number readers accept plain decimal in
 *   range and nothing else.
 * Runs on: the main thread of a process. Calls wait for xenstored's answer, which is a matter of
 *   microseconds on a healthy host; store_next_event() never waits.
 * Must not know: blkif, the state machine.
 *
 * The socket is found by libxenstore: $XENSTORED_PATH, else xenstored's socket, else /dev/xen/xenbus.
 * Paths are absolute ("/local/domain/0/...") or relative to the home of our own domain. A path that
 * does not fit STORE_PATH_MAX is -ENAMETOOLONG.
 */
#ifndef VBDISK_STORE_H
#define VBDISK_STORE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_PATH_MAX 3072  /* XENSTORE_ABS_PATH_MAX of xen/io/xs_wire.h */
#define STORE_VALUE_MAX 4096 /* XENSTORE_PAYLOAD_MAX */

struct store;

/* Connect. 0 or -errno. */
int store_open(struct store **store_out);

/* Disconnect, dropping watches and an open transaction. NULL is fine. */
void store_close(struct store *store);

/* Readable when an event may be there. Owned by the store. -errno on failure. */
int store_fd(struct store *store);

/* Read @path into @value, a text of at most @size bytes with its NUL. -ENOENT, -EACCES, -E2BIG if it
 * does not fit or contains a NUL, -errno. */
int store_read(struct store *store, const char *path, char *value, size_t size);

/* Read "@dir/@key". */
int store_read_key(struct store *store, const char *dir, const char *key, char *value, size_t size);

/* Plain decimal of at most @max: digits only, without sign, blank or prefix. 0 or -EINVAL. */
int store_number_parse(const char *text, uint64_t max, uint64_t *number_out);

/* Read "@dir/@key" as such a number. -EINVAL if it is anything else. */
int store_read_number(struct store *store, const char *dir, const char *key, uint64_t max,
		      uint64_t *number_out);

/* Write text to "@dir/@key", creating it. */
__attribute__((format(printf, 4, 5))) int store_write_key(struct store *store, const char *dir,
							  const char *key, const char *format, ...);

/* Create an empty directory node if it is not there. */
int store_mkdir(struct store *store, const char *path);

/* Remove @path and everything under it. -ENOENT if it is not there. */
int store_remove(struct store *store, const char *path);

/* Remove @path, and every directory between it and @top (which stays) that is empty then. A @path that is
 * not there is no error. */
int store_remove_empty_above(struct store *store, const char *path, const char *top);

/* Names under @path, in @names_out[0..*nr_out); freed by one free(*names_out). */
int store_list(struct store *store, const char *path, char ***names_out, unsigned *nr_out);

/* Let @path belong to @owner and be readable by @reader (both domain ids). */
int store_set_owner_reader(struct store *store, const char *path, unsigned owner, unsigned reader);

/* The absolute home of domain @domid ("/local/domain/N"), for building absolute paths. */
int store_domain_path(struct store *store, uint32_t domid, char *path, size_t size);

/* The number of the domain we run in; 0 also where no toolstack has written it yet (dom0, early). */
int store_own_domid(struct store *store, uint32_t *domid_out);

/* Fire events for @path and everything below; one fires at once. */
int store_watch(struct store *store, const char *path, const char *token);
int store_unwatch(struct store *store, const char *path, const char *token);

/* Take the next event: 1 with @path and @token filled (the path as it was watched or below it, or
 * "@releaseDomain"), 0 if none is waiting, -ENOTCONN if the connection is lost, -errno. Never waits. */
int store_next_event(struct store *store, char *path, size_t path_size, char *token,
		     size_t token_size);

/* Run @body within a transaction: its store_read/write/... calls see one snapshot and apply as one.
 * Repeated from scratch on a conflict, a bounded number of times, then -EBUSY. A body that returns
 * non-zero aborts the transaction, and that value is returned. */
int store_transaction(struct store *store, int (*body)(struct store *store, void *arg), void *arg);

#endif
