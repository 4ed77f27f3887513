#include "code_lookup.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace spw::tool {

namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr size_t kMangledBytesMax = 4096;  // the demangler recurses as deep as a name tells it to
constexpr size_t kInlinedMax = 256;
constexpr std::string_view kLibraryFolders[] = {"/usr/include/", "/usr/lib/", "/usr/local/include/",
                                                "/rustc/"};
constexpr std::string_view kLibraryFolderParts[] = {"/include/c++/", "/lib/gcc/", "/.cargo/registry/"};
constexpr std::string_view kLibraryNamespaces[] = {"std::", "__gnu_cxx::"};

std::string demangled(const char* name) {
  if (std::strlen(name) > kMangledBytesMax) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  if (status != 0 || !plain) return name;
  // Of a copy that a compiler has made of a function: how it did that.
  const std::string_view whole(plain.get());
  return std::string(whole.substr(0, whole.find(" [clone ")));
}

// A function at work at a place: its own, or one of those that are inlined there.
struct Frame {
  std::string function;
  std::string file;  // with its folders; where in `function` the place is
  int line = 0;

  bool is_of_library() const {
    const auto begins = [&](std::string_view folder) { return file.starts_with(folder); };
    const auto has = [&](std::string_view part) { return file.find(part) != file.npos; };
    // What a template returns stands before its name.
    const size_t name = function.substr(0, function.find('(')).rfind(' ') + 1;
    const auto is_named = [&](std::string_view space) {
      return function.starts_with(space) || function.substr(name).starts_with(space);
    };
    return std::any_of(std::begin(kLibraryFolders), std::end(kLibraryFolders), begins) ||
           std::any_of(std::begin(kLibraryFolderParts), std::end(kLibraryFolderParts), has) ||
           std::any_of(std::begin(kLibraryNamespaces), std::end(kLibraryNamespaces), is_named);
  }
  std::string source() const {
    return file.empty() || line <= 0 ? "" : fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line);
  }
};

// `symbol`: as the symbol table has it, or "". Of C++ it tells more than a name that stands alone.
std::string name_of_function(Dwarf_Die* die, const std::string& symbol) {
  Dwarf_Attribute attribute;
  for (const unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (dwarf_attr_integrate(die, kind, &attribute))
      if (const char* name = dwarf_formstring(&attribute)) return demangled(name);
  const char* name = dwarf_diename(die);
  return name && symbol.find(std::string(name) + '(') == symbol.npos ? name : symbol;
}

// The line at `pc`, and, of an inlined function, the one that calls it.
void locate(Dwarf_Die* unit, Dwarf_Addr pc, Frame* frame) {
  Dwarf_Line* line = dwarf_getsrc_die(unit, pc);
  if (!line) return;
  if (const char* file = dwarf_linesrc(line, nullptr, nullptr)) frame->file = file;
  if (dwarf_lineno(line, &frame->line) != 0) frame->line = 0;
}
void locate_call(Dwarf_Die* unit, Dwarf_Die* inlined, Frame* frame) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_attr(inlined, DW_AT_call_line, &attribute) && dwarf_formudata(&attribute, &number) == 0)
    frame->line = static_cast<int>(number);
  if (dwarf_attr(inlined, DW_AT_call_file, &attribute) && dwarf_formudata(&attribute, &number) == 0 &&
      dwarf_getsrcfiles(unit, &files, &count) == 0 && number < count)
    if (const char* file = dwarf_filesrc(files, number, nullptr, nullptr)) frame->file = file;
}

// Innermost first; `symbol`: the name of the outermost as the symbol table has it. `unit` has the lines, `tree` the
// functions: two of them where the latter are in a file of their own (-gsplit-dwarf).
std::vector<Frame> frames_at(Dwarf_Die* unit, Dwarf_Die* tree, Dwarf_Addr pc, const std::string& symbol) {
  std::vector<Frame> frames(1);
  locate(unit, pc, &frames.back());
  Dwarf_Die *scopes = nullptr, *outer = nullptr;
  // What the first call tells beyond an inlined function is where that was written; the second tells where it is.
  if (dwarf_getscopes(tree, pc, &scopes) > 0) {
    const int count = dwarf_getscopes_die(&scopes[0], &outer);
    for (int i = 0; i < count && frames.size() < kInlinedMax; ++i) {
      const int tag = dwarf_tag(&outer[i]);
      if (tag == DW_TAG_subprogram) {
        frames.back().function = name_of_function(&outer[i], symbol);
        break;
      }
      if (tag != DW_TAG_inlined_subroutine) continue;
      frames.back().function = name_of_function(&outer[i], "");
      frames.emplace_back();
      locate_call(tree, &outer[i], &frames.back());
    }
  }
  std::free(outer);
  std::free(scopes);
  if (frames.back().function.empty()) frames.back().function = symbol;
  return frames;
}

CodePlace place_of(const std::vector<Frame>& frames) {
  auto shown = std::find_if(frames.begin(), frames.end(), [](const Frame& frame) {
    return !frame.is_of_library() && !frame.function.empty();
  });
  const Frame& last = frames.back();
  const bool is_inlined = shown != frames.end() && &*shown != &last;
  const Frame& frame = shown == frames.end() ? last : *shown;
  return {frame.function, is_inlined && !last.is_of_library() ? last.function : "", frame.source()};
}

