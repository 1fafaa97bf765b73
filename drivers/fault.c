// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Driver "fault": stands on another driver and makes it misbehave as told: errors, delays, transfers
 * in pieces, answers out of order.
 *
 * Owns: the disk below it; per queue the queue below, a timer, and the requests it holds back.
 * Trusts / does not trust: requests passed request_validate(); parameters are checked.
 * Runs on: open and close on the main thread, may block as the driver below does; the rest on the
 *   queue's thread, never blocks.
 * Must not know: what is below, guests, rings, xenstore.
 *
 * A request's way up again:
 *
 *   below -> (rest of a split transfer: below once more) -> delayed -> window (reorder) -> @done
 *
 * Layers stack, "fault:op=read,...:fault:op=write,...:memory:size=1M": one rule per layer is enough.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "backend/clock.h"
#include "container.h"
#include "drivers/drivers.h"
#include "drivers/params.h"

#define NR_OPS REQUEST_OPS
#define MAX_DELAY_MS 3600000ul

struct fault_rule {
	bool concerns[NR_OPS];
	unsigned long error_at;
	unsigned long error_every;
	int error_status;
	unsigned long delay_ms;
	unsigned long reorder;
	bool split;
};

struct fault_disk {
	struct disk disk;
	struct disk *lower;
	struct fault_rule rule;
};

struct fault_queue {
	struct disk_queue queue;
	struct disk_queue *lower;
	int poll_fd; /* an epoll instance over timer_fd and the lower queue's poll_fd */
	int timer_fd;
	unsigned long nr_concerned; /* submitted so far, for error-at and error-every */
	unsigned nr_below;
	struct request_list delayed; /* until their due_ns */
	struct request_list window;  /* latest first */
	unsigned nr_window;
};

/* In request->driver_scratch; the lower driver's scratch follows at LOWER_SCRATCH_AT. */
struct fault_request {
	uint64_t due_ns;
	int injected_status;
	bool concerned;
	/* The request as it was, for whoever submitted it. */
	uint64_t offset_bytes;
	uint64_t len_bytes;
	/* The second half of a split transfer: what is left from iov entry rest_iov on, whose part is
	 * rest_first. */
	uint64_t rest_bytes;
	struct iovec *rest_iov;
	unsigned nr_rest_iov;
	struct iovec rest_first;
};

#define LOWER_SCRATCH_AT ((sizeof(struct fault_request) + 15) & ~(size_t)15)

static struct fault_queue *to_fault(struct disk_queue *queue)
{
	return container_of(queue, struct fault_queue, queue);
}

/* ---- Parameters -------------------------------------------------------------------------------- */

static int op_parse(const char *word, struct fault_rule *rule)
{
	static const char *const words[NR_OPS] = {[REQUEST_READ] = "read",
						  [REQUEST_WRITE] = "write",
						  [REQUEST_FLUSH] = "flush",
						  [REQUEST_DISCARD] = "discard"};
	bool any = !strcmp(word, "all");

	for (unsigned op = 0; op < NR_OPS; op++) {
		rule->concerns[op] = !strcmp(word, "all") || !strcmp(word, words[op]);
		any |= rule->concerns[op];
	}
	return any ? 0 : -EINVAL;
}

static int errno_parse(const char *word, int *status_out)
{
	static const struct {
		const char *name;
		int errnum;
	} names[] = {
		{"EIO", EIO},	    {"ENOSPC", ENOSPC},		{"EAGAIN", EAGAIN},
		{"EINVAL", EINVAL}, {"ENODEV", ENODEV},		{"ETIMEDOUT", ETIMEDOUT},
		{"EDQUOT", EDQUOT}, {"EOPNOTSUPP", EOPNOTSUPP}, {"EROFS", EROFS},
		{"ENOMEM", ENOMEM},
	};
	unsigned long number;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(word, names[i].name)) {
			*status_out = -names[i].errnum;
			return 0;
		}
	}
	if (param_count(word, 1, 4095, &number))
		return -EINVAL;
	*status_out = -(int)number;
	return 0;
}

static int rule_set(struct fault_rule *rule, const struct param *param)
{
	unsigned long number;

	if (!strcmp(param->key, "op"))
		return op_parse(param->value, rule);
	if (!strcmp(param->key, "error-at"))
		return param_count(param->value, 1, UINT32_MAX, &rule->error_at);
	if (!strcmp(param->key, "error-every"))
		return param_count(param->value, 1, UINT32_MAX, &rule->error_every);
	if (!strcmp(param->key, "errno"))
		return errno_parse(param->value, &rule->error_status);
	if (!strcmp(param->key, "delay-ms"))
		return param_count(param->value, 0, MAX_DELAY_MS, &rule->delay_ms);
	if (!strcmp(param->key, "reorder"))
		return param_count(param->value, 0, UINT32_MAX, &rule->reorder);
	if (!strcmp(param->key, "split")) {
		int ret = param_count(param->value, 0, 1, &number);

		rule->split = !ret && number;
		return ret;
	}
	return -ENOENT;
}

