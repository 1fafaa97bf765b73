// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Both ends of a data path for tests.
 *
 * Owns: the mocks, and the checks that hold for every use of a transport or driver (each request answered
 *   once, states as request.h says, nothing touched after disconnect). Trusts: the test. Runs on: the
 *   test. Must not know: rings, files.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "container.h"
#include "tests/unit/mock-path.h"
#include "tests/unit/unit.h"

__attribute__((format(printf, 2, 3))) static void journal_add(struct mock_journal *journal,
							      const char *format, ...)
{
	size_t len = strlen(journal->text);
	va_list ap;

	if (journal->off)
		return;
	va_start(ap, format);
	vsnprintf(journal->text + len, sizeof(journal->text) - len, format, ap);
	va_end(ap);
}

/* ---- The wire ----------------------------------------------------------------------------------- */

struct mock_scratch {
	unsigned id;
};

unsigned mock_request_id(const struct request *request)
{
	return ((const struct mock_scratch *)request->transport_scratch)->id;
}

static struct mock_wire *to_wire(struct transport *transport)
{
	struct mock_wire *wire = container_of(transport, struct mock_wire, transport);

	if (wire->untouchable)
		fail_msg("the transport was touched");
	return wire;
}

static struct mock_request *wire_request(struct mock_wire *wire, const struct request *request)
{
	return &wire->requests[mock_request_id(request) - 1];
}

static int wire_poll_fd(struct transport *transport)
{
	return to_wire(transport)->event_fd;
}

static void wire_acknowledge(struct transport *transport)
{
	struct mock_wire *wire = to_wire(transport);
	uint64_t count;

	if (read(wire->event_fd, &count, sizeof(count)) != sizeof(count))
		fail_msg("acknowledge() without an event");
	journal_add(wire->journal, "ack ");
}

static int wire_pop(struct transport *transport, struct request *request)
{
	struct mock_wire *wire = to_wire(transport);
	const struct mock_request *from;

	assert_int_equal(request->state, REQUEST_DECODED);
	if (wire->nr_popped == wire->nr_requests && !(wire->more && wire->more(wire))) {
		journal_add(wire->journal, wire->pop_error ? "broken " : "pop0 ");
		return wire->pop_error;
	}
	if (wire->room && wire->nr_popped - wire->nr_responded == wire->room) {
		journal_add(wire->journal, "full ");
		return -EAGAIN;
	}
	from = &wire->requests[wire->nr_popped++];
	((struct mock_scratch *)request->transport_scratch)->id = wire->nr_popped;
	journal_add(wire->journal, "pop%u ", wire->nr_popped);
	wire->armed = false;
	request->status = from->status;
	if (from->status)
		return 1; /* like a real decoder: nothing else is filled */
	request->op = from->op;
	request->flags = from->flags;
	request->offset_bytes = from->offset_bytes;
	request->len_bytes = from->len_bytes;
	request->iov = &wire->iov[request->pool_idx];
	request->nr_iov = from->op == REQUEST_READ || from->op == REQUEST_WRITE;
	*request->iov = (struct iovec){wire->data[request->pool_idx], from->len_bytes};
	return 1;
}

static void wire_resolve(struct transport *transport, struct request_list *batch)
{
	struct mock_wire *wire = to_wire(transport);
	struct request *request;

	TAILQ_FOREACH(request, batch, link) {
		assert_int_equal(request->state, REQUEST_DECODED);
		assert_int_equal(request->status, 0);
		request->status = wire_request(wire, request)->resolve_status;
	}
}

static void wire_load(struct transport *transport, struct request_list *batch)
{
	struct mock_wire *wire = to_wire(transport);
	struct request *request;

	wire->nr_load++;
	journal_add(wire->journal, "load ");
	TAILQ_FOREACH(request, batch, link) {
		assert_int_equal(request->state, REQUEST_DECODED);
		if (request->op == REQUEST_WRITE && wire_request(wire, request)->load_status)
			request->status = wire_request(wire, request)->load_status;
	}
}

