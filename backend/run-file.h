/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Run files: one per VBD, held locked by the process that serves it.
 *
 * Owns: <run-dir>/<kind>-<domid>-<devid>, its lock (which dies with its process, however that ends) and
 *   its text (what is served, for people and messages).
 * Trusts / does not trust: the run directory is root's; a file without a lock means nothing.
 * Runs on: the main thread; local file system calls only.
 * Must not know: xenstore, what a VBD does.
 *
 * The lock is a POSIX record lock, because F_GETLK then names the holder's pid: a restarted vbdiskd finds
 * the processes it did not start itself. It is released when *any* descriptor of the file is closed, so
 * the holder opens it once.
 */
#ifndef VBDISK_RUN_FILE_H
#define VBDISK_RUN_FILE_H

#include <sys/types.h>

#define RUN_DIR_DEFAULT RUNSTATEDIR "/vbdisk"
#define RUN_FILE_TEXT_MAX 4352

struct run_file {
	int fd;
	char path[512];
};

/* Create the run directory (0755) if it is not there. 0 or -errno. */
int run_dir_make(const char *dir);

/* Create and lock the file @name in @dir. 0; -EBUSY if a process holds it, its pid in *@holder_out;
 * -errno. */
int run_file_hold(struct run_file *file, const char *dir, const char *name, pid_t *holder_out);

/* Replace the text of a file we hold. 0 or -errno. */
int run_file_write(struct run_file *file, const char *text);

/* Remove and unlock. */
void run_file_release(struct run_file *file);

/* Who holds @name in @dir: 0 with the pid, or with 0 in *@holder_out for nobody. -errno. */
int run_file_holder(const char *dir, const char *name, pid_t *holder_out);

/* Find a file of @dir held by another process whose text is @text; its name goes to @name_out (@size bytes).
 * @own, the caller's own file or NULL, is left alone: to look into it would unlock it. 0 or -ENOENT. */
int run_file_find(const char *dir, const struct run_file *own, const char *text, char *name_out,
		  size_t size);

#endif
