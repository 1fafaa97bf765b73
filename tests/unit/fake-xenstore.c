// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libxenstore as a tree in the test's own memory.
 *
 * Owns: the tree. Trusts: the test; xenstore.h for what each function promises. Runs on: the test.
 * Must not know: VBDs.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <xenstore.h>

#include "tests/unit/fake-xenstore.h"

#define NODES_MAX 128
#define WATCHES_MAX 16
#define EVENTS_MAX 256
#define HOME "/local/domain/0"

struct node {
	char *path;
	char *bytes;
	unsigned len;
};

struct tree {
	struct node nodes[NODES_MAX];
	unsigned nr;
};

struct pair {
	char path[512], token[64];
};

struct xs_handle {
	int event_fd;
};

static struct tree tree, snapshot;
static bool in_transaction;
static unsigned long version, snapshot_version;
static unsigned nr_calls;
static struct pair watches[WATCHES_MAX], events[EVENTS_MAX];
static unsigned nr_watches, nr_events;
static struct xs_handle handle = {-1};
struct fake_store_knobs fake_store_knobs;

/* ---- The tree ----------------------------------------------------------------------------------- */

static struct node *tree_find(struct tree *in, const char *path)
{
	for (unsigned i = 0; i < in->nr; i++)
		if (!strcmp(in->nodes[i].path, path))
			return &in->nodes[i];
	return NULL;
}

static bool is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return !strncmp(path, dir, len) && (path[len] == '/' || !path[len]);
}

static void node_free(struct node *node)
{
	free(node->path);
	free(node->bytes);
}

static void tree_set(struct tree *in, const char *path, const void *bytes, unsigned len)
{
	struct node *node = tree_find(in, path);

	if (!node) {
		assert(in->nr < NODES_MAX);
		node = &in->nodes[in->nr++];
		node->path = strdup(path);
	} else {
		free(node->bytes);
	}
	node->bytes = malloc(len + 1);
	assert(node->path && node->bytes);
	memcpy(node->bytes, bytes, len);
	node->bytes[len] = '\0';
	node->len = len;
}

static unsigned tree_remove(struct tree *in, const char *path)
{
	unsigned kept = 0, removed;

	for (unsigned i = 0; i < in->nr; i++) {
		if (is_below(in->nodes[i].path, path))
			node_free(&in->nodes[i]);
		else
			in->nodes[kept++] = in->nodes[i];
	}
	removed = in->nr - kept;
	in->nr = kept;
	return removed;
}

static void tree_clear(struct tree *in)
{
	for (unsigned i = 0; i < in->nr; i++)
		node_free(&in->nodes[i]);
	in->nr = 0;
}

static void tree_copy(struct tree *to, const struct tree *from)
{
	tree_clear(to);
	for (unsigned i = 0; i < from->nr; i++)
		tree_set(to, from->nodes[i].path, from->nodes[i].bytes, from->nodes[i].len);
}

