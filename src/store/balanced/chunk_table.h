// Where the chunks of a balanced store are: one word a chunk, in memory that is taken as it is touched.
//
//     63        62     61        60..56   55      54..20   19..0
//     assigned  holds  reserved  member   moving  slot     users
//
// assigned  it has slot `slot` of member `member`. A word that is not is 0, and the chunk reads as zeros
// holds     a write to it has ended well since it was assigned
// reserved  the whole slot has its space, and none was given back since
// moving    it is being copied to another slot, and nothing was written here since that began
// users     requests under way there (at most the depths of all queues and a thread's transfer each)
//
//   from        to                  who                        operation, order
//   0           assigned, u users   assign(), under the lock   store release, with pin()'s acquire: who sees the slot
//                                                              sees it empty (what was there has been discarded)
//   u users     u + 1               pin(): a request           CAS acquire; to write, it takes `moving` away
//   u users     u - 1               unpin(): it has ended      fetch_sub acq_rel: what it did comes before the slot
//                                                              is another chunk's
//   !holds      holds               unpin(), after a write     fetch_or relaxed, before its fetch_sub
//   reserved    !reserved           unreserve(): a discard     fetch_and relaxed, by one of the users
//   0 users     0                   take(): a whole discard    CAS acq_rel
//   1 user,     0                   take_if_last(): the first  CAS acq_rel
//     !holds                          write, which failed
//   0 users,    1 user, moving      begin_move()               CAS acquire
//     holds
//   1 user,     0 users, another    end_move()                 CAS acq_rel: the copy comes before who finds it, and
//     moving      slot                                         what readers of the old slot did before its next chunk
//
// Invariants: assigned words name slots that are taken (slots.h), no two the same. A slot is only read or written by a
//   request that has its chunk pinned; so once take() has succeeded nobody has to do with the slot but its caller, who
//   empties it and gives it back.
// Why a move loses nothing: what is written or discarded while the chunk is copied has pinned it, after the copy began
//   since nobody had it pinned then, and has taken `moving` away, so the move does not end. Nor does it while somebody
//   still reads the old slot.
// What runs at the same time on one chunk: reads, writes and discards of any of its blocks, since blocks of one chunk
//   belong to several partitions and read-ahead asks for what is being freed. Of one block there is one write at a time
//   (its pin word is `writing`); a read or a discard beside it may see or leave either, as on a file. A discard of the
//   whole chunk beside a write (RegionMap::discard() before the frames have gone) finds a user and leaves the chunk
//   assigned.
// Threads: any. assign() one at a time. in_child(): no other thread there is.
// Limits: kUsersMax users; kSlotsMax slots a member.
#pragma once

#include <cstdint>
#include <optional>

#include "base/atomic.h"
#include "base/status.h"
#include "platform/memory.h"

namespace spw::store {

class ChunkWord {
 public:
  static constexpr unsigned kSlotShift = 20, kMemberShift = 56;
  static constexpr uint64_t kUsersMax = (uint64_t{1} << kSlotShift) - 1;
  static constexpr uint64_t kSlotsMax = uint64_t{1} << (kMemberShift - 1 - kSlotShift);
  static constexpr uint64_t kMembersMax = 32;
  static constexpr uint64_t kMoving = uint64_t{1} << (kMemberShift - 1);
  static constexpr uint64_t kReserved = uint64_t{1} << 61, kHolds = uint64_t{1} << 62,
                            kAssigned = uint64_t{1} << 63;

  constexpr explicit ChunkWord(uint64_t bits = 0) : bits_(bits) {}
  static constexpr ChunkWord of(uint64_t member, uint64_t slot, bool reserved, uint64_t users) {
    return ChunkWord(kAssigned | (reserved ? kReserved : 0) | member << kMemberShift | slot << kSlotShift |
                     users);
  }
  bool is_assigned() const { return (bits_ & kAssigned) != 0; }
  bool holds() const { return (bits_ & kHolds) != 0; }
  bool is_moving() const { return (bits_ & kMoving) != 0; }
  bool is_reserved() const { return (bits_ & kReserved) != 0; }
  uint64_t member() const { return bits_ >> kMemberShift & (kMembersMax - 1); }
  uint64_t slot() const { return bits_ >> kSlotShift & (kSlotsMax - 1); }
  uint64_t users() const { return bits_ & kUsersMax; }
  uint64_t bits() const { return bits_; }

 private:
  uint64_t bits_;
};

class ChunkTable {
 public:
  Status allocate(uint64_t chunks);

  ChunkWord load(uint64_t chunk) const { return ChunkWord(words()[chunk].load_acquire()); }
  // One user more, if the chunk is assigned. kWrite: what is there may change.
  enum class To : uint8_t { kRead, kWrite };
  std::optional<ChunkWord> pin(uint64_t chunk, To to);
  // `wrote`: and well.
  void unpin(uint64_t chunk, bool wrote);
  // By one of its users: a part of its space is about to be given back.
  void unreserve(uint64_t chunk) { words()[chunk].fetch_and_relaxed(~ChunkWord::kReserved); }
  // What an assigned chunk without users was, which is not assigned any more.
  std::optional<ChunkWord> take(uint64_t chunk);
  // The same of one that has nothing and only the caller as its user.
  std::optional<ChunkWord> take_if_last(uint64_t chunk);
  // A chunk that holds something and is used by nobody, to be copied: pinned for who copies it.
  std::optional<ChunkWord> begin_move(uint64_t chunk);
  // It is `there` now, whole; or it cannot be: kBusy while others use it, kChanged for good. Then it stays pinned.
  enum class Moved : uint8_t { kYes, kBusy, kChanged };
  Moved end_move(uint64_t chunk, ChunkWord there);
  void give_up_move(uint64_t chunk);
  // Of a chunk that is not assigned.
  void assign(uint64_t chunk, ChunkWord word);
  // No chunk at or behind it was ever assigned, of those that the caller knows of.
  uint64_t end() const { return end_.load_relaxed(); }
  // Requests of the parent are none of the child's.
  void in_child();

 private:
  Atomic<uint64_t>* words() const { return reinterpret_cast<Atomic<uint64_t>*>(memory_.data()); }

  platform::Mapping memory_;
  Atomic<uint64_t> end_{0};
};

}  // namespace spw::store
