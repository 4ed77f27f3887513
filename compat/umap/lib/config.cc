#include "config.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace Umap {

namespace {

constexpr uint64_t kPageBytesMin = 4096;
constexpr uint64_t kPageBytesMax = uint64_t{2} << 20;
constexpr uint64_t kBufferBytesMin = uint64_t{8} << 20;
constexpr uint64_t kBufferBytesMax = uint64_t{16} << 40;

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

void read_page_and_buffer(Reader& reader, Config* config) {
  if (auto bytes = reader.number("UMAP_PAGESIZE", kPageBytesMin, kPageBytesMax)) {
    if ((*bytes & (*bytes - 1)) == 0) {
      config->page_bytes = *bytes;
      reader.pass_on("block", *bytes);
    } else {
      reader.warn("UMAP_PAGESIZE", std::to_string(*bytes), "a power of two");
    }
  }
  if (auto pages = reader.number("UMAP_BUFSIZE", 1, kBufferBytesMax / config->page_bytes)) {
    config->buffer_pages = *pages;
    reader.pass_on("memory", std::max(*pages * config->page_bytes, kBufferBytesMin));
  }
}

void read_thresholds(Reader& reader, Config* config) {
  auto high = reader.number("UMAP_EVICT_HIGH_WATER_THRESHOLD", 50, 100);
  auto low = reader.number("UMAP_EVICT_LOW_WATER_THRESHOLD", 50, 100);
  if (!high && !low) return;
  uint64_t high_percent = high.value_or(static_cast<uint64_t>(config->high_water_percent));
  uint64_t low_percent = low.value_or(static_cast<uint64_t>(config->low_water_percent));
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
  struct Count {
    const char* variable;
    const char* option;
    uint64_t least, most;
    uint64_t* value;
  };
  const Count counts[] = {{"UMAP_PAGE_FILLERS", "fillers", 1, 256, &config.fillers},
                          {"UMAP_PAGE_EVICTORS", "evictors", 1, 16, &config.evictors},
                          {"UMAP_READ_AHEAD", "readahead", 0, 1024, &config.read_ahead_pages}};
  for (const Count& count : counts)
    if (auto value = reader.number(count.variable, count.least, count.most)) {
      *count.value = *value;
      reader.pass_on(count.option, *value);
    }
  if (auto events = reader.number("UMAP_MAX_FAULT_EVENTS", 1, UINT32_MAX)) config.max_fault_events = *events;
  read_thresholds(reader, &config);
  return config;
}

namespace {
Config& own_config() {
  static Config* read = new Config(read_config(::environ));  // never destroyed: threads may outlive main()
  return *read;
}
}  // namespace

const Config& config() { return own_config(); }

void config_warning(std::string line) { own_config().warnings.push_back(std::move(line)); }

}  // namespace Umap
