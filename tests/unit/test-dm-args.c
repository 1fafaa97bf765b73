// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device model's command line: what libxl really passes, what needs QEMU, what is refused.
 *
 * Owns: the argv lines of Xen 4.17 and 4.20 as seen on real hosts.
 * Trusts / does not trust: hostile lines are among the cases.
 * Runs on: the test.
 * Must not know: sockets.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "tests/unit/unit.h"
#include "tools/dm-args.h"

#define CONTROL                                                                                    \
	"-chardev socket,id=libxl-cmd,path=/var/run/xen/qmp-libxl-7,server=on,wait=off "           \
	"-mon chardev=libxl-cmd,mode=control "                                                     \
	"-chardev socket,id=libxenstat-cmd,path=/var/run/xen/qmp-libxenstat-7,server=on,wait=off " \
	"-mon chardev=libxenstat-cmd,mode=control "

/* xl 4.17 and 4.20, PV guest. */
#define PV_START                                                                                   \
	"-xen-domid 7 -no-shutdown " CONTROL "-nodefaults -no-user-config -xen-attach -name web "  \
	"-vnc none -display none -nographic -machine xenpv -m 256"

/* xl 4.20, before it. */
#define PROBE                                                                                      \
	"-S -no-user-config -nodefaults -nographic -machine none,accel=xen "                       \
	"-chardev socket,id=libxl-cmd,fd=16,server=on,wait=off -mon chardev=libxl-cmd,mode=control"

/* `xl devd` in a driver domain. */
#define DEVD                                                                                       \
	"-xen-domid 7 -xen-attach -name domain-7 -nographic -M xenpv -monitor /dev/null "          \
	"-serial /dev/null -parallel /dev/null"

#define HVM                                                                                        \
	"-xen-domid 7 -no-shutdown " CONTROL "-nodefaults -no-user-config -name win "              \
	"-vnc 127.0.0.1:0,to=99 -display none -device cirrus-vga,vgamem_mb=8 -boot order=cda "     \
	"-smp 2,maxcpus=2 -net none -machine xenfv,suppress-vmdesc=on -m 1016 "                    \
	"-drive file=/images/win.img,if=ide,index=0,media=disk,format=raw,cache=writeback"

struct line {
	char text[8192];
	char *argv[256];
	int argc;
};

