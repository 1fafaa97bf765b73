// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QMP conversations, byte by byte: libxl's, xentop's, and those of no good will.
 *
 * Owns: the exact answers, which libxl parses.
 * Trusts / does not trust: hostile input is among the cases.
 * Runs on: the test.
 * Must not know: sockets.
 */
#include "config.h"

#include <stdio.h>

#include "tests/unit/unit.h"
#include "tools/qmp.h"

#define VERSION_REPLY                                                                              \
	"{\"qemu\":{\"major\":8,\"minor\":0,\"micro\":0},\"package\":\"vbdisk-dm " PACKAGE_VERSION \
	"\"}"
#define GREETING "{\"QMP\":{\"version\":" VERSION_REPLY ",\"capabilities\":[]}}\r\n"
#define NEGOTIATE "{\"execute\":\"qmp_capabilities\"}"
#define OK "{\"return\":{}}\r\n"
#define EXPECTING                                                                                  \
	"{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"Expecting capabilities negotiation " \
	"with 'qmp_capabilities'\"}}\r\n"
#define UNKNOWN(name)                                                                              \
	"{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"The command " name                   \
	" has not been found\"}}\r\n"
#define GENERIC(desc) "{\"error\":{\"class\":\"GenericError\",\"desc\":\"" desc "\"}}\r\n"

static struct qmp *begin(void)
{
	struct qmp *qmp;

	assert_int_equal(qmp_create("web", &qmp), 0);
	return qmp;
}

/* Compare all output with @expected, and take it. */
static void expect(struct qmp *qmp, const char *expected)
{
	const char *bytes;
	size_t len = qmp_output(qmp, &bytes);

	if (len != strlen(expected) || memcmp(bytes, expected, len))
		fail_msg("expected \"%s\", got \"%.*s\"", expected, (int)len, len ? bytes : "");
	qmp_output_sent(qmp, len);
}

static void say(struct qmp *qmp, const char *text)
{
	assert_int_equal(qmp_input(qmp, text, strlen(text)), 0);
}

/* A conversation past its greeting and negotiation. */
static struct qmp *begin_negotiated(void)
{
	struct qmp *qmp = begin();

	say(qmp, NEGOTIATE);
	expect(qmp, GREETING OK);
	return qmp;
}

/* True if the output is exactly one error of @class; takes it. */
static bool is_one_error(struct qmp *qmp, const char *class)
{
	char head[64];
	const char *bytes;
	size_t len = qmp_output(qmp, &bytes);
	int head_len = snprintf(head, sizeof(head), "{\"error\":{\"class\":\"%s\",", class);
	bool is = len > (size_t)head_len && !memcmp(bytes, head, (size_t)head_len) &&
		  memchr(bytes, '\n', len) == bytes + len - 1 && bytes[len - 2] == '\r';

	qmp_output_sent(qmp, len);
	return is;
}

/* What libxl and xentop say, and the answers; several in one go. */
static const char conversation[] =
	"{\"execute\":\"qmp_capabilities\",\"id\":1}\r\n"
	"{\"execute\":\"query-chardev\",\"id\":2}\r\n"
	"{ \"execute\": \"query-blockstats\" }\n{ \"execute\": \"query-block\" }"
	"{\"execute\":\"no-such\",\"arguments\":{\"a\":[{\"b\":\"}\\\"{\"}]},\"id\":18446744073709551615}"
	" \t{\"id\":{\"a\":[1,-2.50,null,true,\"\\u00e9\\n/\"]},\"execute\":\"query-status\"}\r\n"
	"{\"execute\":\"quit\",\"id\":-9}";
static const char answers[] = GREETING
	"{\"return\":{},\"id\":1}\r\n"
	"{\"return\":[],\"id\":2}\r\n"
	"{\"return\":[]}\r\n{\"return\":[]}\r\n"
	"{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"The command no-such has not been found\"},"
	"\"id\":18446744073709551615}\r\n"
	"{\"return\":{\"status\":\"running\",\"singlestep\":false,\"running\":true},"
	"\"id\":{\"a\":[1,-2.50,null,true,\"\xc3\xa9\\n/\"]}}\r\n"
	"{\"return\":{},\"id\":-9}\r\n";

static void whole_conversation(void **state)
{
	struct qmp *qmp = begin();

	(void)state;
	expect(qmp, GREETING);
	qmp_destroy(qmp);

	qmp = begin();
	assert_false(qmp_quit_asked(qmp));
	say(qmp, conversation);
	expect(qmp, answers);
	assert_true(qmp_quit_asked(qmp));
	qmp_destroy(qmp);
}

