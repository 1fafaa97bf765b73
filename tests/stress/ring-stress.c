// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Both ends of a ring on one shared page, each on its thread: what the barriers are for, tried millions of
 * times.
 *
 * Owns: the two threads, the page between them, and an eventfd each as its event channel.
 * Trusts: nothing of what it tests: backend/blkif-ring.c and loopback/front-ring.c.
 * Runs on: any machine with a libc and threads, so that it runs under emulation, too (tests/stress/cross).
 * Must not know: what a request means; every word of a slot is pattern here.
 *
 * Notifications are those of the protocol and no more: a side signals the other one only if its
 * publish() says so, and sleeps only after its arm() says that nothing is there. Before it sleeps it
 * polls for a random while, so that the other side finds it awake as often as asleep or, which is what
 * fences C and D are for, on its way from one to the other.
 *
 * What must hold: a slot is what was put into it, in order; each request is answered once; and nobody
 * sleeps for ever (seen as 20 s without an answer). A wake-up that is lost is never made up for: as
 * ring.h counts, a later publication does not cross the same event index again.
 *
 * What this cannot see on x86 or in an emulator on it: a weakened A or B, since that processor reorders
 * neither stores nor loads among themselves. ThreadSanitizer does (scripts/check).
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "backend/blkif-ring.h"
#include "loopback/front-ring.h"
#include "xen-ops.h"

#define REQUESTS_DEFAULT 1000000u
#define STALL_S 20
#define WATCH_INTERVAL_MS 20
#define NR_SLOTS_MAX 32u /* ring.h __RING_SIZE of one page, for each layout */

/* Polls before a sleep: mostly so many that an answer comes first, for a sleep costs as much as a hundred
 * answers; else about as many as the answer takes. One of POLLS_SHORT_ONE_IN is short. */
#define POLLS_LONG 65536u
#define POLLS_SHORT 128u
#define POLLS_SHORT_ONE_IN 4u
/* Idle turns before an answer and after a request. The long pauses let the other side run the ring empty. */
#define PAUSE_TURNS 256u
#define PAUSE_LONG_TURNS 32768u
#define PAUSE_LONG_ONE_IN 64u

struct side {
	int wake_fd;
	int peer_wake_fd;
	uint64_t random;
	unsigned polls_left;

	uint64_t nr_done; /* these two for the watchdog */
	bool asleep;

	uint64_t nr_sleeps;
	uint64_t nr_saved;	/* sleeps not slept: arm() saw something */
	uint64_t nr_notified;	/* publications with a signal ... */
	uint64_t nr_suppressed; /* ... and without */
} __attribute__((aligned(64)));

struct phase {
	const char *name;
	const struct blkif_abi *abi;
	unsigned depth;
	bool shuffled; /* answers out of order; batches and pauses of random length */
};

static const struct phase phases[] = {
	{"one request at a time, 64-bit layout", &blkif_abi_x86_64, 1, false},
	{"one request at a time, 32-bit layout", &blkif_abi_x86_32, 1, false},
	{"a full ring, 64-bit layout", &blkif_abi_x86_64, NR_SLOTS_MAX, false},
	{"a full ring, 32-bit layout", &blkif_abi_x86_32, NR_SLOTS_MAX, false},
	{"a full ring, answers in random order, 64-bit layout", &blkif_abi_x86_64, NR_SLOTS_MAX,
	 true},
	{"a full ring, answers in random order, 32-bit layout", &blkif_abi_x86_32, NR_SLOTS_MAX,
	 true},
};
#define NR_PHASES (sizeof(phases) / sizeof(phases[0]))

static uint8_t shared[XEN_PAGE_SIZE] __attribute__((aligned(4096)));
static const struct phase *phase;
static uint64_t nr_requests; /* of the phase */
static struct front_ring front_ring;
static struct blkif_ring back_ring;
static struct side front, back;
static unsigned nr_finished;
static cpu_set_t cpus_allowed; /* none: not known */

/* ---- What went wrong --------------------------------------------------------------------------- */

