// Names of places in the code of programs: the function, the line of source, or how far into the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "lookup_process.h"

namespace spw::tool {

// What is not known is empty.
struct CodeName {
  std::string function;  // "build_graph(int)"
  std::string inside;    // the function that it was inlined into; empty: into none
  std::string source;    // "graph.cc:120"
  std::string library;   // the program's or the library's file, without its folders
  // Bytes from where that is loaded; of a position-independent file what addr2line -e takes.
  uint64_t offset = 0;
};

// "build_graph(int) (graph.cc:120)", where inlined with ", in main"; "build_graph(int) (graph+0x1f3c)" where the
// file does not tell lines; "graph+0x1f3c" where it tells nothing or cannot be read; the plain number where there
// is no file.
std::string text_of(const CodeName& name);

// Files that were asked about stay open, and answers are kept: one CodeNames for many places. Names never hold control
// characters. A file may hold anything: at worst it has no names (lookup_process.h).
// Threads: one at a time. Limits: kAnswersMax answers are kept.
class CodeNames {
 public:
  static constexpr size_t kAnswersMax = 100'000;

  // Of what lies at `offset` bytes from where the file is loaded.
  CodeName at(const std::string& file, uint64_t offset);
  // Of a call that returns to `offset`, which the name says: the call is before it.
  CodeName of_call(const std::string& file, uint64_t offset);
  // The same of addresses in a process whose /proc/PID/maps is `maps`.
  CodeName at_address(uint64_t address, const std::string& maps);
  CodeName of_call_at_address(uint64_t address, const std::string& maps);

 private:
  CodeName name(const std::string& file, uint64_t offset, uint64_t shown_offset);

  LookupProcess process_;
  std::map<std::pair<std::string, uint64_t>, CodePlace> answers_;
};

}  // namespace spw::tool