static void cut_at_every_byte(void **state)
{
	size_t len = strlen(conversation);

	(void)state;
	for (size_t cut = 0; cut <= len; cut++) {
		struct qmp *qmp = begin();

		assert_int_equal(qmp_input(qmp, conversation, cut), 0);
		assert_int_equal(qmp_input(qmp, conversation + cut, len - cut), 0);
		expect(qmp, answers);
		qmp_destroy(qmp);
	}
}

static void byte_by_byte(void **state)
{
	struct qmp *qmp = begin();

	(void)state;
	for (size_t i = 0; i < strlen(conversation); i++)
		assert_int_equal(qmp_input(qmp, conversation + i, 1), 0);
	expect(qmp, answers);
	qmp_destroy(qmp);
}

/* The answer is there as soon as the closing brace is, and can be taken in pieces. */
static void no_newline_needed(void **state)
{
	struct qmp *qmp = begin();
	const char *bytes;
	size_t len;

	(void)state;
	len = qmp_output(qmp, &bytes);
	qmp_output_sent(qmp, len - 3);
	say(qmp, NEGOTIATE);
	expect(qmp, "}\r\n" OK);
	say(qmp, "{\"execute\":\"query-version\",\"id\":7");
	expect(qmp, "");
	say(qmp, "}");
	expect(qmp, "{\"return\":" VERSION_REPLY ",\"id\":7}\r\n");
	qmp_destroy(qmp);
}

static void ids_come_back(void **state)
{
	static const char *const ids[] = {
		"0",
		"1",
		"-1",
		"2147483648",
		"9223372036854775807",
		"-9223372036854775808",
		"1.5",
		"1e3",
		"\"\"",
		"\"a\"",
		"\"\\u0000\"",
		"null",
		"false",
		"[]",
		"[[[1]]]",
		"{}",
		"{\"id\":1}",
	};
	struct qmp *qmp = begin_negotiated();
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		snprintf(text, sizeof(text), "{\"id\":%s,\"execute\":\"stop\"}", ids[i]);
		say(qmp, text);
		snprintf(text, sizeof(text), "{\"return\":{},\"id\":%s}\r\n", ids[i]);
		expect(qmp, text);
		/* Errors carry it as well. */
		snprintf(text, sizeof(text), "{\"execute\":1,\"id\":%s}", ids[i]);
		say(qmp, text);
		snprintf(text, sizeof(text),
			 "{\"error\":{\"class\":\"GenericError\",\"desc\":"
			 "\"QMP input needs a member 'execute', a string\"},\"id\":%s}\r\n",
			 ids[i]);
		expect(qmp, text);
	}
	qmp_destroy(qmp);
}

