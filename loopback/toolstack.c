// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What xl and libxl do to a block device, done to the loopback host.
 *
 * Owns: the nodes of domains and VBDs as libxl writes and removes them.
 * Trusts / does not trust: what it reads below /libxl is its own; other nodes may hold anything.
 * Runs on: the thread of a command; waits for states by watches, at most for the time given.
 * Must not know: rings, grants.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xen/io/xenbus.h>

#include "backend/clock.h"
#include "loopback/loopback-protocol.h"
#include "loopback/toolstack.h"
#include "xenstore/store.h"

#define PATH_SIZE 256u
#define DESTROY_TIMEOUT_MS 10000u /* LIBXL_DESTROY_TIMEOUT */

struct toolstack {
	const char *dir;
	struct store *store;
	int socket_fd;
};

/* The three places where a VBD has nodes. */
struct vbd_paths {
	char backend[PATH_SIZE];
	char frontend[PATH_SIZE];
	char libxl[PATH_SIZE];
};

int toolstack_open(const char *dir, struct toolstack **toolstack_out, struct error *error)
{
	struct toolstack *toolstack = calloc(1, sizeof(*toolstack));
	struct sockaddr_un address;
	int fds[LOOPBACK_FDS_MAX], err;

	if (!toolstack)
		return error_set(error, ENOMEM, "no memory for the toolstack");
	toolstack->dir = dir;
	toolstack->socket_fd = loopback_hello(dir, 0, false, fds, error);
	if (toolstack->socket_fd < 0) {
		err = toolstack->socket_fd;
		goto err_free;
	}
	err = loopback_address(dir, "xenstored", &address);
	if (err || setenv("XENSTORED_PATH", address.sun_path, 1)) {
		err = error_set(error, ENAMETOOLONG, "%s: cannot name the xenstore socket in it",
				dir);
		goto err_close;
	}
	*toolstack_out = toolstack;
	return 0;

err_close:
	close(toolstack->socket_fd);
err_free:
	free(toolstack);
	return err;
}

void toolstack_close(struct toolstack *toolstack)
{
	store_close(toolstack->store);
	close(toolstack->socket_fd);
	free(toolstack);
}

/* Connect to xenstore when a command first needs it: an audit must not find ourselves. */
static int store_need(struct toolstack *toolstack, struct error *error)
{
	int err = toolstack->store ? 0 : store_open(&toolstack->store);

	return err ? error_set(error, -err, "cannot connect to %s/xenstored: %s", toolstack->dir,
			       strerror(-err))
		   : 0;
}

/* --- Virtual device numbers --- */

static int decimal_parse(const char **text, uint32_t max, uint32_t *number_out)
{
	const char *start = *text;
	uint32_t number = 0;

	while (**text >= '0' && **text <= '9') {
		number = number * 10 + (uint32_t)(*(*text)++ - '0');
		if (number > max)
			return -EINVAL;
	}
	*number_out = number;
	return *text == start ? -EINVAL : 0;
}

/* Letters count a, b, ... z, aa, ab, ... */
static int letters_parse(const char **text, uint32_t *disk_out)
{
	uint32_t disk = 0;

	if (**text < 'a' || **text > 'z')
		return -EINVAL;
	for (; **text >= 'a' && **text <= 'z'; (*text)++) {
		disk = disk * 26 + (uint32_t)(**text - 'a') + 1;
		if (disk > 1u << 20)
			return -EINVAL;
	}
	*disk_out = disk - 1;
	return 0;
}

/* "hda3", "sdb": the numbers of the emulated disks, which have no extended form. */
static int vdev_emulated(bool ide, uint32_t disk, uint32_t partition, uint32_t *vdev_out)
{
	if (disk > (ide ? 3u : 15u) || partition > (ide ? 63u : 15u))
		return -EINVAL;
	*vdev_out = ide ? (disk < 2 ? 3u : 22u) << 8 | (disk & 1) << 6 | partition
			: 8u << 8 | disk << 4 | partition;
	return 0;
}

