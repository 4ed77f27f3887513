#include "program.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

namespace spw::tool {

namespace {

constexpr std::string_view kLibraryPrefix = "libspillway.so";
constexpr std::string_view kVersionSymbolPrefixes[] = {"__spw_abi_v", "__spw_hints_v"};
constexpr size_t kShebangBytesMax = 128;
// No string table of a real program comes near this; it bounds what a broken file makes us read.
constexpr uint64_t kStringTableBytesMax = uint64_t{1} << 30;

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : stream_(path, std::ios::binary) {}

  bool is_open() const { return stream_.is_open(); }

  std::string bytes(uint64_t offset, uint64_t count) {
    std::string text(count, '\0');
    stream_.clear();
    stream_.seekg(static_cast<std::streamoff>(offset));
    stream_.read(text.data(), static_cast<std::streamsize>(count));
    text.resize(static_cast<size_t>(stream_.gcount()));
    return text;
  }

  template <class T>
  std::optional<T> object(uint64_t offset) {
    T value;
    std::string text = bytes(offset, sizeof value);
    if (text.size() != sizeof value) return std::nullopt;
    std::memcpy(&value, text.data(), sizeof value);
    return value;
  }

 private:
  std::ifstream stream_;
};

bool is_version_symbol(std::string_view name) {
  return std::any_of(std::begin(kVersionSymbolPrefixes), std::end(kVersionSymbolPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// What the segments say of a program: whether all of it is there, and whether a dynamic loader starts it.
struct Segments {
  bool is_whole = true;
  bool has_interpreter = false;
};
Segments read_segments(ElfFile& file, const Elf64_Ehdr& header, uint64_t file_bytes) {
  Segments result;
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return {false, false};
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    auto segment = file.object<Elf64_Phdr>(header.e_phoff + uint64_t{i} * sizeof(Elf64_Phdr));
    if (!segment || segment->p_offset > file_bytes || segment->p_filesz > file_bytes - segment->p_offset)
      result.is_whole = false;
    else if (segment->p_type == PT_INTERP)
      result.has_interpreter = true;
  }
  return result;
}

bool has_rights_of_its_own(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return false;
  return (info.st_mode & (S_ISUID | S_ISGID)) != 0 ||
         ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

std::vector<Elf64_Shdr> read_sections(ElfFile& file, const Elf64_Ehdr& header) {
  std::vector<Elf64_Shdr> sections;
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return sections;
  for (unsigned i = 0; i < header.e_shnum; ++i)
    if (auto section = file.object<Elf64_Shdr>(header.e_shoff + uint64_t{i} * sizeof(Elf64_Shdr)))
      sections.push_back(*section);
  return sections;
}

// The dynamic and static string tables hold the names of needed libraries and of symbols: the first one that makes a
// program ours, or "".
std::string name_that_marks(ElfFile& file, const std::vector<Elf64_Shdr>& sections) {
  std::string library;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_STRTAB || section.sh_size > kStringTableBytesMax) continue;
    const std::string names = file.bytes(section.sh_offset, section.sh_size);
    const std::string_view all(names);
    for (std::string_view prefix : {kVersionSymbolPrefixes[0], kVersionSymbolPrefixes[1], kLibraryPrefix}) {
      // A name begins behind the zero that ends the one before it; a table opens with a zero.
      const std::string begin = std::string(1, '\0') + std::string(prefix);
      size_t at = all.find(begin);
      if (at == all.npos) continue;
      std::string name(names.c_str() + at + 1);
      if (is_version_symbol(name)) return name;
      library = name;
    }
  }
  return library;
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != name.npos) return ::access(name.c_str(), F_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    size_t colon = rest.find(':');
    std::string directory(rest.substr(0, colon));
    std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    std::error_code error;
    if (std::filesystem::is_regular_file(candidate, error) && ::access(candidate.c_str(), X_OK) == 0)
      return candidate;
    if (colon == rest.npos) return "";
    rest.remove_prefix(colon + 1);
  }
}

ProgramFacts inspect_program(const std::string& path) {
  ElfFile file(path);
  if (!file.is_open()) return {ProgramKind::kForeign, "it cannot be read"};
  const std::string start = file.bytes(0, kShebangBytesMax);
  if (start.starts_with("#!")) {
    const size_t begin = std::min(start.find_first_not_of(" \t", 2), start.size());
    return {ProgramKind::kScript, start.substr(begin, start.find_first_of(" \t\n", begin) - begin)};
  }
  auto header = file.object<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return {ProgramKind::kForeign, "it is no ELF file"};
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64)
    return {ProgramKind::kForeign, "it is made for another processor than x86-64"};
  std::error_code error;
  const Segments segments = read_segments(file, *header, std::filesystem::file_size(path, error));
  if (!segments.is_whole) return {ProgramKind::kForeign, "it is cut short or damaged"};
  if (has_rights_of_its_own(path)) return {ProgramKind::kPrivileged, ""};
  std::string name = name_that_marks(file, read_sections(file, *header));
  if (!name.empty()) return {ProgramKind::kRecompiled, is_version_symbol(name) ? name : ""};
  if (!segments.has_interpreter) return {ProgramKind::kSealed, "it is linked statically"};
  return {ProgramKind::kUnmodified, ""};
}

}  // namespace spw::tool
