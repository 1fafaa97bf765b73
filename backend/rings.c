// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rings of one frontend: from its keys in xenstore to queues that serve them.
 *
 * Owns: a host handle per ring, and the queues.
 * Trusts / does not trust: nothing of what the frontend says.
 * Runs on: the main thread; makes hypercalls and takes memory, does not wait for storage.
 * Must not know: xenbus states.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend/rings.h"
#include "backend/transport-blkif.h"

/* Grants that a guest can hold with the hypervisor's default of 64 frames of version 1 (xen
 * docs/misc/xen-command-line.pandoc, gnttab_max_frames; 512 entries of 8 bytes in a frame). */
#define GUEST_GRANTS 32768u

static int keys_read(struct vbd_nodes *nodes, const struct vbd_ring_limits *limits,
		     struct vbd_ring_keys *keys, const struct blkif_abi **abi_out,
		     struct error *error)
{
	int err = vbd_nodes_read_ring(nodes, limits, keys, error);

	if (err)
		return err;
	*abi_out = blkif_abi_find(keys->has_protocol ? keys->protocol : NULL);
	if (!*abi_out)
		return error_set(error, EPROTONOSUPPORT, "%s/protocol \"%s\" is not known",
				 nodes->frontend, keys->protocol);
	return 0;
}

/* How large a request may be so that all slots of all rings, full of such, do not ask the guest for more
 * grants than it can have: other devices of the guest need some, too. */
static unsigned indirect_bound(const struct vbd_options *options, const struct blkif_abi *abi,
			       const struct vbd_ring_keys *keys)
{
	unsigned bound = GUEST_GRANTS / (keys->nr_queues * blkif_abi_nr_slots(abi, keys->order));

	if (options->indirect_chosen || bound >= options->indirect)
		return options->indirect;
	return bound > BLKIF_MAX_SEGMENTS ? bound : 0;
}

static int ring_attach(struct rings *rings, uint32_t domid, const struct vbd_config *config,
		       struct blkif_ring_params *params, const struct vbd_queue_keys *keys,
		       struct transport **transport_out, struct error *error)
{
	struct xen_host **host = &rings->hosts[rings->nr_hosts];
	int err = config->host_open(config->host_arg, host, error);

	if (err)
		return err;
	rings->nr_hosts++;
	_Static_assert(sizeof(params->grefs) == sizeof(keys->grefs), "one limit of ring pages");
	memcpy(params->grefs, keys->grefs, sizeof(params->grefs));
	params->event_channel = keys->event_channel;
	return transport_blkif_attach(*host, domid, params, transport_out, error);
}

static int queues_make(struct rings *rings, struct loop *loop, uint32_t domid,
		       const struct vbd_config *config, struct blkif_ring_params *params,
		       const struct vbd_ring_keys *keys, struct disk *disk,
		       const struct disk_limits *offered, const struct queue_set_events *events,
		       struct error *error)
{
	struct transport *transports[VBD_QUEUES_MAX];
	unsigned nr = 0;
	int err = 0;

	_Static_assert(VBD_QUEUES_MAX == VBD_QUEUE_KEYS_MAX, "one limit of queues");
	while (!err && nr < keys->nr_queues) {
		err = ring_attach(rings, domid, config, params, &keys->queues[nr], &transports[nr],
				  error);
		nr += !err;
	}
	if (!err)
		return queue_set_create(loop, config->options.workers, transports, nr, disk,
					offered, events, &rings->queues, error);
	while (nr--)
		transports[nr]->ops->free(transports[nr]);
	return err;
}

int rings_attach(struct rings *rings, struct loop *loop, struct vbd_nodes *nodes,
		 const struct vbd_config *config, const struct vbd_features *features,
		 struct disk *disk, const struct disk_limits *offered,
		 const struct queue_set_events *events, struct error *error)
{
	const struct vbd_options *options = &config->options;
	struct blkif_ring_params params = {
		.barrier = features->barrier,
		/* Not the bound for this frontend: it may have read an earlier, larger offer. */
		.max_indirect = options->indirect,
		.data_bytes_max = options->data_bytes,
	};
	struct vbd_ring_keys keys;
	int err = keys_read(nodes, &features->rings, &keys, &params.abi, error);

	if (err)
		return err;
	params.order = keys.order;
	params.persistent_grants = keys.persistent ? options->persistent : 0;
	err = queues_make(rings, loop, nodes->address.domid, config, &params, &keys, disk, offered,
			  events, error);
	if (err) {
		rings_release(rings);
		return err;
	}
	rings->max_indirect = indirect_bound(options, params.abi, &keys);
	snprintf(rings->description, sizeof(rings->description),
		 "%s, %u queue%s, ring%s of %u pages, %u indirect segments%s", params.abi->protocol,
		 keys.nr_queues, keys.nr_queues > 1 ? "s" : "", keys.nr_queues > 1 ? "s" : "",
		 1u << keys.order, rings->max_indirect,
		 params.persistent_grants ? ", persistent grants" : "");
	return 0;
}

void rings_release(struct rings *rings)
{
	if (rings->queues)
		queue_set_destroy(rings->queues);
	rings->queues = NULL;
	while (rings->nr_hosts) {
		struct xen_host *host = rings->hosts[--rings->nr_hosts];

		host->ops->close(host);
	}
}
