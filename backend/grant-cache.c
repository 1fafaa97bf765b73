// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pages of the guest that stay mapped from one request to the next (blkif.h: persistent grants).
 *
 * Owns: the mappings, found by grant reference.
 * Trusts / does not trust: the guest may use a fresh reference each time, revoke one, or die.
 * Runs on: the queue's thread. A miss and tidy() make hypercalls, which do not sleep; release() and
 *   destroy() block for a grace period.
 * Must not know: requests, rings, what is in the pages.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "backend/clock.h"
#include "backend/grant-cache.h"

/* What a miss in a full cache makes room for: 5 % of the least recently used, so that a grace period and the
 * unmapping serve many misses to come. */
#define SHRINK_DIVISOR 20

int grant_cache_init(struct grant_cache *cache, struct xen_host *host, uint32_t domid,
		     unsigned nr_max)
{
	*cache = (struct grant_cache){
		.host = host,
		.domid = domid,
		.nr_max = MIN(nr_max, GRANT_CACHE_MISS),
		.nr_buckets = 1,
	};
	TAILQ_INIT(&cache->idle);
	TAILQ_INIT(&cache->quarantine);
	TAILQ_INIT(&cache->free);
	grace_init(&cache->grace);
	if (!cache->nr_max)
		return 0;
	while (cache->nr_buckets < cache->nr_max)
		cache->nr_buckets *= 2;
	cache->pages = calloc(cache->nr_max, sizeof(*cache->pages));
	cache->buckets = malloc(cache->nr_buckets * sizeof(*cache->buckets));
	if (!cache->pages || !cache->buckets) {
		free(cache->pages);
		free(cache->buckets);
		return -ENOMEM;
	}
	memset(cache->buckets, 0xff, cache->nr_buckets * sizeof(*cache->buckets));
	return 0;
}

static uint16_t page_idx(const struct grant_cache *cache, const struct grant_page *page)
{
	return (uint16_t)(page - cache->pages);
}

/* ---- Finding ------------------------------------------------------------------------------------ */

/* References are small, dense numbers. A guest that chooses them to collide walks its own cache. */
static uint16_t *bucket(struct grant_cache *cache, uint32_t gref)
{
	return &cache->buckets[gref & (cache->nr_buckets - 1)];
}

static struct grant_page *page_find(struct grant_cache *cache, uint32_t gref)
{
	uint16_t idx = *bucket(cache, gref);

	while (idx != GRANT_CACHE_MISS && cache->pages[idx].gref != gref)
		idx = cache->pages[idx].hash_next;
	return idx == GRANT_CACHE_MISS ? NULL : &cache->pages[idx];
}

static void page_enter(struct grant_cache *cache, struct grant_page *page)
{
	uint16_t *head = bucket(cache, page->gref);

	page->hash_next = *head;
	*head = page_idx(cache, page);
}

static void page_forget(struct grant_cache *cache, struct grant_page *page)
{
	uint16_t *at = bucket(cache, page->gref);

	while (*at != page_idx(cache, page))
		at = &cache->pages[*at].hash_next;
	*at = page->hash_next;
}

/* ---- Letting go --------------------------------------------------------------------------------- */

static void page_quarantine(struct grant_cache *cache, struct grant_page *page)
{
	page_forget(cache, page);
	TAILQ_INSERT_TAIL(&cache->quarantine, page, link);
}

/* The period is over. */
static void quarantine_unmap(struct grant_cache *cache)
{
	struct grant_page *page;

	while ((page = TAILQ_FIRST(&cache->quarantine))) {
		int err = cache->host->ops->unmap(cache->host, page->addr, 1);

		/* Trying again would be no better, and nobody could tell what is mapped there now. */
		if (err) {
			cache->nr_unmap_failures++;
			log_limited(
				&cache->unmap_log, LOG_LEVEL_ERROR,
				"cannot unmap grant %u: %s; the guest's page stays in use until this process ends",
				page->gref, strerror(abs(err)));
		}
		page->addr = NULL;
		TAILQ_REMOVE(&cache->quarantine, page, link);
		TAILQ_INSERT_HEAD(&cache->free, page, link);
		cache->nr_mapped--;
	}
}

static bool quarantine_is_over(struct grant_cache *cache)
{
	return !TAILQ_EMPTY(&cache->quarantine) && grace_over(&cache->grace);
}

/* Move idle pages into quarantine, from the least recently used on: at most @nr_most, none that was used
 * after @before_ns. */
