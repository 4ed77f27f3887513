#include "libc/alloc/caller.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>

#include <string_view>

namespace spw::libc {

namespace {

constexpr int kFramesMax = 16;
// Frames of operator new and its like have no more words.
constexpr int kWordsMax = 24;

bool is_within(const dl_find_object& object, uintptr_t address) {
  return address >= reinterpret_cast<uintptr_t>(object.dlfo_map_start) &&
         address < reinterpret_cast<uintptr_t>(object.dlfo_map_end);
}

bool is_named(const dl_find_object& object, std::string_view name) {
  return object.dlfo_link_map != nullptr &&
         std::string_view(object.dlfo_link_map->l_name).find(name) != std::string_view::npos;
}

// Whether the instruction before the address is a call: of a constant address, or through the global offset table.
bool follows_call(uintptr_t address) {
  const auto* code = reinterpret_cast<const uint8_t*>(address);
  return code[-5] == 0xE8 || (code[-6] == 0xFF && code[-5] == 0x15);
}

// glibc's own, by name: older ones do not have it, and everything that takes no lock. Asked for as the library is
// loaded, since allocations must not ask.
using FindObject = int (*)(void* address, dl_find_object* object) noexcept;
FindObject g_find_object = nullptr;
__attribute__((constructor)) void look_for_find_object() {
  g_find_object = reinterpret_cast<FindObject>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
}

bool find(uintptr_t address, dl_find_object* object) {
  return g_find_object != nullptr && g_find_object(reinterpret_cast<void*>(address), object) == 0;
}

}  // namespace

// This library's own frames have frame pointers, and so have those of the one with operator new.
// Reads words of others' frames, which a sanitizer would not have.
[[gnu::noinline]] __attribute__((no_sanitize("address"))) const void* caller_outside() {
#if defined(__x86_64__)
  dl_find_object own;
  if (!find(reinterpret_cast<uintptr_t>(&caller_outside), &own)) return nullptr;
  const auto* frame = static_cast<const uintptr_t*>(__builtin_frame_address(0));
  dl_find_object object = own;
  for (int frames = 0; is_within(own, frame[1]) || is_named(object, "libspillway_cxx.so"); ++frames) {
    const auto* next = reinterpret_cast<const uintptr_t*>(frame[0]);
    if (frames == kFramesMax || next <= frame) return nullptr;
    frame = next;
    if (!find(frame[1], &object)) return nullptr;
  }
  if (!is_named(object, "libstdc++.so")) return reinterpret_cast<const void*>(frame[1]);
  for (int word = 2; word < kWordsMax; ++word) {
    dl_find_object other;
    if (is_within(object, frame[word]) || !find(frame[word], &other) || is_within(own, frame[word])) continue;
    if (follows_call(frame[word])) return reinterpret_cast<const void*>(frame[word]);
  }
#endif
  return nullptr;
}

}  // namespace spw::libc