/* The other thread may run on: these are a picture, not a state. */
static void indices_print(void)
{
	printf("#   shared:   req_prod %08" PRIx32 " req_event %08" PRIx32 " rsp_prod %08" PRIx32
	       " rsp_event %08" PRIx32 "\n",
	       front_ring_peek(&front_ring, FRONT_OFF_REQ_PROD),
	       front_ring_peek(&front_ring, FRONT_OFF_REQ_EVENT),
	       front_ring_peek(&front_ring, FRONT_OFF_RSP_PROD),
	       front_ring_peek(&front_ring, FRONT_OFF_RSP_EVENT));
	printf("#   frontend: req_prod_pvt %08" PRIx32 " req_prod %08" PRIx32 " rsp_cons %08" PRIx32
	       ", %" PRIu64 " answers, %s\n",
	       front_ring.req_prod_pvt, front_ring.req_prod, front_ring.rsp_cons, front.nr_done,
	       front.asleep ? "asleep" : "awake");
	printf("#   backend:  req_cons %08" PRIx32 " rsp_prod_pvt %08" PRIx32 " rsp_prod %08" PRIx32
	       ", %" PRIu64 " answers, %s\n",
	       back_ring.req_cons, back_ring.rsp_prod_pvt, back_ring.rsp_prod, back.nr_done,
	       back.asleep ? "asleep" : "awake");
}

/* The other thread may be asleep for ever: no way back. */
static _Noreturn void fail(const char *what, uint64_t expected, uint64_t found)
{
	printf("not ok %zu - %s\n# %s: expected 0x%" PRIx64 ", found 0x%" PRIx64 "\n",
	       (size_t)(phase - phases) + 1, phase->name, what, expected, found);
	indices_print();
	fflush(stdout);
	_exit(1);
}

/* A processor for each side if there are two: the scheduler likes to put a thread where it was woken from,
 * and threads that take turns on one processor cannot race. */
static void cpu_choose(int nr)
{
	cpu_set_t one;

	if (CPU_COUNT(&cpus_allowed) < 2)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &cpus_allowed) || nr--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

/* ---- A side ------------------------------------------------------------------------------------ */

static uint32_t side_random(struct side *side, uint32_t below)
{
	/* xorshift64 */
	side->random ^= side->random << 13;
	side->random ^= side->random >> 7;
	side->random ^= side->random << 17;
	return (uint32_t)(((side->random >> 32) * below) >> 32);
}

static void side_pause(struct side *side)
{
	bool is_long = !side_random(side, PAUSE_LONG_ONE_IN);
	uint32_t turns = side_random(side, is_long ? PAUSE_LONG_TURNS : PAUSE_TURNS);

	/* Half of the time none at all. */
	if (turns & 1)
		return;
	for (uint32_t i = 0; i < turns; i++)
		__asm__ volatile("" ::: "memory");
}

static void side_signal(struct side *side, bool wanted)
{
	uint64_t one = 1;

	if (!wanted) {
		side->nr_suppressed++;
		return;
	}
	side->nr_notified++;
	if (write(side->peer_wake_fd, &one, sizeof(one)) != sizeof(one))
		fail("write to an eventfd", 0, (uint64_t)errno);
}

static void side_sleep(struct side *side)
{
	uint64_t count;
	ssize_t ret;

	side->nr_sleeps++;
	__atomic_store_n(&side->asleep, true, __ATOMIC_RELAXED);
	do {
		ret = read(side->wake_fd, &count, sizeof(count));
	} while (ret < 0 && errno == EINTR);
	if (ret != sizeof(count))
		fail("read of an eventfd", 0, (uint64_t)errno);
	__atomic_store_n(&side->asleep, false, __ATOMIC_RELAXED);
}

static void side_polls_begin(struct side *side)
{
	/* On one processor it is no use to wait for the other thread. */
	bool is_long = CPU_COUNT(&cpus_allowed) > 1 && side_random(side, POLLS_SHORT_ONE_IN);

	side->polls_left = is_long ? POLLS_LONG : side_random(side, POLLS_SHORT);
}

/* Nothing to do. True if that was so often enough now that the side should arm and sleep. */
static bool side_idle(struct side *side)
{
	if (side->polls_left) {
		side->polls_left--;
		return false;
	}
	side_polls_begin(side);
	return true;
}

static void side_done(struct side *side)
{
	__atomic_store_n(&side->nr_done, side->nr_done + 1, __ATOMIC_RELAXED);
}

/* One by one there are the most publications, and so the most to miss. */
static unsigned batch_most(struct side *side)
{
	return phase->shuffled ? 1 + side_random(side, NR_SLOTS_MAX) : 1;
}

