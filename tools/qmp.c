// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The server's end of one QMP conversation: bytes in, bytes out.
 *
 * Owns: the only use of json-c; the table of commands.
 * Trusts / does not trust: no byte of the peer; see qmp.h.
 * Runs on: one thread per conversation; never blocks.
 * Must not know: sockets, the event loop, xenstore.
 */
#include "config.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/qmp.h"

/* A version of QEMU whose QMP libxl of Xen 4.17 and 4.20 knows; the package says who really speaks. */
#define VERSION_JSON                                                                               \
	"{\"qemu\":{\"major\":8,\"minor\":0,\"micro\":0},\"package\":\"vbdisk-dm " PACKAGE_VERSION \
	"\"}"

/* Names longer than this are not repeated in error messages. */
#define NAME_SHOWN_MAX_BYTES 64

struct qmp {
	struct json_tokener *tokener;
	size_t command_bytes; /* of the command being read; 0 between commands */
	bool skipping;	      /* garbage was met: drop everything up to the end of its line */
	bool negotiated;
	bool quit_asked;
	char *guest_name;

	char *output;
	size_t output_bytes;
	size_t output_size;
};

/* The answer to one command, being put together. */
struct answer {
	struct json_object *value; /* of "return", or of "error" if failed */
	bool failed;
};

static int output_append(struct qmp *qmp, const char *bytes, size_t len)
{
	if (qmp->output_size - qmp->output_bytes < len) {
		size_t size = (qmp->output_bytes + len) * 2;
		char *bigger = realloc(qmp->output, size);

		if (!bigger)
			return -ENOMEM;
		qmp->output = bigger;
		qmp->output_size = size;
	}
	memcpy(qmp->output + qmp->output_bytes, bytes, len);
	qmp->output_bytes += len;
	return 0;
}

