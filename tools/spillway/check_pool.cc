#include "check_pool.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "commands.h"
#include "messages.h"
#include "platform/successor.h"
#include "platform/time.h"
#include "store/rbd_store.h"
#include "top/text.h"

namespace spw::tool {

namespace {

// A cluster that is not to be reached, or an image that somebody looks at, is tried again; whoever removes an image,
// or all of a pool, does not stay for longer.
constexpr unsigned kPatienceS = 120;
constexpr uint64_t kPauseNs = 500'000'000;
// So long another one may take that removes the image.
constexpr int kTriesWithClaim = 20;

void end_after(unsigned seconds) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_UNBLOCK, &all, nullptr);
  ::alarm(seconds);
}

Result<store::RbdAddress> pool_of(const std::string& name) {
  auto address = store::RbdAddress::parse(std::string_view(name).substr(kPoolScheme.size()));
  if (address && !address->image.empty())
    return Status::sentence(EINVAL,
                            name + ": a pool is checked, rbd:POOL, and what was made there to spill to");
  return address;
}

// In a process of its own: librbd's memory would stay for as long as the program runs.
void remove_what_is_left_behind(const store::RbdAddress& address) {
  const pid_t child = ::fork();
  if (child == 0) {
    end_after(kPatienceS);
    ::_exit(store::remove_dead_spill_images(address) ? kExitOk : kExitMissing);
  }
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace

int check_pool(const std::string& name) {
  auto address = pool_of(name);
  if (!address) return refuse(address.status().message());
  auto found = store::remove_dead_spill_images(*address);
  if (!found) return refuse(found.status().message());
  using Outcome = store::SpillImageFound::Outcome;
  size_t removed = 0, in_use = 0, failed = 0;
  for (const store::SpillImageFound& each : *found) {
    // They are the pool's words, and it may be anybody's.
    const std::string why = top::printable(each.why, top::Charset::kUtf8);
    switch (each.outcome) {
      case Outcome::kRemoved:
        ++removed;
        fmt::print("removed {}{}\n", each.image, why.empty() ? "" : " of " + why);
        break;
      case Outcome::kInUse:
        ++in_use;
        fmt::print("in use {}: {}\n", each.image, why);
        break;
      case Outcome::kForeign:
        fmt::print("kept {}: it is not Spillway's, in spite of its name\n", each.image);
        break;
      case Outcome::kFailed:
        ++failed;
        fmt::print("problem: {} cannot be removed: {}\n", each.image, why);
        break;
    }
  }
  fmt::print("{}: {} removed, {} in use{}\n", address->text, removed, in_use,
             failed == 0 ? "" : fmt::format(", {} left behind", failed));
  return failed == 0 ? kExitOk : kExitMissing;
}

int remove_image_at_end(const std::string& store, const std::string& image) {
  auto address = pool_of(store);
  if (!address) return refuse(address.status().message());
  remove_what_is_left_behind(*address);
  if (!platform::await_predecessor())
    return refuse("this command is one that Spillway calls itself; see spillway check");
  end_after(kPatienceS);
  for (int tries = 0;; ++tries) {
    const auto claimed = tries < kTriesWithClaim ? store::Claimed::kStays : store::Claimed::kIsRemoved;
    if (store::remove_spill_image(*address, image, claimed)) return kExitOk;
    platform::sleep_ns(kPauseNs);
  }
}

}  // namespace spw::tool
