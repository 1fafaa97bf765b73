// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the toolstack's command line asks of a device model, read as data.
 *
 * Owns: the table of QEMU options that matter, and the decision who serves the guest: we, or QEMU.
 * Trusts / does not trust: any text may follow any option; see dm-args.h.
 * Runs on: start-up; pure, never blocks.
 * Must not know: sockets, xenstore, QMP.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "tools/dm-args.h"

#define ID_LIBXL "libxl-cmd"
#define ID_XENSTAT "libxenstat-cmd"

/* Longer keys and values than these are none that we look for. */
#define KEY_MAX 64
#define VALUE_MAX 4096

/*
 * "key=value,key=value,flag" as QEMU reads it: a comma within a value is doubled, and the first
 * element may be a bare value of an implied key. A key without value means "on"; "noKEY" "off".
 */
struct element {
	char key[KEY_MAX];
	char value[VALUE_MAX];
};

/* Append a byte; false if it does not fit with its NUL. */
static bool text_append(char *text, size_t size, size_t *len, char byte)
{
	if (*len + 1 >= size)
		return false;
	text[(*len)++] = byte;
	text[*len] = '\0';
	return true;
}

/* Read a value up to its single comma or the end, and step over that comma. */
static bool value_read(const char **cursor, char *value, size_t size)
{
	const char *at = *cursor;
	size_t len = 0;
	bool fits = true;

	value[0] = '\0';
	for (; *at; at++) {
		if (*at == ',') {
			at++;
			if (*at != ',')
				break;
		}
		fits = fits && text_append(value, size, &len, *at);
	}
	*cursor = at;
	return fits;
}

/* Take the next element: 1, 0 at the end, -EINVAL with @error filled. @implied: the key of a bare first
 * value, or NULL. */
static int element_next(const char **cursor, const char *implied, struct element *element,
			struct error *error)
{
	const char *start = *cursor;
	size_t key_len = strcspn(start, "=,");

	if (!*start)
		return 0;
	if (implied && start[key_len] != '=') {
		strcpy(element->key, implied);
		if (!value_read(cursor, element->value, sizeof(element->value)))
			return error_set(error, EINVAL, "\"%.40s...\" is too long", start);
		return 1;
	}
	if (key_len >= sizeof(element->key))
		return error_set(error, EINVAL, "\"%.40s...\" is too long for a keyword", start);
	memcpy(element->key, start, key_len);
	element->key[key_len] = '\0';
	if (start[key_len] == '=') {
		*cursor = start + key_len + 1;
		if (!value_read(cursor, element->value, sizeof(element->value)))
			return error_set(error, EINVAL, "the value of \"%s\" is too long",
					 element->key);
		return 1;
	}
	*cursor = start + key_len + (start[key_len] == ',');
	strcpy(element->value, "on");
	if (!strncmp(element->key, "no", 2) && element->key[2]) {
		memmove(element->key, element->key + 2, key_len - 1);
		strcpy(element->value, "off");
	}
	return 1;
}

/* Plain decimal of at most @max. */
static bool decimal_read(const char *text, uint32_t max, uint32_t *number_out)
{
	uint64_t number = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		number = number * 10 + (uint64_t)(*text - '0');
		if (number > max)
			return false;
	}
	*number_out = (uint32_t)number;
	return true;
}

/* Remember the first reason only: it is the one to tell. */
__attribute__((format(printf, 2, 3))) static void qemu_need(struct dm_args *args,
							    const char *format, ...)
{
	va_list ap;

	if (args->qemu_reason[0])
		return;
	va_start(ap, format);
	vsnprintf(args->qemu_reason, sizeof(args->qemu_reason), format, ap);
	va_end(ap);
}

static int take_domid(struct dm_args *args, const char *value, struct error *error)
{
	if (args->has_domid)
		return error_set(error, EINVAL,
				 "-xen-domid is given twice: one domain per process");
	if (!decimal_read(value, DM_DOMID_MAX, &args->domid))
		return error_set(error, EINVAL, "-xen-domid %.40s: not a domain id (0 to %u)",
				 value, DM_DOMID_MAX);
	args->has_domid = true;
	return 0;
}

/* -name and -machine: the bare first value or the one called @key; all else in them is QEMU's. */
static int take_named(const char *option, const char *key, const char *value, char *text,
		      size_t size, struct error *error)
{
	const char *cursor = value, *implied = key;
	struct element element;
	int got;

	while ((got = element_next(&cursor, implied, &element, error)) > 0) {
		if (!strcmp(element.key, key))
			snprintf(text, size, "%.*s", (int)size - 1, element.value);
		implied = NULL;
	}
	if (got < 0) {
		struct error inner = *error;

		return error_set(error, EINVAL, "%s: %.200s", option, inner.text);
	}
	return 0;
}