/* Make @answer an error of @class; frees what it held. */
__attribute__((format(printf, 3, 4))) static void
answer_fail(struct answer *answer, const char *class, const char *format, ...)
{
	char desc[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(desc, sizeof(desc), format, ap);
	va_end(ap);
	json_object_put(answer->value);
	answer->failed = true;
	answer->value = json_object_new_object();
	if (answer->value) {
		json_object_object_add(answer->value, "class", json_object_new_string(class));
		json_object_object_add(answer->value, "desc", json_object_new_string(desc));
	}
}

/* Queue @answer, which is used up, for sending. @id: the command's, if @has_id. */
static int answer_send(struct qmp *qmp, struct answer *answer, bool has_id, struct json_object *id)
{
	struct json_object *message = json_object_new_object();
	const char *text = NULL;
	size_t len = 0;
	int err = -ENOMEM;

	if (!message || !answer->value) {
		json_object_put(answer->value);
		goto put_message;
	}
	json_object_object_add(message, answer->failed ? "error" : "return", answer->value);
	if (has_id)
		json_object_object_add(message, "id", json_object_get(id));
	text = json_object_to_json_string_length(
		message, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
	if (text) {
		err = output_append(qmp, text, len);
		if (!err)
			err = output_append(qmp, "\r\n", 2);
	}
put_message:
	json_object_put(message);
	return err;
}

static void return_json(struct answer *answer, const char *json)
{
	answer->value = json_tokener_parse(json);
}

/*
 * The disks of this guest, for query-block and query-blockstats: what xentop reads. None are listed
 * here: the figures live in the processes that serve the disks, and reach us by this function only.
 */
static void return_disks(struct answer *answer)
{
	answer->value = json_object_new_array();
}

static void run_nothing(struct qmp *qmp, struct answer *answer)
{
	(void)qmp;
	answer->value = json_object_new_object();
}

static void run_empty_list(struct qmp *qmp, struct answer *answer)
{
	(void)qmp;
	answer->value = json_object_new_array();
}

static void run_disks(struct qmp *qmp, struct answer *answer)
{
	(void)qmp;
	return_disks(answer);
}

static void run_status(struct qmp *qmp, struct answer *answer)
{
	(void)qmp;
	return_json(answer, "{\"status\":\"running\",\"singlestep\":false,\"running\":true}");
}

static void run_version(struct qmp *qmp, struct answer *answer)
{
	(void)qmp;
	return_json(answer, VERSION_JSON);
}

static void run_name(struct qmp *qmp, struct answer *answer)
{
	answer->value = json_object_new_object();
	if (answer->value && qmp->guest_name[0])
		json_object_object_add(answer->value, "name",
				       json_object_new_string(qmp->guest_name));
}

static void run_quit(struct qmp *qmp, struct answer *answer)
{
	qmp->quit_asked = true;
	answer->value = json_object_new_object();
}

static void run_capabilities(struct qmp *qmp, struct answer *answer)
{
	if (qmp->negotiated) {
		answer_fail(answer, "CommandNotFound",
			    "Capabilities negotiation is already complete, command ignored");
		return;
	}
	qmp->negotiated = true;
	answer->value = json_object_new_object();
}

static void run_commands(struct qmp *qmp, struct answer *answer);

/* @parameter: the one argument QEMU knows for it that makes no difference to our answer, or NULL. */
static const struct command {
	const char *name;
	const char *parameter;
	void (*run)(struct qmp *qmp, struct answer *answer);
} commands[] = {
	{"qmp_capabilities", "enable", run_capabilities},
	{"query-chardev", NULL, run_empty_list},
	{"query-status", NULL, run_status},
	{"query-version", NULL, run_version},
	{"query-name", NULL, run_name},
	{"query-commands", NULL, run_commands},
	{"query-command-line-options", "option", run_empty_list},
	{"query-block", NULL, run_disks},
	{"query-blockstats", "query-nodes", run_disks},
	{"stop", NULL, run_nothing},
	{"cont", NULL, run_nothing},
	{"quit", NULL, run_quit},
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void run_commands(struct qmp *qmp, struct answer *answer)
{
	(void)qmp;
	answer->value = json_object_new_array();
	for (size_t i = 0; answer->value && i < NR_COMMANDS; i++) {
		struct json_object *entry = json_object_new_object();

		json_object_object_add(entry, "name", json_object_new_string(commands[i].name));
		json_object_array_add(answer->value, entry);
	}
}

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

/* @name if it is short enough to be repeated whole. */
static const char *name_shown(const char *name)
{
	return strlen(name) <= NAME_SHOWN_MAX_BYTES ? name : "(a long name)";
}

/* False with @answer failed if @command cannot take @arguments. */
static bool arguments_check(const struct command *command, struct json_object *arguments,
			    struct answer *answer)
{
	if (!arguments)
		return true;
	if (!json_object_is_type(arguments, json_type_object)) {
		answer_fail(answer, "GenericError",
			    "QMP input member 'arguments' must be an object");
		return false;
	}
	json_object_object_foreach(arguments, key, value)
	{
		if (!command->parameter || strcmp(command->parameter, key)) {
			answer_fail(answer, "GenericError", "Parameter '%s' is unexpected",
				    name_shown(key));
			return false;
		}
		if (command->run == run_capabilities &&
		    (!json_object_is_type(value, json_type_array) ||
		     json_object_array_length(value))) {
			answer_fail(answer, "GenericError",
				    "No capability can be enabled: none was offered");
			return false;
		}
	}
	return true;
}

static void command_run(struct qmp *qmp, struct json_object *input, struct answer *answer)
{
	struct json_object *execute = NULL, *arguments = NULL;
	const struct command *command = NULL;
	const char *name;

	if (!json_object_is_type(input, json_type_object)) {
		answer_fail(answer, "GenericError", "QMP input must be a JSON object");
		return;
	}
	json_object_object_foreach(input, key, value)
	{
		if (!strcmp(key, "execute")) {
			execute = value;
		} else if (!strcmp(key, "arguments")) {
			arguments = value;
		} else if (strcmp(key, "id")) {
			answer_fail(answer, "GenericError", "QMP input member '%s' is unexpected",
				    name_shown(key));
			return;
		}
	}
	if (!json_object_is_type(execute, json_type_string)) {
		answer_fail(answer, "GenericError", "QMP input needs a member 'execute', a string");
		return;
	}
	name = json_object_get_string(execute);
	/* A NUL within the string must not make it a name we know. */
	if (strlen(name) == (size_t)json_object_get_string_len(execute))
		command = command_find(name);
	if (!qmp->negotiated && (!command || command->run != run_capabilities)) {
		answer_fail(answer, "CommandNotFound",
			    "Expecting capabilities negotiation with 'qmp_capabilities'");
		return;
	}
	if (!command) {
		answer_fail(answer, "CommandNotFound", "The command %s has not been found",
			    name_shown(name));
		return;
	}
	if (arguments_check(command, arguments, answer))
		command->run(qmp, answer);
}

/* Answer a complete JSON value, which may be NULL ("null"). */
static int input_answer(struct qmp *qmp, struct json_object *input)
{
	struct answer answer = {NULL, false};
	struct json_object *id = NULL;
	bool has_id = json_object_is_type(input, json_type_object) &&
		      json_object_object_get_ex(input, "id", &id);

	command_run(qmp, input, &answer);
	return answer_send(qmp, &answer, has_id, id);
}

/* Report what cannot be parsed, and skip to the end of its line. */
static int garbage_answer(struct qmp *qmp, const char *why)
{
	struct answer answer = {NULL, false};

	json_tokener_reset(qmp->tokener);
	qmp->command_bytes = 0;
	qmp->skipping = true;
	answer_fail(&answer, "GenericError", "JSON parse error, %s", why);
	return answer_send(qmp, &answer, false, NULL);
}

/* Number of leading bytes that belong to no command. */
static size_t skip_bytes(struct qmp *qmp, const char *bytes, size_t len)
{
	size_t nr = 0;

	if (qmp->skipping) {
		const char *newline = memchr(bytes, '\n', len);

		if (!newline)
			return len;
		qmp->skipping = false;
		return (size_t)(newline - bytes) + 1;
	}
	while (!qmp->command_bytes && nr < len && strchr(" \t\r\n", bytes[nr]) && bytes[nr])
		nr++;
	return nr;
}

int qmp_input(struct qmp *qmp, const char *bytes, size_t len)
{
	int err = 0;

	while (len && !err && !qmp->quit_asked) {
		size_t nr = skip_bytes(qmp, bytes, len);
		size_t room = QMP_COMMAND_MAX_BYTES - qmp->command_bytes;
		enum json_tokener_error result;
		struct json_object *input;

		if (nr) {
			bytes += nr;
			len -= nr;
			continue;
		}
		nr = len < room ? len : room;
		input = json_tokener_parse_ex(qmp->tokener, bytes, (int)nr);
		result = json_tokener_get_error(qmp->tokener);
		if (result == json_tokener_continue) {
			qmp->command_bytes += nr;
			if (qmp->command_bytes == QMP_COMMAND_MAX_BYTES)
				err = garbage_answer(qmp, "the command is too long");
		} else if (result == json_tokener_success) {
			nr = json_tokener_get_parse_end(qmp->tokener);
			qmp->command_bytes = 0;
			json_tokener_reset(qmp->tokener);
			err = input_answer(qmp, input);
			json_object_put(input);
		} else {
			nr = json_tokener_get_parse_end(qmp->tokener);
			err = garbage_answer(qmp, json_tokener_error_desc(result));
		}
		bytes += nr;
		len -= nr;
	}
	return err;
}

size_t qmp_output(const struct qmp *qmp, const char **bytes_out)
{
	*bytes_out = qmp->output;
	return qmp->output_bytes;
}

void qmp_output_sent(struct qmp *qmp, size_t len)
{
	qmp->output_bytes -= len;
	memmove(qmp->output, qmp->output + len, qmp->output_bytes);
}

bool qmp_quit_asked(const struct qmp *qmp)
{
	return qmp->quit_asked;
}

int qmp_create(const char *guest_name, struct qmp **qmp_out)
{
	static const char greeting[] = "{\"QMP\":{\"version\":" VERSION_JSON
				       ",\"capabilities\":[]}}\r\n";
	struct qmp *qmp = calloc(1, sizeof(*qmp));

	if (!qmp)
		return -ENOMEM;
	qmp->tokener = json_tokener_new_ex(QMP_DEPTH_MAX);
	qmp->guest_name = strdup(guest_name);
	if (!qmp->tokener || !qmp->guest_name ||
	    output_append(qmp, greeting, sizeof(greeting) - 1)) {
		qmp_destroy(qmp);
		return -ENOMEM;
	}
	/* Strict JSON, but several commands may follow each other without a newline. */
	json_tokener_set_flags(qmp->tokener,
			       JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
	*qmp_out = qmp;
	return 0;
}

void qmp_destroy(struct qmp *qmp)
{
	if (!qmp)
		return;
	if (qmp->tokener)
		json_tokener_free(qmp->tokener);
	free(qmp->guest_name);
	free(qmp->output);
	free(qmp);
}
