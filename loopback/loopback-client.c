// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One call to the loopback host: a packet there, a packet back, descriptors with it.
 *
 * Owns: the client's half of the control socket.
 * Trusts / does not trust: the host is trusted; that it is still there is not.
 * Runs on: the thread that owns the socket; waits for the host's answer.
 * Must not know: what the calls mean.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loopback/loopback-protocol.h"

int loopback_address(const char *dir, const char *name, struct sockaddr_un *address)
{
	int len;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	len = snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", dir, name);
	return len < 0 || (size_t)len >= sizeof(address->sun_path) ? -ENAMETOOLONG : 0;
}

static int host_connect(const char *dir)
{
	struct sockaddr_un address;
	int socket_fd, err = loopback_address(dir, LOOPBACK_SOCKET, &address);

	if (err)
		return err;
	socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (socket_fd < 0)
		return -errno;
	if (connect(socket_fd, (struct sockaddr *)&address, sizeof(address))) {
		err = -errno;
		close(socket_fd);
		return err;
	}
	return socket_fd;
}

/* Take the descriptors out of @message; whatever does not belong there is closed, never leaked. */
static void fds_take(struct msghdr *message, int fds[LOOPBACK_FDS_MAX])
{
	unsigned nr = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part;
	     part = CMSG_NXTHDR(message, part)) {
		size_t nr_here = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < nr_here; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
			if (nr < LOOPBACK_FDS_MAX)
				fds[nr++] = fd;
			else
				close(fd);
		}
	}
}

int loopback_call(int socket_fd, const struct loopback_request *request,
		  struct loopback_reply *reply, int fds[LOOPBACK_FDS_MAX])
{
	bool with_list = request->operation == LOOPBACK_MAP || request->operation == LOOPBACK_AUDIT;
	size_t len = sizeof(*request) + (with_list ? request->nr * sizeof(request->grefs[0]) : 0);
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(LOOPBACK_FDS_MAX * sizeof(int))];
	} control;
	struct iovec vector = {.iov_base = reply, .iov_len = sizeof(*reply)};
	struct msghdr message = {
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t got;

	for (unsigned i = 0; i < LOOPBACK_FDS_MAX; i++)
		fds[i] = -1;
	while (send(socket_fd, request, len, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return errno == EPIPE || errno == ECONNRESET ? -ENOTCONN : -errno;
	while ((got = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC)) < 0)
		if (errno != EINTR)
			return errno == ECONNRESET ? -ENOTCONN : -errno;
	if (got != sizeof(*reply))
		return got ? -EPROTO : -ENOTCONN;
	fds_take(&message, fds);
	return reply->status;
}

int loopback_hello(const char *dir, uint32_t domid, bool wants_events, int fds[LOOPBACK_FDS_MAX],
		   struct error *error)
{
	struct loopback_request request = {
		.operation = LOOPBACK_HELLO,
		.domid = domid,
		.flag = wants_events,
	};
	struct loopback_reply reply;
	int err, socket_fd = host_connect(dir);

	if (socket_fd < 0)
		return error_set(
			error, -socket_fd,
			"no loopback host in %s (%s): start one with vbdisk-loopback run --dir %s",
			dir, strerror(-socket_fd), dir);
	err = loopback_call(socket_fd, &request, &reply, fds);
	if (!err)
		return socket_fd;
	if (err == -ESRCH)
		error_set(error, -err,
			  "no domain %u on the loopback host in %s: create it with vbdisk-loopback "
			  "domain-create --dir %s %u",
			  domid, dir, dir, domid);
	else
		error_set(error, -err, "the loopback host in %s refuses domain %u: %s", dir, domid,
			  strerror(-err));
	close(socket_fd);
	return err;
}
