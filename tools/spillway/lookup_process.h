// CodeLookup in a process of its own. Files may be broken, or made to break what reads them: then that process dies, or
// takes too long, and this one goes on without the names.
//
// The process is started by the first question and ends with the LookupProcess. It never asks the network
// (debuginfod).
// Threads: one at a time. Limits: kAnswerMsMax for an answer; kAddressBytesMax and kProcessorSecondsMax for the
// process; a file that ended it is not asked about again.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "code_lookup.h"
#include "platform/file.h"

namespace spw::tool {

class LookupProcess {
 public:
  static constexpr int kAnswerMsMax = 20'000;
  static constexpr uint64_t kAddressBytesMax = uint64_t{16} << 30;
  static constexpr unsigned kProcessorSecondsMax = 120;  // then another one is started
  static constexpr size_t kNameBytesMax = 1000;          // longer names are cut

  LookupProcess() = default;
  ~LookupProcess();
  LookupProcess(const LookupProcess&) = delete;
  LookupProcess& operator=(const LookupProcess&) = delete;

  // As CodeLookup::look_up(); without control characters, in UTF-8.
  CodePlace look_up(const std::string& file, uint64_t offset);

 private:
  bool start();
  void stop();
  bool ask(const std::string& file, uint64_t offset, CodePlace* place);

  platform::File socket_;
  int process_ = 0;  // 0: none
  std::set<std::string> hopeless_;
};

// `text` as it may be shown on a terminal and put into JSON: a '?' for each control character, and for each byte
// that is not UTF-8.
std::string printable(const std::string& text);

}  // namespace spw::tool
