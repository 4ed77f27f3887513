#include "code_names.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <sstream>

#include "platform/file.h"
#include "platform/memory.h"

namespace spw::tool {

namespace {

// One line of /proc/PID/maps.
struct Line {
  uint64_t begin = 0, end = 0;
  std::string path;
};

bool parse(const std::string& text, Line* line) {
  unsigned long long begin = 0, end = 0;
  int path_at = 0;
  if (std::sscanf(text.c_str(), "%llx-%llx %*s %*s %*s %*s %n", &begin, &end, &path_at) != 2 || path_at == 0)
    return false;
  *line = {begin, end, text.substr(static_cast<size_t>(path_at))};
  return !line->path.empty() && line->path.front() == '/';
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 && plain ? plain.get() : name;
}

// A file of 64 bits, mapped: [0, bytes) may be read, and nothing in it is believed.
class Image {
 public:
  explicit Image(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  const T* at(uint64_t offset, uint64_t count = 1) const {
    const bool fits =
        offset <= bytes_.size() && count <= (bytes_.size() - offset) / sizeof(T) && offset % alignof(T) == 0;
    return fits ? reinterpret_cast<const T*>(bytes_.data() + offset) : nullptr;
  }
  std::span<const Elf64_Shdr> sections() const {
    const auto* header = at<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64)
      return {};
    const auto* sections = at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
    return sections ? std::span(sections, header->e_shnum) : std::span<const Elf64_Shdr>();
  }
  // "" where it is not ended within the section.
  const char* text(const Elf64_Shdr& strings, uint64_t offset) const {
    const char* begin =
        offset < strings.sh_size ? at<char>(strings.sh_offset + offset, strings.sh_size - offset) : nullptr;
    return begin && std::memchr(begin, '\0', strings.sh_size - offset) ? begin : "";
  }

 private:
  std::span<const std::byte> bytes_;
};

std::string function_in(const Image& image, uint64_t address) {
  const std::span<const Elf64_Shdr> sections = image.sections();
  for (const uint32_t type : {SHT_SYMTAB, SHT_DYNSYM})
    for (const Elf64_Shdr& section : sections) {
      if (section.sh_type != type || section.sh_link >= sections.size()) continue;
      const uint64_t count = section.sh_size / sizeof(Elf64_Sym);
      const auto* symbols = image.at<Elf64_Sym>(section.sh_offset, count);
      if (!symbols) continue;
      for (const Elf64_Sym& symbol : std::span(symbols, count))
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && address - symbol.st_value < symbol.st_size)
          return demangled(image.text(sections[section.sh_link], symbol.st_name));
    }
  return {};
}

}  // namespace

std::string function_at(const std::string& path, uint64_t address) {
  auto file = platform::open_file(path, O_RDONLY);
  if (!file) return {};
  const auto bytes = platform::file_size(*file);
  if (!bytes || *bytes == 0) return {};
  auto mapping = platform::map_file(*file, 0, *bytes, platform::Protection::kRead);
  if (!mapping) return {};
  return function_in(Image({mapping->data(), *bytes}), address);
}

std::string name_of_place(const std::string& file, uint64_t offset, const std::string& function) {
  const std::string place = fmt::format("{}+{:#x}", file.substr(file.rfind('/') + 1), offset);
  return function.empty() ? place : fmt::format("{} ({})", function, place);
}

// Files are loaded from their beginning on, so a path's first line says where; programs that are not
// position-independent are where they say.
std::string name_of_code(uint64_t address, const std::string& maps) {
  std::istringstream lines(maps);
  Line first, line;
  for (std::string text; std::getline(lines, text);) {
    if (!parse(text, &line)) continue;
    if (line.path != first.path) first = line;
    if (address < line.begin || address >= line.end) continue;
    const uint64_t offset = address - first.begin;
    // The call is before the address that it returns to.
    std::string function = function_at(line.path, offset - 1);
    if (function.empty()) function = function_at(line.path, address - 1);
    return name_of_place(line.path, offset, function);
  }
  return fmt::format("{:#x}", address);
}

}  // namespace spw::tool
