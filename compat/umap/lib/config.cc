#include "config.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace Umap {

namespace {

constexpr uint64_t kPageBytesMin = 4096;
constexpr uint64_t kPageBytesMax = uint64_t{2} << 20;
constexpr uint64_t kBufferBytesMin = uint64_t{8} << 20;
constexpr uint64_t kBufferBytesMax = uint64_t{16} << 40;
constexpr uint64_t kCountMax = uint64_t{1} << 20;

class Reader {
 public:
  Reader(const char* const* environment, Config* config) : environment_(environment), config_(config) {}

  // The variable's value when it is set to a number in [least, most]; a warning when it is set to anything else.
  std::optional<uint64_t> number(std::string_view name, uint64_t least, uint64_t most) {
    auto text = find(name);
    if (!text) return std::nullopt;
    uint64_t value = 0;
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    bool is_number = error == std::errc{} && end == text->data() + text->size();
    if (is_number && value >= least && value <= most) return value;
    warn(name, *text, "a number from " + std::to_string(least) + " to " + std::to_string(most));
    return std::nullopt;
  }
  // What the option's own variable says, which wins. What it does not take ends the program, or is nothing here.
  std::optional<uint64_t> own(const char* option, uint64_t least, uint64_t most) const {
    std::string name = "SPILLWAY_";
    for (const char* c = option; *c; ++c)
      name += static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
    auto text = find(name);
    const auto value = text && !text->empty() ? spw::parse_size_bytes(*text) : std::nullopt;
    return value && *value >= least && *value <= most ? value : std::nullopt;
  }
  void note(std::string line) { config_->warnings.push_back(std::move(line)); }
  void warn(std::string_view name, std::string_view value, const std::string& accepted) {
    config_->warnings.push_back(std::string(name) + "=" + std::string(value) + " is not " + accepted +
                                "; the default is used");
  }
  void pass_on(const char* option, uint64_t value) {
    config_->options.emplace_back(option, std::to_string(value));
  }

 private:
  std::optional<std::string_view> find(std::string_view name) const {
    for (const char* const* entry = environment_; *entry; ++entry) {
      std::string_view text = *entry;
      if (text.starts_with(name) && text.size() > name.size() && text[name.size()] == '=')
        return text.substr(name.size() + 1);
    }
    return std::nullopt;
  }

