#include "platform/proc_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "base/units.h"
#include "platform/file.h"
#include "platform/raw_calls.h"

namespace spw::platform {

Result<std::string> read_small_file(const std::string& path) {
  auto file = open_file(path, O_RDONLY);
  if (!file) return file.status();
  auto text = read_small_file(*file);
  return text ? std::move(text) : Status(text.status().error(), "cannot read " + path);
}

Result<std::string> read_small_file(const File& file) {
  std::string text;
  char piece[4096];
  while (text.size() < kSmallFileBytesMax) {
    const ssize_t got = raw::pread(file.fd(), piece, sizeof piece, static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status(errno, "cannot read a file of the kernel's");
    if (got == 0) break;
    text.append(piece, static_cast<size_t>(got));
  }
  return text;
}

namespace {

// What follows `name` on the line that begins with it, without blanks.
std::optional<std::string_view> field(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> kib_field(std::string_view text, std::string_view name) {
  auto value = field(text, name);
  if (!value || !value->ends_with(" kB")) return std::nullopt;
  auto kib = whole_number(value->substr(0, value->size() - 3));
  return kib ? std::optional(*kib * kKiB) : std::nullopt;
}

std::optional<uint64_t> number_field(std::string_view text, std::string_view name) {
  auto value = field(text, std::string(name) + ' ');
  return value ? whole_number(*value) : std::nullopt;
}

std::optional<uint64_t> whole_number(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  uint64_t number = 0;
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<uint64_t> process_numbers() {
  struct Close {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  std::vector<uint64_t> numbers;
  const std::unique_ptr<DIR, Close> all(::opendir("/proc"));
  while (const dirent* entry = all ? ::readdir(all.get()) : nullptr)
    if (const auto number = whole_number(entry->d_name)) numbers.push_back(*number);
  return numbers;
}

}  // namespace spw::platform
