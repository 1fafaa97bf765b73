/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The server's end of one QMP conversation: bytes in, bytes out.
 *
 * Owns: the parser of one connection, its negotiation state, and the answers not yet taken.
 * Trusts / does not trust: the peer is local and usually root, but no byte of it is believed: a
 *   command is bounded in size and depth, garbage is answered by an error and skipped to the end of
 *   its line.
 * Runs on: one thread per conversation; never blocks.
 * Must not know: sockets, the event loop, xenstore.
 *
 * Messages end with CR LF, which libxl looks for. The dialect is QEMU's (docs/interop/qmp-spec):
 * greeting, qmp_capabilities, then {"execute":NAME,"arguments":{...},"id":ANY}. An id comes back as it
 * was, but for integers beyond 64 bits, which json-c cuts to the nearest it can hold.
 */
#ifndef VBDISK_QMP_H
#define VBDISK_QMP_H

#include <stdbool.h>
#include <stddef.h>

#define QMP_COMMAND_MAX_BYTES 65536
#define QMP_DEPTH_MAX 32

struct qmp;

/* Begin a conversation; the greeting is the first output. @guest_name is copied. 0 or -ENOMEM. */
int qmp_create(const char *guest_name, struct qmp **qmp_out);
void qmp_destroy(struct qmp *qmp);

/* Take @len bytes from the peer and answer every command that is complete; the start of one that is
 * not is kept. Bytes after `quit` are dropped. 0, or -ENOMEM: end the conversation. */
int qmp_input(struct qmp *qmp, const char *bytes, size_t len);

/* What is to be sent: its length (0: nothing), and in *@bytes_out where it is, until the next call. */
size_t qmp_output(const struct qmp *qmp, const char **bytes_out);

/* The first @len bytes of the output were sent. */
void qmp_output_sent(struct qmp *qmp, size_t len);

/* The peer said `quit`. Its answer is in the output and should be sent first. */
bool qmp_quit_asked(const struct qmp *qmp);

#endif
