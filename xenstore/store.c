// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A connection to xenstore: read, write, list, watch, transactions.
 *
 * Owns: the only use of libxenstore.
 * Trusts / does not trust: values may come from a guest; number readers take plain decimal only.
 * Runs on: the main thread; waits for xenstored's answers, never for events.
 * Must not know: blkif, the state machine.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xenstore.h>

#include "xenstore/store.h"

/* Conflicts are routine under a busy toolstack, and each retry starts from a fresh snapshot; a bound
 * keeps a hostile writer from holding us for ever. */
#define TRANSACTION_TRIES 1000

struct store {
	struct xs_handle *xs;
	xs_transaction_t transaction; /* XBT_NULL outside store_transaction() */
};

/* libxenstore reports failures by errno only; it must never look like success. */
static int error_from_errno(void)
{
	return errno ? -errno : -EIO;
}

int store_open(struct store **store_out)
{
	struct store *store = calloc(1, sizeof(*store));

	if (!store)
		return -ENOMEM;
	store->transaction = XBT_NULL;
	/* After unwatch no stale event arrives, so a token may be reused for the next life of a path. */
	store->xs = xs_open(XS_UNWATCH_FILTER);
	if (!store->xs) {
		int err = error_from_errno();

		free(store);
		return err;
	}
	*store_out = store;
	return 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	xs_close(store->xs);
	free(store);
}

int store_fd(struct store *store)
{
	int fd = xs_fileno(store->xs);

	return fd < 0 ? error_from_errno() : fd;
}

static int path_join(char *path, size_t size, const char *dir, const char *key)
{
	int len = snprintf(path, size, "%s/%s", dir, key);

	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

int store_read(struct store *store, const char *path, char *value, size_t size)
{
	unsigned len;
	char *text = xs_read(store->xs, store->transaction, path, &len);
	int err = 0;

	if (!text)
		return error_from_errno();
	if (len >= size || memchr(text, '\0', len))
		err = -E2BIG;
	else {
		memcpy(value, text, len);
		value[len] = '\0';
	}
	free(text);
	return err;
}

int store_read_key(struct store *store, const char *dir, const char *key, char *value, size_t size)
{
	char path[STORE_PATH_MAX];
	int err = path_join(path, sizeof(path), dir, key);

	return err ? err : store_read(store, path, value, size);
}

int store_number_parse(const char *text, uint64_t max, uint64_t *number_out)
{
	uint64_t number = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		unsigned digit = (unsigned)(*text - '0');

		if (digit > 9 || number > (UINT64_MAX - digit) / 10)
			return -EINVAL;
		number = number * 10 + digit;
	}
	if (number > max)
		return -EINVAL;
	*number_out = number;
	return 0;
}

int store_read_number(struct store *store, const char *dir, const char *key, uint64_t max,
		      uint64_t *number_out)
{
	char text[32];
	int err = store_read_key(store, dir, key, text, sizeof(text));

	if (err)
		return err == -E2BIG ? -EINVAL : err;
	return store_number_parse(text, max, number_out);
}

int store_write_key(struct store *store, const char *dir, const char *key, const char *format, ...)
{
	char path[STORE_PATH_MAX], value[STORE_VALUE_MAX];
	va_list ap;
	int len, err = path_join(path, sizeof(path), dir, key);

	if (err)
		return err;
	va_start(ap, format);
	len = vsnprintf(value, sizeof(value), format, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= sizeof(value))
		return -E2BIG;
	if (!xs_write(store->xs, store->transaction, path, value, (unsigned)len))
		return error_from_errno();
	return 0;
}

int store_mkdir(struct store *store, const char *path)
{
	return xs_mkdir(store->xs, store->transaction, path) ? 0 : error_from_errno();
}

int store_remove(struct store *store, const char *path)
{
	return xs_rm(store->xs, store->transaction, path) ? 0 : error_from_errno();
}

int store_list(struct store *store, const char *path, char ***names_out, unsigned *nr_out)
{
	char **names = xs_directory(store->xs, store->transaction, path, nr_out);

	if (!names)
		return error_from_errno();
	*names_out = names;
	return 0;
}

struct removal {
	const char *path, *top;
};

static int remove_upwards(struct store *store, void *arg)
{
	const struct removal *removal = arg;
	char path[STORE_PATH_MAX];
	char **names, *slash;
	unsigned nr = 0;
	int err;

	if ((size_t)snprintf(path, sizeof(path), "%s", removal->path) >= sizeof(path))
		return -ENAMETOOLONG;
	do {
		err = store_remove(store, path);
		slash = strrchr(path, '/');
		if (err || !slash)
			break;
		*slash = '\0';
		if (strlen(path) <= strlen(removal->top))
			break;
		err = store_list(store, path, &names, &nr);
		if (!err)
			free(names);
	} while (!err && !nr);
	return err == -ENOENT ? 0 : err;
}

int store_remove_empty_above(struct store *store, const char *path, const char *top)
{
	struct removal removal = {path, top};

	/* In one transaction, so that a directory which is filled meanwhile does not go. */
	return store_transaction(store, remove_upwards, &removal);
}

int store_set_owner_reader(struct store *store, const char *path, unsigned owner, unsigned reader)
{
	struct xs_permissions permissions[2] = {
		{.id = owner, .perms = XS_PERM_NONE},
		{.id = reader, .perms = XS_PERM_READ},
	};

	return xs_set_permissions(store->xs, store->transaction, path, permissions, 2)
		       ? 0
		       : error_from_errno();
}

int store_domain_path(struct store *store, uint32_t domid, char *path, size_t size)
{
	char *home = xs_get_domain_path(store->xs, domid);
	int len;

	if (!home)
		return error_from_errno();
	len = snprintf(path, size, "%s", home);
	free(home);
	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

int store_own_domid(struct store *store, uint32_t *domid_out)
{
	char text[32];
	uint64_t number = 0;
	int err = store_read(store, "domid", text, sizeof(text)); /* relative: our own home */

	if (!err)
		err = store_number_parse(text, UINT16_MAX, &number);
	else if (err == -ENOENT)
		err = 0;
	*domid_out = (uint32_t)number;
	return err;
}

int store_watch(struct store *store, const char *path, const char *token)
{
	return xs_watch(store->xs, path, token) ? 0 : error_from_errno();
}

int store_unwatch(struct store *store, const char *path, const char *token)
{
	return xs_unwatch(store->xs, path, token) ? 0 : error_from_errno();
}

int store_next_event(struct store *store, char *path, size_t path_size, char *token,
		     size_t token_size)
{
	char **event;

	errno = 0;
	event = xs_check_watch(store->xs);
	if (!event)
		return errno == EAGAIN ? 0 : -ENOTCONN;
	snprintf(path, path_size, "%s", event[XS_WATCH_PATH]);
	snprintf(token, token_size, "%s", event[XS_WATCH_TOKEN]);
	free(event);
	return 1;
}

int store_transaction(struct store *store, int (*body)(struct store *store, void *arg), void *arg)
{
	for (unsigned try = 0; try < TRANSACTION_TRIES; try++) {
		int err;

		store->transaction = xs_transaction_start(store->xs);
		if (store->transaction == XBT_NULL)
			return error_from_errno();
		err = body(store, arg);
		if (err) {
			xs_transaction_end(store->xs, store->transaction, true);
			store->transaction = XBT_NULL;
			return err;
		}
		if (xs_transaction_end(store->xs, store->transaction, false)) {
			store->transaction = XBT_NULL;
			return 0;
		}
		store->transaction = XBT_NULL;
		if (errno != EAGAIN)
			return error_from_errno();
	}
	return -EBUSY;
}
