#include "files/striped_members.h"

#include <fcntl.h>
#include <unistd.h>

#include "store/striped/striped_name.h"
#include "store/striped_file.h"

namespace spw::files {

namespace {

Status open_member(const std::string& path, int flags, unsigned mode, platform::File* file) {
  *file = platform::File(::open(path.c_str(), flags, mode));
  return file->is_open() ? Status::ok() : Status(errno, "cannot open " + path);
}

// Makes those that are missing; what was made goes again when one cannot be.
Status create_missing(StripedMembers& members, int flags, unsigned mode, bool is_exclusive) {
  std::vector<const std::string*> made;
  for (size_t i = 0; i < members.paths.size(); ++i) {
    if (members.files[i].is_open()) continue;
    Status status = open_member(members.paths[i], flags | O_CREAT | O_EXCL, mode, &members.files[i]);
    if (status) {
      made.push_back(&members.paths[i]);
      continue;
    }
    const bool may_be_there = status.error() == EEXIST && !is_exclusive;  // made by somebody else meanwhile
    if (may_be_there) status = open_member(members.paths[i], flags | O_CREAT, mode, &members.files[i]);
    if (status) continue;
    for (const std::string* path : made) ::unlink(path->c_str());
    return status;
  }
  return {};
}

// A member that is missing while others hold data is not to be made: its disk may not be mounted.
Status check_missing(const StripedMembers& members, const Status& missing) {
  for (size_t i = 0; i < members.paths.size(); ++i) {
    if (!members.files[i].is_open()) continue;
    const auto size = platform::file_size(members.files[i]);
    if (!size) return size.status();
    if (*size > 0)
      return Status::sentence(ENOENT, std::string(missing.context()) + ": it is missing, while " +
                                          members.paths[i] + " of the same striped file holds data");
  }
  return {};
}

}  // namespace

bool StripedMembers::is_name(std::string_view name) { return name.starts_with(store::kStripedScheme); }

Result<StripedMembers> StripedMembers::open(std::string_view name, int flags, unsigned mode) {
  constexpr std::string_view kFile = "file:";
  auto parsed =
      store::parse_striped(name.substr(store::kStripedScheme.size()), store::kStripedFileChunkBytesDefault);
  if (!parsed) return parsed.status();
  if (parsed->members.size() < 2)
    return Status::sentence(EINVAL, std::string(name) + ": a striped file has two members or more");
  StripedMembers members;
  members.chunk_bytes = parsed->chunk_bytes;
  for (std::string& member : parsed->members)
    members.paths.push_back(member.starts_with(kFile) ? member.substr(kFile.size()) : std::move(member));
  members.files.resize(members.paths.size());
  const int plain = flags & ~(O_CREAT | O_EXCL | O_TRUNC);
  const bool creates = (flags & O_CREAT) != 0;
  const bool is_exclusive = creates && (flags & O_EXCL) != 0;
  if (!is_exclusive) {
    Status missing;
    for (size_t i = 0; i < members.paths.size(); ++i) {
      const Status status = open_member(members.paths[i], plain, mode, &members.files[i]);
      if (!status && !(creates && status.error() == ENOENT)) return status;
      if (!status && missing) missing = status;
    }
    if (!missing && (flags & O_TRUNC) == 0)
      if (Status status = check_missing(members, missing); !status) return status;
  }
  if (creates)
    if (Status status = create_missing(members, plain, mode, is_exclusive); !status) return status;
  return members;
}

}  // namespace spw::files