/* Parse "key=value,...:LOWER" into @rule and where LOWER begins. */
static int rule_parse(const char *params, struct fault_rule *rule, const char **lower_out,
		      struct error *error)
{
	struct param param;
	int ret;

	*rule = (struct fault_rule){.error_status = -EIO};
	op_parse("all", rule);
	while ((ret = param_next(&params, ':', &param, error)) > 0) {
		ret = rule_set(rule, &param);
		if (ret == -ENOENT)
			return error_set(
				error, EINVAL,
				"fault: there is no parameter '%s'; there are op, error-at, "
				"error-every, errno, delay-ms, reorder and split",
				param.key);
		if (ret)
			return error_set(error, EINVAL, "fault: %s cannot be '%s'", param.key,
					 param.value);
	}
	if (ret < 0)
		return ret;
	if (*params != ':')
		return error_set(
			error, EINVAL,
			"fault: the disk below is missing; write fault:PARAMETERS:NAME:PARAMETERS, "
			"for example fault:error-every=3:memory:size=64M");
	*lower_out = params + 1;
	return 0;
}

static int fault_open(const char *params, unsigned flags, struct disk **disk_out,
		      struct error *error)
{
	struct fault_disk *fault = calloc(1, sizeof(*fault));
	const char *lower = NULL;
	int ret;

	if (!fault)
		return error_set(error, ENOMEM, "fault: no memory");
	ret = rule_parse(params, &fault->rule, &lower, error);
	if (!ret)
		ret = disk_open(lower, flags, &fault->lower, error);
	if (ret) {
		free(fault);
		return ret;
	}
	fault->disk.driver = &fault_driver;
	fault->disk.limits = fault->lower->limits;
	fault->disk.request_size = LOWER_SCRATCH_AT + fault->lower->request_size;
	*disk_out = &fault->disk;
	return 0;
}

static void fault_close(struct disk *disk)
{
	struct fault_disk *fault = container_of(disk, struct fault_disk, disk);

	fault->lower->driver->close(fault->lower);
	free(fault);
}

static int fault_sync(struct disk *disk)
{
	struct fault_disk *fault = container_of(disk, struct fault_disk, disk);

	return fault->lower->driver->sync(fault->lower);
}

static int fault_refresh(struct disk *disk, uint64_t *size_bytes_out)
{
	struct fault_disk *fault = container_of(disk, struct fault_disk, disk);

	return fault->lower->driver->refresh(fault->lower, size_bytes_out);
}

/* ---- The queue --------------------------------------------------------------------------------- */

/* The inner registrations are edge-triggered, and reap() empties the instance before it looks: so the
 * instance becomes readable anew, an edge for whoever watches it, with each event below. */