int toolstack_vdev_parse(const char *text, uint32_t *vdev_out)
{
	bool ide = !strncmp(text, "hd", 2), scsi = !strncmp(text, "sd", 2);
	uint32_t disk, partition = 0;
	const char *at;

	if (*text >= '0' && *text <= '9') {
		unsigned long number;
		char *end;

		errno = 0;
		number = strtoul(text, &end, 0);
		if (errno || *end || number > INT32_MAX)
			return -EINVAL;
		*vdev_out = (uint32_t)number;
		return 0;
	}
	if (ide || scsi || !strncmp(text, "xvd", 3)) {
		at = text + (ide || scsi ? 2 : 3);
		if (letters_parse(&at, &disk) || (*at && decimal_parse(&at, 255, &partition)) ||
		    *at)
			return -EINVAL;
		if (ide || scsi)
			return vdev_emulated(ide, disk, partition, vdev_out);
	} else {
		at = text + 1;
		if (*text != 'd' || decimal_parse(&at, (1u << 20) - 1, &disk))
			return -EINVAL;
		if (*at == 'p' && (at++, decimal_parse(&at, 255, &partition)))
			return -EINVAL;
		if (*at)
			return -EINVAL;
	}
	*vdev_out = disk < 16 && partition < 16 ? 202u << 8 | disk << 4 | partition
						: 1u << 28 | disk << 8 | partition;
	return 0;
}

/* --- Calls to the hypervisor --- */

static int host_call(struct toolstack *toolstack, uint32_t operation, uint32_t domid,
		     struct loopback_reply *reply)
{
	struct loopback_request request = {.operation = operation, .domid = domid};
	int fds[LOOPBACK_FDS_MAX];

	/* None of these brings descriptors. */
	return loopback_call(toolstack->socket_fd, &request, reply, fds);
}

static int domain_call(struct toolstack *toolstack, uint32_t operation, uint32_t domid,
		       const char *what, struct error *error)
{
	struct loopback_reply reply;
	int err = host_call(toolstack, operation, domid, &reply);

	switch (err) {
	case 0:
		return 0;
	case -ESRCH:
		return error_set(error, ESRCH, "cannot %s domain %u: there is no such domain", what,
				 domid);
	case -EEXIST:
		return error_set(error, EEXIST, "cannot %s domain %u: it exists already", what,
				 domid);
	case -EBUSY:
		return error_set(
			error, EBUSY,
			"cannot %s domain %u: its predecessor is dead, but some of its grants "
			"are still mapped (see audit)",
			what, domid);
	case -EPERM:
		return error_set(error, EPERM, "cannot %s domain %u: it is the host", what, domid);
	default:
		return error_set(error, -err, "cannot %s domain %u: %s", what, domid,
				 strerror(-err));
	}
}

int toolstack_domain_suspend(struct toolstack *toolstack, uint32_t domid, struct error *error)
{
	return domain_call(toolstack, LOOPBACK_DOMAIN_SUSPEND, domid, "suspend", error);
}

int toolstack_domain_resume(struct toolstack *toolstack, uint32_t domid, struct error *error)
{
	return domain_call(toolstack, LOOPBACK_DOMAIN_RESUME, domid, "resume", error);
}

int toolstack_domain_state(struct toolstack *toolstack, uint32_t domid,
			   enum xen_domain_state *state_out, struct error *error)
{
	struct loopback_reply reply;
	int err = host_call(toolstack, LOOPBACK_DOMAIN_STATE, domid, &reply);

	if (err)
		return error_set(error, -err, "cannot ask for domain %u: %s", domid,
				 strerror(-err));
	*state_out = (enum xen_domain_state)reply.value;
	return 0;
}

int toolstack_audit(struct toolstack *toolstack, FILE *out, bool json, const uint32_t *ignored_pids,
		    unsigned nr_ignored, unsigned *nr_findings_out, struct error *error)
{
	struct loopback_request *request;
	struct loopback_reply reply;
	int fds[LOOPBACK_FDS_MAX], err;
	char buffer[4096];
	off_t at = 0;
	ssize_t len;

	request = calloc(1, sizeof(*request) + nr_ignored * sizeof(ignored_pids[0]));
	if (!request)
		return error_set(error, ENOMEM, "no memory for the audit");
	request->operation = LOOPBACK_AUDIT;
	request->flag = json;
	request->nr = nr_ignored;
	if (nr_ignored)
		memcpy(request->grefs, ignored_pids, nr_ignored * sizeof(ignored_pids[0]));
	err = loopback_call(toolstack->socket_fd, request, &reply, fds);
	free(request);
	if (err)
		return error_set(error, -err, "the audit failed: %s", strerror(-err));
	while ((len = pread(fds[0], buffer, sizeof(buffer), at)) > 0) {
		fwrite(buffer, 1, (size_t)len, out);
		at += len;
	}
	close(fds[0]);
	if (len < 0 || fflush(out))
		return error_set(error, errno, "cannot print the audit: %s", strerror(errno));
	*nr_findings_out = reply.value;
	return 0;
}

