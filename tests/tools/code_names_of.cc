// code_names_of [--here | --process PID] < QUESTIONS: a line for each place, as `spillway top` names it; for
// tests/tools/code_names_test.py. A question is a line of a file's name, a tab, and the bytes from where it is loaded,
// as 0x1f3c; with --process an address in that process. --here: files are read by this process, so that what they break
// is seen; an answer is the function, the one around it and the line of source, with tabs between them.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "code_lookup.h"
#include "code_names.h"

using spw::tool::CodeLookup;
using spw::tool::CodeNames;
using spw::tool::CodePlace;

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  if (count > 3 || (mode == "--process") != (count == 3) || (count == 2 && mode != "--here")) {
    std::cerr << "code_names_of: use: code_names_of [--here | --process PID]\n";
    return 2;
  }
  std::stringstream maps;
  if (count == 3) maps << std::ifstream("/proc/" + std::string(words[2]) + "/maps").rdbuf();
  CodeLookup lookup;
  CodeNames names;
  for (std::string line; std::getline(std::cin, line);) {
    const size_t tab = line.rfind('\t');
    const std::string file = tab == line.npos ? "" : line.substr(0, tab);
    const uint64_t place = std::strtoull(line.substr(tab == line.npos ? 0 : tab + 1).c_str(), nullptr, 0);
    if (count == 3) {
      std::cout << text_of(names.at_address(place, maps.str())) << std::endl;
    } else if (mode == "--here") {
      const CodePlace found = lookup.look_up(file, place);
      std::cout << found.function << '\t' << found.inside << '\t' << found.source << std::endl;
    } else {
      std::cout << text_of(names.at(file, place)) << std::endl;
    }
  }
  return std::cout ? 0 : 1;
}
