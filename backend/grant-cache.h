/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Pages of the guest that stay mapped from one request to the next (blkif.h: persistent grants).
 *
 * Owns: the mappings, found by grant reference; at most as many as init() was told, whatever the guest does.
 * Trusts / does not trust: the guest may use a fresh reference each time, revoke one, or die. What lies in a
 *   mapped page may change at any moment.
 * Runs on: the queue's thread. A miss and tidy() make hypercalls, which do not sleep; release() and
 *   destroy() block for a grace period.
 * Must not know: requests, rings, what is in the pages.
 *
 * A page is in use (pinned), idle, or in quarantine: no longer wanted, to be unmapped after a grace period
 * that began when it came there (backend/grace.h says why). Only one period runs at a time, and pages in
 * quarantine count as mapped.
 */
#ifndef VBDISK_GRANT_CACHE_H
#define VBDISK_GRANT_CACHE_H

#include <sys/queue.h>

#include "backend/grace.h"
#include "backend/log.h"
#include "xen-ops.h"

#define GRANT_CACHE_MISS UINT16_MAX /* no page: copy instead */
#define GRANT_CACHE_IDLE_S 60	    /* unused for so long: unmapped */

struct grant_page {
	void *addr;
	uint32_t gref;
	unsigned nr_pins;
	uint64_t used_ns;
	uint16_t hash_next;	      /* of the same bucket; or GRANT_CACHE_MISS */
	TAILQ_ENTRY(grant_page) link; /* of idle, quarantine or free; a pinned page is in none */
};

TAILQ_HEAD(grant_page_list, grant_page);

struct grant_cache {
	struct xen_host *host;
	uint32_t domid;
	unsigned nr_max;
	unsigned nr_mapped; /* in use, idle and in quarantine */
	unsigned nr_used;   /* pages[] from here on were never used */
	struct grant_page *pages;
	uint16_t *buckets; /* of the pages in use and idle */
	unsigned nr_buckets;
	struct grant_page_list idle; /* least recently used first */
	struct grant_page_list quarantine;
	struct grant_page_list free;
	struct grace grace;
	uint64_t now_ns; /* as of the last tidy(): good enough, and no clock is read per request */
	unsigned long nr_map_failures, nr_unmap_failures;
	struct log_limit map_log, unmap_log;
};

/* At most @nr_max pages of @domid, through @host (the caller's). With 0 every reference is a miss, and no
 * memory is taken. 0 or -ENOMEM. */
int grant_cache_init(struct grant_cache *cache, struct xen_host *host, uint32_t domid,
		     unsigned nr_max);

/* Find @gref's page, or map it. A page, to be unpinned as often as it was pinned; GRANT_CACHE_MISS if there
 * is no room, or it cannot be mapped. */
uint16_t grant_cache_pin(struct grant_cache *cache, uint32_t gref);
void grant_cache_unpin(struct grant_cache *cache, uint16_t idx);

static inline void *grant_cache_addr(const struct grant_cache *cache, uint16_t idx)
{
	return cache->pages[idx].addr;
}

/* Once a second while it returns true: unmap what was not used for GRANT_CACHE_IDLE_S. */
bool grant_cache_tidy(struct grant_cache *cache);

/* Unmap everything that is not in use. */
void grant_cache_release(struct grant_cache *cache);

/* Unmap everything: nothing is in use any more, whether unpinned or not. */
void grant_cache_destroy(struct grant_cache *cache);

#endif
