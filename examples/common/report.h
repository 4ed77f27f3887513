// What an example program prints at its end: one JSON object on one line of standard output. And its clocks.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

namespace examples {

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The seconds that a phase takes.
template <class Phase>
double timed(Phase phase) {
  const double start_s = now_s();
  phase();
  return now_s() - start_s;
}

// Processor time of the whole process so far, user and system.
inline double processor_s() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Builds a JSON object field by field. Names and texts are ours: nothing in them needs escaping.
class Json {
 public:
  Json& add(const char* name, const std::string& text) { return raw(name, '"' + text + '"'); }
  Json& add(const char* name, const char* text) { return add(name, std::string(text)); }
  Json& add(const char* name, bool value) { return raw(name, value ? "true" : "false"); }
  Json& add(const char* name, const Json& object) { return raw(name, object.text()); }
  Json& add(const char* name, double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return raw(name, text);
  }
  template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
  Json& add(const char* name, Integer value) {
    return raw(name, std::to_string(value));
  }
  // A 64-bit checksum, as text: JSON numbers lose bits in most readers.
  Json& add_hex(const char* name, uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "%016" PRIx64, value);
    return add(name, text);
  }

  std::string text() const { return '{' + body_ + '}'; }
  void print() const { std::printf("%s\n", text().c_str()); }

 private:
  Json& raw(const char* name, const std::string& value) {
    if (!body_.empty()) body_ += ", ";
    body_ += '"';
    body_ += name;
    body_ += "\": ";
    body_ += value;
    return *this;
  }

  std::string body_;
};

// When the program began, nearly.
inline const double process_start_s = now_s();

// Says, on a line of its own and at once, when the part that is measured began: so that something is known of
// a run that is stopped.
inline void print_timed_from() {
  Json().add("timed_from_s", now_s() - process_start_s).print();
  std::fflush(stdout);
}

}  // namespace examples
