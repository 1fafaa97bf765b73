// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The loopback host as a whole: the hypervisor and the xenstore server on one event loop.
 *
 * Owns: the directory (by a lock on it), the loop, both servers, what one tells the other.
 * Trusts / does not trust: clients are the servers' business.
 * Runs on: one thread; waits in the loop only.
 * Must not know: the toolstack.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loopback/host.h"
#include "loopback/hypervisor.h"
#include "loopback/loopback-protocol.h"
#include "loopback/xenstored-wire.h"

struct loopback_server {
	int dir_fd; /* locked */
	struct loop *loop;
	struct hypervisor *hypervisor;
	struct xenstored *xenstored;
};

static int host_domain_created(void *arg, uint32_t domid)
{
	struct loopback_server *server = arg;

	return xenstored_add_domain(server->xenstored, domid);
}

static void host_domain_introduced(void *arg, uint32_t domid)
{
	struct loopback_server *server = arg;

	xenstored_introduce(server->xenstored, domid);
	xenstored_settle(server->xenstored);
}

static void host_domain_released(void *arg, uint32_t domid, bool dead)
{
	struct loopback_server *server = arg;

	xenstored_release(server->xenstored, domid, dead);
	xenstored_settle(server->xenstored);
}

static void host_stop(void *arg)
{
	struct loopback_server *server = arg;

	loop_stop(server->loop);
}

/* --- Audit --- */

struct audit {
	FILE *out;
	bool json;
	const uint32_t *ignored_pids;
	unsigned nr_ignored;
	unsigned nr_shown, nr_findings;
	unsigned nr_connections, nr_watches, nr_transactions;
};

static bool audit_ignores(const struct audit *audit, uint32_t pid)
{
	for (unsigned i = 0; i < audit->nr_ignored; i++)
		if (audit->ignored_pids[i] == pid)
			return true;
	return false;
}

static void audit_client(void *arg, const struct hypervisor_client_info *info)
{
	struct audit *audit = arg;

	if (info->asking)
		return;
	audit->nr_findings += !audit_ignores(audit, info->pid);
	fprintf(audit->out,
		audit->json
			? "%s{\"domid\":%u,\"pid\":%u,\"grants_shared\":%u,\"grants_mapped\":%u,"
			  "\"ports_allocated\":%u,\"ports_bound\":%u}"
			: "%sclient of domain %u, pid %u: %u grants shared, %u mapped, %u ports, "
			  "%u bound\n",
		audit->json && audit->nr_shown++ ? "," : "", info->domid, info->pid,
		info->nr_shared, info->nr_mapped, info->nr_ports, info->nr_bound);
}

static void audit_connection(void *arg, const struct xenstored_connection_info *info)
{
	struct audit *audit = arg;

	audit->nr_connections++;
	audit->nr_watches += info->nr_watches;
	audit->nr_transactions += info->nr_transactions;
	audit->nr_findings += !audit_ignores(audit, info->pid);
	fprintf(audit->out,
		audit->json
			? "%s{\"domid\":%u,\"pid\":%u,\"watches\":%u,\"transactions\":%u}"
			: "%sxenstore client of domain %u, pid %u: %u watches, %u transactions\n",
		audit->json && audit->nr_shown++ ? "," : "", info->domid, info->pid,
		info->nr_watches, info->nr_transactions);
}