static void wire_store(struct transport *transport, struct request_list *batch)
{
	struct mock_wire *wire = to_wire(transport);
	struct request *request;

	wire->nr_store++;
	journal_add(wire->journal, "store ");
	TAILQ_FOREACH(request, batch, link) {
		assert_int_equal(request->state, REQUEST_DONE);
		if (request->op == REQUEST_READ && !request->status)
			request->status = wire_request(wire, request)->store_status;
	}
}

static void wire_respond(struct transport *transport, struct request *request)
{
	struct mock_wire *wire = to_wire(transport);
	unsigned id = mock_request_id(request);

	assert_int_equal(request->state, REQUEST_DONE);
	journal_add(wire->journal, "respond%u ", id);
	if (wire->nr_answers[id - 1]++)
		fail_msg("request %u was answered twice", id);
	wire->answers[id - 1] = request->status;
	wire->nr_answered++;
	wire->nr_responded++;
	wire->nr_unpublished++;
}

static void wire_flush(struct transport *transport)
{
	struct mock_wire *wire = to_wire(transport);

	wire->nr_flush++;
	wire->nr_unpublished = 0;
	journal_add(wire->journal, "flush ");
}

static bool wire_arm(struct transport *transport)
{
	struct mock_wire *wire = to_wire(transport);

	wire->nr_arm++;
	wire->armed = true;
	journal_add(wire->journal, "arm ");
	if (wire->arm_hook) {
		void (*hook)(struct mock_wire * wire) = wire->arm_hook;

		wire->arm_hook = NULL;
		hook(wire);
	}
	return wire->nr_popped < wire->nr_requests;
}

static void wire_disconnect(struct transport *transport)
{
	struct mock_wire *wire = container_of(transport, struct mock_wire, transport);

	wire->nr_disconnect++;
	wire->untouchable = true;
	journal_add(wire->journal, "disconnect ");
}

static void wire_free(struct transport *transport)
{
	container_of(transport, struct mock_wire, transport)->nr_free++;
}

void mock_wire_init(struct mock_wire *wire, struct mock_journal *journal, unsigned nr_slots)
{
	memset(wire, 0, sizeof(*wire));
	wire->journal = journal;
	wire->event_fd = -1;
	wire->ops = (struct transport_ops){
		.name = "mock",
		.request_size = sizeof(struct mock_scratch),
		.poll_fd = wire_poll_fd,
		.acknowledge = wire_acknowledge,
		.pop = wire_pop,
		.resolve = wire_resolve,
		.load = wire_load,
		.store = wire_store,
		.respond = wire_respond,
		.flush = wire_flush,
		.arm = wire_arm,
		.disconnect = wire_disconnect,
		.free = wire_free,
		.flush_error_is_deadly = true,
	};
	assert_true(nr_slots <= MOCK_DEPTH_MAX);
	wire->transport = (struct transport){.ops = &wire->ops, .nr_slots = nr_slots};
}

unsigned mock_wire_add(struct mock_wire *wire, enum request_op op, unsigned flags)
{
	assert_true(wire->nr_requests < MOCK_REQUESTS_MAX);
	wire->requests[wire->nr_requests] = (struct mock_request){
		.op = op,
		.flags = flags,
		.offset_bytes = op == REQUEST_FLUSH ? 0 : wire->nr_requests % 1024 * 4096ull,
		.len_bytes = op == REQUEST_FLUSH ? 0 : 4096,
	};
	return ++wire->nr_requests;
}

/* ---- The disk ----------------------------------------------------------------------------------- */

static struct mock_disk *to_disk(struct disk_queue *queue)
{
	return container_of(queue, struct mock_disk, queue);
}

static void disk_finish(struct mock_disk *mock, struct request *request, int status)
{
	request->status = status;
	/* A driver may use up the iov. */
	if (request->nr_iov)
		request->iov->iov_len = 0;
	TAILQ_INSERT_TAIL(&mock->done, request, link);
}

static int mock_queue_create(struct disk *disk, unsigned depth, struct disk_queue **queue_out,
			     struct error *error)
{
	struct mock_disk *mock = container_of(disk, struct mock_disk, disk);

	(void)depth;
	(void)error;
	mock->nr_queues++;
	*queue_out = &mock->queue;
	return 0;
}

static void mock_queue_destroy(struct disk_queue *queue)
{
	assert_true(TAILQ_EMPTY(&to_disk(queue)->submitted) && TAILQ_EMPTY(&to_disk(queue)->done));
	to_disk(queue)->nr_queues--;
}

