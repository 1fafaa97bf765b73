/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One VBD's life: from its nodes in xenstore to its disk and its ring, until it ends.
 *
 * Owns: the disk, the rings, and the order in which they come and go.
 * Trusts / does not trust: the toolstack's nodes; not the frontend's.
 * Runs on: the main thread of a vbdisk process. Opening a disk may block; the rest does not.
 * Must not know: the layout of a ring, the kind of driver, who started the process.
 */
#ifndef VBDISK_VBD_H
#define VBDISK_VBD_H

#include "backend/event-loop.h"
#include "backend/exit-status.h"
#include "backend/vbd-options.h"
#include "xen-ops.h"
#include "xenstore/store.h"
#include "xenstore/vbd-nodes.h"

struct run_file;
struct vbd;

struct vbd_config {
	struct vbd_options options;
	const char *run_dir; /* where run files are */
	/* Open a handle on the hypervisor; each queue gets one. 0 or -errno with @error. */
	int (*host_open)(void *arg, struct xen_host **host_out, struct error *error);
	void *host_arg;
};

/* Take up the VBD at @nodes (copied), at the beginning of its life (state 1 or 2). @config is copied;
 * @store and @loop (with an open mailbox) stay the caller's, and so does @run_file, which it holds. The
 * loop is stopped when the life has ended. 0; -EBADMSG with @error if the VBD is past its beginning;
 * -errno. */
int vbd_create(struct loop *loop, struct store *store, const struct vbd_nodes *nodes,
	       const struct vbd_config *config, struct run_file *run_file, struct vbd **vbd_out,
	       struct error *error);

/* Look at xenstore and do what is due. Called once to begin; later by watches. */
void vbd_evaluate(struct vbd *vbd);

/* End by order (SIGTERM): finish and answer what is in flight, close the VBD, stop the loop. */
void vbd_shutdown(struct vbd *vbd);

/* End because the guest is dead: let go of its memory at once, finish what is in flight, and end. */
void vbd_guest_died(struct vbd *vbd);

/* The guest is suspended, and its image may be used elsewhere soon: finish what is in flight and bring
 * it to stable storage. The ring stays, for a guest that is resumed here. */
void vbd_quiesce(struct vbd *vbd);

/* The storage was given another size, says a person (SIGHUP): look now, and adopt a smaller one, too. */
void vbd_size_changed(struct vbd *vbd);

/* How it ended, once the loop has stopped. */
enum vbdisk_exit vbd_exit_status(const struct vbd *vbd);

/* Free everything. Nothing is in flight (the loop has stopped by itself). */
void vbd_destroy(struct vbd *vbd);

#endif
