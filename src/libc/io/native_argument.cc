#include "libc/io/native_argument.h"

namespace spw::libc {

TextList::TextList(char* const* list) : list_(list) {
  if (list == nullptr) return;
  bool managed = kernel_cannot_reach(list);
  for (; load_value(list + count_) != nullptr; ++count_)
    managed |= kernel_cannot_reach(load_value(list + count_));
  if (!managed) return;
  list_ = copy_ = static_cast<char**>(libc_calloc(count_ + 1, sizeof(char*)));
  for (size_t i = 0; copy_ != nullptr && i < count_; ++i) {
    char* text = load_value(list + i);
    size_t bytes = string_length(text) + 1;
    copy_[i] = static_cast<char*>(libc_malloc(bytes));
    if (copy_[i] == nullptr) return;
    copy_bytes(copy_[i], text, bytes);
  }
}

TextList::~TextList() {
  for (size_t i = 0; copy_ != nullptr && i < count_; ++i) libc_free(copy_[i]);
  libc_free(copy_);
}

}  // namespace spw::libc
