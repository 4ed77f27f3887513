// A block device that one process has alone, and who else uses it.
//
// The kernel lets one open description claim a device (O_EXCL), against filesystems, swap, volumes that lie on it (LVM,
// RAID, encryption) and other claims; a lock (flock) says so to programs that only look, as udev and mkfs do.
// Threads: any. Limits: what other namespaces (containers) do with the device cannot be named, only that it is in use;
// nor does the kernel keep anybody from opening it without a claim.
#pragma once

#include <string>

#include "base/status.h"
#include "platform/file.h"

namespace spw::platform {

// Whether `path` is one.
bool is_block_device(const std::string& path);

// Open for reading and writing, and claimed until the last copy of the descriptor is closed, however the process ends.
// EBUSY with who uses it (device_user) as a clause; else what the call said.
Result<File> open_device_alone(const std::string& path);

// Who has a claim on the device at `path`, as "it is mounted at /mnt" or "process 17 (sort) has it as its store"; ""
// if nobody can be found.
std::string device_user(const std::string& path);

// A name that one process of this machine has at a time (of this network namespace), until the File is closed or the
// process gone. EBUSY with who has it as a clause.
Result<File> claim_name(const std::string& name);
// Where such names are known: processes with the same scope see each other's names.
std::string claim_scope();

}  // namespace spw::platform