static void commands(void **state)
{
	static const struct {
		const char *input, *output;
	} cases[] = {
		{"{\"execute\":\"query-name\"}", "{\"return\":{\"name\":\"web\"}}\r\n"},
		{"{\"execute\":\"query-command-line-options\"}", "{\"return\":[]}\r\n"},
		{"{\"execute\":\"query-command-line-options\",\"arguments\":{\"option\":\"chroot\"}}",
		 "{\"return\":[]}\r\n"},
		{"{\"execute\":\"cont\"}", OK},
		{"{\"execute\":\"cont\",\"arguments\":{}}", OK},
		{"{\"execute\":\"cont\",\"arguments\":{\"x\":1}}",
		 GENERIC("Parameter 'x' is unexpected")},
		{"{\"execute\":\"cont\",\"arguments\":[]}",
		 GENERIC("QMP input member 'arguments' must be an object")},
		{"{\"execute\":\"qmp_capabilities\"}",
		 "{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"Capabilities negotiation is "
		 "already complete, command ignored\"}}\r\n"},
		{"{\"execute\":\"query-vnc\"}", UNKNOWN("query-vnc")},
		{"{\"execute\":\"device_add\"}", UNKNOWN("device_add")},
		{"{\"execute\":\"\"}", UNKNOWN("")},
		{"{\"execute\":\"quit\\u0000\"}", UNKNOWN("quit")},
		{"{\"execute\":\"%s%n\\\"\"}", UNKNOWN("%s%n\\\"")},
		{"{\"exec-oob\":\"quit\"}", GENERIC("QMP input member 'exec-oob' is unexpected")},
		{"{}", GENERIC("QMP input needs a member 'execute', a string")},
		{"{\"execute\":null}", GENERIC("QMP input needs a member 'execute', a string")},
		{"[]", GENERIC("QMP input must be a JSON object")},
		{"[{\"execute\":\"quit\"}]", GENERIC("QMP input must be a JSON object")},
		{"\"quit\"", GENERIC("QMP input must be a JSON object")},
		{"12\n", GENERIC("QMP input must be a JSON object")},
		{"null ", GENERIC("QMP input must be a JSON object")},
		{"true\n", GENERIC("QMP input must be a JSON object")},
		{"", ""},
		{"\r\n \t\n", ""},
	};
	struct qmp *qmp = begin_negotiated();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		say(qmp, cases[i].input);
		expect(qmp, cases[i].output);
	}
	say(qmp, "{\"execute\":\"query-commands\"}");
	expect(qmp,
	       "{\"return\":[{\"name\":\"qmp_capabilities\"},{\"name\":\"query-chardev\"},"
	       "{\"name\":\"query-status\"},{\"name\":\"query-version\"},{\"name\":\"query-name\"},"
	       "{\"name\":\"query-commands\"},{\"name\":\"query-command-line-options\"},"
	       "{\"name\":\"query-block\"},{\"name\":\"query-blockstats\"},{\"name\":\"stop\"},"
	       "{\"name\":\"cont\"},{\"name\":\"quit\"}]}\r\n");
	assert_false(qmp_quit_asked(qmp));
	/* Nothing after quit. */
	say(qmp, "{\"execute\":\"quit\"}{\"execute\":\"stop\"}");
	expect(qmp, OK);
	say(qmp, "{\"execute\":\"stop\"}");
	expect(qmp, "");
	assert_true(qmp_quit_asked(qmp));
	qmp_destroy(qmp);
}

static void negotiation_comes_first(void **state)
{
	struct qmp *qmp = begin();

	(void)state;
	expect(qmp, GREETING);
	say(qmp, "{\"execute\":\"quit\"}{\"execute\":\"no-such\"}");
	expect(qmp, EXPECTING EXPECTING);
	assert_false(qmp_quit_asked(qmp));
	say(qmp, "{\"execute\":\"qmp_capabilities\",\"arguments\":{\"enable\":[\"oob\"]}}");
	expect(qmp, GENERIC("No capability can be enabled: none was offered"));
	say(qmp, "{\"execute\":\"qmp_capabilities\",\"arguments\":{\"enable\":[]}}");
	expect(qmp, OK);
	qmp_destroy(qmp);
}

static void garbage_costs_one_line(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} cases[] = {
#define CASE(text) {text, sizeof(text) - 1}
		CASE("GET / HTTP/1.1\n"),
		CASE("}\n"),
		CASE("{]\n"),
		CASE("{\"execute\":}\n"),
		CASE("{\"execute\":\"stop\",}\n"),
		CASE("{'execute':'stop'}\n"),
		CASE("// {\"execute\":\"stop\"}\n"),
		CASE("\0\n"),
		CASE("\0{\"execute\":\"quit\"}\n"),
		CASE("{\"execute\":\0\"quit\"}\n"),
		CASE("{\"execute\":\"qu\0it\"}\n"),
		CASE("\xff\xfe\x80\n"),
		CASE("{\"execute\":\"stop\",\"id\":0x10}\n"),
		CASE("{\"execute\":\"stop\",\"id\":\"\\x\"}\n"),
		CASE("trve{\"execute\":\"quit\"}{\"execute\":\"quit\"}\r\n"),
#undef CASE
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t cut = 0; cut <= cases[i].len; cut++) {
			struct qmp *qmp = begin_negotiated();

			assert_int_equal(qmp_input(qmp, cases[i].text, cut), 0);
			assert_int_equal(qmp_input(qmp, cases[i].text + cut, cases[i].len - cut),
					 0);
			if (!is_one_error(qmp, "GenericError"))
				fail_msg("case %zu cut at %zu", i, cut);
			assert_false(qmp_quit_asked(qmp));
			say(qmp, "{\"execute\":\"stop\",\"id\":5}");
			expect(qmp, "{\"return\":{},\"id\":5}\r\n");
			qmp_destroy(qmp);
		}
	}
}

