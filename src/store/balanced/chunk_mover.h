// Moves chunks of a balanced store between its members: what is used often up to a faster tier, for which what is not
// goes down, and what a member fails to write away from it.
//
//   up     a chunk of a lower tier that was used in kHot ticks of late (heat.h) is looked at again as it is used. It moves
//          to a higher tier that has room. Where none has any, it takes the place of the coldest of kLooked chunks
//          there, which go by a clock hand, if that is worth it: the uses that are expected of it beyond the other
//          one's, kUsesAhead times what they differ by now, would save more time than two moves take; and it is more
//          than twice as hot, and kMargin, so that noise alone moves nothing.
//   away   a chunk whose write failed, of which something is there already, goes to another member that has room, if
//          it can be read. Who wrote it tries again meanwhile (src/cache/writeback).
//
// How a chunk moves: a slot is taken, the word is marked (chunk_table.h), the chunk is copied, and the word names the
//   new slot; the old one is emptied and given back. Whoever writes to the chunk or discards some of it in between ends
//   the move, which is then forgotten: never a request waits for a move. One that is read gets kEndTries, so what is
//   under read all the time stays where it is.
// How much of the devices it takes: after a move up it rests kRestTimes as long as that took.
//
// Forks: from the first one that shares the store on no move ends, on either side: the other one would look for the
//   chunk where it was. lock_for_fork() and the end of a move exclude one another by the places' mutex; what is under
//   way is given up. (Layers of their own, which both sides open after a fork, are other stores.)
// Threads: note_use() and leave() any, without waiting, but for the first leave() of a store of one tier, which starts
//   the thread. The thread does one thing at a time. Lifetime: destroyed before the places and the table.
// Limits: kWaiting chunks wait to be looked at; one more takes the place of another.
#pragma once

#include <array>
#include <mutex>
#include <optional>

#include "base/atomic.h"
#include "platform/memory.h"
#include "platform/thread.h"
#include "platform/wake_fd.h"
#include "store/balanced/chunk_table.h"
#include "store/balanced/heat.h"
#include "store/balanced/places.h"

namespace spw::store {

class ChunkMover {
 public:
  static constexpr uint32_t kHot = 8, kLookAgain = 4, kLooked = 8, kMargin = 4;
  static constexpr double kUsesAhead = 2;
  static constexpr uint64_t kRestTimes = 1, kLookedWordsMax = 4096;
  static constexpr size_t kWaiting = 64;
  static constexpr unsigned kEndTries = 100;
  static constexpr uint64_t kTryAgainNs = 100'000;

  ChunkMover(Places& places, ChunkTable& table) : places_(places), table_(table) {}
  ~ChunkMover();
  // For a store of several tiers: what was used is noted, and moved.
  Status prepare(uint64_t chunks) {
    if (Status status = heat_.allocate(chunks); !status) return status;
    is_noting_ = true;
    return start();
  }

  // Whether note_use() is to be called.
  bool is_noting() const { return is_noting_; }
  // It is read or written, there.
  void note_use(uint64_t chunk, ChunkWord word, uint64_t now_ns);
  // Away from its member.
  void leave(uint64_t chunk);
  // What the thread does; of who calls it while there is none. kNot: it is in use, or changed meanwhile, or failed.
  // `left`: where it was, taken still and with what was there; nullptr: that is given back.
  enum class Done : uint8_t { kMoved, kNoRoom, kNot };
  Done move(uint64_t chunk, const Places::Wanted& wanted, Places::Place* left = nullptr);
  void lock_for_fork();
  void in_child();

  // Ever, for whatever reason; and those of them that came up.
  uint64_t moved() const { return moved_.load_relaxed(); }
  uint64_t moved_up() const { return moved_up_.load_relaxed(); }

 private:
  using Waiting = std::array<Atomic<uint64_t>, kWaiting>;  // a chunk + 1, or 0: none

  void ask(Waiting& waiting, uint64_t chunk);
  Status start();
  void work();
  bool is_idle() const;
  void move_up(uint64_t chunk);
  void move_away(uint64_t chunk);
  Done move_in_place_of_another(uint64_t chunk, uint32_t tier);
  Done move_to(uint64_t chunk, Places::Place there, Places::Place* left = nullptr);
  bool copy(ChunkWord from, Places::Place to);
  bool end_move(uint64_t chunk, Places::Place there);
  void give_back(Places::Place place);
  std::optional<uint64_t> coldest_above(uint32_t tier, uint64_t now_ns);
  bool is_worth(uint64_t hot, uint64_t cold, uint64_t now_ns) const;
  uint32_t tier_of(ChunkWord word) const { return places_[word.member()].tier; }

  Places& places_;
  ChunkTable& table_;
  Heat heat_;
  Waiting hot_{}, leaving_{};
  Atomic<bool> sleeps_{false};
  Atomic<bool> ending_{false};
  Atomic<uint64_t> moved_{0}, moved_up_{0};
  bool is_noting_ = false;  // this and is_child_ change while there is one thread
  bool is_child_ = false;
  bool may_move_ = true;  // under the places' mutex
  // The thread's own.
  platform::Mapping buffer_;
  uint64_t hand_ = 0;
  double move_ns_ = 0;
  std::mutex start_mutex_;
  Atomic<bool> started_{false};
  platform::WakeFd wake_;
  platform::Thread thread_;  // last: it uses all of the above
};

}  // namespace spw::store