/* ---- The pattern ------------------------------------------------------------------------------- */

/* An id tells both: the number of a request, and the frontend's place for what it waits for. */
static uint64_t id_make(uint64_t seq, unsigned place)
{
	return seq << 8 | place;
}

static uint32_t word_of(uint64_t seq, unsigned idx)
{
	return ((uint32_t)seq + idx) * 0x9e3779b1u ^ idx << 24; /* odd: no two seqs alike */
}

static uint8_t operation_of(uint64_t seq)
{
	return (uint8_t)(seq * 7);
}

static int16_t status_of(uint64_t seq)
{
	return (int16_t)(uint16_t)(seq * 0x9e3779b1u >> 16);
}

static void slot_fill(uint8_t *slot, uint64_t seq, unsigned place)
{
	for (unsigned i = 0; i < phase->abi->slot_bytes / 4u; i++)
		blkif_put32(slot, 4 * i, word_of(seq, i));
	blkif_put64(slot, phase->abi->off_id, id_make(seq, place));
}

/* Requests come in order, so the backend knows all of a slot but the place. Returns the id. */
static uint64_t slot_check(const uint8_t *slot, uint64_t seq)
{
	uint64_t id = blkif_get64(slot, phase->abi->off_id);
	uint8_t expected[BLKIF_SLOT_BYTES_MAX];

	if (id >> 8 != seq)
		fail("a request's number", seq, id >> 8);
	slot_fill(expected, seq, (unsigned)(id & 0xff));
	for (unsigned i = 0; i < phase->abi->slot_bytes; i += 4)
		if (blkif_get32(slot, i) != blkif_get32(expected, i))
			fail("a word of a request", blkif_get32(expected, i), blkif_get32(slot, i));
	return id;
}

/* ---- The frontend ------------------------------------------------------------------------------ */

struct places {
	uint64_t seq[NR_SLOTS_MAX]; /* of the unanswered request there */
	uint8_t free[NR_SLOTS_MAX];
	unsigned nr_free;
};

static void places_init(struct places *places)
{
	places->nr_free = phase->depth;
	for (unsigned i = 0; i < phase->depth; i++) {
		places->seq[i] = UINT64_MAX;
		places->free[i] = (uint8_t)i;
	}
}

static unsigned requests_put(struct places *places, uint64_t *next_seq)
{
	uint8_t slot[BLKIF_SLOT_BYTES_MAX];
	unsigned nr = places->nr_free;

	if (nr > nr_requests - *next_seq)
		nr = (unsigned)(nr_requests - *next_seq);
	if (phase->shuffled && nr)
		nr = 1 + side_random(&front, nr);
	for (unsigned i = 0; i < nr; i++) {
		unsigned place = places->free[--places->nr_free];

		if (!front_ring_nr_free(&front_ring))
			fail("free slots", 1, 0);
		places->seq[place] = *next_seq;
		slot_fill(slot, (*next_seq)++, place);
		front_ring_put(&front_ring, slot);
	}
	return nr;
}

static unsigned answers_take(struct places *places)
{
	unsigned most = batch_most(&front);
	struct front_response response;
	unsigned nr = 0;
	int ret = 0;

	while (nr < most && (ret = front_ring_take(&front_ring, &response)) == 1) {
		uint64_t seq = response.id >> 8;
		unsigned place = (unsigned)(response.id & 0xff);

		if (place >= phase->depth)
			fail("the place in an answer's id", phase->depth, place);
		if (places->seq[place] != seq)
			fail("an answer's number", places->seq[place], seq);
		if (response.operation != operation_of(seq))
			fail("an answer's operation", operation_of(seq), response.operation);
		if (response.status != status_of(seq))
			fail("an answer's status", (uint16_t)status_of(seq),
			     (uint16_t)response.status);
		places->seq[place] = UINT64_MAX;
		places->free[places->nr_free++] = (uint8_t)place;
		side_done(&front);
		nr++;
	}
	if (ret < 0)
		fail("taking an answer", 0, (uint64_t)-ret);
	return nr;
}

