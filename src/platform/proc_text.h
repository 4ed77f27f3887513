// Reading the kernel's small text files (/proc, /sys) and the fields in them.
//
// Threads: any. Limits: files of up to kSmallFileBytesMax bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "platform/file.h"

namespace spw::platform {

inline constexpr size_t kSmallFileBytesMax = 64 * 1024;

Result<std::string> read_small_file(const std::string& path);
// From its beginning, whatever was read of it before.
Result<std::string> read_small_file(const File& file);

// The value of a line "NAME   123 kB", in bytes. `name` with its colon.
std::optional<uint64_t> kib_field(std::string_view text, std::string_view name);

// The value of a line "NAME 123". `name` without the blank.
std::optional<uint64_t> number_field(std::string_view text, std::string_view name);

// Of all processes that this one sees; none where /proc cannot be read.
std::vector<uint64_t> process_numbers();

// A whole text that is one decimal number, with or without a newline.
std::optional<uint64_t> whole_number(std::string_view text);

}  // namespace spw::platform