static void idle_quarantine(struct grant_cache *cache, unsigned nr_most, uint64_t before_ns)
{
	struct grant_page *page;

	/* These would need a period that begins now, and one is running. */
	if (!TAILQ_EMPTY(&cache->quarantine))
		return;
	while (nr_most-- && (page = TAILQ_FIRST(&cache->idle)) && page->used_ns <= before_ns) {
		TAILQ_REMOVE(&cache->idle, page, link);
		page_quarantine(cache, page);
	}
	if (!TAILQ_EMPTY(&cache->quarantine))
		grace_request(&cache->grace);
}

bool grant_cache_tidy(struct grant_cache *cache)
{
	const uint64_t idle_ns = GRANT_CACHE_IDLE_S * NSEC_PER_SEC;

	cache->now_ns = clock_now_ns();
	if (quarantine_is_over(cache))
		quarantine_unmap(cache);
	if (cache->now_ns >= idle_ns)
		idle_quarantine(cache, cache->nr_max, cache->now_ns - idle_ns);
	return cache->nr_mapped;
}

static void quarantine_flush(struct grant_cache *cache)
{
	if (TAILQ_EMPTY(&cache->quarantine))
		return;
	grace_wait(&cache->grace);
	quarantine_unmap(cache);
}

void grant_cache_release(struct grant_cache *cache)
{
	struct grant_page *page;

	while ((page = TAILQ_FIRST(&cache->idle))) {
		TAILQ_REMOVE(&cache->idle, page, link);
		page_quarantine(cache, page);
	}
	quarantine_flush(cache);
}

void grant_cache_destroy(struct grant_cache *cache)
{
	for (unsigned i = 0; i < cache->nr_used; i++) {
		struct grant_page *page = &cache->pages[i];

		if (!page->nr_pins)
			continue;
		page->nr_pins = 0;
		page_quarantine(cache, page);
	}
	grant_cache_release(cache);
	grace_destroy(&cache->grace);
	if (cache->nr_map_failures || cache->nr_unmap_failures)
		log_info(
			"%lu times a page of the guest could not be mapped (it was copied), %lu times not unmapped",
			cache->nr_map_failures, cache->nr_unmap_failures);
	free(cache->pages);
	free(cache->buckets);
}

/* ---- Using -------------------------------------------------------------------------------------- */

static struct grant_page *page_get(struct grant_cache *cache)
{
	struct grant_page *page = TAILQ_FIRST(&cache->free);

	if (page)
		TAILQ_REMOVE(&cache->free, page, link);
	else if (cache->nr_used < cache->nr_max)
		page = &cache->pages[cache->nr_used++];
	return page;
}

/* A place for one more page; NULL if there is none now. */
static struct grant_page *page_make(struct grant_cache *cache)
{
	struct grant_page *page = page_get(cache);

	if (page)
		return page;
	if (quarantine_is_over(cache)) {
		quarantine_unmap(cache);
		return page_get(cache);
	}
	idle_quarantine(cache, MAX(1, cache->nr_max / SHRINK_DIVISOR), UINT64_MAX);
	return NULL;
}

/* @gref mapped, idle, as the most recently used; or NULL. */
static struct grant_page *page_map(struct grant_cache *cache, uint32_t gref)
{
	struct grant_page *page = page_make(cache);
	int err;

	if (!page)
		return NULL;
	err = cache->host->ops->map(cache->host, cache->domid, &gref, 1, true, &page->addr);
	if (err) {
		page->addr = NULL;
		TAILQ_INSERT_HEAD(&cache->free, page, link);
		cache->nr_map_failures++;
		log_limited(&cache->map_log, LOG_LEVEL_WARNING,
			    "cannot map grant %u: %s; it is copied instead", gref,
			    strerror(abs(err)));
		return NULL;
	}
	if (!cache->nr_mapped++)
		cache->now_ns = clock_now_ns();
	page->gref = gref;
	page->nr_pins = 0;
	page_enter(cache, page);
	TAILQ_INSERT_TAIL(&cache->idle, page, link);
	return page;
}

uint16_t grant_cache_pin(struct grant_cache *cache, uint32_t gref)
{
	struct grant_page *page = NULL;

	if (cache->nr_max)
		page = page_find(cache, gref);
	if (!page && cache->nr_max)
		page = page_map(cache, gref);
	if (!page)
		return GRANT_CACHE_MISS;
	if (!page->nr_pins++)
		TAILQ_REMOVE(&cache->idle, page, link);
	return page_idx(cache, page);
}

void grant_cache_unpin(struct grant_cache *cache, uint16_t idx)
{
	struct grant_page *page = &cache->pages[idx];

	assert(page->nr_pins);
	if (--page->nr_pins)
		return;
	page->used_ns = cache->now_ns;
	TAILQ_INSERT_TAIL(&cache->idle, page, link);
}
