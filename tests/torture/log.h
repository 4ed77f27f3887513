// What operations were asked and what they returned, as a running hash and, on demand, as text.
//
// An operation is two lines of text: `>KEY name arguments`, written before it is carried out so that one that ends
// the process can be seen, and `<KEY results`. KEY is the operation's number, with more behind a dot for what threads
// and children do, so that lines of several of them may be written in any order. Nothing here allocates: the memory
// calls are what is tested. One thread uses a log. Sub-logs (of threads and children) have their own hash, which
// whoever waits for them takes in.
#pragma once

#include <cstdint>

namespace torture {

class Log {
 public:
  Log() = default;
  // `descriptor`: where text goes, or -1. `key`: in front of operation numbers.
  Log(int descriptor, const char* key);

  void begin(uint64_t number, const char* name);
  void in(const char* name, int64_t value) { field(name, value); }
  void calls();  // the arguments are complete
  void out(const char* name, int64_t value) { field(name, value); }
  // As text only, where the number says something in base 16.
  void hex(const char* name, uint64_t value);
  // The result of a call: its errno if it is -1.
  void result(const char* name, int64_t value);
  void word(const char* text);
  void end();

  uint64_t hash() const { return hash_; }
  int descriptor() const { return descriptor_; }
  void take(uint64_t value);

 private:
  void field(const char* name, int64_t value);
  void add(const char* text);
  void add_number(int64_t value);
  void write_line();

  int descriptor_ = -1;
  uint64_t hash_ = 0;
  char key_[48] = "";
  char prefix_[24] = "";
  char line_[1024];
  unsigned used_ = 0;
};

}  // namespace torture