int toolstack_refuse_grant(struct toolstack *toolstack, uint32_t nth, uint32_t count,
			   struct error *error)
{
	struct loopback_request request = {
		.operation = LOOPBACK_REFUSE_GRANT, .id = nth, .nr = count};
	struct loopback_reply reply;
	int fds[LOOPBACK_FDS_MAX], err = loopback_call(toolstack->socket_fd, &request, &reply, fds);

	return err ? error_set(error, -err, "cannot set the fault: %s", strerror(-err)) : 0;
}

int toolstack_stop(struct toolstack *toolstack, struct error *error)
{
	struct loopback_reply reply;
	char byte;
	int err = host_call(toolstack, LOOPBACK_STOP, 0, &reply);

	if (err)
		return error_set(error, -err, "cannot stop the host: %s", strerror(-err));
	/* The end of our connection is the end of the host. */
	while (recv(toolstack->socket_fd, &byte, 1, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* --- Writing nodes --- */

/* A step of a transaction body: do nothing once something failed. */
#define STEP(err, call)                                                                            \
	do {                                                                                       \
		if (!(err))                                                                        \
			(err) = (call);                                                            \
	} while (0)

/* Absent already is as good as removed. */
static int node_remove(struct store *store, const char *path)
{
	int err = store_remove(store, path);

	return err == -ENOENT ? 0 : err;
}

/* Remove @path, and every directory above it that is empty then (libxl__xs_path_cleanup()). */
static int path_cleanup(struct store *store, const char *given)
{
	char path[PATH_SIZE], *slash;
	int err;

	snprintf(path, sizeof(path), "%s", given);
	do {
		char **names;
		unsigned nr;

		err = node_remove(store, path);
		if (err)
			return err;
		slash = strrchr(path, '/');
		*slash = '\0';
		if (slash == path)
			return 0;
		err = store_list(store, path, &names, &nr);
		if (err)
			return err == -ENOENT ? 0 : err;
		free(names);
		if (nr)
			return 0;
	} while (true);
}

static int directory_make(struct store *store, const char *path, uint32_t owner, uint32_t reader)
{
	int err = store_mkdir(store, path);

	return err ? err : store_set_owner_reader(store, path, owner, reader);
}

struct domain_body {
	uint32_t domid;
	bool driver_domain;
};

/* libxl__domain_make(): what a disk or a guest looks for. */
static int domain_nodes_write(struct store *store, void *arg)
{
	static const char *const guest_writable[] = {
		"control/shutdown",
		"device/suspend/event-channel",
		"data",
		"drivers",
		"feature",
		"attr",
		"error",
	};
	const struct domain_body *body = arg;
	char home[PATH_SIZE], path[2 * PATH_SIZE];
	int err = store_domain_path(store, body->domid, home, sizeof(home));

	STEP(err, node_remove(store, home));
	STEP(err, directory_make(store, home, 0, body->domid));
	STEP(err, store_write_key(store, home, "name", "guest-%u", body->domid));
	STEP(err, store_write_key(store, home, "domid", "%u", body->domid));
	snprintf(path, sizeof(path), "%s/device", home);
	STEP(err, directory_make(store, path, 0, body->domid));
	snprintf(path, sizeof(path), "%s/control", home);
	STEP(err, directory_make(store, path, 0, body->domid));
	for (size_t i = 0; i < sizeof(guest_writable) / sizeof(guest_writable[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", home, guest_writable[i]);
		STEP(err, directory_make(store, path, body->domid, 0));
	}
	if (body->driver_domain) {
		snprintf(path, sizeof(path), "%s/libxl", home);
		STEP(err, directory_make(store, path, body->domid, 0));
		snprintf(path, sizeof(path), "%s/device-model", home);
		STEP(err, directory_make(store, path, body->domid, 0));
	}
	snprintf(path, sizeof(path), "/libxl/%u", body->domid);
	STEP(err, directory_make(store, path, 0, 0));
	return err;
}

int toolstack_domain_create(struct toolstack *toolstack, uint32_t domid, bool driver_domain,
			    struct error *error)
{
	struct domain_body body = {.domid = domid, .driver_domain = driver_domain};
	struct error ignored;
	int err = store_need(toolstack, error);

	if (err)
		return err;
	err = domain_call(toolstack, LOOPBACK_DOMAIN_CREATE, domid, "create", error);
	if (err)
		return err;
	err = store_transaction(toolstack->store, domain_nodes_write, &body);
	if (err)
		error_set(error, -err, "cannot write the nodes of domain %u: %s", domid,
			  strerror(-err));
	else
		err = domain_call(toolstack, LOOPBACK_DOMAIN_INTRODUCE, domid, "introduce", error);
	if (err)
		domain_call(toolstack, LOOPBACK_DOMAIN_DESTROY, domid, "destroy", &ignored);
	return err;
}

/* --- Attach --- */

struct attach_body {
	const struct toolstack_disk *disk;
	struct vbd_paths paths;
};

/* The backend's keys, which /libxl repeats. */
static int backend_keys_write(struct store *store, const char *dir,
			      const struct toolstack_disk *disk)
{
	bool qdisk = !strcmp(disk->kind, "qdisk");
	int err = 0;

	STEP(err, store_write_key(store, dir, "params", "%s", disk->params));
	if (!qdisk)
		STEP(err,
		     store_write_key(store, dir, "script", "%s", "/etc/xen/scripts/block-tap"));
	STEP(err, store_write_key(store, dir, "frontend-id", "%u", disk->domid));
	STEP(err, store_write_key(store, dir, "online", "1"));
	STEP(err, store_write_key(store, dir, "removable", "%d", disk->cdrom));
	STEP(err, store_write_key(store, dir, "bootable", "1"));
	STEP(err, store_write_key(store, dir, "state", "%d", XenbusStateInitialising));
	STEP(err, store_write_key(store, dir, "dev", "%s", disk->vdev_text));
	STEP(err, store_write_key(store, dir, "type", "%s", qdisk ? "qdisk" : "tap"));
	STEP(err, store_write_key(store, dir, "mode", "%s", disk->writable ? "w" : "r"));
	STEP(err, store_write_key(store, dir, "device-type", "%s", disk->cdrom ? "cdrom" : "disk"));
	if (disk->direct_io_safe)
		STEP(err, store_write_key(store, dir, "direct-io-safe", "1"));
	STEP(err, store_write_key(store, dir, "discard-enable", "%d",
				  disk->writable && !disk->no_discard));
	STEP(err, store_write_key(store, dir, "specification", "xen"));
	return err;
}

static int directory_renew(struct store *store, const char *path, uint32_t owner, uint32_t reader)
{
	int err = node_remove(store, path);

	return err ? err : directory_make(store, path, owner, reader);
}

/* device_disk_add() and libxl__device_generic_add(), in their order. */
static int attach_write(struct store *store, void *arg)
{
	const struct attach_body *body = arg;
	const struct toolstack_disk *disk = body->disk;
	const struct vbd_paths *paths = &body->paths;
	char text[8];
	int err = store_read_key(store, paths->libxl, "backend", text, sizeof(text));

	if (err != -ENOENT)
		return err == 0 || err == -E2BIG ? -EEXIST : err;
	err = directory_renew(store, paths->libxl, 0, 0);
	STEP(err, store_write_key(store, paths->libxl, "frontend", "%s", paths->frontend));
	STEP(err, store_write_key(store, paths->libxl, "backend", "%s", paths->backend));

	STEP(err, directory_renew(store, paths->frontend, disk->domid, disk->backend_domid));
	STEP(err, store_write_key(store, paths->frontend, "backend", "%s", paths->backend));
	STEP(err, store_write_key(store, paths->frontend, "backend-id", "%u", disk->backend_domid));
	STEP(err, store_write_key(store, paths->frontend, "state", "%d", XenbusStateInitialising));
	STEP(err, store_write_key(store, paths->frontend, "virtual-device", "%u", disk->vdev));
	STEP(err, store_write_key(store, paths->frontend, "device-type", "%s",
				  disk->cdrom ? "cdrom" : "disk"));
	STEP(err, store_write_key(store, paths->frontend, "trusted", "1"));

	STEP(err, directory_renew(store, paths->backend, disk->backend_domid, disk->domid));
	STEP(err, store_write_key(store, paths->backend, "frontend", "%s", paths->frontend));
	STEP(err, backend_keys_write(store, paths->backend, disk));
	STEP(err, backend_keys_write(store, paths->libxl, disk));
	return err;
}

int toolstack_attach(struct toolstack *toolstack, const struct toolstack_disk *disk,
		     struct error *error)
{
	struct attach_body body = {.disk = disk};
	enum xen_domain_state state;
	int err = toolstack_domain_state(toolstack, disk->domid, &state, error);

	if (err)
		return err;
	if (state == XEN_DOMAIN_DEAD)
		return error_set(error, ESRCH, "cannot attach %s: there is no domain %u",
				 disk->vdev_text, disk->domid);
	err = store_need(toolstack, error);
	if (err)
		return err;
	snprintf(body.paths.backend, PATH_SIZE, "/local/domain/%u/backend/%s/%u/%u",
		 disk->backend_domid, disk->kind, disk->domid, disk->vdev);
	snprintf(body.paths.frontend, PATH_SIZE, "/local/domain/%u/device/vbd/%u", disk->domid,
		 disk->vdev);
	snprintf(body.paths.libxl, PATH_SIZE, "/libxl/%u/device/vbd/%u", disk->domid, disk->vdev);
	err = store_transaction(toolstack->store, attach_write, &body);
	if (err == -EEXIST)
		return error_set(error, EEXIST,
				 "domain %u has a device %s already: detach it first", disk->domid,
				 disk->vdev_text);
	return err ? error_set(error, -err, "cannot attach %s to domain %u: %s", disk->vdev_text,
			       disk->domid, strerror(-err))
		   : 0;
}

/* --- Waiting --- */

/* Whether the node at @path is as wanted: 0, -EAGAIN if not yet, -errno. */
static int node_check(struct store *store, const char *path, const char *wanted, bool must_stay)
{
	char value[32];
	int err = store_read(store, path, value, sizeof(value));

	switch (err) {
	case 0:
		return wanted && !strcmp(value, wanted) ? 0 : -EAGAIN;
	case -ENOENT:
		return !wanted ? 0 : must_stay ? -ENOENT : -EAGAIN;
	case -E2BIG: /* a value that does not fit is not the one we want */
		return -EAGAIN;
	default:
		return err;
	}
}

/* Wait until "@dir/@key" reads @wanted, or with NULL until it is gone. With @must_stay a vanished
 * node is -ENOENT (libxl's devstate_callback()). 0, -ETIMEDOUT, -errno. */
static int node_wait(const char *dir, const char *key, const char *wanted, bool must_stay,
		     unsigned timeout_ms)
{
	uint64_t now_ns, end_ns = clock_now_ns() + timeout_ms * NSEC_PER_MSEC;
	char path[PATH_SIZE + 32], event[STORE_PATH_MAX], token[32];
	struct pollfd ready = {.events = POLLIN};
	struct store *store;
	int err;

	snprintf(path, sizeof(path), "%s/%s", dir, key);
	/* A connection for this watch alone: closing it takes late events away, too. */
	err = store_open(&store);
	if (err)
		return err;
	ready.fd = store_fd(store);
	err = store_watch(store, path, "wait");
	while (!err) {
		err = node_check(store, path, wanted, must_stay);
		if (err != -EAGAIN)
			break;
		now_ns = clock_now_ns();
		err = -ETIMEDOUT;
		if (now_ns >= end_ns)
			break;
		if (poll(&ready, 1, (int)((end_ns - now_ns) / NSEC_PER_MSEC) + 1) < 0 &&
		    errno != EINTR) {
			err = -errno;
			break;
		}
		while ((err = store_next_event(store, event, sizeof(event), token, sizeof(token))) >
		       0)
			;
	}
	store_close(store);
	return err;
}

/* Where the nodes of a VBD are. libxl trusts only what it wrote below /libxl. */
static int vbd_find(struct toolstack *toolstack, uint32_t domid, uint32_t vdev,
		    struct vbd_paths *paths, struct error *error)
{
	int err = store_need(toolstack, error);

	if (err)
		return err;
	snprintf(paths->libxl, PATH_SIZE, "/libxl/%u/device/vbd/%u", domid, vdev);
	snprintf(paths->frontend, PATH_SIZE, "/local/domain/%u/device/vbd/%u", domid, vdev);
	err = store_read_key(toolstack->store, paths->libxl, "backend", paths->backend, PATH_SIZE);
	return err ? error_set(error, -err, "domain %u has no device %u: %s", domid, vdev,
			       strerror(-err))
		   : 0;
}

int toolstack_wait(struct toolstack *toolstack, uint32_t domid, uint32_t vdev, bool frontend,
		   unsigned state, unsigned timeout_ms, struct error *error)
{
	struct vbd_paths paths;
	const char *dir = frontend ? paths.frontend : paths.backend;
	char wanted[16], now[32] = "absent";
	int err = vbd_find(toolstack, domid, vdev, &paths, error);

	if (err)
		return err;
	snprintf(wanted, sizeof(wanted), "%u", state);
	err = node_wait(dir, "state", wanted, false, timeout_ms);
	if (!err)
		return 0;
	if (err != -ETIMEDOUT)
		return error_set(error, -err, "cannot wait for %s/state: %s", dir, strerror(-err));
	if (store_read_key(toolstack->store, dir, "state", now, sizeof(now)))
		strcpy(now, "absent");
	return error_set(error, ETIMEDOUT, "%s/state is %s, not %u, after %u ms", dir, now, state,
			 timeout_ms);
}

/* --- Detach and destroy --- */

/* libxl__device_destroy(): @backend_is_ours says who removes the backend's nodes. */
struct remove_body {
	const struct vbd_paths *paths;
	bool backend_is_ours;
};

static int vbd_nodes_remove(struct store *store, void *arg)
{
	const struct remove_body *body = arg;
	int err = path_cleanup(store, body->paths->frontend);

	STEP(err, path_cleanup(store, body->paths->libxl));
	if (body->backend_is_ours)
		STEP(err, path_cleanup(store, body->paths->backend));
	return err;
}

struct close_body {
	const struct vbd_paths *paths;
	bool ask;	      /* online=0, state=5 */
	bool remove_frontend; /* the guest has no say any more */
	bool gone;	      /* out: there is no backend */
};

/* Ask the backend to close, or declare it closed (device_qemu_timeout()). */
static int backend_close(struct store *store, void *arg)
{
	struct close_body *body = arg;
	char state[32];
	int err = store_read_key(store, body->paths->backend, "state", state, sizeof(state));

	body->gone = err == -ENOENT;
	if (err == -E2BIG)
		err = 0;
	if (body->gone)
		return 0;
	if (body->remove_frontend)
		STEP(err, path_cleanup(store, body->paths->frontend));
	if (body->ask)
		STEP(err, store_write_key(store, body->paths->backend, "online", "0"));
	STEP(err, store_write_key(store, body->paths->backend, "state", "%d",
				  body->ask ? XenbusStateClosing : XenbusStateClosed));
	return err;
}

static bool path_in_dom0(const char *backend)
{
	return !strncmp(backend, "/local/domain/0/", 16);
}

static bool path_is_qdisk(const char *backend)
{
	return strstr(backend, "/backend/qdisk/") != NULL;
}

static int vbd_remove(struct toolstack *toolstack, const struct vbd_paths *paths, bool force,
		      struct error *error)
{
	struct remove_body body = {
		.paths = paths,
		.backend_is_ours = path_in_dom0(paths->backend) || force,
	};
	int err = store_transaction(toolstack->store, vbd_nodes_remove, &body);

	return err ? error_set(error, -err, "cannot remove the nodes of %s: %s", paths->backend,
			       strerror(-err))
		   : 0;
}

/* Close and remove one VBD. @dead: the guest does not answer any more; then qdisk is not asked,
 * only told after @grace_ms. @force: remove the nodes whatever the backend does. */
static int vbd_close(struct toolstack *toolstack, const struct vbd_paths *paths, bool dead,
		     bool force, unsigned grace_ms, unsigned timeout_ms, struct error *error)
{
	struct close_body body = {.paths = paths, .ask = !dead || !path_is_qdisk(paths->backend)};
	int err;

	body.remove_frontend = dead && body.ask;
	if (!body.ask)
		poll(NULL, 0, (int)grace_ms);
	err = store_transaction(toolstack->store, backend_close, &body);
	if (err)
		return error_set(error, -err, "cannot close %s: %s", paths->backend,
				 strerror(-err));
	if (!body.gone && body.ask) {
		bool stays = path_in_dom0(paths->backend);

		err = node_wait(paths->backend, "state", "6", stays, timeout_ms);
		if (!err && !stays)
			err = node_wait(paths->backend, "state", NULL, false, timeout_ms);
		if (err == -ENOENT)
			error_set(error, ENOENT,
				  "%s vanished before it was closed: a backend in domain 0 "
				  "must leave its nodes to the toolstack",
				  paths->backend);
		else if (err)
			error_set(error, -err, "%s did not close within %u ms: %s", paths->backend,
				  timeout_ms, strerror(-err));
		if (err && !force)
			return err;
	}
	return vbd_remove(toolstack, paths, force, error);
}

int toolstack_detach(struct toolstack *toolstack, uint32_t domid, uint32_t vdev, bool force,
		     unsigned timeout_ms, struct error *error)
{
	enum xen_domain_state state;
	struct vbd_paths paths;
	int err = vbd_find(toolstack, domid, vdev, &paths, error);

	if (!err)
		err = toolstack_domain_state(toolstack, domid, &state, error);
	if (err)
		return err;
	return vbd_close(toolstack, &paths, state != XEN_DOMAIN_RUNNING, force, 2000, timeout_ms,
			 error);
}

/* All VBDs of a domain. The grace is taken once: libxl closes them side by side. */
static int vbds_close(struct toolstack *toolstack, uint32_t domid, unsigned grace_ms,
		      struct error *error)
{
	char dir[PATH_SIZE], **names;
	struct vbd_paths paths;
	unsigned nr;
	int err;

	snprintf(dir, sizeof(dir), "/libxl/%u/device/vbd", domid);
	err = store_list(toolstack->store, dir, &names, &nr);
	if (err == -ENOENT)
		return 0;
	if (err)
		return error_set(error, -err, "cannot list %s: %s", dir, strerror(-err));
	for (unsigned i = 0; i < nr && !err; i++) {
		uint32_t vdev;

		if (toolstack_vdev_parse(names[i], &vdev))
			continue; /* not one that attach() wrote */
		err = vbd_find(toolstack, domid, vdev, &paths, error);
		if (err)
			break;
		err = vbd_close(toolstack, &paths, true, true, grace_ms, DESTROY_TIMEOUT_MS, error);
		if (path_is_qdisk(paths.backend))
			grace_ms = 0;
	}
	free(names);
	return err;
}

static int domain_nodes_remove(struct store *store, void *arg)
{
	const uint32_t *domid = arg;
	char path[PATH_SIZE];
	int err;

	snprintf(path, sizeof(path), "/local/domain/%u", *domid);
	err = node_remove(store, path);
	snprintf(path, sizeof(path), "/libxl/%u", *domid);
	STEP(err, node_remove(store, path));
	return err;
}

int toolstack_domain_destroy(struct toolstack *toolstack, uint32_t domid, bool keep_nodes,
			     unsigned grace_ms, struct error *error)
{
	enum xen_domain_state state;
	int err = toolstack_domain_state(toolstack, domid, &state, error);

	if (err)
		return err;
	if (!domid)
		return error_set(error, EPERM, "cannot destroy domain 0: it is the host");
	if (state == XEN_DOMAIN_DEAD)
		return error_set(error, ESRCH, "cannot destroy domain %u: there is no such domain",
				 domid);
	if (!keep_nodes) {
		err = store_need(toolstack, error);
		if (!err)
			err = vbds_close(toolstack, domid, grace_ms, error);
		if (err)
			return err;
		err = store_transaction(toolstack->store, domain_nodes_remove, &domid);
		if (err)
			return error_set(error, -err, "cannot remove the nodes of domain %u: %s",
					 domid, strerror(-err));
	}
	return domain_call(toolstack, LOOPBACK_DOMAIN_DESTROY, domid, "destroy", error);
}