static void event_add(const struct pair *watch, const char *path)
{
	uint64_t one = 1;

	assert(nr_events < EVENTS_MAX);
	snprintf(events[nr_events].path, sizeof(events[0].path), "%s", path);
	snprintf(events[nr_events].token, sizeof(events[0].token), "%s", watch->token);
	nr_events++;
	if (handle.event_fd >= 0 && write(handle.event_fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static void changed(const char *path)
{
	version++;
	for (unsigned i = 0; i < nr_watches; i++)
		if (is_below(path, watches[i].path) || is_below(watches[i].path, path))
			event_add(&watches[i], path);
}

/* ---- For the test ------------------------------------------------------------------------------- */

void fake_store_reset(void)
{
	tree_clear(&tree);
	tree_clear(&snapshot);
	in_transaction = false;
	nr_watches = nr_events = nr_calls = 0;
	fake_store_knobs = (struct fake_store_knobs){0};
}

void fake_store_set_bytes(const char *path, const void *bytes, unsigned len)
{
	tree_set(&tree, path, bytes, len);
	changed(path);
}

void fake_store_set(const char *path, const char *value)
{
	if (value)
		fake_store_set_bytes(path, value, (unsigned)strlen(value));
}

void fake_store_set_number(const char *path, unsigned long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", value);
	fake_store_set(path, text);
}

void fake_store_remove(const char *path)
{
	if (tree_remove(&tree, path))
		changed(path);
}

const char *fake_store_get(const char *path)
{
	struct node *node = tree_find(&tree, path);

	return node ? node->bytes : NULL;
}

unsigned fake_store_nr_nodes(void)
{
	return tree.nr;
}

unsigned fake_store_nr_calls(void)
{
	return nr_calls;
}

/* ---- For xenstore/store.c ----------------------------------------------------------------------- */

static bool is_refused(void)
{
	nr_calls++;
	if (fake_store_knobs.lost)
		errno = EBADF;
	return fake_store_knobs.lost;
}

static struct tree *tree_of(xs_transaction_t transaction)
{
	assert(in_transaction == (transaction != XBT_NULL)); /* no call bypasses an open one */
	return in_transaction ? &snapshot : &tree;
}

static const char *absolute(const char *path, char *buffer, size_t size)
{
	if (*path == '/' || *path == '@')
		return path;
	snprintf(buffer, size, HOME "/%s", path);
	return buffer;
}

struct xs_handle *xs_open(unsigned long flags)
{
	(void)flags;
	if (is_refused())
		return NULL;
	handle.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
	return &handle;
}

void xs_close(struct xs_handle *h)
{
	close(h->event_fd);
	h->event_fd = -1;
}

int xs_fileno(struct xs_handle *h)
{
	return h->event_fd;
}

void *xs_read(struct xs_handle *h, xs_transaction_t t, const char *path, unsigned int *len)
{
	char buffer[512], *copy;
	struct node *node;

	(void)h;
	if (is_refused())
		return NULL;
	path = absolute(path, buffer, sizeof(buffer));
	node = tree_find(tree_of(t), path);
	if (fake_store_knobs.denied && !strcmp(path, fake_store_knobs.denied)) {
		errno = EACCES;
		return NULL;
	}
	if (!node) {
		errno = ENOENT;
		return NULL;
	}
	copy = malloc(node->len + 1);
	assert(copy);
	memcpy(copy, node->bytes, node->len + 1);
	*len = node->len;
	return copy;
}

bool xs_write(struct xs_handle *h, xs_transaction_t t, const char *path, const void *data,
	      unsigned int len)
{
	char buffer[512];

	(void)h;
	if (is_refused())
		return false;
	path = absolute(path, buffer, sizeof(buffer));
	tree_set(tree_of(t), path, data, len);
	if (!in_transaction)
		changed(path);
	return true;
}

bool xs_mkdir(struct xs_handle *h, xs_transaction_t t, const char *path)
{
	return xs_write(h, t, path, "", 0);
}

bool xs_rm(struct xs_handle *h, xs_transaction_t t, const char *path)
{
	char buffer[512];

	(void)h;
	if (is_refused())
		return false;
	path = absolute(path, buffer, sizeof(buffer));
	if (!tree_remove(tree_of(t), path)) {
		errno = ENOENT;
		return false;
	}
	if (!in_transaction)
		changed(path);
	return true;
}

/* The component of @path below @dir, or NULL; its length in *@len. */
static const char *child_name(const char *path, const char *dir, size_t *len)
{
	size_t dir_len = strlen(dir);

	if (!is_below(path, dir) || !path[dir_len])
		return NULL;
	path += dir_len + 1;
	*len = strcspn(path, "/");
	return path;
}

/* One block of memory, as the library's: the pointers, then the names. Parents exist by their children. */
char **xs_directory(struct xs_handle *h, xs_transaction_t t, const char *path, unsigned int *num)
{
	struct tree *in = tree_of(t);
	char buffer[512], **names, *text;

	(void)h;
	if (is_refused())
		return NULL;
	path = absolute(path, buffer, sizeof(buffer));
	names = calloc(1, NODES_MAX * (sizeof(*names) + 64));
	assert(names);
	text = (char *)(names + NODES_MAX);
	*num = 0;
	for (unsigned i = 0; i < in->nr; i++) {
		size_t len;
		const char *name = child_name(in->nodes[i].path, path, &len);
		bool known = !name;

		for (unsigned j = 0; !known && j < *num; j++)
			known = strlen(names[j]) == len && !strncmp(names[j], name, len);
		if (known)
			continue;
		assert(len < 64);
		names[*num] = memcpy(text, name, len);
		text += 64;
		(*num)++;
	}
	if (*num || tree_find(in, path))
		return names;
	free(names);
	errno = ENOENT;
	return NULL;
}

bool xs_set_permissions(struct xs_handle *h, xs_transaction_t t, const char *path,
			struct xs_permissions *perms, unsigned int num_perms)
{
	(void)h;
	(void)t;
	(void)path;
	(void)perms;
	(void)num_perms;
	return !is_refused();
}

char *xs_get_domain_path(struct xs_handle *h, unsigned int domid)
{
	char path[64];

	(void)h;
	if (is_refused())
		return NULL;
	snprintf(path, sizeof(path), "/local/domain/%u", domid);
	return strdup(path);
}

bool xs_watch(struct xs_handle *h, const char *path, const char *token)
{
	char buffer[512];

	(void)h;
	if (is_refused())
		return false;
	assert(nr_watches < WATCHES_MAX);
	path = absolute(path, buffer, sizeof(buffer));
	snprintf(watches[nr_watches].path, sizeof(watches[0].path), "%s", path);
	snprintf(watches[nr_watches].token, sizeof(watches[0].token), "%s", token);
	event_add(&watches[nr_watches++], path);
	return true;
}

bool xs_unwatch(struct xs_handle *h, const char *path, const char *token)
{
	(void)h;
	(void)path;
	(void)token;
	abort(); /* no user yet */
}

char **xs_check_watch(struct xs_handle *h)
{
	struct pair event;
	char **vector, *texts;
	uint64_t count;

	if (is_refused())
		return NULL;
	if (!nr_events) {
		errno = EAGAIN;
		return NULL;
	}
	if (read(h->event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		abort();
	event = events[0];
	memmove(events, events + 1, --nr_events * sizeof(events[0]));
	vector = malloc(2 * sizeof(*vector) + sizeof(event.path) + sizeof(event.token));
	assert(vector);
	texts = (char *)(vector + 2);
	vector[XS_WATCH_PATH] = strcpy(texts, event.path);
	vector[XS_WATCH_TOKEN] = strcpy(texts + sizeof(event.path), event.token);
	return vector;
}

xs_transaction_t xs_transaction_start(struct xs_handle *h)
{
	(void)h;
	if (is_refused())
		return XBT_NULL;
	assert(!in_transaction);
	in_transaction = true;
	tree_copy(&snapshot, &tree);
	snapshot_version = version;
	return 1;
}

static void commit(void)
{
	for (unsigned i = 0; i < snapshot.nr; i++) {
		const struct node *node = &snapshot.nodes[i], *old = tree_find(&tree, node->path);

		if (!old || old->len != node->len || memcmp(old->bytes, node->bytes, node->len))
			fake_store_set_bytes(node->path, node->bytes, node->len);
	}
}

bool xs_transaction_end(struct xs_handle *h, xs_transaction_t t, bool abort_it)
{
	(void)h;
	if (is_refused()) {
		in_transaction = false;
		return false;
	}
	assert(in_transaction && t == 1);
	in_transaction = false;
	if (abort_it)
		return true;
	if (fake_store_knobs.before_commit) {
		void (*hook)(void) = fake_store_knobs.before_commit;

		fake_store_knobs.before_commit = NULL;
		hook();
	}
	if (fake_store_knobs.nr_conflicts || version != snapshot_version) {
		fake_store_knobs.nr_conflicts -= fake_store_knobs.nr_conflicts != 0;
		errno = EAGAIN;
		return false;
	}
	commit();
	return true;
}
