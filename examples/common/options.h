// Command lines of the example programs: a list of positional words, and `--name value` pairs with sizes such as 4G.
//
// A name that a program never asks for is an error, told by finish(), so that a mistyped option does not pass silently.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace examples {

[[noreturn]] inline void fail(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::exit(2);
}

// "16", "64K", "4G" or "4GiB" in units of 1; suffixes are powers of 1024.
inline uint64_t parse_size(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const std::string suffix(end);
  const std::string letters = "KMGT";
  const size_t power = suffix.empty() ? 0 : letters.find(suffix[0]) + 1;
  const bool known = suffix.empty() || (power > 0 && (suffix.substr(1).empty() || suffix.substr(1) == "iB"));
  if (end == text.c_str() || value < 0 || !known) fail("not a number: " + text);
  return static_cast<uint64_t>(value * static_cast<double>(uint64_t{1} << (10 * power)));
}

class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word.rfind("--", 0) != 0) {
        words_.push_back(word);
      } else if (word.find('=') != std::string::npos) {
        values_[word.substr(2, word.find('=') - 2)] = word.substr(word.find('=') + 1);
      } else if (i + 1 < argc) {
        values_[word.substr(2)] = argv[++i];
      } else {
        fail(word + " needs a value");
      }
    }
  }

  const std::vector<std::string>& words() const { return words_; }

  std::string text(const std::string& name, const std::string& otherwise) {
    asked_.insert(name);
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }

  uint64_t number(const std::string& name, uint64_t otherwise) {
    const std::string value = text(name, "");
    return value.empty() ? otherwise : parse_size(value);
  }

  // Ends the program if an option was given that nothing asked for.
  void finish() const {
    for (const auto& [name, value] : values_) {
      if (asked_.count(name) == 0) fail("unknown option --" + name);
    }
  }

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::string> values_;
  std::set<std::string> asked_;
};

}  // namespace examples