char g_debug_path[] = ":.debug:/usr/lib/debug";
char* g_debug_path_pointer = g_debug_path;

const Dwfl_Callbacks kCallbacks = {
    .find_elf = [](Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; },
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &g_debug_path_pointer,
};

// Where the first segment of a program or a shared library begins; nothing: it is neither.
std::optional<uint64_t> first_page(int fd) {
  const std::unique_ptr<Elf, decltype(&elf_end)> elf(elf_begin(fd, ELF_C_READ, nullptr), &elf_end);
  GElf_Ehdr header;
  size_t count = 0;
  if (!elf || !gelf_getehdr(elf.get(), &header) || elf_getphdrnum(elf.get(), &count) != 0) return {};
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) return {};
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (!gelf_getphdr(elf.get(), static_cast<int>(i), &segment)) return {};
    if (segment.p_type == PT_LOAD) return segment.p_vaddr & ~(kPageBytes - 1);
  }
  return {};
}

// What may be opened without waiting: no pipe, no device. -1: nothing.
int open_regular_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info;
  if (fd < 0 || (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode))) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

// One file with its debug information.
class CodeLookup::Image {
 public:
  explicit Image(const std::string& path) : dwfl_(dwfl_begin(&kCallbacks), &dwfl_end) {
    const int fd = open_regular_file(path);
    if (fd < 0) return;
    const auto first = first_page(fd);
    if (dwfl_ && first) {
      dwfl_report_begin(dwfl_.get());
      module_ = dwfl_report_elf(dwfl_.get(), path.c_str(), path.c_str(), fd, 0, true);
      dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    }
    if (!module_) {  // which would have the descriptor
      ::close(fd);
      return;
    }
    first_page_ = *first;
    read_units();
  }

  CodePlace at(uint64_t offset) {
    if (!module_) return {};
    const uint64_t address = first_page_ + offset;
    const std::string symbol = symbol_at(address);
    const Unit* unit = unit_at(address);
    if (!unit) return {symbol, "", ""};
    Dwarf_Die tree = unit->die, skeleton, split;
    uint8_t type = 0;
    if (dwarf_cu_info(tree.cu, nullptr, &type, &skeleton, &split, nullptr, nullptr, nullptr) == 0 &&
        type == DW_UT_skeleton && split.cu)
      tree = split;
    Dwarf_Die lines = unit->die;
    return place_of(frames_at(&lines, &tree, address - unit->bias, symbol));
  }

 private:
  // A range of code of one compilation unit; of ranges that overlap, `reach` is the furthest end so far.
  struct Unit {
    uint64_t begin = 0, end = 0, reach = 0;
    uint64_t bias = 0;
    Dwarf_Die die;
  };

  // Not from .debug_aranges, which Clang leaves out.
  void read_units() {
    Dwarf_Addr bias = 0;
    for (Dwarf_Die* die = nullptr; (die = dwfl_module_nextcu(module_, die, &bias));) {
      Dwarf_Addr base = 0, begin = 0, end = 0;
      for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &begin, &end)) > 0;)
        if (begin < end) units_.push_back({begin + bias, end + bias, 0, bias, *die});
    }
    std::sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) { return a.begin < b.begin; });
    uint64_t reach = 0;
    for (Unit& unit : units_) unit.reach = reach = std::max(reach, unit.end);
  }

  // The one that begins last.
  const Unit* unit_at(uint64_t address) const {
    auto behind = std::upper_bound(units_.begin(), units_.end(), address,
                                   [](uint64_t at, const Unit& unit) { return at < unit.begin; });
    while (behind != units_.begin() && (--behind)->reach > address)
      if (address < behind->end) return &*behind;
    return nullptr;
  }

  std::string symbol_at(uint64_t address) const {
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char* name = dwfl_module_addrinfo(module_, address, &offset, &symbol, nullptr, nullptr, nullptr);
    const auto type = name ? GELF_ST_TYPE(symbol.st_info) : STT_NOTYPE;
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || offset >= symbol.st_size) return {};
    // What stands behind an @ is a library's version of it.
    return demangled(std::string(name, std::strcspn(name, "@")).c_str());
  }

  std::unique_ptr<Dwfl, decltype(&dwfl_end)> dwfl_;
  Dwfl_Module* module_ = nullptr;  // nullptr: not to be read
  uint64_t first_page_ = 0;
  std::vector<Unit> units_;
};

CodeLookup::CodeLookup() { elf_version(EV_CURRENT); }
CodeLookup::~CodeLookup() = default;

CodePlace CodeLookup::look_up(const std::string& file, uint64_t offset) {
  auto image = images_.find(file);
  if (image == images_.end()) {
    if (images_.size() >= kFilesMax) images_.erase(images_.begin());
    image = images_.emplace(file, std::make_unique<Image>(file)).first;
  }
  return image->second->at(offset);
}

}  // namespace spw::tool