static int take_name(struct dm_args *args, const char *value, struct error *error)
{
	return take_named("-name", "guest", value, args->name, sizeof(args->name), error);
}

static int take_machine(struct dm_args *args, const char *value, struct error *error)
{
	return take_named("-machine", "type", value, args->machine, sizeof(args->machine), error);
}

/* The place of a control socket: path=P or fd=N, listening at our end. */
static int control_socket_read(const char *id, const char *value, struct dm_socket *found,
			       struct error *error)
{
	const char *cursor = value, *implied = "backend";
	bool is_socket = false, is_server = false, has_path = false, has_fd = false;
	struct element element;
	uint32_t number;

	if (found->given)
		return error_set(error, EINVAL, "-chardev id=%s is given twice", id);
	while (element_next(&cursor, implied, &element, error) > 0) {
		implied = NULL;
		if (!strcmp(element.key, "backend")) {
			is_socket = !strcmp(element.value, "socket");
		} else if (!strcmp(element.key, "server")) {
			is_server = !strcmp(element.value, "on");
		} else if (!strcmp(element.key, "path")) {
			if (!element.value[0] || strlen(element.value) >= sizeof(found->path))
				return error_set(
					error, EINVAL,
					"-chardev id=%s: path \"%.120s\" must have 1 to %zu bytes",
					id, element.value, sizeof(found->path) - 1);
			strcpy(found->path, element.value);
			has_path = true;
		} else if (!strcmp(element.key, "fd")) {
			if (!decimal_read(element.value, INT_MAX, &number))
				return error_set(
					error, EINVAL,
					"-chardev id=%s: fd=%.40s is not a descriptor number", id,
					element.value);
			found->fd = (int)number;
			has_fd = true;
		}
	}
	if (!is_socket || !is_server || has_path == has_fd)
		return error_set(error, EINVAL,
				 "-chardev id=%s: expected socket,id=%s,path=PATH,server=on or "
				 "socket,id=%s,fd=NUMBER,server=on, found \"%.200s\"",
				 id, id, id, value);
	found->given = true;
	return 0;
}

static int take_chardev(struct dm_args *args, const char *value, struct error *error)
{
	const char *cursor = value, *implied = "backend";
	char id[KEY_MAX] = "";
	struct element element;
	int got;

	while ((got = element_next(&cursor, implied, &element, error)) > 0) {
		implied = NULL;
		if (!strcmp(element.key, "id"))
			snprintf(id, sizeof(id), "%.*s", KEY_MAX - 1, element.value);
	}
	if (got < 0) {
		struct error inner = *error;

		return error_set(error, EINVAL, "-chardev: %.200s", inner.text);
	}
	if (!id[0])
		return error_set(error, EINVAL, "-chardev \"%.200s\" has no id=", value);
	if (!strcmp(id, ID_LIBXL))
		return control_socket_read(ID_LIBXL, value, &args->libxl, error);
	if (!strcmp(id, ID_XENSTAT))
		return control_socket_read(ID_XENSTAT, value, &args->xenstat, error);
	qemu_need(args, "-chardev id=%s is a channel or console", id);
	return 0;
}

/* A monitor must sit on one of the two control sockets and speak QMP there. */
static int take_mon(struct dm_args *args, const char *value, struct error *error)
{
	const char *cursor = value, *implied = "chardev";
	struct element element;
	bool known = false, control = false;
	int got;

	while ((got = element_next(&cursor, implied, &element, error)) > 0) {
		implied = NULL;
		if (!strcmp(element.key, "chardev"))
			known = !strcmp(element.value, ID_LIBXL) ||
				!strcmp(element.value, ID_XENSTAT);
		else if (!strcmp(element.key, "mode"))
			control = !strcmp(element.value, "control");
	}
	if (got < 0) {
		struct error inner = *error;

		return error_set(error, EINVAL, "-mon: %.200s", inner.text);
	}
	if (!known || !control)
		qemu_need(args, "-mon %.100s is a monitor other than libxl's QMP", value);
	return 0;
}

static int take_vnc(struct dm_args *args, const char *value, struct error *error)
{
	(void)error;
	if (strcmp(value, "none"))
		qemu_need(args, "-vnc %.100s asks for a display", value);
	return 0;
}

static int take_display(struct dm_args *args, const char *value, struct error *error)
{
	(void)error;
	if (strcmp(value, "none"))
		qemu_need(args, "-display %.100s asks for a display", value);
	return 0;
}

/* -serial, -parallel, -monitor: harmless if they lead nowhere, as `xl devd` spells it. */
static int take_port(struct dm_args *args, const char *value, struct error *error)
{
	(void)error;
	if (strcmp(value, "none") && strcmp(value, "null") && strcmp(value, "/dev/null"))
		qemu_need(args, "a serial port, parallel port or monitor on %.100s", value);
	return 0;
}

