// Arguments of a libc call as native memory, for as long as the call lasts.
//
//     return files_or_real().stat(Text(path), Native(out));
//
// A plain pointer is passed on as it is. A managed one is replaced by a native copy; where the callee may write (the
// type is not const), what it left there is copied back when the full expression ends. errno is kept. One that the
// program itself may not access is passed on, too: the kernel says EFAULT.
// Threads: one. Limits: kInlineBytes of stack an argument, more from libc's heap; out of memory passes a null pointer,
// which libc reports as EFAULT or EINVAL.
#pragma once

#include <errno.h>
#include <string.h>

#include <type_traits>

#include "libc/bytes/strings.h"
#include "libc/managed.h"
#include "libc/map/parts.h"
#include "libc/real.h"

namespace spw::libc {

class Text {
 public:
  explicit Text(const char* text) : string_(text) {}
  operator const char*() const { return string_.get(); }

 private:
  NativeString string_;
};

template <class T>
class Native {
 public:
  static constexpr size_t kInlineBytes = 256;
  using Value = std::remove_const_t<T>;

  explicit Native(T* argument, size_t count = 1) : Native(argument, count, kBytes) {}
  // As many bytes as told, for types that are shorter or longer than they say (sockaddr, void).
  static Native of_bytes(T* argument, size_t bytes) { return Native(argument, bytes, 1); }
  ~Native() {
    if (!copied_) return;
    int saved_errno = errno;
    if constexpr (!std::is_const_v<T>)
      if (native_ != nullptr) copy_bytes(argument_, native_, bytes_);
    if (native_ != static_cast<void*>(inline_)) libc_free(const_cast<Value*>(native_));
    errno = saved_errno;
  }
  Native(const Native&) = delete;
  Native& operator=(const Native&) = delete;
  operator T*() const { return native_; }

 private:
  static constexpr size_t kBytes = [] {
    if constexpr (std::is_void_v<T>)
      return size_t{1};
    else
      return sizeof(T);
  }();

  Native(T* argument, size_t count, size_t each)
      : argument_(argument), bytes_(count * each), native_(argument) {
    if (!kernel_cannot_reach(argument)) return;
    if (reachable_bytes(argument, bytes_, !std::is_const_v<T>) < bytes_) return;  // EFAULT, by the kernel
    copied_ = true;
    void* copy = bytes_ <= kInlineBytes ? inline_ : libc_malloc(bytes_);
    native_ = static_cast<T*>(copy);
    if (copy != nullptr) copy_bytes(copy, argument, bytes_);
  }

  T* const argument_;
  const size_t bytes_;
  T* native_;
  bool copied_ = false;
  alignas(16) char inline_[kInlineBytes];
};

// An argument list as exec takes it: an array of strings that ends with a null pointer, all of which may be managed.
class TextList {
 public:
  explicit TextList(char* const* list);
  ~TextList();
  TextList(const TextList&) = delete;
  TextList& operator=(const TextList&) = delete;
  operator char* const*() const { return list_; }

 private:
  char* const* list_;
  char** copy_ = nullptr;
  size_t count_ = 0;
};

}  // namespace spw::libc
