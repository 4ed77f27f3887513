// What the machine offers, one probe a question. A probe changes nothing that outlives it.
#pragma once

#include <string>
#include <vector>

namespace spw::tool {

enum class Verdict { kOk, kNote, kMissing };

struct Finding {
  std::string id;  // a word for --json
  std::string title;
  Verdict verdict = Verdict::kOk;
  bool essential = false;  // nothing runs without it
  std::string found;
  std::string costs;  // what it costs to lack it; "" when nothing is lacking
  std::string mend;   // how to get it; "" when there is nothing to mend
};

// Every finding, in the order a reader wants them. `store`: the directory that spills.
std::vector<Finding> examine_machine(const std::string& store);

}  // namespace spw::tool
