#include "process/policy_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <spillway/policy.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "libc/real.h"
#include "process/fatal.h"
#include "process/library_file.h"

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

// While a library is loaded, and looked at for the first time: if that crashes in this thread, the program ends with a
// line. The loader believes what a file says, and so does whoever follows its pointers; its initialisers run, too.
class LoadGuard {
 public:
  explicit LoadGuard(const std::string& line) {
    g_line = line;
    g_thread = ::gettid();
    struct sigaction ours{};
    ours.sa_sigaction = &on_crash;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    // Code that is damaged may have lost the thread's own.
    const stack_t stack = {g_stack.data(), 0, g_stack.size()};
    has_stack_ = libc::real().sigaltstack(&stack, &stack_before_) == 0;
    for (size_t i = 0; i < kSignals.size(); ++i) libc::real().sigaction(kSignals[i], &ours, &g_before[i]);
  }
  ~LoadGuard() {
    if (has_stack_) libc::real().sigaltstack(&stack_before_, nullptr);
    for (size_t i = 0; i < kSignals.size(); ++i) libc::real().sigaction(kSignals[i], &g_before[i], nullptr);
  }
  LoadGuard(const LoadGuard&) = delete;
  LoadGuard& operator=(const LoadGuard&) = delete;

 private:
  static constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT};

  static void on_crash(int signal, siginfo_t* info, void*) {
    if (::gettid() == g_thread) fatal(kExitUsage, g_line);
    // Another thread's is what it was: its instruction fails again, without us; what was sent is sent again.
    for (size_t i = 0; i < kSignals.size(); ++i)
      if (kSignals[i] == signal) libc::real().sigaction(signal, &g_before[i], nullptr);
    if (info->si_code <= 0) ::tgkill(::getpid(), ::gettid(), signal);
  }

  stack_t stack_before_{};
  bool has_stack_ = false;
  // One library is loaded at a time, once.
  inline static std::string g_line;
  inline static pid_t g_thread = 0;
  inline static std::array<char, 64 * kKiB> g_stack;
  inline static std::array<struct sigaction, kSignals.size()> g_before{};
};

template <class Function>
bool is_code(Function* function) {
  Dl_info info;
  return ::dladdr(reinterpret_cast<void*>(function), &info) != 0;
}

constexpr size_t kNameBytesMax = 63;

// What is wrong with it, in one clause; "": nothing that can be seen.
std::string fault_of(const void* symbol) {
  Dl_info info;
  ElfW(Sym)* entry = nullptr;
  if (::dladdr1(symbol, &info, reinterpret_cast<void**>(&entry), RTLD_DL_SYMENT) == 0 || entry == nullptr ||
      info.dli_saddr != symbol || reinterpret_cast<uintptr_t>(symbol) % alignof(spw_policy) != 0 ||
      ELF64_ST_TYPE(entry->st_info) != STT_OBJECT || entry->st_size < sizeof(uint32_t))
    return std::string("what it has as ") + kSymbol + " is no struct spw_policy (include/spillway/policy.h)";
  const auto& policy = *static_cast<const spw_policy*>(symbol);
  if (policy.version != SPW_POLICY_VERSION)
    return "it is made for version " + std::to_string(policy.version) + " of policy.h, and this is version " +
           std::to_string(SPW_POLICY_VERSION) + "; compile it again";
  if (entry->st_size < sizeof(spw_policy))
    return std::string("its ") + kSymbol + " has " + std::to_string(entry->st_size) + " bytes of " +
           std::to_string(sizeof(spw_policy)) + " (include/spillway/policy.h); compile it again";
  if (!policy.name || !policy.create || !policy.destroy || !policy.on_insert || !policy.on_remove ||
      !policy.on_keep || !policy.next_candidate || (!policy.on_touch && policy.wants_touches))
    return "a function that it has to have is missing (include/spillway/policy.h)";
  const size_t length = ::strnlen(policy.name, kNameBytesMax + 1);
  if (length == 0 || length > kNameBytesMax ||
      std::any_of(policy.name, policy.name + length,
                  [](unsigned char each) { return each < ' ' || each == 127; }))
    return "its name is not 1 to " + std::to_string(kNameBytesMax) + " bytes of a line";
  if (!is_code(policy.create) || !is_code(policy.destroy) || !is_code(policy.on_insert) ||
      !is_code(policy.on_remove) || !is_code(policy.on_keep) || !is_code(policy.next_candidate) ||
      (policy.on_touch && !is_code(policy.on_touch)) || (policy.on_limit && !is_code(policy.on_limit)) ||
      (policy.memory_bytes && !is_code(policy.memory_bytes)))
    return "a function of it is in no library that is loaded";
  return "";
}

}  // namespace

Result<PolicyFactory> load_policy(const std::string& file) {
  const auto refused = [&](const std::string& why) {
    return Status::sentence(EINVAL, "the eviction policy " + file + ": " + why);
  };
  if (const std::string fault = fault_of_library(file); !fault.empty())
    return refused("it cannot be loaded: " + fault);
  const LoadGuard guard(
      "the eviction policy " + file +
      ": it crashed while it was loaded: the file is damaged, or what it does at its start fails");
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return refused(std::string("it cannot be loaded: ") + ::dlerror());
  const auto* policy = static_cast<const spw_policy*>(::dlsym(library, kSymbol));
  if (!policy) return refused(std::string("it does not define ") + kSymbol + " (include/spillway/policy.h)");
  if (const std::string fault = fault_of(policy); !fault.empty()) return refused(fault);
  return PolicyFactory([policy](uint32_t frame_count) -> std::unique_ptr<cache::Policy> {
    void* instance = policy->create(frame_count);
    if (!instance) return nullptr;
    return std::make_unique<LibraryPolicy>(*policy, instance, frame_count);
  });
}

}  // namespace spw::process
