// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs a fuzz target over its corpus, so that `make check` does so with any compiler.
 *
 * Owns: main() of a target that is not linked with libFuzzer. Trusts: the corpus directory is there; the
 *   files' contents are what a guest may write. Runs on: the test. Must not know: the target.
 *
 * Without arguments: $top_srcdir/tests/fuzz/corpus/REPLAY_CORPUS; else the files named.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned nr_files;

/* The input in memory of exactly its size, so that ASAN and valgrind see a read past its end. */
static int file_replay(const char *path)
{
	FILE *in = fopen(path, "rb");
	uint8_t *data = NULL;
	long size = -1;

	nr_files++;
	if (in && !fseek(in, 0, SEEK_END))
		size = ftell(in);
	if (size >= 0)
		data = malloc(size ? (size_t)size : 1);
	if (!data || fseek(in, 0, SEEK_SET) || fread(data, 1, (size_t)size, in) != (size_t)size) {
		printf("not ok %u - %s # cannot read: %s\n", nr_files, path, strerror(errno));
		free(data);
		if (in)
			fclose(in);
		return 1;
	}
	fclose(in);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
	printf("ok %u - %s\n", nr_files, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	return 0;
}

static int corpus_replay(void)
{
	const char *top = getenv("top_srcdir");
	char dir[512], path[1024];
	struct dirent *entry;
	DIR *entries;
	int failed = 0;

	snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus/%s", top ? top : ".", REPLAY_CORPUS);
	entries = opendir(dir);
	if (!entries) {
		printf("Bail out! cannot open %s: %s; set top_srcdir\n", dir, strerror(errno));
		return 1;
	}
	while ((entry = readdir(entries))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		failed |= file_replay(path);
	}
	closedir(entries);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc == 1)
		failed = corpus_replay();
	for (int i = 1; i < argc; i++)
		failed |= file_replay(argv[i]);
	if (!nr_files) {
		puts("Bail out! the corpus is empty");
		failed = 1;
	}
	printf("1..%u\n", nr_files);
	return failed;
}
