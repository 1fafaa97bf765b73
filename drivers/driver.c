// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of drivers, and opening a disk by its specification "name:params".
 *
 * Owns: which drivers exist, and what the toolstack's word "aio" means.
 * Trusts / does not trust: the specification comes from an administrator or the toolstack; checked.
 * Runs on: the main thread; disk_open() may block as the driver does.
 * Must not know: what a driver does.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "drivers/drivers.h"
#include "drivers/sector-emulation.h"

const struct driver *const driver_table[] = {
	&file_driver, &null_driver, &memory_driver, &fault_driver, NULL,
};

const struct driver *driver_find(const char *name)
{
	for (const struct driver *const *driver = driver_table; *driver; driver++)
		if (!strcmp((*driver)->name, name))
			return *driver;
	return NULL;
}

/* libxl writes the word of the image format, not of an engine: "aio" is its word for raw
 * (libxl__device_disk_string_of_format()). The others are images which need a format driver. */
static bool is_image_format(const char *name)
{
	static const char *const formats[] = {"qcow", "qcow2", "qed", "vhd", "vmdk", "vdi"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(name, formats[i]))
			return true;
	return false;
}

static bool suits_sectors(const struct disk_limits *limits)
{
	return limits->logical_block_bytes <= 512 && limits->memory_align_bytes <= 512;
}

int disk_open(const char *spec, unsigned flags, struct disk **disk_out, struct error *error)
{
	const char *colon = strchr(spec, ':');
	const struct driver *driver;
	char name[16] = "";
	int ret;

	if (!*spec)
		return error_set(error, EINVAL,
				 "no disk is named: give FORMAT:TARGET, for example "
				 "aio:/srv/disk.img");
	/* Only the first colon separates; a target may hold more of them. */
	if (!colon)
		return error_set(error, EINVAL,
				 "%.300s: the format is missing; give FORMAT:TARGET, for example "
				 "aio:%.300s",
				 spec, spec);
	if ((size_t)(colon - spec) < sizeof(name))
		memcpy(name, spec, (size_t)(colon - spec));
	if (is_image_format(name))
		return error_set(error, EOPNOTSUPP,
				 "%.300s: images of format %s are not served; convert it (qemu-img "
				 "convert -O raw) and say format=raw",
				 spec, name);
	driver = driver_find(strcmp(name, "aio") ? name : "file");
	if (!driver)
		return error_set(
			error, EOPNOTSUPP,
			"%.300s: no driver of the name '%.*s'; for a raw file or block device "
			"say format=raw (aio:TARGET)",
			spec, (int)(colon - spec), spec);
	ret = driver->open(colon + 1, flags & ~DISK_OPEN_SECTOR_512, disk_out, error);
	if (ret || !(flags & DISK_OPEN_SECTOR_512) || suits_sectors(&(*disk_out)->limits))
		return ret;
	return sector_emulation_open(*disk_out, disk_out, error);
}
