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

bool is_runtime_of_cxx(const dl_find_object& object) {
  return object.dlfo_link_map != nullptr &&
         std::string_view(object.dlfo_link_map->l_name).find("libstdc++.so") != std::string_view::npos;
}

// Whether the instruction before the address is a call: of a constant address, or through the global offset table.
bool follows_call(uintptr_t address) {
  const auto* code = reinterpret_cast<const uint8_t*>(address);
  return code[-5] == 0xE8 || (code[-6] == 0xFF && code[-5] == 0x15);
}

bool find(uintptr_t address, dl_find_object* object) {
  return _dl_find_object(reinterpret_cast<void*>(address), object) == 0;
}

}  // namespace

// This library's own frames have frame pointers.
// Reads words of others' frames, which a sanitizer would not have.
[[gnu::noinline]] __attribute__((no_sanitize("address"))) const void* caller_outside() {
#if defined(__x86_64__)
  dl_find_object own;
  if (!find(reinterpret_cast<uintptr_t>(&caller_outside), &own)) return nullptr;
  const auto* frame = static_cast<const uintptr_t*>(__builtin_frame_address(0));
  int frames = 0;
  while (is_within(own, frame[1])) {
    const auto* next = reinterpret_cast<const uintptr_t*>(frame[0]);
    if (++frames == kFramesMax || next <= frame) return nullptr;
    frame = next;
  }
  dl_find_object object;
  if (!find(frame[1], &object)) return nullptr;
  if (!is_runtime_of_cxx(object)) return reinterpret_cast<const void*>(frame[1]);
  for (int word = 2; word < kWordsMax; ++word) {
    dl_find_object other;
    if (is_within(object, frame[word]) || !find(frame[word], &other) || is_within(own, frame[word])) continue;
    if (follows_call(frame[word])) return reinterpret_cast<const void*>(frame[word]);
  }
#endif
  return nullptr;
}

}  // namespace spw::libc
