// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The queues of one connected VBD, on their worker threads, seen from the main thread.
 *
 * Owns: the queues, the workers, and the messages between them and the main thread.
 * Trusts / does not trust: nothing comes from the guest here.
 * Runs on: the main thread, but for the functions which say that a queue's thread calls them.
 * Must not know: xenstore, the kind of transport or driver.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "backend/queue-set.h"
#include "backend/worker.h"
#include "container.h"

/* One queue. What another thread reads of it is written before the message about it is posted. */
struct member {
	struct queue_set *set;
	struct queue *queue;
	struct loop *loop; /* the worker's, or the main thread's */

	/* To the queue. */
	struct loop_message distrust, resize, stop, quiesce, abandon;
	uint64_t size_bytes;

	/* From the queue. */
	struct loop_message ring_broken, flush_failed, drained, quiet, resized;
	int ring_err, flush_err;
};

struct queue_set {
	struct loop *loop;
	struct queue_set_events events;
	struct worker **workers;
	unsigned nr_workers;
	unsigned nr_undrained, nr_unquiet, nr_unresized;
	unsigned nr;
	struct member members[];
};

/* ---- From the queues: the first half runs on the queue's thread, the second on the main thread --- */

static void member_trouble(void *arg, enum dataplane_trouble trouble, int err)
{
	struct member *member = arg;

	if (trouble == DATAPLANE_RING_BROKEN) {
		member->ring_err = err;
		loop_post(member->set->loop, &member->ring_broken);
	} else {
		member->flush_err = err;
		loop_post(member->set->loop, &member->flush_failed);
	}
}

static void member_drained(void *arg)
{
	struct member *member = arg;

	loop_post(member->set->loop, &member->drained);
}

static void member_quiet(void *arg)
{
	struct member *member = arg;

	loop_post(member->set->loop, &member->quiet);
}

static void ring_broken_deliver(struct loop_message *message)
{
	struct member *member = container_of(message, struct member, ring_broken);
	struct queue_set *set = member->set;

	set->events.trouble(set->events.arg, DATAPLANE_RING_BROKEN, member->ring_err);
}

static void flush_failed_deliver(struct loop_message *message)
{
	struct member *member = container_of(message, struct member, flush_failed);
	struct queue_set *set = member->set;

	queue_set_distrust(set);
	set->events.trouble(set->events.arg, DATAPLANE_FLUSH_FAILED, member->flush_err);
}

static void drained_deliver(struct loop_message *message)
{
	struct queue_set *set = container_of(message, struct member, drained)->set;

	if (--set->nr_undrained == 0)
		set->events.drained(set->events.arg);
}

static void quiet_deliver(struct loop_message *message)
{
	struct queue_set *set = container_of(message, struct member, quiet)->set;

	if (--set->nr_unquiet == 0)
		set->events.quiet(set->events.arg);
}

static void resized_deliver(struct loop_message *message)
{
	struct queue_set *set = container_of(message, struct member, resized)->set;

	if (--set->nr_unresized == 0)
		set->events.resized(set->events.arg);
}

/* ---- To the queues: delivered on the queue's thread ---------------------------------------------- */

static void distrust_deliver(struct loop_message *message)
{
	queue_distrust(container_of(message, struct member, distrust)->queue);
}

static void resize_deliver(struct loop_message *message)
{
	struct member *member = container_of(message, struct member, resize);

	queue_resize(member->queue, member->size_bytes);
	loop_post(member->set->loop, &member->resized);
}

static void stop_deliver(struct loop_message *message)
{
	queue_stop(container_of(message, struct member, stop)->queue);
}

static void quiesce_deliver(struct loop_message *message)
{
	queue_quiesce(container_of(message, struct member, quiesce)->queue);
}

static void abandon_deliver(struct loop_message *message)
{
	queue_abandon(container_of(message, struct member, abandon)->queue);
}

void queue_set_distrust(struct queue_set *set)
{
	for (unsigned i = 0; i < set->nr; i++)
		loop_post(set->members[i].loop, &set->members[i].distrust);
}

void queue_set_resize(struct queue_set *set, uint64_t size_bytes)
{
	set->nr_unresized = set->nr;
	for (unsigned i = 0; i < set->nr; i++) {
		set->members[i].size_bytes = size_bytes;
		loop_post(set->members[i].loop, &set->members[i].resize);
	}
}

void queue_set_stop(struct queue_set *set)
{
	for (unsigned i = 0; i < set->nr; i++)
		loop_post(set->members[i].loop, &set->members[i].stop);
}

void queue_set_quiesce(struct queue_set *set)
{
	if (set->nr_unquiet) /* one is on its way */
		return;
	set->nr_unquiet = set->nr;
	for (unsigned i = 0; i < set->nr; i++)
		loop_post(set->members[i].loop, &set->members[i].quiesce);
}

void queue_set_abandon(struct queue_set *set)
{
	for (unsigned i = 0; i < set->nr; i++)
		loop_post(set->members[i].loop, &set->members[i].abandon);
}

unsigned queue_set_nr_undrained(const struct queue_set *set)
{
	return set->nr_undrained;
}

