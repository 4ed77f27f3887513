// A device that gives back something else than was written, and what that may be.
#pragma once

#include "store_fixture.h"

namespace spw::store {

inline constexpr uint64_t kPages = 64;

struct Contents {
  alignas(kUnit) std::byte bytes[kUnit];
  bool operator==(const Contents& other) const { return std::memcmp(bytes, other.bytes, kUnit) == 0; }
};

inline Contents random_contents(Rng& rng) {
  Contents made;
  for (uint64_t at = 0; at < kUnit; at += 8) {
    const uint64_t word = rng.next();
    std::memcpy(made.bytes + at, &word, 8);
  }
  return made;
}

// A device that has what it was told to have, whatever was written.
class Liar final : public Store {
 public:
  std::string describe() const override { return "a liar"; }
  uint64_t size_bytes() const override { return kPages * kUnit; }
  uint64_t alignment_bytes() const override { return kUnit; }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t) override { return Status(ENOSYS, "no queue"); }
  Status reserve(uint64_t, uint64_t) override { return {}; }
  Status transfer(Request& request) override {
    Contents& page = pages[request.offset_bytes / kUnit];
    if (request.op == Op::kWrite) std::memcpy(page.bytes, request.segments[0].iov_base, kUnit);
    if (request.op == Op::kRead) std::memcpy(request.segments[0].iov_base, page.bytes, kUnit);
    return {};
  }

  Contents pages[kPages] = {};
};

// What can become of a page: a bit or some, bytes in a row, a sector, half of it or all of it are wrong, from before,
// or another page's.
inline Contents spoiled(const Contents& right, const Contents& before, const Contents& other, Rng& rng) {
  constexpr uint64_t kSectorBytes = 512;
  Contents made = right;
  const uint64_t at = rng.below(kUnit), sector = rng.below(kUnit / kSectorBytes) * kSectorBytes;
  const uint64_t bytes = 1 + rng.below(kUnit - at);
  switch (rng.below(10)) {
    case 0:
      made.bytes[at] ^= std::byte(1 << rng.below(8));
      break;
    case 1:
      for (uint64_t i = 0, count = 2 + rng.below(6); i < count; ++i)
        made.bytes[rng.below(kUnit)] ^= std::byte(1 << rng.below(8));
      break;
    case 2:
      std::memset(made.bytes + at, 0, bytes);
      break;
    case 3:
      std::memset(made.bytes, 0, kUnit);
      break;
    case 4:
      std::memcpy(made.bytes + sector, before.bytes + sector, kSectorBytes);
      break;
    case 5:
      std::memcpy(made.bytes + kUnit / 2, before.bytes + kUnit / 2, kUnit / 2);
      break;
    case 6:
      return before;
    case 7:
      return other;
    case 8:
      std::memcpy(made.bytes + sector, other.bytes + sector, kSectorBytes);
      break;
    default:
      std::memmove(made.bytes, made.bytes + at, kUnit - at);
  }
  return made;
}

// SPW_CORRUPTIONS=N: so many instead. A million take some seconds, but not with sanitizers.
inline uint64_t corruptions_to_try() {
  if (const char* const asked = std::getenv("SPW_CORRUPTIONS")) return std::strtoull(asked, nullptr, 10);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 20'000;
#else
  return 1'000'000;
#endif
}

inline Request page_request(Op op, uint64_t page, Contents& contents) {
  Request request;
  request.op = op;
  request.offset_bytes = page * kUnit;
  request.segment_count = 1;
  request.segments[0] = {contents.bytes, kUnit};
  return request;
}

inline Status transfer_page(Store& store, Op op, uint64_t page, Contents& contents) {
  Request request = page_request(op, page, contents);
  return store.transfer(request);
}

// `store` is around `liar`. What is wrong with a page when it is read is found; what has nothing wrong is right.
inline void expect_no_corruption_goes_by(Store& store, Liar& liar) {
  Rng rng(20261127);
  Contents right[kPages], on_device[kPages], before[kPages];
  const auto write = [&](uint64_t page) {
    before[page] = liar.pages[page];
    right[page] = random_contents(rng);
    ASSERT_TRUE(transfer_page(store, Op::kWrite, page, right[page]));
    on_device[page] = liar.pages[page];
  };
  for (uint64_t page = 0; page < kPages; ++page) write(page);
  uint64_t injected = 0;
  Contents got;
  for (const uint64_t corruptions = corruptions_to_try(); injected < corruptions;) {
    const uint64_t page = rng.below(kPages), other = (page + 1 + rng.below(kPages - 1)) % kPages;
    if (rng.below(16) == 0) write(page);
    liar.pages[page] = spoiled(on_device[page], before[page], on_device[other], rng);
    const bool is_wrong = !(liar.pages[page] == on_device[page]);
    const Status status = transfer_page(store, Op::kRead, page, got);
    ASSERT_EQ(status.error(), is_wrong ? kNotAsWritten : 0)
        << "corruption " << injected << " of page " << page;
    injected += is_wrong;
    liar.pages[page] = on_device[page];
    if (rng.below(16) != 0) continue;
    ASSERT_TRUE(transfer_page(store, Op::kRead, page, got));
    ASSERT_EQ(got, right[page]);
  }
}

}  // namespace spw::store