static void *front_run(void *arg)
{
	struct places places;
	uint64_t next_seq = 0;

	cpu_choose(0);
	places_init(&places);
	while (front.nr_done < nr_requests) {
		unsigned nr_put = requests_put(&places, &next_seq);

		if (nr_put) {
			side_signal(&front, front_ring_publish(&front_ring));
			side_pause(&front);
		}
		if (answers_take(&places)) {
			side_polls_begin(&front);
			continue;
		}
		if (nr_put || !side_idle(&front))
			continue;
		if (front_ring_arm(&front_ring))
			front.nr_saved++;
		else
			side_sleep(&front);
	}
	__atomic_add_fetch(&nr_finished, 1, __ATOMIC_RELEASE);
	return arg;
}

/* ---- The backend ------------------------------------------------------------------------------- */

struct held {
	uint64_t ids[NR_SLOTS_MAX];
	unsigned nr;
};

static void requests_pop(struct held *held, uint64_t *next_seq)
{
	unsigned most = batch_most(&back);
	uint8_t slot[BLKIF_SLOT_BYTES_MAX];
	int ret = 0;

	while (most-- && (ret = blkif_ring_pop(&back_ring, slot)) == 1) {
		if (held->nr == phase->depth)
			fail("unanswered requests", phase->depth, held->nr + 1);
		held->ids[held->nr++] = slot_check(slot, (*next_seq)++);
	}
	if (ret < 0)
		fail("popping a request", 0, (uint64_t)-ret);
}

static void answers_put(struct held *held)
{
	unsigned nr = 1 + side_random(&back, held->nr);

	while (nr--) {
		unsigned pick = side_random(&back, held->nr);
		uint64_t seq = held->ids[pick] >> 8;

		blkif_ring_put(&back_ring, held->ids[pick], operation_of(seq), status_of(seq));
		held->ids[pick] = held->ids[--held->nr];
		side_done(&back);
	}
}

static void *back_run(void *arg)
{
	struct held held = {.nr = 0};
	uint64_t next_seq = 0;

	cpu_choose(1);
	while (back.nr_done < nr_requests) {
		requests_pop(&held, &next_seq);
		if (held.nr) {
			side_pause(&back);
			answers_put(&held);
			side_signal(&back, blkif_ring_publish(&back_ring));
			side_polls_begin(&back);
			continue;
		}
		if (!side_idle(&back))
			continue;
		if (blkif_ring_arm(&back_ring))
			back.nr_saved++;
		else
			side_sleep(&back);
	}
	__atomic_add_fetch(&nr_finished, 1, __ATOMIC_RELEASE);
	return arg;
}

/* ---- Phases ------------------------------------------------------------------------------------ */

/* As SHARED_RING_INIT, but so that all indices wrap in the middle of the phase. */
static void rings_init(void)
{
	uint32_t start = 0u - (uint32_t)(nr_requests / 2);

	memset(shared, 0, sizeof(shared));
	front_ring_init(&front_ring, phase->abi, shared, 0);
	blkif_ring_init(&back_ring, phase->abi, shared, 0);
	front_ring.req_prod_pvt = front_ring.req_prod = front_ring.rsp_cons = start;
	back_ring.req_cons = back_ring.rsp_prod_pvt = back_ring.rsp_prod = start;
	front_ring_poke(&front_ring, FRONT_OFF_REQ_PROD, start);
	front_ring_poke(&front_ring, FRONT_OFF_RSP_PROD, start);
	front_ring_poke(&front_ring, FRONT_OFF_REQ_EVENT, start + 1);
	front_ring_poke(&front_ring, FRONT_OFF_RSP_EVENT, start + 1);
}