  const char* const* environment_;
  Config* config_;
};

// The block size for pages of `asked` bytes.
uint64_t supported_page(Reader& reader, uint64_t asked) {
  const uint64_t page = std::min(std::bit_ceil(asked), kPageBytesMax);
  const std::string is = "UMAP_PAGESIZE=" + std::to_string(asked) + " is ";
  if (page < asked) reader.note(is + "more than " + std::to_string(page) + ", which is used");
  if (page > asked) reader.note(is + "no power of two; " + std::to_string(page) + " is used");
  return page;
}

void read_page_and_buffer(Reader& reader, Config* config) {
  uint64_t asked = config->page_bytes;  // what UMAP_BUFSIZE counts in
  if (auto bytes = reader.number("UMAP_PAGESIZE", kPageBytesMin, kBufferBytesMax)) {
    if (*bytes % kPageBytesMin == 0)
      asked = *bytes;
    else
      reader.warn("UMAP_PAGESIZE", std::to_string(*bytes), "a multiple of " + std::to_string(kPageBytesMin));
    if (!reader.own("block", kPageBytesMin, kPageBytesMax) && asked == *bytes) {
      config->page_bytes = supported_page(reader, asked);
      reader.pass_on("block", config->page_bytes);
    }
  }
  config->page_bytes = reader.own("block", kPageBytesMin, kPageBytesMax).value_or(config->page_bytes);
  auto pages = reader.number("UMAP_BUFSIZE", 1, kBufferBytesMax / asked);
  if (!pages || reader.own("memory", kBufferBytesMin, kBufferBytesMax)) return;
  const uint64_t bytes = std::max(*pages * asked, kBufferBytesMin);
  config->buffer_pages = bytes / config->page_bytes;
  reader.pass_on("memory", bytes);
}

void read_counts(Reader& reader, Config* config) {
  struct Count {
    const char* variable;
    const char* option;
    uint64_t least, most;
    uint64_t* value;
  };
  const Count counts[] = {{"UMAP_PAGE_FILLERS", "fillers", 1, 256, &config->fillers},
                          {"UMAP_PAGE_EVICTORS", "evictors", 1, 16, &config->evictors},
                          {"UMAP_READ_AHEAD", "readahead", 0, 1024, &config->read_ahead_pages}};
  for (const Count& count : counts) {
    const auto value = reader.number(count.variable, count.least, count.most);
    if (auto own = reader.own(count.option, 0, kCountMax)) {
      *count.value = *own;
    } else if (value) {
      *count.value = *value;
      reader.pass_on(count.option, *value);
    }
  }
}

// UMap's two thresholds belong together: where one is set, the other is UMap's own default.
void read_thresholds(Reader& reader, Config* config) {
  constexpr uint64_t kHighPercent = 90, kLowPercent = 70;
  auto high = reader.number("UMAP_EVICT_HIGH_WATER_THRESHOLD", 50, 100);
  auto low = reader.number("UMAP_EVICT_LOW_WATER_THRESHOLD", 50, 100);
  const auto own_low = reader.own("low_watermark", 0, 100), own_high = reader.own("high_watermark", 0, 100);
  if (own_low || own_high) {
    if (own_low) config->high_water_percent = 100 - static_cast<int>(*own_low);
    if (own_high) config->low_water_percent = 100 - static_cast<int>(*own_high);
    return;
  }
  if (!high && !low) return;
  const uint64_t high_percent = high.value_or(kHighPercent), low_percent = low.value_or(kLowPercent);
  if (low_percent > high_percent)
    return reader.warn("UMAP_EVICT_LOW_WATER_THRESHOLD", std::to_string(low_percent),
                       "at most the high one, " + std::to_string(high_percent));
  config->high_water_percent = static_cast<int>(high_percent);
  config->low_water_percent = static_cast<int>(low_percent);
  // In this order, since the low one may never be above the high one.
  reader.pass_on("high_watermark", 100 - low_percent);
  reader.pass_on("low_watermark", 100 - high_percent);
}

}  // namespace

Config read_config(const char* const* environment) {
  Config config;
  Reader reader(environment, &config);
  read_page_and_buffer(reader, &config);
  read_counts(reader, &config);
  read_thresholds(reader, &config);
  return config;
}

namespace {

// In a program with rights of its own the runtime takes no option from the environment.
Config& own_config() {
  static Config* read = [] {
    std::vector<const char*> environment;
    for (const char* const* entry = ::environ; *entry; ++entry)
      if (::getauxval(AT_SECURE) == 0 || !std::string_view(*entry).starts_with("SPILLWAY_"))
        environment.push_back(*entry);
    environment.push_back(nullptr);
    return new Config(read_config(environment.data()));  // never destroyed: threads may outlive main()
  }();
  return *read;
}

}  // namespace

const Config& config() { return own_config(); }

void option_not_used(const std::string& option, std::string line) {
  Config& in_force = own_config();
  const Config defaults;
  in_force.warnings.push_back(std::move(line));
  if (option == "block") in_force.page_bytes = defaults.page_bytes;
  if (option == "memory") in_force.buffer_pages = defaults.buffer_pages;
  if (option == "fillers") in_force.fillers = defaults.fillers;
  if (option == "evictors") in_force.evictors = defaults.evictors;
  if (option == "readahead") in_force.read_ahead_pages = defaults.read_ahead_pages;
  if (option == "low_watermark") in_force.high_water_percent = defaults.high_water_percent;
  if (option == "high_watermark") in_force.low_water_percent = defaults.low_water_percent;
}

}  // namespace Umap
