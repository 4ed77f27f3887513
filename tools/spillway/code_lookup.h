// What ELF and DWARF say of a place in a file: the function, and the line of source.
//
// Files stay open and mapped, since one that was asked about is asked about again. Separate debug information is found
// by build id or by debug link, under /usr/lib/debug as well.
// Threads: one at a time. Lifetime: files are closed with the CodeLookup.
// Limits: of more than kFilesMax files one is closed for the next. libdw reads what is in these files, which may
// be anything, so whoever asks about other people's files does so in a process that may die (lookup_process.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace spw::tool {

// What is not known is empty.
struct CodePlace {
  std::string function;  // demangled
  std::string inside;    // the function that it was inlined into
  std::string source;    // "file:line", in `function`
};

class CodeLookup {
 public:
  static constexpr size_t kFilesMax = 64;

  CodeLookup();
  ~CodeLookup();
  CodeLookup(const CodeLookup&) = delete;
  CodeLookup& operator=(const CodeLookup&) = delete;

  // `offset`: bytes from where the file is loaded, which is where its first segment begins, rounded down to a page.
  // Of functions inlined into each other: the innermost that is not a library's (of the system's headers, as std:: is).
  // All empty: the file cannot be read, or says nothing of the place.
  CodePlace look_up(const std::string& file, uint64_t offset);

 private:
  class Image;
  std::map<std::string, std::unique_ptr<Image>> images_;
};

}  // namespace spw::tool