/* 64 KiB is the most a command may have, to the byte; whitespace between commands does not count. */
static void size_is_bounded(void **state)
{
	static char text[QMP_COMMAND_MAX_BYTES + 100];
	static const char head[] = "{\"execute\":\"stop\",\"id\":\"";

	(void)state;
	for (size_t over = 0; over < 3; over++) {
		size_t len = QMP_COMMAND_MAX_BYTES - 1 + over;
		struct qmp *qmp = begin_negotiated();
		const char *bytes;

		memset(text, 'x', sizeof(text));
		memcpy(text, head, sizeof(head) - 1);
		text[len - 2] = '"';
		text[len - 1] = '}';
		text[len] = '\n';
		for (size_t at = 0; at < len + 1; at += 1000)
			assert_int_equal(qmp_input(qmp, text + at,
						   len + 1 - at < 1000 ? len + 1 - at : 1000),
					 0);
		if (over < 2) {
			assert_true(qmp_output(qmp, &bytes) > len - sizeof(head));
			assert_memory_equal(bytes, "{\"return\":{},\"id\":\"xxx", 20);
			qmp_output_sent(qmp, qmp_output(qmp, &bytes));
		} else {
			expect(qmp, GENERIC("JSON parse error, the command is too long"));
		}
		say(qmp, "{\"execute\":\"stop\"}");
		expect(qmp, OK);
		qmp_destroy(qmp);
	}
}

static void endless_input_costs_nothing(void **state)
{
	struct qmp *qmp = begin_negotiated();
	static char block[4096];

	(void)state;
	memset(block, '\n', sizeof(block));
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(qmp_input(qmp, block, sizeof(block)), 0);
	expect(qmp, "");
	memset(block, '[', sizeof(block));
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(qmp_input(qmp, block, sizeof(block)), 0);
	assert_true(is_one_error(qmp, "GenericError"));
	memset(block, ' ', sizeof(block));
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(qmp_input(qmp, block, sizeof(block)), 0);
	say(qmp, "\n{");
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(qmp_input(qmp, block, sizeof(block)), 0);
	expect(qmp, GENERIC("JSON parse error, the command is too long"));
	say(qmp, "\n{\"execute\":\"stop\"}");
	expect(qmp, OK);
	qmp_destroy(qmp);
}

static void depth_is_bounded(void **state)
{
	static const char *const opening[] = {"[", "{\"a\":"};
	static const char *const closing[] = {"]", "}"};

	(void)state;
	for (size_t kind = 0; kind < 2; kind++) {
		for (unsigned depth = 1; depth < 200; depth++) {
			struct qmp *qmp = begin_negotiated();
			const char *bytes;

			say(qmp, "{\"execute\":\"stop\",\"id\":");
			for (unsigned i = 0; i < depth; i++)
				say(qmp, opening[kind]);
			say(qmp, "0");
			for (unsigned i = 0; i < depth; i++)
				say(qmp, closing[kind]);
			say(qmp, "}\n");
			if (depth < QMP_DEPTH_MAX - 2) {
				assert_true(qmp_output(qmp, &bytes) > 2 * depth);
				assert_memory_equal(bytes, "{\"return\"", 9);
				qmp_output_sent(qmp, qmp_output(qmp, &bytes));
			} else if (depth > QMP_DEPTH_MAX) {
				assert_true(is_one_error(qmp, "GenericError"));
			} else {
				qmp_output_sent(qmp, qmp_output(qmp, &bytes));
			}
			say(qmp, "{\"execute\":\"stop\"}");
			expect(qmp, OK);
			qmp_destroy(qmp);
		}
	}
}

/* Long names are not echoed into errors. */
static void long_names(void **state)
{
	struct qmp *qmp = begin_negotiated();
	char text[400];

	(void)state;
	for (int len = 63; len < 66; len++) {
		snprintf(text, sizeof(text), "{\"execute\":\"%0*d\"}", len, 0);
		say(qmp, text);
		if (len <= 64) {
			snprintf(text, sizeof(text), UNKNOWN("%0*d"), len, 0);
			expect(qmp, text);
		} else {
			expect(qmp, UNKNOWN("(a long name)"));
		}
	}
	qmp_destroy(qmp);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(whole_conversation),
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(byte_by_byte),
		cmocka_unit_test(no_newline_needed),
		cmocka_unit_test(ids_come_back),
		cmocka_unit_test(commands),
		cmocka_unit_test(negotiation_comes_first),
		cmocka_unit_test(garbage_costs_one_line),
		cmocka_unit_test(size_is_bounded),
		cmocka_unit_test(endless_input_costs_nothing),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(long_names),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
