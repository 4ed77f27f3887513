#include "cache/eviction/policy.h"

#include <string>

#include "cache/eviction/clock.h"
#include "cache/eviction/clock2q.h"
#include "cache/eviction/lru.h"
#include "cache/eviction/s3fifo.h"

namespace spw::cache {

namespace {

template <class T>
std::unique_ptr<Policy> make(uint32_t frame_count) {
  return std::make_unique<T>(frame_count);
}

struct Entry {
  std::string_view name;
  std::unique_ptr<Policy> (*make)(uint32_t frame_count);
};

constexpr Entry kPolicies[] = {
    {"clock", make<ClockPolicy>},
    {"clock2q+", make<Clock2qPolicy>},
    {"lru", make<LruPolicy>},
    {"s3-fifo", make<S3FifoPolicy>},
};

}  // namespace

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, uint32_t frame_count) {
  std::string names;
  for (const Entry& entry : kPolicies) {
    if (entry.name == name) return entry.make(frame_count);
    names += names.empty() ? "" : ", ";
    names += entry.name;
  }
  return Status::sentence(
      EINVAL, "no eviction policy is named \"" + std::string(name) + "\" (there are: " + names + ")");
}

}  // namespace spw::cache