static void mock_submit(struct disk_queue *queue, struct request *request)
{
	static const char letters[] = {[REQUEST_READ] = 'R',
				       [REQUEST_WRITE] = 'W',
				       [REQUEST_FLUSH] = 'F',
				       [REQUEST_DISCARD] = 'D'};
	struct mock_disk *mock = to_disk(queue);
	const struct request *other;

	assert_int_equal(request->state, REQUEST_QUEUED);
	assert_int_equal(request->status, 0);
	/* A barrier is alone with the driver. */
	if (request->flags & REQUEST_BARRIER)
		assert_true(TAILQ_EMPTY(&mock->submitted) && TAILQ_EMPTY(&mock->done));
	else
		TAILQ_FOREACH(other, &mock->submitted, link)
			assert_false(other->flags & REQUEST_BARRIER);
	journal_add(mock->journal, "submit%u%c ", mock_request_id(request), letters[request->op]);
	memset(request->driver_scratch, 0xee, mock->disk.request_size);
	mock->nr_submitted++;
	mock->nr_unkicked++;
	if (mock->at_once) {
		disk_finish(mock, request, mock->at_once_status);
	} else {
		TAILQ_INSERT_TAIL(&mock->submitted, request, link);
		mock->nr_held++;
	}
}

static void mock_kick(struct disk_queue *queue)
{
	struct mock_disk *mock = to_disk(queue);

	journal_add(mock->journal, "kick ");
	mock->nr_unkicked = 0;
	mock->nr_kick++;
}

static int mock_poll_fd(struct disk_queue *queue)
{
	return to_disk(queue)->event_fd;
}

static unsigned mock_reap(struct disk_queue *queue, struct request_list *done)
{
	struct mock_disk *mock = to_disk(queue);
	struct request *request;
	unsigned nr = 0;

	if (mock->nr_unkicked)
		fail_msg("reap() before kick()");
	while ((request = TAILQ_FIRST(&mock->done))) {
		TAILQ_REMOVE(&mock->done, request, link);
		TAILQ_INSERT_TAIL(done, request, link);
		nr++;
	}
	if (nr)
		journal_add(mock->journal, "reap ");
	return nr;
}

void mock_disk_init(struct mock_disk *mock, struct mock_journal *journal)
{
	memset(mock, 0, sizeof(*mock));
	mock->journal = journal;
	mock->event_fd = -1;
	TAILQ_INIT(&mock->submitted);
	TAILQ_INIT(&mock->done);
	mock->driver = (struct driver){
		.name = "mock",
		.queue_create = mock_queue_create,
		.queue_destroy = mock_queue_destroy,
		.submit = mock_submit,
		.kick = mock_kick,
		.poll_fd = mock_poll_fd,
		.reap = mock_reap,
	};
	mock->disk = (struct disk){
		.driver = &mock->driver,
		.limits = {.size_bytes = 1024 * 4096,
			   .logical_block_bytes = 512,
			   .physical_block_bytes = 512,
			   .memory_align_bytes = 512,
			   .can_write = true,
			   .can_flush = true,
			   .can_discard = true,
			   .discard_granularity_bytes = 4096},
		.request_size = 24,
	};
	mock->queue.disk = &mock->disk;
}

static struct request *disk_find(struct mock_disk *mock, unsigned id)
{
	struct request *request;

	TAILQ_FOREACH(request, &mock->submitted, link)
		if (mock_request_id(request) == id)
			return request;
	return NULL;
}

bool mock_disk_has(struct mock_disk *mock, unsigned id)
{
	return disk_find(mock, id);
}

void mock_disk_finish(struct mock_disk *mock, unsigned id, int status)
{
	struct request *request = disk_find(mock, id);

	if (!request)
		fail_msg("the driver does not have request %u", id);
	TAILQ_REMOVE(&mock->submitted, request, link);
	mock->nr_held--;
	disk_finish(mock, request, status);
	if (mock->event_fd >= 0) {
		uint64_t one = 1;

		assert_int_equal(write(mock->event_fd, &one, sizeof(one)), sizeof(one));
	}
}
