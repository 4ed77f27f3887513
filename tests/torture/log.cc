#include "log.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "random.h"

namespace torture {

Log::Log(int descriptor, const char* key) : descriptor_(descriptor) {
  std::snprintf(prefix_, sizeof prefix_, "%s", key);
}

void Log::take(uint64_t value) { hash_ = mixed(hash_, value); }

void Log::add(const char* text) {
  while (*text != 0 && used_ + 1 < sizeof line_) line_[used_++] = *text++;
}

void Log::add_number(int64_t value) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(value));
  add(digits);
}

void Log::write_line() {
  line_[used_++] = '\n';
  if (write(descriptor_, line_, used_) < 0) _exit(97);
  used_ = 0;
}

void Log::begin(uint64_t number, const char* name) {
  take(number);
  if (descriptor_ < 0) return;
  std::snprintf(key_, sizeof key_, "%s%llu", prefix_, static_cast<unsigned long long>(number));
  used_ = 0;
  add(">");
  add(key_);
  add(" ");
  add(name);
}

void Log::calls() {
  if (descriptor_ < 0) return;
  write_line();
  add("<");
  add(key_);
}

void Log::field(const char* name, int64_t value) {
  take(static_cast<uint64_t>(value));
  if (descriptor_ < 0) return;
  add(" ");
  add(name);
  add("=");
  add_number(value);
}

void Log::hex(const char* name, uint64_t value) {
  take(value);
  if (descriptor_ < 0) return;
  char text[64];
  std::snprintf(text, sizeof text, " %s=%llx", name, static_cast<unsigned long long>(value));
  add(text);
}

void Log::result(const char* name, int64_t value) {
  const int error = errno;
  if (value == -1) {
    take(static_cast<uint64_t>(error));
    if (descriptor_ >= 0) {
      add(" ");
      add(name);
      add("=-");
      add(strerrorname_np(error) != nullptr ? strerrorname_np(error) : "?");
    }
  } else {
    field(name, value);
  }
}

void Log::word(const char* text) {
  for (const char* at = text; *at != 0; ++at) take(static_cast<uint64_t>(*at));
  if (descriptor_ < 0) return;
  add(" ");
  add(text);
}

void Log::end() {
  if (descriptor_ >= 0) write_line();
}

}  // namespace torture
