// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: what is parsed out of xenstore: a VBD's address, numbers, and a frontend's keys.
 *
 * Owns: the properties that hold for every text. Trusts: nothing. Runs on: the fuzzer, or
 *   tests/fuzz/replay.c. Must not know: rings, disks.
 *
 * Input: lines. The first is a path and a number; the others are the values of the frontend's keys, in the
 * order of the table below; "-" leaves a key out.
 *
 * To fuzz (from the top of the source, with ./configure done in BUILD):
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -IBUILD -I. -Iinclude -o fuzz \
 *         tests/fuzz/fuzz-xenbus-address.c tests/unit/fake-xenstore.c xenstore/store.c \
 *         xenstore/vbd-nodes.c
 *     ./fuzz -max_total_time=120 CORPUS-COPY tests/fuzz/corpus/xenbus-address
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fake-xenstore.h"
#include "xenstore/vbd-nodes.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BACKEND "/local/domain/0/backend/qdisk/3/51712"
#define FRONTEND "/local/domain/3/device/vbd/51712"

static const char *const keys[] = {
	"state",
	"protocol",
	"ring-page-order",
	"num-ring-pages",
	"multi-queue-num-queues",
	"ring-ref",
	"ring-ref0",
	"ring-ref1",
	"ring-ref2",
	"ring-ref3",
	"event-channel",
	"queue-0/ring-ref",
	"queue-0/event-channel",
	"queue-1/ring-ref",
	"queue-1/event-channel",
	"feature-persistent",
};

/* An address that is accepted is the only spelling of itself, but for leading zeroes and what may follow. */
static void address_check(const char *path)
{
	struct vbd_address address, again;
	char text[64];

	if (vbd_address_parse(path, &address))
		return;
	CHECK(strlen(address.kind) > 0);
	snprintf(text, sizeof(text), "backend/%s/%u/%u", address.kind, address.domid,
		 address.devid);
	CHECK(!vbd_address_parse(text, &again));
	CHECK(again.domid == address.domid && again.devid == address.devid &&
	      !strcmp(again.kind, address.kind));
}

static void number_check(const char *text)
{
	uint64_t number;
	char again[32];

	if (store_number_parse(text, UINT32_MAX, &number))
		return;
	CHECK(number <= UINT32_MAX && strspn(text, "0123456789") == strlen(text));
	snprintf(again, sizeof(again), "%llu", (unsigned long long)number);
	CHECK(strlen(text) >= strlen(again) && !strcmp(text + strlen(text) - strlen(again), again));
}

static void keys_check(void)
{
	static const struct vbd_ring_limits limits = {.order = 4, .queues = 4};
	struct vbd_ring_keys ring;
	struct xenbus_view view;
	struct vbd_nodes nodes;
	struct store *store;
	struct error error;
	int err;

	CHECK(!store_open(&store));
	CHECK(!vbd_nodes_open(&nodes, store, "backend/qdisk/3/51712", &error));
	/* Nothing a guest writes into its nodes is an error of the connection. */
	CHECK(!vbd_nodes_read_view(&nodes, &view));
	CHECK(view.frontend <= XENBUS_CLOSED);
	memset(&error, 0, sizeof(error));
	err = vbd_nodes_read_ring(&nodes, &limits, &ring, &error);
	CHECK(err <= 0);
	if (err) {
		CHECK(error.text[0]);
	} else {
		CHECK(ring.order <= limits.order);
		CHECK(ring.nr_queues >= 1 && ring.nr_queues <= limits.queues);
		CHECK(!ring.has_protocol || strlen(ring.protocol) < sizeof(ring.protocol));
	}
	store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size;
	unsigned line = 0;

	fake_store_reset();
	fake_store_set(BACKEND "/frontend", FRONTEND);
	fake_store_set(BACKEND "/state", "2");
	fake_store_set(BACKEND "/online", "1");
	while (data < end && line <= sizeof(keys) / sizeof(keys[0])) {
		const uint8_t *newline = memchr(data, '\n', (size_t)(end - data));
		size_t len = (size_t)((newline ? newline : end) - data);

		if (!line) {
			char *text = strndup((const char *)data, len);

			CHECK(text);
			address_check(text);
			number_check(text);
			free(text);
		} else if (len != 1 || *data != '-') {
			char path[128];

			snprintf(path, sizeof(path), FRONTEND "/%s", keys[line - 1]);
			fake_store_set_bytes(path, data, (unsigned)len);
		}
		line++;
		data += len + 1;
	}
	keys_check();
	fake_store_reset();
	return 0;
}