static int take_background(struct dm_args *args, const char *value, struct error *error)
{
	(void)value;
	(void)error;
	args->background = true;
	return 0;
}

static int take_help(struct dm_args *args, const char *value, struct error *error)
{
	(void)value;
	(void)error;
	args->help = true;
	return 0;
}

static int take_version(struct dm_args *args, const char *value, struct error *error)
{
	(void)value;
	(void)error;
	args->version = true;
	return 0;
}

static int take_nothing(struct dm_args *args, const char *value, struct error *error)
{
	(void)args;
	(void)value;
	(void)error;
	return 0;
}

/* take == NULL: only QEMU can honour the option. An option that is not here is QEMU's business; a word
 * after it that does not begin with '-' is taken for its value. */
static const struct option {
	const char *name;
	bool has_value;
	int (*take)(struct dm_args *args, const char *value, struct error *error);
} options[] = {
	{"xen-domid", true, take_domid},
	{"chardev", true, take_chardev},
	{"mon", true, take_mon},
	{"name", true, take_name},
	{"machine", true, take_machine},
	{"M", true, take_machine},
	{"vnc", true, take_vnc},
	{"display", true, take_display},
	{"serial", true, take_port},
	{"parallel", true, take_port},
	{"monitor", true, take_port},
	{"daemonize", false, take_background},
	{"pidfile", true, take_background},
	{"help", false, take_help},
	{"h", false, take_help},
	{"version", false, take_version},

	/* Values that may look like an option of their own. */
	{"append", true, take_nothing},
	{"m", true, take_nothing},

	/* Devices that are not disks in xenstore. */
	{"device", true, NULL},
	{"drive", true, NULL},
	{"blockdev", true, NULL},
	{"cdrom", true, NULL},
	{"hda", true, NULL},
	{"hdb", true, NULL},
	{"hdc", true, NULL},
	{"hdd", true, NULL},
	{"fda", true, NULL},
	{"fdb", true, NULL},
	{"usb", false, NULL},
	{"usbdevice", true, NULL},
	{"netdev", true, NULL},
	{"spice", true, NULL},
	{"sdl", false, NULL},
	{"incoming", true, NULL},
	/* dm_restrict: the administrator wants QEMU's way of giving up privileges, which we have not. */
	{"xen-domid-restrict", false, NULL},
	{"runas", true, NULL},
	{"run-with", true, NULL},
	{"chroot", true, NULL},
};

static const struct option *option_find(const char *name)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (!strcmp(options[i].name, name))
			return &options[i];
	return NULL;
}

int dm_args_parse(int argc, char *const argv[], struct dm_args *args, struct error *error)
{
	memset(args, 0, sizeof(*args));
	args->libxl.fd = -1;
	args->xenstat.fd = -1;

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *value = "";
		const struct option *option;
		int err;

		if (word[0] != '-' || !word[1]) {
			qemu_need(args, "\"%.100s\" names a disk image", word);
			continue;
		}
		option = option_find(word + (word[1] == '-' ? 2 : 1)); /* QEMU takes both */
		if (!option) {
			if (i + 1 < argc && argv[i + 1][0] != '-')
				i++;
			continue;
		}
		if (option->has_value) {
			if (i + 1 >= argc)
				return error_set(error, EINVAL, "%.40s needs a value", word);
			value = argv[++i];
		}
		if (!option->take) {
			qemu_need(args, "%s%s%.100s is a matter for QEMU", word, *value ? " " : "",
				  value);
			continue;
		}
		err = option->take(args, value, error);
		if (err)
			return err;
		if (args->help || args->version)
			return 0;
	}
	return 0;
}

int dm_args_role(struct dm_args *args, enum dm_role *role_out, struct error *error)
{
	*role_out = DM_ROLE_QEMU;
	if (!strcmp(args->machine, "none") && !args->has_domid) {
		if (args->qemu_reason[0])
			return 0;
		if (args->libxl.fd < 0)
			return error_set(
				error, EINVAL,
				"-machine none without -xen-domid is libxl's probe, which hands over a "
				"listening socket (-chardev socket,id=" ID_LIBXL
				",fd=NUMBER,server=on); there is none");
		*role_out = DM_ROLE_PROBE;
		return 0;
	}
	if (!args->has_domid)
		qemu_need(args, "there is no -xen-domid: not the start of a Xen PV or PVH guest");
	if (strcmp(args->machine, "xenpv"))
		qemu_need(args, "machine \"%s\" is not xenpv", args->machine);
	if (!args->qemu_reason[0])
		*role_out = DM_ROLE_SERVE;
	return 0;
}
