#include "process/policy_library.h"

#include <dlfcn.h>
#include <spillway/policy.h>

#include <vector>

#include "base/check.h"
#include "process/fatal.h"

namespace spw::process {

namespace {

constexpr const char* kSymbol = "spw_policy_v1";

// Holds a policy to the rules of policy.h: one that breaks them would lose data.
class LibraryPolicy final : public cache::Policy {
 public:
  LibraryPolicy(const spw_policy& functions, void* instance, uint32_t frame_count)
      : functions_(functions), instance_(instance), places_(frame_count, Place::kEmpty) {}
  ~LibraryPolicy() override { functions_.destroy(instance_); }

  const char* name() const override { return functions_.name; }
  void on_insert(uint32_t frame, BlockId block) override {
    places_[frame] = Place::kHeld;
    functions_.on_insert(instance_, frame, block.value);
  }
  void on_remove(uint32_t frame, BlockId) override {
    places_[frame] = Place::kEmpty;
    functions_.on_remove(instance_, frame);
  }
  void on_keep(uint32_t frame) override {
    places_[frame] = Place::kHeld;
    functions_.on_keep(instance_, frame);
  }
  void on_touch(uint32_t frame) override {
    if (places_[frame] == Place::kHeld) functions_.on_touch(instance_, frame);
  }
  bool wants_touches() const override { return functions_.wants_touches != 0; }
  void on_limit(uint32_t frames) override {
    if (functions_.on_limit) functions_.on_limit(instance_, frames);
  }
  uint32_t next_candidate(cache::FrameProbe& frames) override {
    Looks looks{frames, static_cast<uint32_t>(places_.size())};
    const spw_frames view = {&looks, &look};
    // What the policy has not looked at may be busy: it goes back, and another one is asked for.
    for (unsigned tries = 0; tries < kBusyOffersMax; ++tries) {
      const uint32_t frame = functions_.next_candidate(instance_, &view);
      if (frame == SPW_NO_CANDIDATE) break;
      check_offer(frame);
      if (frames.probe(frame) != cache::FrameProbe::Verdict::kBusy) {
        places_[frame] = Place::kOnOffer;
        return frame;
      }
      functions_.on_keep(instance_, frame);
    }
    return cache::kNoCandidate;
  }
  bool goes_along(uint32_t) override { return false; }  // each that goes is one it chose
  uint64_t metadata_bytes() const override {
    return sizeof(*this) + places_.capacity() +
           (functions_.memory_bytes ? functions_.memory_bytes(instance_) : 0);
  }
  void check_invariants(const std::vector<uint8_t>& may_be_offered) const override {
    for (size_t frame = 0; frame < places_.size(); ++frame)
      SPW_CHECK((places_[frame] == Place::kHeld) == (may_be_offered[frame] != 0));
  }

 private:
  enum class Place : uint8_t { kEmpty, kHeld, kOnOffer };
  static constexpr unsigned kBusyOffersMax = 128;

  struct Looks {
    cache::FrameProbe& frames;
    uint32_t frame_count;
  };

  void check_offer(uint32_t frame) const {
    if (frame >= places_.size() || places_[frame] != Place::kHeld)
      fatal(kExitUsage,
            std::string("the eviction policy \"") + name() + "\" offered frame " + std::to_string(frame) +
                " of " + std::to_string(places_.size()) +
                ", which holds no block or is on offer already (include/spillway/policy.h has the rules)");
  }

  static spw_verdict look(void* context, uint32_t frame) {
    const auto& looks = *static_cast<const Looks*>(context);
    if (frame >= looks.frame_count) return SPW_BUSY;
    switch (looks.frames.probe(frame)) {
      case cache::FrameProbe::Verdict::kEvictable:
        return SPW_EVICTABLE;
      case cache::FrameProbe::Verdict::kReferenced:
        return SPW_REFERENCED;
      case cache::FrameProbe::Verdict::kBusy:
        break;
    }
    return SPW_BUSY;
  }

  const spw_policy& functions_;
  void* const instance_;
  std::vector<Place> places_;
};

bool is_whole(const spw_policy& policy) {
  return policy.name && policy.create && policy.destroy && policy.on_insert && policy.on_remove &&
         policy.on_keep && policy.next_candidate && (policy.on_touch || !policy.wants_touches);
}

}  // namespace

Result<PolicyFactory> load_policy(const std::string& file) {
  const auto refused = [&](const std::string& why) {
    return Status::sentence(EINVAL, "the eviction policy " + file + ": " + why);
  };
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return refused(std::string("it cannot be loaded: ") + ::dlerror());
  const auto* policy = static_cast<const spw_policy*>(::dlsym(library, kSymbol));
  if (!policy) return refused(std::string("it does not define ") + kSymbol + " (include/spillway/policy.h)");
  if (policy->version != SPW_POLICY_VERSION)
    return refused("it is made for version " + std::to_string(policy->version) +
                   " of policy.h, and this is version " + std::to_string(SPW_POLICY_VERSION) +
                   "; compile it again");
  if (!is_whole(*policy))
    return refused("a function that it has to have is missing (include/spillway/policy.h)");
  return PolicyFactory([policy](uint32_t frame_count) -> std::unique_ptr<cache::Policy> {
    void* instance = policy->create(frame_count);
    if (!instance) return nullptr;
    return std::make_unique<LibraryPolicy>(*policy, instance, frame_count);
  });
}

}  // namespace spw::process
