#include "process/library_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "platform/file.h"

namespace spw::process {

namespace {

constexpr const char* kBroken = "it is cut short or damaged";
constexpr uint64_t kAddressesEnd = uint64_t{1} << 47;
// Of a table that is read here: more is no library's.
constexpr uint64_t kTableBytesMax = 64 * kMiB;

// Of addresses in the library, or of bytes in the file.
struct Range {
  uint64_t begin, bytes;

  bool holds(uint64_t at, uint64_t length) const {
    return at >= begin && at - begin <= bytes && length <= bytes - (at - begin);
  }
};

class LibraryFile {
 public:
  LibraryFile(const platform::File& file, uint64_t bytes) : file_(file), all_{0, bytes} {}

  std::string fault() {
    Elf64_Ehdr header;
    if (!read(0, &header, 1)) return "it is no ELF file";
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "it is no ELF file";
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_machine != EM_X86_64)
      return "it is made for another processor";
    if (header.e_type != ET_DYN) return "it is no shared library";
    segments_.resize(header.e_phnum);
    if (header.e_phentsize != sizeof(Elf64_Phdr) || segments_.empty() ||
        !read(header.e_phoff, segments_.data(), segments_.size()) || !segments_fit())
      return kBroken;
    return dynamic_fits() ? "" : kBroken;
  }

 private:
  template <class T>
  bool read(uint64_t at, T* to, size_t count) const {
    const uint64_t bytes = count * sizeof(T);
    const iovec segment{to, bytes};
    return all_.holds(at, bytes) &&
           platform::read_at(file_.fd(), &segment, 1, at) == static_cast<int64_t>(bytes);
  }

  // Whole entries only; of a table that is longer than any library's, none.
  template <class T>
  bool read_table(uint64_t at, uint64_t bytes, std::vector<T>& table) const {
    if (bytes > kTableBytesMax || bytes % sizeof(T) != 0 || !all_.holds(at, bytes)) return false;
    table.resize(bytes / sizeof(T));
    return read(at, table.data(), table.size());
  }

