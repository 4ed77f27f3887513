// An input of a fuzz target, read piece by piece; what is beyond its end reads as zeros.
//
// Numbers are little-endian, so that a seed can be written by hand (make_corpus.py).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace spw::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t bytes) : data_(data), left_(bytes) {}

  bool is_over() const { return left_ == 0; }
  template <class Number>
  Number number() {
    Number value{};
    const size_t bytes = std::min(sizeof value, left_);
    if (bytes != 0) std::memcpy(&value, data_, bytes);
    skip(bytes);
    return value;
  }
  // At most so many bytes.
  std::string_view text(size_t bytes) {
    bytes = std::min(bytes, left_);
    const std::string_view all(reinterpret_cast<const char*>(data_), bytes);
    skip(bytes);
    return all;
  }
  std::string_view rest() { return text(left_); }
  // Up to the next line feed, which is taken, too.
  std::string line() {
    const std::string_view all(reinterpret_cast<const char*>(data_), left_);
    const size_t end = std::min(all.find('\n'), all.size());
    skip(std::min(end + 1, left_));
    return std::string(all.substr(0, end));
  }

 private:
  void skip(size_t bytes) {
    data_ += bytes;
    left_ -= bytes;
  }

  const uint8_t* data_;
  size_t left_;
};

}  // namespace spw::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);
