/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the files of hostile mode share: the table's rows, requests and answers, TAP.
 *
 * Owns: struct hostile, for one run. Trusts / does not trust: a backend under test, in nothing.
 * Runs on: the main thread; sleeps for answers. Must not know: options, jobs.
 */
#ifndef VBDISK_FRONT_HOSTILE_INTERNAL_H
#define VBDISK_FRONT_HOSTILE_INTERNAL_H

#include <stdbool.h>
#include <stdio.h>

#include "backend/clock.h"
#include "loopback/front-hostile.h"
#include "loopback/front-pattern.h"

#define ANSWER_NS (5 * NSEC_PER_SEC)  /* a backend that is well answers long before */
#define SILENCE_NS (NSEC_PER_SEC / 2) /* how long no answer counts as none */
#define UNTOUCHED 0x5a		      /* fills pages that must not change */
#define MIN_DISK_SECTORS 1024

/* Our shared pages. The data page has a guard on both sides, here and in the grant table. */
enum { PAGE_GUARD_LOW, PAGE_DATA, PAGE_GUARD_HIGH, PAGE_BEFORE, PAGE_AFTER, PAGE_TABLE, NR_PAGES };

/* What an answer may be, as bits. */
#define OKAY (1u << 0)
#define ERROR (1u << 1)
#define UNSUPPORTED (1u << 2)
#define REFUSED (ERROR | UNSUPPORTED)

struct hostile {
	struct front *front;
	struct front_pages pages;
	struct error *error;
	FILE *tap;
	const char *row;
	unsigned nr_races;
	unsigned nr_tests, nr_failed;
	uint64_t id_state;
};

#define ROW_CONNECTS_ITSELF (1u << 0) /* called without a connection */
#define ROW_STOPS_RING (1u << 1)      /* good I/O only after a new connection */
#define ROW_IN_GRANTS (1u << 2)	      /* of the group "grants" */

struct row {
	const char *name, *what;
	void (*run)(struct hostile *h);
	unsigned flags;
};

/* The rows, one list per file; each ends with a row without a name. */
extern const struct row front_hostile_ring_rows[];
extern const struct row front_hostile_connect_rows[];
extern const struct row front_hostile_grant_rows[];

/* One TAP line; returns @good. */
__attribute__((format(printf, 3, 4))) bool check(struct hostile *h, bool good, const char *format,
						 ...);

/* A row, or a part of one, that cannot be tried here, and why. */
void skip(struct hostile *h, const char *why);
/* The connection. */
struct front_link *link_of(struct hostile *h);
/* Our shared page @page (one of the names above). */
uint8_t *page_addr(const struct hostile *h, unsigned page);
/* Make the page one that must not change. */
void page_fill(struct hostile *h, unsigned page);
/* True if it has not. */
bool page_untouched(const struct hostile *h, unsigned page);
bool data_untouched(const struct hostile *h);
/* The same for the data page and its guards. */
void data_fill(struct hostile *h);
struct blkif_segment segment_make(const struct hostile *h, unsigned page, uint8_t first,
				  uint8_t last);
/* A request of @nr_segments whole data pages at @sector with an id of its own. */
struct front_request request_make(struct hostile *h, uint8_t operation, uint8_t nr_segments,
				  uint64_t sector);
/* Put it into the ring; nothing is published. */
void request_put(struct hostile *h, const struct front_request *request);
/* Wait for one answer. */
int answer_take(struct hostile *h, struct front_response *response);
/* Publish what was put and wait for one answer. */
int answer_await(struct hostile *h, struct front_response *response);
/* The bit of a status, as above; 0 for one that is none. */
unsigned status_bit(int16_t status);

/* Likewise; it must carry @id and @operation (or @inner_op) and one of @statuses. */
bool answer_expect(struct hostile *h, uint64_t id, uint8_t operation, uint8_t inner_op,
		   unsigned statuses, const char *what);
/* Put @request and expect one of @statuses. */
bool request_expect(struct hostile *h, const struct front_request *request, unsigned statuses,
		    const char *what);
/* Read the page at @sector into @page; false if that fails. */
bool page_read(struct hostile *h, uint64_t sector, unsigned page);
/* Read the page at @sector, to compare later. */
bool contents_note(struct hostile *h, uint64_t sector);
/* True if it still reads the same. */
bool contents_unchanged(struct hostile *h, uint64_t sector);
uint64_t disk_sectors(const struct hostile *h);
/* Whether rsp_prod moves within SILENCE_NS. */
bool ring_answers(struct hostile *h);
/* Connect, and share the pages. 0 or -errno with h->error. */
int session_begin(struct hostile *h);
/* Disconnect, and revoke them. Likewise. */
int session_end(struct hostile *h);

#endif