  // In the file, one behind the other at their addresses.
  bool segments_fit() {
    uint64_t end = 0;
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_LOAD) continue;
      if (!all_.holds(segment.p_offset, segment.p_filesz) || segment.p_filesz > segment.p_memsz ||
          segment.p_vaddr < end || segment.p_memsz > kAddressesEnd ||
          segment.p_vaddr > kAddressesEnd - segment.p_memsz ||
          (segment.p_vaddr - segment.p_offset) % kMmuPageBytes != 0)
        return false;
      end = segment.p_vaddr + segment.p_memsz;
      loaded_.push_back({segment.p_vaddr, segment.p_memsz});
    }
    return !loaded_.empty();
  }

  bool is_loaded(uint64_t at, uint64_t bytes) const {
    return std::ranges::any_of(loaded_, [=](const Range& each) { return each.holds(at, bytes); });
  }

  // Where in the file the bytes at an address are, if all of them are in it; UINT64_MAX: they are not.
  uint64_t in_file(uint64_t at, uint64_t bytes) const {
    for (const Elf64_Phdr& each : segments_)
      if (each.p_type == PT_LOAD && Range{each.p_vaddr, each.p_filesz}.holds(at, bytes))
        return each.p_offset + (at - each.p_vaddr);
    return UINT64_MAX;
  }

  // The value of an entry of what the loader is told; 0: there is none.
  uint64_t told(Elf64_Sxword tag) const {
    const auto entry = std::ranges::find(dynamic_, tag, &Elf64_Dyn::d_tag);
    return entry == dynamic_.end() ? 0 : entry->d_un.d_val;
  }

  // Found by its address, as the loader does.
  bool read_dynamic() {
    const auto segment = std::ranges::find(segments_, PT_DYNAMIC, &Elf64_Phdr::p_type);
    if (segment == segments_.end() || segment->p_vaddr % alignof(Elf64_Dyn) != 0) return false;
    if (!read_table(in_file(segment->p_vaddr, segment->p_filesz), segment->p_filesz, dynamic_)) return false;
    const auto end = std::ranges::find(dynamic_, DT_NULL, &Elf64_Dyn::d_tag);
    if (end == dynamic_.end()) return false;
    dynamic_.erase(end, dynamic_.end());
    return true;
  }

  // What is made read-only once all is in place: none but the library's own pages. (Linkers round its end up.)
  bool protection_fits() const {
    return std::ranges::all_of(segments_, [this](const Elf64_Phdr& each) {
      return each.p_type != PT_GNU_RELRO || std::ranges::any_of(loaded_, [&each](const Range& load) {
               const uint64_t end = round_up(load.begin + load.bytes, kMmuPageBytes);
               return Range{load.begin, end - load.begin}.holds(each.p_vaddr, each.p_memsz);
             });
    });
  }

  // Each table is in memory that is loaded, as long as it is said to be.
  bool tables_fit() const {
    constexpr struct {
      Elf64_Sxword table, bytes;
    } kTables[] = {{DT_STRTAB, DT_STRSZ},
                   {DT_INIT_ARRAY, DT_INIT_ARRAYSZ},
                   {DT_FINI_ARRAY, DT_FINI_ARRAYSZ},
                   {DT_RELR, DT_RELRSZ}};
    for (const auto& [table, bytes] : kTables)
      if ((told(table) != 0 || told(bytes) != 0) && !is_loaded(told(table), told(bytes))) return false;
    if (told(DT_STRTAB) == 0 || told(DT_SYMTAB) == 0 || told(DT_SYMENT) != sizeof(Elf64_Sym)) return false;
    constexpr Elf64_Sxword kOthers[] = {DT_SYMTAB, DT_HASH,    DT_INIT,  DT_FINI,
                                        DT_VERSYM, DT_VERNEED, DT_VERDEF};
    return std::ranges::all_of(kOthers, [this](Elf64_Sxword tag) {
      return told(tag) == 0 || is_loaded(told(tag), sizeof(uint32_t));
    });
  }

  // buckets, first symbol, words of the filter, shift; then those words, and the buckets.
  bool hash_fits() const {
    const uint64_t at = told(DT_GNU_HASH);
    if (at == 0) return told(DT_HASH) != 0;
    uint32_t head[4];
    if (!read(in_file(at, sizeof head), head, std::size(head))) return false;
    const uint64_t bytes =
        sizeof head + head[2] * sizeof(uint64_t) + (uint64_t{head[0]} + 1) * sizeof(uint32_t);
    return head[0] != 0 && std::has_single_bit(head[2]) && is_loaded(at, bytes);
  }

  // The name at an offset of the strings; "": none ends there.
  std::string_view name_at(const std::vector<char>& strings, uint64_t at) const {
    if (at >= strings.size()) return "";
    const auto end = std::find(strings.begin() + static_cast<ptrdiff_t>(at), strings.end(), '\0');
    return end == strings.end() ? "" : std::string_view(&strings[at]);
  }

  // What needs versions of another library's symbols names one that is needed.
  bool versions_fit() const {
    std::vector<char> strings;
    if (!read_table(in_file(told(DT_STRTAB), told(DT_STRSZ)), told(DT_STRSZ), strings)) return false;
    uint64_t at = told(DT_VERNEED);
    for (uint64_t left = at == 0 ? 0 : told(DT_VERNEEDNUM); left > 0; --left) {
      Elf64_Verneed need;
      if (!read(in_file(at, sizeof need), &need, 1)) return false;
      const std::string_view name = name_at(strings, need.vn_file);
      const bool is_needed = std::ranges::any_of(dynamic_, [&](const Elf64_Dyn& each) {
        return each.d_tag == DT_NEEDED && name_at(strings, each.d_un.d_val) == name;
      });
      if (name.empty() || !is_needed || need.vn_version != VER_NEED_CURRENT) return false;
      uint64_t version = at + need.vn_aux;
      for (unsigned more = need.vn_cnt; more > 0; --more) {
        Elf64_Vernaux aux;
        if (!read(in_file(version, sizeof aux), &aux, 1) || name_at(strings, aux.vna_name).empty())
          return false;
        if (more > 1 && aux.vna_next == 0) return false;
        version += aux.vna_next;
      }
      if ((left > 1) != (need.vn_next != 0)) return false;
      at += need.vn_next;
    }
    return true;
  }

  // Each changes memory of the library, and those that are said to be relative are.
  bool relocations_fit(uint64_t at, uint64_t bytes, uint64_t relative) const {
    if (bytes == 0) return relative == 0;
    std::vector<Elf64_Rela> all;
    if (!read_table(in_file(at, bytes), bytes, all) || relative > all.size()) return false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!is_loaded(all[i].r_offset, sizeof(uint64_t))) return false;
      if (i < relative && ELF64_R_TYPE(all[i].r_info) != R_X86_64_RELATIVE) return false;
    }
    return true;
  }

  bool dynamic_fits() {
    if (!read_dynamic() || !protection_fits() || !tables_fit() || !hash_fits() || !versions_fit())
      return false;
    if (told(DT_RELA) != 0 && told(DT_RELAENT) != sizeof(Elf64_Rela)) return false;
    if (told(DT_JMPREL) != 0 && told(DT_PLTREL) != DT_RELA) return false;
    return relocations_fit(told(DT_RELA), told(DT_RELASZ), told(DT_RELACOUNT)) &&
           relocations_fit(told(DT_JMPREL), told(DT_PLTRELSZ), 0);
  }

  const platform::File& file_;
  const Range all_;
  std::vector<Elf64_Phdr> segments_;
  std::vector<Range> loaded_;
  std::vector<Elf64_Dyn> dynamic_;
};

}  // namespace

std::string fault_of_library(const std::string& path) {
  // Where it is a pipe, to open it would wait for somebody to write.
  auto file = platform::open_file(path, O_RDONLY | O_NONBLOCK);
  if (!file) return std::string("it cannot be opened: ") + std::strerror(file.status().error());
  struct stat info{};
  if (::fstat(file->fd(), &info) != 0 || !S_ISREG(info.st_mode)) return "it is no file";
  return LibraryFile(*file, static_cast<uint64_t>(info.st_size)).fault();
}

}  // namespace spw::process