static void stats_add(struct dataplane_stats *sum, const struct dataplane_stats *stats)
{
	sum->nr_reads += stats->nr_reads;
	sum->nr_writes += stats->nr_writes;
	sum->nr_flushes += stats->nr_flushes;
	sum->nr_discards += stats->nr_discards;
	sum->read_bytes += stats->read_bytes;
	sum->written_bytes += stats->written_bytes;
	sum->nr_refused += stats->nr_refused;
	sum->nr_failed += stats->nr_failed;
	sum->nr_batches += stats->nr_batches;
}

struct dataplane_stats queue_set_stats(const struct queue_set *set)
{
	struct dataplane_stats sum = {0};

	for (unsigned i = 0; i < set->nr; i++)
		stats_add(&sum, queue_stats(set->members[i].queue));
	return sum;
}

/* ---- Making and ending --------------------------------------------------------------------------- */

static void member_init(struct member *member, struct queue_set *set)
{
	*member = (struct member){
		.set = set,
		.distrust.deliver = distrust_deliver,
		.resize.deliver = resize_deliver,
		.stop.deliver = stop_deliver,
		.quiesce.deliver = quiesce_deliver,
		.abandon.deliver = abandon_deliver,
		.ring_broken.deliver = ring_broken_deliver,
		.flush_failed.deliver = flush_failed_deliver,
		.drained.deliver = drained_deliver,
		.quiet.deliver = quiet_deliver,
		.resized.deliver = resized_deliver,
	};
}

static int queues_create(struct queue_set *set, struct transport **transports, unsigned nr,
			 struct disk *disk, const struct disk_limits *offered, struct error *error)
{
	int err = 0;

	for (unsigned i = 0; i < nr; i++) {
		struct member *member = &set->members[i];
		const struct queue_events events = {member_trouble, member_drained, member_quiet,
						    member};

		member_init(member, set);
		if (err) { /* the rest is taken over, too */
			transports[i]->ops->free(transports[i]);
			continue;
		}
		err = queue_create(transports[i], disk, offered, &events, &member->queue, error);
		if (!err)
			set->nr++;
	}
	return err;
}

static int workers_create(struct queue_set *set, unsigned nr_workers, struct error *error)
{
	if (!nr_workers)
		return 0;
	set->workers = calloc(nr_workers, sizeof(struct worker *));
	if (!set->workers)
		return error_set(error, ENOMEM, "out of memory");
	while (set->nr_workers < nr_workers) {
		int err = worker_create(set->nr_workers, &set->workers[set->nr_workers], error);

		if (err)
			return err;
		set->nr_workers++;
	}
	return 0;
}

/* Before a worker runs its loop, so that a failure needs no message and nothing is in flight yet. */
static int queues_start(struct queue_set *set, struct error *error)
{
	int err = 0;

	for (unsigned i = 0; !err && i < set->nr; i++) {
		struct member *member = &set->members[i];

		member->loop = set->nr_workers ? worker_loop(set->workers[i % set->nr_workers])
					       : set->loop;
		err = queue_start(member->queue, member->loop, error);
	}
	return err;
}

int queue_set_create(struct loop *loop, unsigned nr_workers, struct transport **transports,
		     unsigned nr, struct disk *disk, const struct disk_limits *offered,
		     const struct queue_set_events *events, struct queue_set **set_out,
		     struct error *error)
{
	struct queue_set *set = calloc(1, sizeof(*set) + nr * sizeof(set->members[0]));
	int err;

	if (!set) {
		for (unsigned i = 0; i < nr; i++)
			transports[i]->ops->free(transports[i]);
		return error_set(error, ENOMEM, "out of memory");
	}
	set->loop = loop;
	set->events = *events;
	err = queues_create(set, transports, nr, disk, offered, error);
	if (!err)
		err = workers_create(set, nr_workers < nr ? nr_workers : nr, error);
	if (!err)
		err = queues_start(set, error);
	if (err) {
		queue_set_destroy(set);
		return err;
	}
	set->nr_undrained = nr;
	for (unsigned i = 0; i < set->nr_workers; i++)
		worker_start(set->workers[i]);
	*set_out = set;
	return 0;
}

static void messages_unpost(struct member *member)
{
	struct loop *loop = member->set->loop;

	loop_unpost(loop, &member->ring_broken);
	loop_unpost(loop, &member->flush_failed);
	loop_unpost(loop, &member->drained);
	loop_unpost(loop, &member->quiet);
	loop_unpost(loop, &member->resized);
	if (member->loop != loop)
		return;
	loop_unpost(loop, &member->distrust);
	loop_unpost(loop, &member->resize);
	loop_unpost(loop, &member->stop);
	loop_unpost(loop, &member->quiesce);
	loop_unpost(loop, &member->abandon);
}

void queue_set_destroy(struct queue_set *set)
{
	/* The threads first: queues and their loops belong to us again then. */
	for (unsigned i = 0; i < set->nr_workers; i++)
		worker_stop(set->workers[i]);
	for (unsigned i = 0; i < set->nr; i++) {
		messages_unpost(&set->members[i]);
		queue_destroy(set->members[i].queue);
	}
	for (unsigned i = 0; i < set->nr_workers; i++)
		worker_destroy(set->workers[i]);
	free(set->workers);
	free(set);
}
