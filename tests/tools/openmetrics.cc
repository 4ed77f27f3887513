#include "openmetrics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <stdexcept>

namespace spw::tool {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

// By decoding and encoding again, which only what is shortest and exists survives.
bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t bytes = first < 0x80       ? 1
                         : first >> 5 == 6  ? 2
                         : first >> 4 == 14 ? 3
                         : first >> 3 == 30 ? 4
                                            : 0;
    if (bytes == 0 || i + bytes > text.size()) return false;
    unsigned code = bytes == 1 ? first : first & (0x7fu >> bytes);
    for (size_t k = 1; k < bytes; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if (next >> 6 != 2) return false;
      code = code << 6 | (next & 0x3f);
    }
    const size_t shortest = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (shortest != bytes || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    i += bytes;
  }
  return true;
}

const std::map<std::string, std::vector<std::string>>& suffixes() {
  static const std::map<std::string, std::vector<std::string>> of_types = {
      {"gauge", {""}},
      {"counter", {"_total"}},
      {"info", {"_info"}},
      {"histogram", {"_bucket", "_count", "_sum"}}};
  return of_types;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  OpenMetrics read() {
    if (!is_utf8(rest_)) fail("it is not UTF-8");
    while (take_line()) {
      if (line_ == "# EOF") {
        if (!rest_.empty()) fail("something comes after the end");
        finish_family();
        return std::move(read_);
      }
      line_.starts_with("#") ? read_description() : read_sample();
    }
    fail("there is no # EOF");
  }

 private:
  using Sample = OpenMetrics::Sample;
  using Family = OpenMetrics::Family;

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("line " + std::to_string(number_) + ": " + what + ": " + std::string(line_));
  }
  void require(bool holds, const char* what) const {
    if (!holds) fail(what);
  }

  bool take_line() {
    if (rest_.empty()) return false;
    ++number_;
    const size_t end = rest_.find('\n');
    if (end == rest_.npos) fail("a line without an end");
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }

  void read_description() {
    std::string_view text = line_;
    std::vector<std::string> words;
    for (int i = 0; i < 3; ++i) {
      const size_t end = text.find(' ');
      require(end != text.npos && end > 0, "# WHAT NAME TEXT is expected");
      words.emplace_back(text.substr(0, end));
      text.remove_prefix(end + 1);
    }
    const std::string &what = words[1], &name = words[2];
    require(words[0] == "#" && is_name(name), "no name of a metric");
    if (read_.families.empty() || read_.families.back().name != name) begin_family(name);
    Family& family = read_.families.back();
    require(family.samples.empty(), "a description after a sample");
    if (what == "TYPE") {
      require(family.type.empty() && suffixes().contains(std::string(text)),
              "a second type, or none that is known");
      family.type = text;
    } else if (what == "UNIT") {
      require(family.unit.empty() && name.ends_with("_" + std::string(text)),
              "a second unit, or none of the name's");
      family.unit = text;
    } else {
      require(what == "HELP" && family.help.empty() && !text.empty(), "TYPE, UNIT or HELP is expected, once");
      require(unescaped(text, family.help) == text.size(), "something is not escaped");
    }
  }

  void begin_family(const std::string& name) {
    finish_family();
    require(families_.insert(name).second, "a family in two pieces");
    for (const char* suffix : {"_total", "_created", "_bucket", "_count", "_sum", "_info"})
      require(!name.ends_with(suffix), "a family with a name of a sample");
    read_.families.push_back({name, "", "", "", {}});
  }

  // Up to a quote, or the end; where that is.
  size_t unescaped(std::string_view text, std::string& out) const {
    size_t i = 0;
    for (; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] != '\\') {
        out += text[i];
        continue;
      }
      require(++i < text.size() && std::string_view("\\\"n").find(text[i]) != std::string_view::npos,
              "a backslash that escapes nothing");
      out += text[i] == 'n' ? '\n' : text[i];
    }
    return i;
  }

  void read_sample() {
    require(!read_.families.empty(), "a sample before its family");
    Family& family = read_.families.back();
    require(!family.type.empty(), "a family without a type");
    Sample sample;
    size_t at = line_.find_first_of("{ ");
    require(at != line_.npos, "NAME{LABELS} VALUE is expected");
    sample.name = line_.substr(0, at);
    const std::vector<std::string>& known = suffixes().at(family.type);
    require(std::any_of(known.begin(), known.end(),
                        [&](const std::string& suffix) { return sample.name == family.name + suffix; }),
            "a name that does not fit its family");
    if (line_[at] == '{') at = read_labels(at + 1, sample);
    require(at < line_.size() && line_[at] == ' ', "one blank before the value is expected");
    sample.value = number(line_.substr(at + 1));
    require(samples_.insert(std::string(line_.substr(0, at))).second, "the same sample twice");
    require(family.type == "gauge" || sample.value >= 0, "a negative count");
    require(family.type != "info" || sample.value == 1, "of an info the value is 1");
    family.samples.push_back(std::move(sample));
  }

  // Where the blank before the value is.
  size_t read_labels(size_t at, Sample& sample) {
    std::set<std::string> names;
    while (true) {
      const size_t equals = line_.find("=\"", at);
      require(equals != line_.npos, "a label without a value");
      std::string name(line_.substr(at, equals - at)), value;
      require(is_name(name) && names.insert(name).second, "no name of a label, or twice the same");
      at = equals + 2;
      at += unescaped(line_.substr(at), value);
      require(at + 1 < line_.size(), "a value without an end");
      sample.labels.emplace_back(std::move(name), std::move(value));
      if (line_[++at] == '}') return at + 1;
      require(line_[at++] == ',', "a comma or a brace is expected");
    }
  }

  double number(std::string_view text) const {
    const std::string whole(text);
    char* end = nullptr;
    const double value = std::strtod(whole.c_str(), &end);
    require(!whole.empty() && *end == '\0' && whole.find_first_not_of("+-.0123456789e") == whole.npos,
            "no number");
    return value;
  }

  void finish_family() {
    if (read_.families.empty()) return;
    const Family& family = read_.families.back();
    require(!family.type.empty() && !family.help.empty(), "the family before has no type or no help");
    if (family.type == "histogram") check_histogram(family);
  }

  // Each: its buckets, the count and the sum.
  void check_histogram(const Family& family) {
    double bound = -INFINITY, bucket = 0;
    for (const Sample& sample : family.samples) {
      if (sample.name.ends_with("_bucket")) {
        const std::string le = sample.label("le");
        const double next = le == "+Inf" ? INFINITY : number(le);
        require(next > bound && sample.value >= bucket, "buckets do not rise");
        bound = next;
        bucket = sample.value;
      } else if (sample.name.ends_with("_count")) {
        require(std::isinf(bound) && sample.value == bucket, "the count is not that of +Inf");
        bound = -INFINITY;
        bucket = 0;
      }
    }
  }

  std::string_view rest_, line_;
  size_t number_ = 0;
  OpenMetrics read_;
  std::set<std::string> families_, samples_;
};

}  // namespace

std::string OpenMetrics::Sample::label(std::string_view label_name) const {
  for (const auto& [name_of_it, value_of_it] : labels)
    if (name_of_it == label_name) return value_of_it;
  return {};
}

const OpenMetrics::Family* OpenMetrics::family(std::string_view name) const {
  for (const Family& family : families)
    if (family.name == name) return &family;
  return nullptr;
}

double OpenMetrics::value(std::string_view name, const std::map<std::string, std::string>& labels) const {
  std::vector<double> found;
  for (const Family& family : families)
    for (const Sample& sample : family.samples)
      if (sample.name == name && std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
            return sample.label(label.first) == label.second;
          }))
        found.push_back(sample.value);
  if (found.size() != 1)
    throw std::runtime_error(std::to_string(found.size()) + " samples " + std::string(name));
  return found.front();
}

OpenMetrics read_openmetrics(std::string_view text) { return Reader(text).read(); }

}  // namespace spw::tool