static unsigned host_audit(void *arg, FILE *out, bool json, const uint32_t *ignored_pids,
			   unsigned nr_ignored)
{
	struct loopback_server *server = arg;
	struct audit audit = {
		.out = out,
		.json = json,
		.ignored_pids = ignored_pids,
		.nr_ignored = nr_ignored,
	};
	struct hypervisor_totals totals;

	/* Processes that were waited for are gone for us, too. */
	hypervisor_settle(server->hypervisor);
	xenstored_settle(server->xenstored);

	fputs(json ? "{\"clients\":[" : "", out);
	hypervisor_clients(server->hypervisor, audit_client, &audit);
	fputs(json ? "],\"connections\":[" : "", out);
	audit.nr_shown = 0;
	xenstored_connections(server->xenstored, audit_connection, &audit);
	hypervisor_totals(server->hypervisor, &totals);
	audit.nr_findings += totals.nr_zombies;
	fprintf(out,
		json ? "],\"findings\":%u,\"domains\":%u,\"zombies\":%u,\"grants_shared\":%u,"
		       "\"grants_mapped\":%u,\"ports_allocated\":%u,\"ports_bound\":%u,"
		       "\"xenstore_connections\":%u,\"watches\":%u,\"transactions\":%u,\"nodes\":%"
		       "u}\n"
		     : "%u findings; %u domains, %u zombies; %u grants shared, %u mapped; %u "
		       "ports, "
		       "%u bound; %u xenstore clients, %u watches, %u transactions, %u nodes\n",
		audit.nr_findings, totals.nr_domains, totals.nr_zombies, totals.nr_shared,
		totals.nr_mapped, totals.nr_ports, totals.nr_bound, audit.nr_connections,
		audit.nr_watches, audit.nr_transactions, xenstored_nr_nodes(server->xenstored));
	return audit.nr_findings;
}

static const struct hypervisor_hooks host_hooks = {
	.domain_created = host_domain_created,
	.domain_introduced = host_domain_introduced,
	.domain_released = host_domain_released,
	.audit = host_audit,
	.stop = host_stop,
};

/* --- Start and stop --- */

static void signal_received(void *arg, int signal_number)
{
	(void)signal_number;
	host_stop(arg);
}

/* Every client costs up to two descriptors here. */
static void descriptors_raise(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit); /* best effort: accept() reports what it lacks */
	}
}

/* Make the directory ours: two hosts in one would take each other's sockets away. */
static int directory_lock(const char *dir, int *dir_fd_out, struct error *error)
{
	int err, dir_fd;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return error_set(error, errno, "cannot create directory %s: %s", dir,
				 strerror(errno));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return error_set(error, errno, "cannot open directory %s: %s", dir,
				 strerror(errno));
	if (flock(dir_fd, LOCK_EX | LOCK_NB)) {
		err = errno == EWOULDBLOCK
			      ? error_set(error, EBUSY,
					  "a loopback host is running in %s already: end it with "
					  "vbdisk-loopback stop --dir %s, or choose another "
					  "directory",
					  dir, dir)
			      : error_set(error, errno, "cannot lock directory %s: %s", dir,
					  strerror(errno));
		close(dir_fd);
		return err;
	}
	*dir_fd_out = dir_fd;
	return 0;
}

int loopback_server_start(const char *dir, struct loopback_server **server_out, struct error *error)
{
	static const int signals[] = {SIGTERM, SIGINT};
	struct loopback_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return error_set(error, ENOMEM, "no memory for the loopback host");
	err = directory_lock(dir, &server->dir_fd, error);
	if (err) {
		free(server);
		return err;
	}
	descriptors_raise();
	/* What a killed host left behind. */
	unlinkat(server->dir_fd, LOOPBACK_SOCKET, 0);
	err = loop_create(&server->loop);
	if (!err)
		err = loop_signals(server->loop, signals, 2, signal_received, server);
	if (err) {
		error_set(error, -err, "cannot set up the event loop: %s", strerror(-err));
		goto err_stop;
	}
	err = xenstored_start(server->loop, dir, &server->xenstored, error);
	if (err)
		goto err_stop;
	err = hypervisor_start(server->loop, dir, &host_hooks, server, &server->hypervisor, error);
	if (err)
		goto err_stop;
	*server_out = server;
	return 0;

err_stop:
	loopback_server_stop(server);
	return err;
}

int loopback_server_run(struct loopback_server *server)
{
	return loop_run(server->loop);
}

void loopback_server_stop(struct loopback_server *server)
{
	if (!server)
		return;
	hypervisor_stop(server->hypervisor);
	xenstored_stop(server->xenstored);
	loop_destroy(server->loop);
	close(server->dir_fd);
	free(server);
}