static int poll_add(struct fault_queue *fault, int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(fault->poll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int fault_queue_create(struct disk *disk, unsigned depth, struct disk_queue **queue_out,
			      struct error *error)
{
	struct fault_disk *fault_disk = container_of(disk, struct fault_disk, disk);
	const struct driver *driver = fault_disk->lower->driver;
	struct fault_queue *fault = calloc(1, sizeof(*fault));
	int lower_fd, ret = -ENOMEM;

	if (!fault)
		return error_set(error, ENOMEM, "fault: no memory for a queue");
	fault->queue.disk = disk;
	TAILQ_INIT(&fault->delayed);
	TAILQ_INIT(&fault->window);
	fault->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (fault->poll_fd < 0) {
		ret = error_set(error, errno, "fault: cannot create an epoll (%s)",
				strerror(errno));
		goto err_free;
	}
	fault->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fault->timer_fd < 0) {
		ret = error_set(error, errno, "fault: cannot create a timer (%s)", strerror(errno));
		goto err_close_poll;
	}
	ret = driver->queue_create(fault_disk->lower, depth, &fault->lower, error);
	if (ret)
		goto err_close_timer;
	lower_fd = driver->poll_fd(fault->lower);
	ret = poll_add(fault, fault->timer_fd);
	if (!ret && lower_fd >= 0)
		ret = poll_add(fault, lower_fd);
	if (ret) {
		error_set(error, -ret, "fault: cannot watch the disk below (%s)%s", strerror(-ret),
			  ret == -EINVAL || ret == -ELOOP ? "; stack fewer layers" : "");
		goto err_destroy_lower;
	}
	*queue_out = &fault->queue;
	return 0;

err_destroy_lower:
	driver->queue_destroy(fault->lower);
err_close_timer:
	close(fault->timer_fd);
err_close_poll:
	close(fault->poll_fd);
err_free:
	free(fault);
	return ret;
}

static void fault_queue_destroy(struct disk_queue *queue)
{
	struct fault_queue *fault = to_fault(queue);

	assert(!fault->nr_below && TAILQ_EMPTY(&fault->delayed) && TAILQ_EMPTY(&fault->window));
	fault->lower->disk->driver->queue_destroy(fault->lower);
	close(fault->timer_fd);
	close(fault->poll_fd);
	free(fault);
}

static int fault_poll_fd(struct disk_queue *queue)
{
	return to_fault(queue)->poll_fd;
}

/* ---- Down -------------------------------------------------------------------------------------- */

static bool error_is_due(const struct fault_rule *rule, unsigned long nr)
{
	return nr == rule->error_at || (rule->error_every && nr % rule->error_every == 0);
}

/* Cut @request down to its first half, a multiple of @align_bytes, and remember the second. Nothing
 * happens if it is too short to be cut. */
static void request_split(struct request *request, uint32_t align_bytes)
{
	struct fault_request *scratch = request->driver_scratch;
	uint64_t half_bytes = request->len_bytes / 2 & ~((uint64_t)align_bytes - 1);
	uint64_t left_bytes = half_bytes;
	unsigned i = 0;

	if (!half_bytes)
		return;
	while (left_bytes >= request->iov[i].iov_len)
		left_bytes -= request->iov[i++].iov_len;
	scratch->rest_bytes = request->len_bytes - half_bytes;
	scratch->rest_iov = &request->iov[i];
	scratch->nr_rest_iov = request->nr_iov - i;
	scratch->rest_first = (struct iovec){
		.iov_base = (char *)request->iov[i].iov_base + left_bytes,
		.iov_len = request->iov[i].iov_len - left_bytes,
	};
	request->iov[i].iov_len = left_bytes;
	request->nr_iov = i + (left_bytes > 0);
	request->len_bytes = half_bytes;
}

/* Make @request its own second half. */
static void request_take_rest(struct request *request)
{
	struct fault_request *scratch = request->driver_scratch;

	request->offset_bytes = scratch->offset_bytes + scratch->len_bytes - scratch->rest_bytes;
	request->len_bytes = scratch->rest_bytes;
	request->iov = scratch->rest_iov;
	request->nr_iov = scratch->nr_rest_iov;
	*request->iov = scratch->rest_first;
	scratch->rest_bytes = 0;
}

static void lower_submit(struct fault_queue *fault, struct request *request)
{
	request->driver_scratch = (char *)request->driver_scratch + LOWER_SCRATCH_AT;
	fault->nr_below++;
	fault->lower->disk->driver->submit(fault->lower, request);
}

static void fault_submit(struct disk_queue *queue, struct request *request)
{
	const struct fault_rule *rule = &container_of(queue->disk, struct fault_disk, disk)->rule;
	const struct disk_limits *limits = &queue->disk->limits;
	struct fault_request *scratch = request->driver_scratch;
	struct fault_queue *fault = to_fault(queue);

	*scratch = (struct fault_request){
		.concerned = rule->concerns[request->op],
		.offset_bytes = request->offset_bytes,
		.len_bytes = request->len_bytes,
	};
	if (scratch->concerned) {
		fault->nr_concerned++;
		scratch->due_ns = rule->delay_ms ? clock_now_ns() + rule->delay_ms * NSEC_PER_MSEC
						 : 0;
		if (rule->split && request->nr_iov)
			request_split(request,
				      limits->logical_block_bytes > limits->memory_align_bytes
					      ? limits->logical_block_bytes
					      : limits->memory_align_bytes);
		if (error_is_due(rule, fault->nr_concerned))
			scratch->injected_status = rule->error_status;
	}
	/* A failing transfer moves nothing, or, when split, its first half: as storage does. */
	if (scratch->injected_status && !scratch->rest_bytes) {
		request->status = scratch->injected_status;
		TAILQ_INSERT_TAIL(&fault->delayed, request, link);
		return;
	}
	lower_submit(fault, request);
}

static void fault_kick(struct disk_queue *queue)
{
	struct fault_queue *fault = to_fault(queue);

	fault->lower->disk->driver->kick(fault->lower);
}

/* ---- Up ---------------------------------------------------------------------------------------- */

/* @request came back from below. Returns true if its second half was submitted. */
static bool lower_finished(struct fault_queue *fault, struct request *request)
{
	struct fault_request *scratch;

	request->driver_scratch = (char *)request->driver_scratch - LOWER_SCRATCH_AT;
	scratch = request->driver_scratch;
	fault->nr_below--;
	if (!request->status)
		request->status = scratch->injected_status;
	if (!request->status && scratch->rest_bytes) {
		request_take_rest(request);
		lower_submit(fault, request);
		return true;
	}
	request->offset_bytes = scratch->offset_bytes;
	request->len_bytes = scratch->len_bytes;
	TAILQ_INSERT_TAIL(&fault->delayed, request, link);
	return false;
}

static void lower_reap(struct fault_queue *fault)
{
	const struct driver *driver = fault->lower->disk->driver;
	struct request_list below = TAILQ_HEAD_INITIALIZER(below);
	struct request *request;
	bool again;

	do { /* twice at most: a second half has no rest */
		again = false;
		driver->reap(fault->lower, &below);
		while ((request = TAILQ_FIRST(&below))) {
			TAILQ_REMOVE(&below, request, link);
			again |= lower_finished(fault, request);
		}
		if (again)
			driver->kick(fault->lower);
	} while (again);
}

static void timer_arm(struct fault_queue *fault, uint64_t delay_ns)
{
	struct itimerspec when = {
		.it_value = {.tv_sec = (time_t)(delay_ns / NSEC_PER_SEC),
			     .tv_nsec = (long)(delay_ns % NSEC_PER_SEC)},
	};

	timerfd_settime(fault->timer_fd, 0, &when, NULL);
}

/* Move what is due from delayed to the window, or to @done if order does not matter. */
static unsigned delayed_release(struct fault_queue *fault, const struct fault_rule *rule,
				struct request_list *done)
{
	uint64_t now_ns = rule->delay_ms ? clock_now_ns() : 0, next_ns = UINT64_MAX;
	struct request *request, *next;
	unsigned nr_done = 0;

	for (request = TAILQ_FIRST(&fault->delayed); request; request = next) {
		struct fault_request *scratch = request->driver_scratch;

		next = TAILQ_NEXT(request, link);
		if (scratch->due_ns > now_ns) {
			if (scratch->due_ns < next_ns)
				next_ns = scratch->due_ns;
			continue;
		}
		TAILQ_REMOVE(&fault->delayed, request, link);
		if (rule->reorder && scratch->concerned) {
			TAILQ_INSERT_HEAD(&fault->window, request, link);
			fault->nr_window++;
		} else {
			TAILQ_INSERT_TAIL(done, request, link);
			nr_done++;
		}
	}
	if (next_ns != UINT64_MAX)
		timer_arm(fault, next_ns - now_ns);
	return nr_done;
}

/* Let the window go, latest first, when it is full, or when nothing else is on its way to fill it. */
static unsigned window_release(struct fault_queue *fault, const struct fault_rule *rule,
			       struct request_list *done)
{
	unsigned nr_done = fault->nr_window;

	if (nr_done < rule->reorder && (fault->nr_below || !TAILQ_EMPTY(&fault->delayed)))
		return 0;
	TAILQ_CONCAT(done, &fault->window, link);
	fault->nr_window = 0;
	return nr_done;
}

static unsigned fault_reap(struct disk_queue *queue, struct request_list *done)
{
	const struct fault_rule *rule = &container_of(queue->disk, struct fault_disk, disk)->rule;
	struct fault_queue *fault = to_fault(queue);
	struct epoll_event events[2];
	unsigned nr_done;

	/* Take the edges before looking at what they announce (see poll_add). */
	epoll_wait(fault->poll_fd, events, 2, 0);
	lower_reap(fault);
	nr_done = delayed_release(fault, rule, done);
	return nr_done + window_release(fault, rule, done);
}

const struct driver fault_driver = {
	.name = "fault",
	.description = "stands on another driver and makes it fail as told; for tests",
	.params_help =
		"PARAMETERS:NAME:PARAMETERS  what to do, then the disk below\n"
		"op=read|write|flush|discard|all  which requests are concerned (default all)\n"
		"error-at=N                  the N-th of them in a queue fails\n"
		"error-every=N               each N-th of them fails\n"
		"errno=NAME                  how: EIO (default), ENOSPC, ..., or a number\n"
		"delay-ms=N                  they take N ms at least\n"
		"split=1                     transfers go down in two halves; when one fails,\n"
		"                            its first half is moved\n"
		"reorder=N                   answers are held until N are there or nothing else\n"
		"                            is in flight, then given latest first\n",
	.open = fault_open,
	.close = fault_close,
	.sync = fault_sync,
	.refresh = fault_refresh,
	.queue_create = fault_queue_create,
	.queue_destroy = fault_queue_destroy,
	.submit = fault_submit,
	.kick = fault_kick,
	.poll_fd = fault_poll_fd,
	.reap = fault_reap,
};
