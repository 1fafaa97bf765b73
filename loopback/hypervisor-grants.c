// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Grants of the loopback host: pages that one domain lets another use.
 *
 * Owns: the grant tables (private and shared), mappings, the life of a page.
 * Trusts / does not trust: a client may name any domain and any grant; all or nothing is done.
 * Runs on: the host's one thread; never blocks.
 * Must not know: event channels, xenstore.
 *
 * A grant is usable while it is shared; its page is free for others only once no mapping is left,
 * because a mapping outlives the revocation, as on Xen. A dead domain stays (a zombie) as long as
 * one of its pages is mapped.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "loopback/hypervisor-internal.h"

static bool grant_in_use(const struct grant *grant)
{
	return grant->shared || grant->nr_mappings;
}

static int grants_find_free(const struct domain *domain, uint32_t nr, uint32_t *first_out)
{
	uint32_t run = 0;

	for (uint32_t gref = LOOPBACK_FIRST_GREF; gref < LOOPBACK_NR_GREFS; gref++) {
		run = grant_in_use(&domain->grants[gref]) ? 0 : run + 1;
		if (run == nr) {
			*first_out = gref + 1 - nr;
			return 0;
		}
	}
	return -ENOSPC;
}

/* Give the page back to the kernel, so that its next user finds zeros. */
static void page_clear(struct domain *domain, uint32_t gref)
{
	if (fallocate(domain->arena_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)loopback_page_offset(gref), XEN_PAGE_SIZE))
		log_error("domain %u: cannot clear the page of grant %u: %s", domain->domid, gref,
			  strerror(errno));
}

static void grant_revoke(struct domain *domain, uint32_t gref)
{
	atomic_store(&domain->arena->grants[gref], 0);
	domain->grants[gref].shared = false;
	if (!grant_in_use(&domain->grants[gref]))
		page_clear(domain, gref);
}

static void share_drop(struct share *share)
{
	for (uint32_t i = 0; i < share->nr; i++)
		if (share->domain->grants[share->first + i].shared)
			grant_revoke(share->domain, share->first + i);
	LIST_REMOVE(share, link);
	free(share);
}

static void mapping_drop(struct mapping *mapping)
{
	struct domain *domain = mapping->domain;

	for (uint32_t i = 0; i < mapping->nr; i++) {
		struct grant *grant = &domain->grants[mapping->grefs[i]];

		grant->nr_mappings--;
		domain->nr_mappings--;
		if (!grant_in_use(grant))
			page_clear(domain, mapping->grefs[i]);
	}
	LIST_REMOVE(mapping, link);
	free(mapping);
	if (domain->state == XEN_DOMAIN_DEAD && !domain->nr_mappings)
		domain_free(domain);
}

int call_share(struct client *client, const struct loopback_request *request, struct answer *answer)
{
	struct domain *domain = client->domain;
	struct share *share;
	uint32_t first;
	int err;

	if (!request->nr || request->nr > LOOPBACK_NR_GREFS || request->domid > LOOPBACK_DOMID_MAX)
		return -EINVAL;
	err = grants_find_free(domain, request->nr, &first);
	if (err)
		return err;
	share = calloc(1, sizeof(*share));
	if (!share)
		return -ENOMEM;
	share->id = client->next_id++;
	share->domain = domain;
	share->first = first;
	share->nr = request->nr;
	LIST_INSERT_HEAD(&client->shares, share, link);
	for (uint32_t i = 0; i < request->nr; i++) {
		domain->grants[first + i] = (struct grant){
			.shared = true,
			.writable = request->flag,
			.peer_domid = (uint16_t)request->domid,
		};
		atomic_store(&domain->arena->grants[first + i],
			     LOOPBACK_GRANT_VALID | (request->flag ? LOOPBACK_GRANT_WRITABLE : 0) |
				     request->domid << LOOPBACK_GRANT_PEER_SHIFT);
	}
	answer->reply.id = share->id;
	answer->reply.value = first;
	answer_fd(answer, domain->arena_fd);
	return 0;
}

int call_unshare(struct client *client, const struct loopback_request *request)
{
	struct share *share;

	LIST_FOREACH(share, &client->shares, link) {
		if (share->id == request->id) {
			share_drop(share);
			return 0;
		}
	}
	return -EINVAL;
}

int call_map(struct client *client, const struct loopback_request *request, struct answer *answer)
{
	const uint32_t *grefs = request->grefs;
	struct domain *domain = domain_find_alive(client->hypervisor, request->domid);
	struct mapping *mapping;

	if (!domain)
		return -ESRCH;
	if (!request->nr)
		return -EINVAL;
	for (uint32_t i = 0; i < request->nr; i++) {
		const struct grant *grant = grefs[i] < LOOPBACK_NR_GREFS ? &domain->grants[grefs[i]]
									 : NULL;

		if (!grant || !grant->shared)
			return -EINVAL;
		if (grant->peer_domid != client->domain->domid ||
		    (request->flag && !grant->writable) ||
		    loopback_grant_refused(client->hypervisor->events))
			return -EACCES;
	}
	mapping = malloc(sizeof(*mapping) + request->nr * sizeof(mapping->grefs[0]));
	if (!mapping)
		return -ENOMEM;
	mapping->id = client->next_id++;
	mapping->domain = domain;
	mapping->nr = request->nr;
	memcpy(mapping->grefs, grefs, request->nr * sizeof(grefs[0]));
	for (uint32_t i = 0; i < request->nr; i++)
		domain->grants[grefs[i]].nr_mappings++;
	domain->nr_mappings += request->nr;
	LIST_INSERT_HEAD(&client->mappings, mapping, link);
	answer->reply.id = mapping->id;
	answer_fd(answer, domain->arena_fd);
	return 0;
}

int call_unmap(struct client *client, const struct loopback_request *request)
{
	struct mapping *mapping;

	LIST_FOREACH(mapping, &client->mappings, link) {
		if (mapping->id == request->id) {
			mapping_drop(mapping);
			return 0;
		}
	}
	return -EINVAL;
}

int call_arena(struct client *client, const struct loopback_request *request, struct answer *answer)
{
	struct domain *domain = domain_find_alive(client->hypervisor, request->domid);

	if (!domain)
		return -ESRCH;
	answer_fd(answer, domain->arena_fd);
	return 0;
}

void client_release_grants(struct client *client)
{
	struct share *share;
	struct mapping *mapping;

	while ((share = LIST_FIRST(&client->shares)))
		share_drop(share);
	while ((mapping = LIST_FIRST(&client->mappings)))
		mapping_drop(mapping);
}
