#include "process/engine_choice.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "access/mapped/protected_pages.h"
#include "base/units.h"
#include "process/userfault_check.h"

extern "C" int __spw_hint_table_error;  // of libspillway_first.so

namespace spw::process {

namespace {

constexpr std::string_view kHintsSymbol = "__spw_hints_v";
constexpr std::string_view kTranslationsSymbol = "__spw_abi_v";

// What of a module's dynamic section names its undefined symbols.
struct Symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  size_t count = 0;
};

// Undefined symbols come before the hashed ones; where there is only the old hash table, it counts them all.
Symbols symbols_of(const dl_phdr_info& module) {
  Symbols symbols;
  for (size_t i = 0; i < module.dlpi_phnum; ++i) {
    if (module.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(module.dlpi_addr + module.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const auto* at = reinterpret_cast<const void*>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_SYMTAB) symbols.table = static_cast<const ElfW(Sym)*>(at);
      if (entry->d_tag == DT_STRTAB) symbols.names = static_cast<const char*>(at);
      if (entry->d_tag == DT_GNU_HASH && symbols.count == 0)
        symbols.count = static_cast<const uint32_t*>(at)[1];
      if (entry->d_tag == DT_HASH) symbols.count = static_cast<const uint32_t*>(at)[1];
    }
  }
  return symbols;
}

// Its linker names each build in a note.
bool is_of_go(const dl_phdr_info& module) {
  constexpr std::string_view kGo("Go\0\0", 4);
  for (size_t i = 0; i < module.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = module.dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const uint64_t alignment = std::max<uint64_t>(part.p_align, sizeof(uint32_t));
    const auto* begin = reinterpret_cast<const char*>(module.dlpi_addr + part.p_vaddr);
    for (uint64_t at = 0; at + sizeof(ElfW(Nhdr)) <= part.p_memsz;) {
      ElfW(Nhdr) note;
      std::memcpy(&note, begin + at, sizeof note);
      if (std::string_view(begin + at + sizeof note, note.n_namesz) == kGo) return true;
      at += round_up(sizeof note + note.n_namesz, alignment) + round_up(note.n_descsz, alignment);
    }
  }
  return false;
}

int look_at_module(dl_phdr_info* module, size_t, void* result) {
  auto* code = static_cast<LoadedCode*>(result);
  // The kernel's own module has addresses that were not relocated.
  if (std::string_view(module->dlpi_name).find("linux-vdso") != std::string_view::npos) return 0;
  if (is_of_go(*module)) code->has_go = true;
  const Symbols symbols = symbols_of(*module);
  if (!symbols.table || !symbols.names) return 0;
  for (size_t i = 1; i < symbols.count; ++i) {
    if (symbols.table[i].st_shndx != SHN_UNDEF) continue;
    const std::string_view name = symbols.names + symbols.table[i].st_name;
    if (name.starts_with(kHintsSymbol)) code->has_hints = true;
    if (name.starts_with(kTranslationsSymbol)) code->has_translations = true;
  }
  return 0;
}

bool can_place_pages() { return open_userfault() || access::ProtectedPages::open_memory(); }

}  // namespace

LoadedCode loaded_code() {
  LoadedCode code;
  ::dl_iterate_phdr(&look_at_module, &code);
  return code;
}

Result<EngineKind> choose_engine(EngineKind wanted, const LoadedCode& code, bool buffers_files) {
  const bool can_translate = code.has_translations || buffers_files;
  if (wanted == EngineKind::kTranslated && !can_translate)
    return Status::sentence(
        EINVAL,
        "--engine=translated runs programs that were compiled for it; leave it out, or recompile "
        "with spillway-clang -fspillway-engine=translated");
  if (wanted == EngineKind::kTranslated) return wanted;
  if (wanted == EngineKind::kAuto && code.has_translations && !code.has_hints) return EngineKind::kTranslated;
  if (__spw_hint_table_error == 0 && (wanted != EngineKind::kAuto || !can_translate || can_place_pages()))
    return EngineKind::kMapped;
  if (wanted == EngineKind::kAuto && can_translate) return EngineKind::kTranslated;
  // The address sanitizer's shadow, for one, lies there.
  return Status::sentence(
      __spw_hint_table_error,
      "the mapped engine is needed, but something else has the addresses of its hint table; "
      "recompile the program with spillway-clang -fspillway-engine=translated");
}

}  // namespace spw::process