/* Until both threads are through, or no answer has come for STALL_S. */
static void progress_watch(void)
{
	const struct timespec interval = {.tv_nsec = WATCH_INTERVAL_MS * 1000000L};
	unsigned nr_still = 0;
	uint64_t seen = 0;

	while (__atomic_load_n(&nr_finished, __ATOMIC_ACQUIRE) < 2) {
		uint64_t nr_done = __atomic_load_n(&front.nr_done, __ATOMIC_RELAXED);

		nr_still = nr_done == seen ? nr_still + 1 : 0;
		seen = nr_done;
		if (nr_still > STALL_S * 1000 / WATCH_INTERVAL_MS)
			fail("a lost wake-up or request: answers", nr_requests, nr_done);
		nanosleep(&interval, NULL);
	}
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void side_print(const char *name, const struct side *side)
{
	printf("#   %-8s slept %" PRIu64 ", stayed awake after arming %" PRIu64
	       "; notified %" PRIu64 ", did not have to %" PRIu64 "\n",
	       name, side->nr_sleeps, side->nr_saved, side->nr_notified, side->nr_suppressed);
}

static void side_begin(struct side *side)
{
	side_polls_begin(side);
	side->nr_done = 0;
	side->nr_sleeps = side->nr_saved = side->nr_notified = side->nr_suppressed = 0;
}

static void side_add(struct side *sum, const struct side *side)
{
	sum->nr_sleeps += side->nr_sleeps;
	sum->nr_saved += side->nr_saved;
	sum->nr_notified += side->nr_notified;
	sum->nr_suppressed += side->nr_suppressed;
}

static void phase_run(void)
{
	pthread_t front_thread, back_thread;
	double start_s = now_s();

	rings_init();
	side_begin(&front);
	side_begin(&back);
	nr_finished = 0;
	if (pthread_create(&front_thread, NULL, front_run, NULL) ||
	    pthread_create(&back_thread, NULL, back_run, NULL))
		fail("starting threads", 0, 1);
	progress_watch();
	pthread_join(front_thread, NULL);
	pthread_join(back_thread, NULL);
	printf("ok %zu - %s\n# %" PRIu64 " requests in %.2f s\n", (size_t)(phase - phases) + 1,
	       phase->name, nr_requests, now_s() - start_s);
	side_print("frontend", &front);
	side_print("backend", &back);
	fflush(stdout);
}

/* A run in which one side never slept, or always did, has tried nothing. */
static bool paths_all_seen(const struct side *side, uint64_t at_least)
{
	return side->nr_sleeps >= at_least && side->nr_notified >= at_least &&
	       side->nr_suppressed >= at_least;
}

static void side_open(struct side *side, uint64_t seed)
{
	side->random = (seed + 1) * 0x9e3779b97f4a7c15u; /* odd, so not 0 for any small seed */
	side->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (side->wake_fd < 0) {
		perror("Bail out! eventfd");
		exit(1);
	}
}

static void usage(FILE *to)
{
	fprintf(to,
		"usage: ring-stress [--requests N] [--seed S]\n"
		"  --requests N  how many in all, over %zu phases (default %u)\n"
		"  --seed S      of the pauses; two runs with one seed are not alike (default 1)\n",
		NR_PHASES, REQUESTS_DEFAULT);
}

static uint64_t number_parse(const char *text)
{
	char *end = NULL;
	uint64_t value = 0;

	if (text)
		value = strtoull(text, &end, 10);
	if (!end || end == text || *end) {
		usage(stderr);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	uint64_t total = REQUESTS_DEFAULT, seed = 1, at_least;
	struct side front_sum = {0}, back_sum = {0};
	bool seen;

	for (int i = 1; i < argc; i += 2) {
		if (!strcmp(argv[i], "--requests")) {
			total = number_parse(argv[i + 1]);
		} else if (!strcmp(argv[i], "--seed")) {
			seed = number_parse(argv[i + 1]);
		} else {
			usage(strcmp(argv[i], "--help") ? stderr : stdout);
			return strcmp(argv[i], "--help") ? 2 : 0;
		}
	}
	if (sched_getaffinity(0, sizeof(cpus_allowed), &cpus_allowed))
		CPU_ZERO(&cpus_allowed);
	side_open(&front, 2 * seed);
	side_open(&back, 2 * seed + 1);
	front.peer_wake_fd = back.wake_fd;
	back.peer_wake_fd = front.wake_fd;
	nr_requests = total / NR_PHASES;

	printf("1..%zu\n# seed %" PRIu64 "\n", NR_PHASES + 1, seed);
	for (phase = phases; phase < phases + NR_PHASES; phase++) {
		phase_run();
		side_add(&front_sum, &front);
		side_add(&back_sum, &back);
	}
	at_least = total / 10000 + 1;
	seen = paths_all_seen(&front_sum, at_least) && paths_all_seen(&back_sum, at_least);
	printf("%s %zu - both sides slept, were woken, and were left alone, %" PRIu64
	       " times or more\n",
	       seen ? "ok" : "not ok", NR_PHASES + 1, at_least);
	side_print("frontend", &front_sum);
	side_print("backend", &back_sum);
	return seen ? 0 : 1;
}
