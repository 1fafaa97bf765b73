// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The program vbdisk-dm as libxl meets it: probe, start, questions, end, and everything going wrong.
 *
 * Owns: a scripted xenstored, just enough for one start: it can look at the world in the very moment
 *   in which the state node is written, and refuse.
 * Trusts / does not trust: the program under test may hang; every wait has a limit.
 * Runs on: the test; waits.
 * Must not know: how the program is made.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define WAIT_MS 20000
#define EXIT_USAGE 2
#define EXIT_NO_QEMU 3

#define NEGOTIATE "{\"execute\":\"qmp_capabilities\",\"id\":1}\r\n"
#define NEGOTIATED "{\"return\":{},\"id\":1}\r\n"

/* One test's world: a directory, the sockets in it, and the process. */
struct world {
	char dir[64];
	char libxl_path[96];
	char xenstat_path[96];
	char store_path[96];
	char out_path[96];
	char err_path[96];
	int store_fd; /* listening */
	pid_t pid;    /* 0: not running */
};

static char program[PATH_MAX];

static void sleep_ms(long ms)
{
	struct timespec span = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&span, NULL);
}

static int unix_listen(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

/* A connection whose reads end after WAIT_MS; -1 if nobody listens. */
static int unix_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {WAIT_MS / 1000, 0};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int world_create(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	strcpy(world->dir, "/tmp/vbdisk-dm-test-XXXXXX");
	assert_non_null(mkdtemp(world->dir));
	snprintf(world->libxl_path, sizeof(world->libxl_path), "%s/qmp-libxl-7", world->dir);
	snprintf(world->xenstat_path, sizeof(world->xenstat_path), "%s/qmp-libxenstat-7",
		 world->dir);
	snprintf(world->store_path, sizeof(world->store_path), "%s/xenstored", world->dir);
	snprintf(world->out_path, sizeof(world->out_path), "%s/out", world->dir);
	snprintf(world->err_path, sizeof(world->err_path), "%s/err", world->dir);
	world->store_fd = unix_listen(world->store_path);
	*state = world;
	return 0;
}

static int world_destroy(void **state)
{
	struct world *world = *state;
	DIR *dir = opendir(world->dir);
	struct dirent *entry;

	if (world->pid) {
		kill(world->pid, SIGKILL);
		waitpid(world->pid, NULL, 0);
	}
	close(world->store_fd);
	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	rmdir(world->dir);
	free(world);
	return 0;
}

/* Start the program with the words of @line. @fd becomes descriptor 16 if it is not -1. */
static void program_start(struct world *world, const char *line, int fd)
{
	char text[2048], *words[64], *save = NULL;
	int nr = 0;

	snprintf(text, sizeof(text), "%s", line);
	words[nr++] = program;
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		words[nr++] = word;
	words[nr] = NULL;
	world->pid = fork();
	assert_true(world->pid >= 0);
	if (world->pid)
		return;
	if (!freopen("/dev/null", "r", stdin) || !freopen(world->out_path, "w", stdout) ||
	    !freopen(world->err_path, "w", stderr))
		_exit(120);
	if (fd >= 0 && dup2(fd, 16) < 0)
		_exit(121);
	setenv("XENSTORED_PATH", world->store_path, 1);
	execv(program, words);
	_exit(122);
}

/* The exit status, which has to come. */
static int program_status(struct world *world)
{
	for (unsigned waited_ms = 0; waited_ms < WAIT_MS; waited_ms += 5) {
		int status;

		if (waitpid(world->pid, &status, WNOHANG) == world->pid) {
			world->pid = 0;
			if (!WIFEXITED(status))
				fail_msg("ended by signal %d", WTERMSIG(status));
			return WEXITSTATUS(status);
		}
		sleep_ms(5);
	}
	fail_msg("the program does not end");
	return -1;
}

static bool program_runs(const struct world *world)
{
	return !waitpid(world->pid, NULL, WNOHANG);
}

static void file_read(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t len = file ? fread(text, 1, size - 1, file) : 0;

	text[len] = '\0';
	if (file)
		fclose(file);
}

static void expect_in_file(const char *path, const char *part)
{
	char text[8192];

	file_read(path, text, sizeof(text));
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in: %s", part, text);
}

/* xenstore's wire (xen: io/xs_wire.h). */
struct store_header {
	uint32_t type, req_id, tx_id, len;
};

enum { STORE_DIRECTORY = 1, STORE_WRITE = 11, STORE_ERROR = 16 };

struct store_script {
	const char *existing; /* the one directory with something in it */
	bool refuse_write;
	void (*at_write)(struct world *world); /* called before the write is answered */
	unsigned nr_writes;
	char written[128]; /* path=value of the last one */
};

static bool receive_all(int fd, void *bytes, size_t len)
{
	return !len || recv(fd, bytes, len, MSG_WAITALL) == (ssize_t)len;
}

static void store_answer(int fd, struct store_header header, uint32_t type, const char *text,
			 size_t len)
{
	header.type = type;
	header.len = (uint32_t)len;
	assert_int_equal(send(fd, &header, sizeof(header), MSG_NOSIGNAL), sizeof(header));
	assert_int_equal(send(fd, text, len, MSG_NOSIGNAL), len);
}

/* Be xenstored for one connection, from its begin to its end. */
static void store_serve(struct world *world, struct store_script *script)
{
	struct pollfd waiting = {.fd = world->store_fd, .events = POLLIN};
	struct timeval limit = {WAIT_MS / 1000, 0};
	struct store_header header;
	char body[4097];
	int fd;

	if (poll(&waiting, 1, WAIT_MS) != 1)
		fail_msg("the program does not come to xenstore");
	fd = accept4(world->store_fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	while (receive_all(fd, &header, sizeof(header))) {
		assert_true(header.len < sizeof(body));
		assert_true(receive_all(fd, body, header.len));
		body[header.len] = '\0';
		if (header.type == STORE_DIRECTORY) {
			if (script->existing && !strcmp(body, script->existing))
				store_answer(fd, header, header.type, "0", 2);
			else
				store_answer(fd, header, STORE_ERROR, "ENOENT", 7);
		} else if (header.type == STORE_WRITE) {
			script->nr_writes++;
			snprintf(script->written, sizeof(script->written), "%.60s=%.60s", body,
				 body + strlen(body) + 1);
			if (script->at_write)
				script->at_write(world);
			if (script->refuse_write)
				store_answer(fd, header, STORE_ERROR, "EACCES", 7);
			else
				store_answer(fd, header, header.type, "OK", 3);
		} else {
			fail_msg("request %u to xenstore", header.type);
		}
	}
	close(fd);
}

/* Receive until @expected has come, and nothing but it. */
static void qmp_expect(int fd, const char *expected)
{
	char text[1024];
	size_t len = strlen(expected);

	assert_true(len < sizeof(text));
	memset(text, 0, sizeof(text));
	if (!receive_all(fd, text, len) || memcmp(text, expected, len))
		fail_msg("expected \"%s\", got \"%s\"", expected, text);
}

static void qmp_say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void qmp_expect_greeting(int fd)
{
	qmp_expect(fd, "{\"QMP\":{\"version\":{\"qemu\":{\"major\":8,\"minor\":0,\"micro\":0},"
		       "\"package\":\"vbdisk-dm " PACKAGE_VERSION "\"},\"capabilities\":[]}}\r\n");
}

/* A negotiated conversation on @path. */
static int qmp_open(const char *path)
{
	int fd = unix_connect(path);

	assert_true(fd >= 0);
	qmp_expect_greeting(fd);
	qmp_say(fd, NEGOTIATE);
	qmp_expect(fd, NEGOTIATED);
	return fd;
}

static void expect_closed(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

/* libxl's line for a PV guest, with sockets in the test's directory. */
static void pv_line(const struct world *world, char *line, size_t size, const char *more)
{
	snprintf(
		line, size,
		"-xen-domid 7 -no-shutdown -chardev socket,id=libxl-cmd,path=%s,server=on,wait=off "
		"-mon chardev=libxl-cmd,mode=control "
		"-chardev socket,id=libxenstat-cmd,path=%s,server=on,wait=off "
		"-mon chardev=libxenstat-cmd,mode=control -nodefaults -no-user-config -xen-attach "
		"-name web -vnc none -display none -nographic -machine xenpv -m 256%s",
		world->libxl_path, world->xenstat_path, more);
}

static void both_listen(struct world *world)
{
	const char *paths[] = {world->libxl_path, world->xenstat_path};

	for (unsigned i = 0; i < 2; i++) {
		int fd = unix_connect(paths[i]);
		struct stat st;

		if (fd < 0)
			fail_msg("%s does not listen when \"running\" is written", paths[i]);
		close(fd);
		assert_int_equal(stat(paths[i], &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
}

/* Start as for a PV guest and come to "running". */
static void pv_start(struct world *world)
{
	struct store_script script = {.at_write = both_listen};
	char line[1024];

	pv_line(world, line, sizeof(line), "");
	program_start(world, line, -1);
	store_serve(world, &script);
	assert_int_equal(script.nr_writes, 1);
	assert_string_equal(script.written, "device-model/7/state=running");
}

static void pv_end(struct world *world)
{
	assert_true(program_runs(world));
	kill(world->pid, SIGHUP);
	assert_int_equal(program_status(world), 0);
	assert_int_equal(access(world->libxl_path, F_OK), -1);
	assert_int_equal(access(world->xenstat_path, F_OK), -1);
}

static void a_person_calls(void **state)
{
	static const struct {
		const char *line;
		int status;
		const char *out, *err;
	} cases[] = {
		{"", EXIT_USAGE, "", "device_model_override"},
		{"--help", 0, "Usage: vbdisk-dm", ""},
		{"--version", 0, "vbdisk-dm " PACKAGE_VERSION, ""},
		{"-xen-domid", EXIT_USAGE, "", "-xen-domid needs a value"},
		{"-xen-domid seven -machine xenpv", EXIT_USAGE, "", "not a domain id"},
		{"-machine none,accel=xen", EXIT_USAGE, "", "probe"},
		{"-machine none -chardev socket,id=libxl-cmd,fd=16,server=on", EXIT_FAILURE, "",
		 "fd=16 as a listening socket"},
		{"-machine none -chardev socket,id=libxl-cmd,fd=1,server=on", EXIT_FAILURE, "",
		 "fd=1 as a listening socket"},
	};
	struct world *world = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		program_start(world, cases[i].line, -1);
		assert_int_equal(program_status(world), cases[i].status);
		expect_in_file(world->out_path, cases[i].out);
		expect_in_file(world->err_path, cases[i].err);
	}
}

static void probe(struct world *world, int *connection)
{
	int listening = unix_listen(world->libxl_path);

	program_start(world,
		      "-S -no-user-config -nodefaults -nographic -machine none,accel=xen "
		      "-chardev socket,id=libxl-cmd,fd=16,server=on,wait=off "
		      "-mon chardev=libxl-cmd,mode=control",
		      listening);
	close(listening);
	*connection = qmp_open(world->libxl_path);
	qmp_say(*connection, "{\"execute\":\"query-command-line-options\",\"id\":2}\r\n");
	qmp_expect(*connection, "{\"return\":[],\"id\":2}\r\n");
	qmp_say(*connection, "{\"execute\":\"quit\",\"id\":3}\r\n");
	qmp_expect(*connection, "{\"return\":{},\"id\":3}\r\n");
}

/* libxl's probe: after `quit` the program waits for the signal. */
static void probe_ended_by_signal(void **state)
{
	struct world *world = *state;
	int connection;

	probe(world, &connection);
	sleep_ms(100);
	assert_true(program_runs(world));
	close(connection);
	sleep_ms(100);
	assert_true(program_runs(world));
	kill(world->pid, SIGHUP);
	assert_int_equal(program_status(world), 0);
	/* The socket is libxl's. */
	assert_int_equal(access(world->libxl_path, F_OK), 0);
}

/* If libxl dies in between, it ends by itself. */
static void probe_left_alone(void **state)
{
	struct world *world = *state;
	int connection;

	probe(world, &connection);
	close(connection);
	assert_int_equal(program_status(world), 0);
}

static void life_of_a_pv_guest(void **state)
{
	struct world *world = *state;
	int first, second, stat_fd;

	/* A socket of an earlier life is in the way. */
	close(unix_listen(world->libxl_path));
	pv_start(world);
	first = qmp_open(world->libxl_path);
	qmp_say(first, "{\"execute\":\"query-chardev\",\"id\":2}\r\n");
	qmp_expect(first, "{\"return\":[],\"id\":2}\r\n");

	/* xentop: does not wait for the greeting, knows no ids; libxl's connection stays open. */
	stat_fd = unix_connect(world->xenstat_path);
	qmp_say(stat_fd,
		"{ \"execute\": \"qmp_capabilities\" }{ \"execute\": \"query-blockstats\" }");
	qmp_expect_greeting(stat_fd);
	qmp_expect(stat_fd, "{\"return\":{}}\r\n{\"return\":[]}\r\n");
	close(stat_fd);

	second = qmp_open(world->libxl_path);
	qmp_say(second, "{\"execute\":\"query-");
	qmp_say(first, "{\"execute\":\"nonsense\",\"id\":\"x\"}\r\n");
	qmp_expect(first,
		   "{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"The command nonsense "
		   "has not been found\"},\"id\":\"x\"}\r\n");
	qmp_say(second, "status\"}");
	qmp_expect(
		second,
		"{\"return\":{\"status\":\"running\",\"singlestep\":false,\"running\":true}}\r\n");
	close(second);
	pv_end(world);
	expect_closed(first);
	close(first);
}

static void quit_ends_it(void **state)
{
	struct world *world = *state;
	int fd;

	pv_start(world);
	fd = qmp_open(world->libxl_path);
	qmp_say(fd, "{\"execute\":\"quit\",\"id\":4}");
	qmp_expect(fd, "{\"return\":{},\"id\":4}\r\n");
	expect_closed(fd);
	close(fd);
	assert_int_equal(program_status(world), 0);
	assert_int_equal(access(world->libxl_path, F_OK), -1);
}

/* `xl devd`'s line: no sockets, just the state. */
static void driver_domain(void **state)
{
	struct world *world = *state;
	struct store_script script = {0};

	program_start(world,
		      "-xen-domid 7 -xen-attach -name domain-7 -nographic -M xenpv "
		      "-monitor /dev/null -serial /dev/null -parallel /dev/null",
		      -1);
	store_serve(world, &script);
	assert_string_equal(script.written, "device-model/7/state=running");
	pv_end(world);
}

/* A peer that never reads holds up nobody but itself, and costs a bounded amount. */
static void slow_readers(void **state)
{
	static char block[4096];
	struct world *world = *state;
	int slow, quick, gone;
	size_t sent = 0;

	pv_start(world);
	slow = qmp_open(world->libxl_path);
	memset(block, '\n', sizeof(block));
	for (size_t at = 0; at + 2 < sizeof(block); at += 2)
		block[at] = '}';
	for (;;) {
		struct pollfd room = {.fd = slow, .events = POLLOUT};
		ssize_t len;

		if (poll(&room, 1, 300) != 1)
			break;
		len = send(slow, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
		assert_true(len > 0);
		sent += (size_t)len;
		assert_true(sent < 64u << 20);
	}
	quick = qmp_open(world->libxl_path);
	/* One that leaves with answers on their way. */
	gone = qmp_open(world->xenstat_path);
	for (unsigned i = 0; i < 40; i++)
		if (send(gone, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
	close(gone);
	qmp_say(quick, "{\"execute\":\"stop\",\"id\":9}");
	qmp_expect(quick, "{\"return\":{},\"id\":9}\r\n");
	close(quick);
	close(slow);
	pv_end(world);
}

static void too_many_connections(void **state)
{
	struct world *world = *state;
	int fds[16], one_more;

	pv_start(world);
	for (unsigned i = 0; i < 16; i++)
		fds[i] = qmp_open(world->libxl_path);
	one_more = unix_connect(world->libxl_path);
	expect_closed(one_more);
	close(one_more);
	/* The other socket has its own count, and room comes back. */
	close(qmp_open(world->xenstat_path));
	close(fds[0]);
	sleep_ms(50);
	fds[0] = qmp_open(world->libxl_path);
	for (unsigned i = 0; i < 16; i++)
		close(fds[i]);
	pv_end(world);
	expect_in_file(world->err_path, "connection refused");
}

static unsigned long switches(pid_t pid)
{
	char path[64], text[4096], *at;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file_read(path, text, sizeof(text));
	at = strstr(text, "\nvoluntary_ctxt_switches:");
	assert_non_null(at);
	return strtoul(at + strlen("\nvoluntary_ctxt_switches:"), NULL, 10);
}

static void idle_means_asleep(void **state)
{
	struct world *world = *state;
	unsigned long before;
	char path[64], text[64];
	int fd;

	pv_start(world);
	fd = qmp_open(world->libxl_path);
	sleep_ms(300);
	before = switches(world->pid);
	sleep_ms(1500);
	assert_int_equal(switches(world->pid), before);
	/* And it is nobody's parent. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)world->pid, (int)world->pid);
	file_read(path, text, sizeof(text));
	assert_string_equal(text, "");
	close(fd);
	pv_end(world);
}

static void set_up_fails(void **state)
{
	struct world *world = *state;
	struct store_script script = {.refuse_write = true};
	char line[1024];
	int fd;

	/* xenstore refuses. */
	pv_line(world, line, sizeof(line), "");
	program_start(world, line, -1);
	store_serve(world, &script);
	assert_int_equal(program_status(world), EXIT_FAILURE);
	expect_in_file(world->err_path, "device-model/7/state");
	assert_int_equal(access(world->libxl_path, F_OK), -1);
	assert_int_equal(access(world->xenstat_path, F_OK), -1);

	/* What lies at the socket's place is no socket: it stays. */
	fd = open(world->xenstat_path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	script.refuse_write = false;
	script.nr_writes = 0;
	program_start(world, line, -1);
	store_serve(world, &script);
	assert_int_equal(program_status(world), EXIT_FAILURE);
	assert_int_equal(script.nr_writes, 0);
	expect_in_file(world->err_path, "is in the way");
	assert_int_equal(access(world->xenstat_path, F_OK), 0);
	assert_int_equal(access(world->libxl_path, F_OK), -1);

	/* No xenstore at all. */
	unlink(world->store_path);
	program_start(world, line, -1);
	assert_int_equal(program_status(world), EXIT_FAILURE);
	expect_in_file(world->err_path, "cannot reach xenstore");
}

/* A successor's socket at our place is not removed. */
static void successor_keeps_its_socket(void **state)
{
	struct world *world = *state;

	pv_start(world);
	unlink(world->libxl_path);
	close(unix_listen(world->libxl_path));
	kill(world->pid, SIGTERM);
	assert_int_equal(program_status(world), 0);
	assert_int_equal(access(world->libxl_path, F_OK), 0);
	assert_int_equal(access(world->xenstat_path, F_OK), -1);
}

/* A QEMU that tells how it was called. */
static void qemu_make(struct world *world, char *path, size_t size)
{
	FILE *file;

	snprintf(path, size, "%s/qemu", world->dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\necho \"$0 $*\"\nexit 42\n");
	fclose(file);
	assert_int_equal(chmod(path, 0755), 0);
}

static void more_than_disks(void **state)
{
	static const char *const backends[] = {"backend/vfb/7", "backend/vkbd/7", "backend/9pfs/7",
					       "backend/qusb/7"};
	struct world *world = *state;
	char qemu[128], line[1024], expected[1280];

	qemu_make(world, qemu, sizeof(qemu));
	setenv("VBDISK_DM_QEMU", qemu, 1);

	/* By its command line: xenstore is not asked. */
	pv_line(world, line, sizeof(line), " -vnc 127.0.0.1:0");
	program_start(world, line, -1);
	assert_int_equal(program_status(world), 42);
	snprintf(expected, sizeof(expected), "%s %s\n", qemu, line);
	expect_in_file(world->out_path, expected);
	expect_in_file(world->err_path, "-vnc 127.0.0.1:0 asks for a display");
	expect_in_file(world->err_path, "qdisk");

	/* By its backends. */
	pv_line(world, line, sizeof(line), "");
	snprintf(expected, sizeof(expected), "%s %s\n", qemu, line);
	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
		struct store_script script = {.existing = backends[i]};

		program_start(world, line, -1);
		store_serve(world, &script);
		assert_int_equal(script.nr_writes, 0);
		assert_int_equal(program_status(world), 42);
		expect_in_file(world->out_path, expected);
		expect_in_file(world->err_path, backends[i]);
	}

	/* Another domain's backends are no reason. */
	{
		struct store_script script = {.existing = "backend/vfb/77"};

		program_start(world, line, -1);
		store_serve(world, &script);
		pv_end(world);
	}

	/* No QEMU, and the wrong one. */
	unlink(qemu);
	program_start(world, "-xen-domid 7 -machine xenfv", -1);
	assert_int_equal(program_status(world), EXIT_NO_QEMU);
	expect_in_file(world->err_path, "cannot run QEMU");
	expect_in_file(world->err_path, "machine \"xenfv\" is not xenpv");
	assert_int_equal(symlink(program, qemu), 0);
	program_start(world, "-xen-domid 7 -machine xenfv", -1);
	assert_int_equal(program_status(world), EXIT_NO_QEMU);
	expect_in_file(world->err_path, "is vbdisk-dm itself");
	unsetenv("VBDISK_DM_QEMU");
}

#define WORLD_TEST(test) cmocka_unit_test_setup_teardown(test, world_create, world_destroy)

int main(void)
{
	const struct CMUnitTest cases[] = {
		WORLD_TEST(a_person_calls),
		WORLD_TEST(probe_ended_by_signal),
		WORLD_TEST(probe_left_alone),
		WORLD_TEST(life_of_a_pv_guest),
		WORLD_TEST(quit_ends_it),
		WORLD_TEST(driver_domain),
		WORLD_TEST(slow_readers),
		WORLD_TEST(too_many_connections),
		WORLD_TEST(idle_means_asleep),
		WORLD_TEST(set_up_fails),
		WORLD_TEST(successor_keeps_its_socket),
		WORLD_TEST(more_than_disks),
	};
	const char *builddir = getenv("top_builddir");
	char path[PATH_MAX - 16];

	if (!realpath(builddir ? builddir : ".", path)) {
		perror("top_builddir");
		return 1;
	}
	snprintf(program, sizeof(program), "%s/vbdisk-dm", path);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
