#include "program.h"

#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace spw::tool {

namespace {

constexpr std::string_view kLibraryPrefix = "libspillway.so";
constexpr std::string_view kVersionSymbolPrefixes[] = {"__spw_abi_v", "__spw_hints_v"};
constexpr size_t kShebangBytesMax = 128;
// No table of a real program comes near this; it bounds what a broken file makes us read.
constexpr uint64_t kTableBytesMax = uint64_t{1} << 30;

// A file's descriptor and what libelf makes of it, by reads: nothing is mapped.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    elf_version(EV_CURRENT);
    if (fd_ >= 0) elf_ = elf_begin(fd_, ELF_C_READ, nullptr);
  }
  ~ElfFile() {
    if (elf_) elf_end(elf_);
    if (fd_ >= 0) ::close(fd_);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  bool is_open() const { return fd_ >= 0; }
  Elf* elf() const { return elf_; }

  std::string start() const {
    std::string text(kShebangBytesMax, '\0');
    const ssize_t count = ::pread(fd_, text.data(), text.size(), 0);
    text.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return text;
  }

 private:
  int fd_;
  Elf* elf_ = nullptr;
};

bool is_version_symbol(std::string_view name) {
  return std::any_of(std::begin(kVersionSymbolPrefixes), std::end(kVersionSymbolPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// What the segments say of a program: whether all of it is there, and whether a dynamic loader starts it.
struct Segments {
  bool is_whole = true;
  bool has_interpreter = false;
  std::vector<GElf_Phdr> all;

  const GElf_Phdr* first_of(uint32_t type) const {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const GElf_Phdr& segment) { return segment.p_type == type; });
    return found == all.end() ? nullptr : &*found;
  }
  // Where in the file the bytes are that are loaded at `address`; nothing: none are.
  std::optional<uint64_t> offset_of(uint64_t address) const {
    for (const GElf_Phdr& segment : all)
      if (segment.p_type == PT_LOAD && address - segment.p_vaddr < segment.p_filesz)
        return segment.p_offset + (address - segment.p_vaddr);
    return {};
  }
};
Segments read_segments(Elf* elf, const GElf_Ehdr& header, uint64_t file_bytes) {
  Segments result;
  size_t count = 0;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || elf_getphdrnum(elf, &count) != 0) return {false, false, {}};
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (!gelf_getphdr(elf, static_cast<int>(i), &segment) || segment.p_offset > file_bytes ||
        segment.p_filesz > file_bytes - segment.p_offset)
      return {false, false, {}};
    result.all.push_back(segment);
  }
  result.has_interpreter = result.first_of(PT_INTERP) != nullptr;
  return result;
}

bool has_rights_of_its_own(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return false;
  return (info.st_mode & (S_ISUID | S_ISGID)) != 0 ||
         ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

// The first version symbol in the symbol tables, that of the dynamic loader first; "": there is none.
std::string version_symbol(Elf* elf) {
  for (const uint32_t type : {SHT_DYNSYM, SHT_SYMTAB})
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section));) {
      GElf_Shdr header;
      if (!gelf_getshdr(section, &header) || header.sh_type != type || header.sh_entsize == 0 ||
          header.sh_size > kTableBytesMax)
        continue;
      Elf_Data* data = elf_getdata(section, nullptr);
      const size_t count = data ? data->d_size / header.sh_entsize : 0;
      for (size_t i = 0; i < std::min<size_t>(count, INT_MAX); ++i) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, static_cast<int>(i), &symbol)) break;
        const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
        if (name && is_version_symbol(name)) return name;
      }
    }
  return {};
}

// By the dynamic segment, as the loader reads it: it goes by no section.
bool needs_our_library(Elf* elf, const Segments& segments) {
  const GElf_Phdr* dynamic = segments.first_of(PT_DYNAMIC);
  if (!dynamic || dynamic->p_filesz > kTableBytesMax) return false;
  Elf_Data* entries =
      elf_getdata_rawchunk(elf, static_cast<int64_t>(dynamic->p_offset), dynamic->p_filesz, ELF_T_DYN);
  if (!entries) return false;
  uint64_t strings_address = 0, strings_bytes = 0;
  std::vector<uint64_t> names;
  GElf_Dyn entry;
  for (int i = 0; gelf_getdyn(entries, i, &entry) && entry.d_tag != DT_NULL; ++i) {
    if (entry.d_tag == DT_STRTAB) strings_address = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) strings_bytes = entry.d_un.d_val;
    if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
  }
  const auto strings_at = segments.offset_of(strings_address);
  if (!strings_at || strings_bytes > kTableBytesMax) return false;
  const Elf_Data* strings =
      elf_getdata_rawchunk(elf, static_cast<int64_t>(*strings_at), strings_bytes, ELF_T_BYTE);
  if (!strings) return false;
  const std::string_view all(static_cast<const char*>(strings->d_buf), strings->d_size);
  return std::any_of(names.begin(), names.end(), [&](uint64_t at) {
    return at < all.size() && all.substr(at).starts_with(kLibraryPrefix);
  });
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
  const std::string start = file.start();
  if (start.starts_with("#!")) {
    const size_t begin = std::min(start.find_first_not_of(" \t", 2), start.size());
    return {ProgramKind::kScript, start.substr(begin, start.find_first_of(" \t\n", begin) - begin)};
  }
  GElf_Ehdr header;
  if (start.empty()) return {ProgramKind::kForeign, "it is empty, or cannot be read"};
  if (!start.starts_with(ELFMAG)) return {ProgramKind::kForeign, "it is no ELF file"};
  if (!file.elf() || !gelf_getehdr(file.elf(), &header))
    return {ProgramKind::kForeign, "it has an ELF header that cannot be read"};
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
    return {ProgramKind::kForeign, "it is made for another processor than x86-64"};
  std::error_code error;
  const Segments segments = read_segments(file.elf(), header, std::filesystem::file_size(path, error));
  if (!segments.is_whole) return {ProgramKind::kForeign, "it is cut short or damaged"};
  if (has_rights_of_its_own(path)) return {ProgramKind::kPrivileged, ""};
  std::string symbol = version_symbol(file.elf());
  if (!symbol.empty() || needs_our_library(file.elf(), segments)) return {ProgramKind::kRecompiled, symbol};
  if (!segments.has_interpreter) return {ProgramKind::kSealed, "it is linked statically"};
  return {ProgramKind::kUnmodified, ""};
}

}  // namespace spw::tool