/* Cut @text at its spaces, as a shell would. */
static void line_split(struct line *line, const char *text)
{
	char *save = NULL, *word;

	assert_true(strlen(text) < sizeof(line->text));
	strcpy(line->text, text);
	line->argv[0] = (char *)"vbdisk-dm";
	line->argc = 1;
	for (word = strtok_r(line->text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		line->argv[line->argc++] = word;
	line->argv[line->argc] = NULL;
}

static int line_decide(const char *text, struct dm_args *args, enum dm_role *role,
		       struct error *error)
{
	struct line line;
	int err;

	line_split(&line, text);
	error->text[0] = '\0';
	err = dm_args_parse(line.argc, line.argv, args, error);
	return err ? err : dm_args_role(args, role, error);
}

static void pv_start_is_served(void **state)
{
	struct dm_args args;
	enum dm_role role;
	struct error error;

	(void)state;
	assert_int_equal(line_decide(PV_START, &args, &role, &error), 0);
	assert_int_equal(role, DM_ROLE_SERVE);
	assert_true(args.has_domid);
	assert_int_equal(args.domid, 7);
	assert_string_equal(args.name, "web");
	assert_string_equal(args.machine, "xenpv");
	assert_true(args.libxl.given);
	assert_string_equal(args.libxl.path, "/var/run/xen/qmp-libxl-7");
	assert_int_equal(args.libxl.fd, -1);
	assert_true(args.xenstat.given);
	assert_string_equal(args.xenstat.path, "/var/run/xen/qmp-libxenstat-7");
	assert_int_equal(args.xenstat.fd, -1);
	assert_false(args.background);
}

static void probe_is_answered(void **state)
{
	struct dm_args args;
	enum dm_role role;
	struct error error;

	(void)state;
	assert_int_equal(line_decide(PROBE, &args, &role, &error), 0);
	assert_int_equal(role, DM_ROLE_PROBE);
	assert_false(args.has_domid);
	assert_true(args.libxl.given);
	assert_int_equal(args.libxl.fd, 16);
	assert_string_equal(args.libxl.path, "");
	assert_false(args.xenstat.given);
	assert_string_equal(args.machine, "none");
}

static void devd_start_is_served_without_sockets(void **state)
{
	struct dm_args args;
	enum dm_role role;
	struct error error;

	(void)state;
	assert_int_equal(line_decide(DEVD, &args, &role, &error), 0);
	assert_int_equal(role, DM_ROLE_SERVE);
	assert_false(args.libxl.given);
	assert_false(args.xenstat.given);
	assert_string_equal(args.name, "domain-7");
}

static void roles(void **state)
{
	static const struct {
		const char *line;
		enum dm_role role;
		const char *reason; /* a part of it */
	} cases[] = {
		{PV_START, DM_ROLE_SERVE, ""},
		/* Spellings of older and newer toolstacks. */
		{"-xen-domid 0 -M xenpv", DM_ROLE_SERVE, ""},
		{"--xen-domid 3 --machine type=xenpv,accel=xen", DM_ROLE_SERVE, ""},
		{"-xen-domid 3 -machine xenpv -chardev socket,id=libxl-cmd,path=/s,server,nowait",
		 DM_ROLE_SERVE, ""},
		{"-xen-domid 3 -machine xenpv -chardev socket,id=libxl-cmd,fd=5,server=on -S",
		 DM_ROLE_SERVE, ""},
		{PV_START " -serial null -monitor none", DM_ROLE_SERVE, ""},
		/* Values of options we do not know are not images, nor options. */
		{PV_START " -smbios type=1 -k de -frobnicate yes", DM_ROLE_SERVE, ""},
		{PV_START " -append -vnc", DM_ROLE_SERVE, ""},

		{HVM, DM_ROLE_QEMU, "-vnc 127.0.0.1:0,to=99 asks for a display"},
		{"-xen-domid 7 -machine xenfv", DM_ROLE_QEMU, "machine \"xenfv\" is not xenpv"},
		{"-xen-domid 7 -machine pc,accel=xen", DM_ROLE_QEMU, "machine \"pc\""},
		{"-xen-domid 7 -machine none", DM_ROLE_QEMU, "machine \"none\""},
		{"-xen-domid 7", DM_ROLE_QEMU, "machine \"\""},
		{"-machine xenpv", DM_ROLE_QEMU, "no -xen-domid"},
		{"-frobnicate", DM_ROLE_QEMU, "no -xen-domid"},
		{PROBE " -chardev pty,id=other", DM_ROLE_QEMU, "-chardev id=other"},
		{PV_START " -vnc :1", DM_ROLE_QEMU, "-vnc :1"},
		{PV_START " -display sdl,gl=on", DM_ROLE_QEMU, "-display sdl,gl=on"},
		{PV_START " -sdl", DM_ROLE_QEMU, "-sdl"},
		{PV_START " -chardev socket,id=libxl-channel0,path=/c,server=on,wait=off",
		 DM_ROLE_QEMU, "-chardev id=libxl-channel0"},
		{PV_START " -chardev pty,id=libxl-channel1", DM_ROLE_QEMU, "libxl-channel1"},
		{PV_START " -device usb-host", DM_ROLE_QEMU, "-device usb-host"},
		{PV_START " -drive file=/x", DM_ROLE_QEMU, "-drive file=/x"},
		{PV_START " -usb", DM_ROLE_QEMU, "-usb"},
		{PV_START " -usbdevice tablet", DM_ROLE_QEMU, "-usbdevice tablet"},
		{PV_START " -serial pty", DM_ROLE_QEMU, "on pty"},
		{PV_START " -incoming fd:3", DM_ROLE_QEMU, "-incoming"},
		{PV_START " -xen-domid-restrict", DM_ROLE_QEMU, "-xen-domid-restrict"},
		{PV_START " -runas 1000:1000", DM_ROLE_QEMU, "-runas"},
		{PV_START " /images/a.img /images/b.img", DM_ROLE_QEMU, "/images/a.img"},
		{PV_START " -mon chardev=other,mode=control", DM_ROLE_QEMU, "-mon"},
		{PV_START " -mon chardev=libxl-cmd,mode=readline", DM_ROLE_QEMU, "-mon"},
		{PV_START " -mon chardev=libxl-cmd", DM_ROLE_QEMU, "-mon"},
		{PV_START " -mon libxl-cmd,mode=control", DM_ROLE_SERVE, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dm_args args;
		struct error error;
		enum dm_role role;

		if (line_decide(cases[i].line, &args, &role, &error))
			fail_msg("\"%s\": %s", cases[i].line, error.text);
		if (role != cases[i].role)
			fail_msg("\"%s\": role %d (%s)", cases[i].line, role, args.qemu_reason);
		if (!strstr(args.qemu_reason, cases[i].reason) ||
		    !*cases[i].reason != !*args.qemu_reason)
			fail_msg("\"%s\": reason \"%s\"", cases[i].line, args.qemu_reason);
	}
}

static void malformed_lines_are_refused(void **state)
{
	static const struct {
		const char *line;
		const char *message; /* a part of it */
	} cases[] = {
		{"-xen-domid", "-xen-domid needs a value"},
		{"-xen-domid -1 -machine xenpv", "-xen-domid -1: not a domain id"},
		{"-xen-domid +1 -machine xenpv", "not a domain id"},
		{"-xen-domid 0x7 -machine xenpv", "not a domain id"},
		{"-xen-domid 7a -machine xenpv", "not a domain id"},
		{"-xen-domid 32752 -machine xenpv", "not a domain id (0 to 32751)"},
		{"-xen-domid 99999999999999999999999999 -machine xenpv", "not a domain id"},
		{"-xen-domid 7 -xen-domid 8 -machine xenpv", "twice"},
		{"-xen-domid 7 -machine", "-machine needs a value"},
		{"-xen-domid 7 -machine xenpv -chardev", "-chardev needs a value"},
		{"-chardev socket,path=/x,server=on", "has no id="},
		{"-chardev socket,id=,path=/x,server=on", "has no id="},
		{"-chardev socket,id=libxl-cmd,server=on", "expected socket,id=libxl-cmd"},
		{"-chardev socket,id=libxl-cmd,path=,server=on", "must have 1 to 107 bytes"},
		{"-chardev socket,id=libxl-cmd,path=/x", "expected socket"},
		{"-chardev socket,id=libxl-cmd,path=/x,server=off", "expected socket"},
		{"-chardev socket,id=libxl-cmd,path=/x,noserver", "expected socket"},
		{"-chardev pty,id=libxl-cmd,path=/x,server=on", "expected socket"},
		{"-chardev id=libxl-cmd,path=/x,server=on", "expected socket"},
		{"-chardev socket,id=libxl-cmd,path=/x,fd=3,server=on", "expected socket"},
		{"-chardev socket,id=libxl-cmd,fd=-3,server=on", "not a descriptor number"},
		{"-chardev socket,id=libxl-cmd,fd=,server=on", "not a descriptor number"},
		{"-chardev socket,id=libxl-cmd,fd=4294967299,server=on", "not a descriptor number"},
		{"-chardev socket,id=libxl-cmd,fd=qmp,server=on", "not a descriptor number"},
		{PV_START " -chardev socket,id=libxl-cmd,path=/y,server=on", "is given twice"},
		{"-machine none,accel=xen", "is libxl's probe"},
		{"-machine none -chardev socket,id=libxl-cmd,path=/x,server=on", "there is none"},
		{"-chardev socket,id=libxl-cmd,"
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1",
		 "too long for a keyword"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dm_args args;
		struct error error;
		enum dm_role role;

		if (line_decide(cases[i].line, &args, &role, &error) != -EINVAL)
			fail_msg("\"%s\" was accepted", cases[i].line);
		if (!strstr(error.text, cases[i].message))
			fail_msg("\"%s\": message \"%s\"", cases[i].line, error.text);
	}
}

/* Parse one option with one value. */
static int one_parse(const char *option, const char *value, struct dm_args *args,
		     struct error *error)
{
	char *argv[] = {(char *)"vbdisk-dm", (char *)option, (char *)value, NULL};

	return dm_args_parse(3, argv, args, error);
}

static void doubled_commas_are_one(void **state)
{
	static const struct {
		const char *value, *path;
	} cases[] = {
		{"socket,id=libxl-cmd,path=/run/a,,b,server=on", "/run/a,b"},
		{"socket,id=libxl-cmd,path=/run/a,,,server=on", "/run/a,"},
		{"socket,id=libxl-cmd,path=/run/a,,server=on", NULL}, /* one path, and no server */
		{"socket,id=libxl-cmd,path=,,,,,server=on", ",,"},
		{"socket,id=libxl-cmd,path=,,,,,,server=on,server=on", ",,,server=on"},
		{"socket,path=/run/x=y,,id=other,id=libxl-cmd,server=on", "/run/x=y,id=other"},
		{"socket,server=on,id=libxl-cmd,path=/run/end,,", "/run/end,"},
		{"socket,server=on,id=libxl-cmd,path=/run/end,", "/run/end"},
	};
	struct dm_args args;
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int err = one_parse("-chardev", cases[i].value, &args, &error);

		if (!cases[i].path) {
			assert_int_equal(err, -EINVAL);
			continue;
		}
		if (err)
			fail_msg("\"%s\": %s", cases[i].value, error.text);
		assert_string_equal(args.libxl.path, cases[i].path);
	}
	assert_int_equal(one_parse("-name", "a,,b", &args, &error), 0);
	assert_string_equal(args.name, "a,b");
	assert_int_equal(one_parse("-name", "guest=c,,d,process=x", &args, &error), 0);
	assert_string_equal(args.name, "c,d");
	assert_int_equal(one_parse("-name", "", &args, &error), 0);
	assert_string_equal(args.name, "");
	assert_int_equal(one_parse("-name", "-vnc", &args, &error), 0);
	assert_string_equal(args.name, "-vnc");
	assert_string_equal(args.qemu_reason, "");
}

/* Nothing overflows, whatever the length; the limit of sun_path is met to the byte. */
static void lengths(void **state)
{
	static char value[20000];
	struct dm_args args;
	struct error error;

	(void)state;
	for (size_t path_len = 1; path_len < 300; path_len++) {
		int prefix = snprintf(value, sizeof(value), "socket,id=libxl-cmd,server=on,path=");

		memset(value + prefix, 'p', path_len);
		value[(size_t)prefix + path_len] = '\0';
		assert_int_equal(one_parse("-chardev", value, &args, &error),
				 path_len <= 107 ? 0 : -EINVAL);
	}
	for (size_t len = 1; len < sizeof(value); len += 97) {
		static const char *const option[] = {
			"-name",   "-machine", "-chardev",   "-mon",	"-vnc",
			"-serial", "-device",  "-xen-domid", "-foobar", "-display"};
		static const char *const fill[] = {"a", ",", "=", ",,", "a=", "id=,", "-", "%s%n"};

		for (size_t i = 0; i < sizeof(option) / sizeof(option[0]); i++) {
			for (size_t j = 0; j < sizeof(fill) / sizeof(fill[0]); j++) {
				size_t fill_len = strlen(fill[j]);
				enum dm_role role;

				for (size_t k = 0; k < len; k++)
					value[k] = fill[j][k % fill_len];
				value[len] = '\0';
				if (!one_parse(option[i], value, &args, &error))
					dm_args_role(&args, &role, &error);
				assert_true(strlen(args.name) < sizeof(args.name));
			}
		}
	}
}

static void help_and_version(void **state)
{
	static const char *const words[] = {"--help", "-help", "-h", "--version", "-version"};
	struct dm_args args;
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char *argv[] = {(char *)"vbdisk-dm", (char *)words[i], (char *)"-xen-domid", NULL};

		assert_int_equal(dm_args_parse(3, argv, &args, &error), 0);
		assert_int_equal(args.help, i < 3);
		assert_int_equal(args.version, i >= 3);
	}
	assert_int_equal(one_parse("-pidfile", "/x", &args, &error), 0);
	assert_true(args.background);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(pv_start_is_served),
		cmocka_unit_test(probe_is_answered),
		cmocka_unit_test(devd_start_is_served_without_sockets),
		cmocka_unit_test(roles),
		cmocka_unit_test(malformed_lines_are_refused),
		cmocka_unit_test(doubled_commas_are_one),
		cmocka_unit_test(lengths),
		cmocka_unit_test(help_and_version),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
