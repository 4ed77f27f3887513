/* The life of a frame between clients and its partition's owner, checked in every interleaving: the pin word's transitions
 * of src/cache/block_table/pin_word.h, as src/cache/shared_cache.cc (clients) and src/cache/partition (owner) make them.
 *
 * The world: one frame, two blocks, two clients that each do a few operations (pin for read, for write, or for read and then
 * mark dirty; use; unpin), the partition's owner (pins what is there, evicts, inserts, begins and ends writebacks, also of
 * pinned frames for a sync, drops failed fills), and the device, which moves a writeback's bytes at some time in between and
 * may fail. The client that missed fills. A block's contents are one number, the count of stores to it.
 *
 * One step here is one atomic operation there; plain loads of the word are steps of their own, so every compare-and-swap
 * can fail. Memory is sequentially consistent: the orders in pin_word.h's table are not checked here. Left out: read-ahead,
 * discards, overwriting pins, the reference bit, the policy (every evictable frame may be evicted), and how a client waits for a frame
 * (it asks again). A combining owner is whichever client holds the combiner lock; only one does, so a process of its own stands for it.
 *
 * Checked: a pinned frame holds the block it was pinned for; a pin reads the last value stored, never garbage; a clean frame
 * that nobody holds, and a block that is not cached, have their last value in the store; no deadlock; and, if every process that can move
 * does move at some time (weak fairness), every pin returns.
 *
 * A define that begins with BUG switches one mistake on; check_model.py demands that each is found.
 */

#ifndef OPS_0
#define OPS_0 2 /* operations of client 0 */
#endif
#ifndef OPS_1
#define OPS_1 2
#endif
/* How often each may happen. */
#ifndef SYNCS
#define SYNCS 1
#endif
#ifndef FILL_FAILURES
#define FILL_FAILURES 0
#endif
#ifndef WRITE_FAILURES
#define WRITE_FAILURES 0
#endif

#define CLIENTS 2
#define NO_BLOCK 2
#define GARBAGE 99
#define next_value(v) ((v + 1) % 8)

/* The pin word: refs in bits 0-1, flags, state, block. A free word is all zeros. */
#define REFS 3
#define WAITERS 4
#define DIRTY 8
#define WRITING 16
#define STATE 96
#define FREE 0
#define FILLING 32
#define RESIDENT 64
#define FAILED 96
#define BLOCK 128
#define block_bits(b) (b * BLOCK)
#define block_of(w) (w / BLOCK)
#define refs_of(w) (w & REFS)
#define state_of(w) (w & STATE)
#define holds(w, b) (state_of(w) != FREE && block_of(w) == b)
#define in_state(w, s) ((w & ~STATE) | s)
#define dirty_if(for_write) (for_write * DIRTY)

#ifdef BUG_EVICT_WHILE_WRITING
#define is_evictable(w) (state_of(w) == RESIDENT && refs_of(w) == 0 && !(w & DIRTY))
#else
#define is_evictable(w) (state_of(w) == RESIDENT && refs_of(w) == 0 && !(w & (DIRTY | WRITING)))
#endif

byte word = 0;
byte slot = NO_BLOCK;     /* the block table: which block the frame is listed for */
byte frame_value = GARBAGE;
byte stored[2];           /* by block: what its store has */
bool asleep[CLIENTS];     /* in a futex wait on the word */
byte done = 0;            /* clients that have finished */

/* For the assertions only. */
byte frame_block = NO_BLOCK;  /* whose contents the frame has, or is being filled with */
byte latest[2];               /* by block: the last value stored by a client */

byte fill_failures_left = FILL_FAILURES;
byte write_failures_left = WRITE_FAILURES;
byte syncs_left = SYNCS;

mtype = {pin_wish, drop_wish, pinned, fill, joined, failed, no_frame, dropped};
chan ask = [CLIENTS] of {byte, mtype, byte, bit}; /* client, wish, block, for write */
chan answer[CLIENTS] = [1] of {mtype};

mtype = {idle, issued, written, write_failed};
mtype writeback = idle;
byte writeback_block;

#define clean_and_let_go (state_of(word) == RESIDENT && refs_of(word) == 0 && !(word & (DIRTY | WRITING)))
#define is_lost(b) (frame_block != b && stored[b] != latest[b])

/* ok = (word was `expected` and is now `desired`); otherwise `expected` becomes what was read. */
inline cas(expected, desired, ok) {
  atomic {
    if
    :: word == expected -> word = desired; ok = true
    :: else -> expected = word; ok = false
    fi
  }
}

/* ---- Device ---- */

active proctype device() {
  byte bytes;
end:
  do
  :: writeback == issued ->
     assert(frame_block == writeback_block);
     bytes = frame_value;
     if
     :: atomic { stored[writeback_block] = bytes; writeback = written }
     :: atomic {
          write_failures_left > 0 -> write_failures_left--;
          stored[writeback_block] = GARBAGE; /* torn */
          writeback = write_failed
        }
     fi;
     bytes = 0 /* here and below: fewer states that differ in nothing */
  od
}

/* ---- Owner ---- */

/* AtomicPinWord::try_begin_writing and issue. */
inline begin_writing(w, ok, pinned_too) {
  ok = false;
  w = word;
  do
  :: !ok && state_of(w) == RESIDENT && (w & DIRTY) && !(w & WRITING) && (pinned_too || refs_of(w) == 0) ->
#if defined(BUG_CLEAR_DIRTY_WHILE_PINNED)
     cas(w, ((w | WRITING) & ~DIRTY), ok)
#elif defined(BUG_CLEAR_DIRTY_AT_THE_END)
     cas(w, (w | WRITING), ok)
#else
     if
     :: refs_of(w) == 0 -> cas(w, ((w | WRITING) & ~DIRTY), ok)
     :: else -> cas(w, (w | WRITING), ok)
     fi
#endif
  :: else -> break
  od;
  if
  :: ok -> writeback_block = block_of(w); writeback = issued
  :: else
  fi
}

inline finish_writeback(w, ok) {
  if
  :: writeback == written ->
#ifdef BUG_CLEAR_DIRTY_AT_THE_END
     word = word & ~(WRITING | DIRTY)
#else
     word = word & ~WRITING
#endif
  :: writeback == write_failed ->
#ifdef BUG_FAILED_WRITE_FORGOTTEN
     word = word & ~WRITING
#else
     w = word;
     ok = false;
     do
     :: !ok -> cas(w, ((w & ~WRITING) | DIRTY), ok)
     :: else -> break
     od
#endif
  fi;
  writeback = idle
}

/* AtomicPinWord::try_free; erases from the table. */
inline evict(w, ok) {
  ok = false;
  w = word;
  do
  :: !ok && is_evictable(w) ->
#ifdef BUG_EVICT_WITHOUT_CAS
     word = 0;
     ok = true
#else
     cas(w, 0, ok)
#endif
  :: else -> break
  od;
  if
  :: ok -> slot = NO_BLOCK
  :: else
  fi
}

inline drop_failed(w, ok) {
  ok = false;
  w = word;
  do
  :: !ok && state_of(w) == FAILED && refs_of(w) == 0 -> cas(w, 0, ok)
  :: else -> break
  od;
  if
  :: ok -> slot = NO_BLOCK
  :: else
  fi
}

/* Partition::pin_present. `reply` stays no_frame if the block is not there any more. */
inline pin_present(b, for_write, w, ok, reply) {
  ok = false;
  w = word;
  do
  :: ok -> break
  :: !ok && state_of(w) == RESIDENT -> cas(w, ((w + 1) | dirty_if(for_write)), ok); reply = pinned
  :: !ok && state_of(w) == FILLING -> cas(w, (w + 1), ok); reply = joined
  :: !ok && state_of(w) == FAILED ->
     drop_failed(w, ok);
     if
     :: ok -> reply = no_frame
     :: else -> reply = failed
     fi;
     break
  :: !ok && state_of(w) == FREE -> reply = no_frame; break
  od
}

active proctype owner() {
  byte client, b, w;
  bit for_write;
  bool ok;
  mtype wish, reply;
end:
  do
  :: writeback == written || writeback == write_failed -> finish_writeback(w, ok)
  :: syncs_left > 0 && (word & DIRTY) && !(word & WRITING) -> syncs_left--; begin_writing(w, ok, true)
  :: ask ? client, wish, b, for_write ->
     if
     :: writeback == written || writeback == write_failed -> finish_writeback(w, ok)
     :: else
     fi;
     if
     :: wish == drop_wish -> drop_failed(w, ok); reply = dropped
     :: wish == pin_wish ->
        reply = no_frame;
        if
        :: slot == b -> pin_present(b, for_write, w, ok, reply)
        :: else
        fi;
        if
        :: reply == no_frame && slot != NO_BLOCK -> /* Partition::take_frame */
           evict(w, ok);
#ifndef BUG_VICTIMS_NOT_WRITTEN
           if
           :: !ok -> begin_writing(w, ok, false)
           :: else
           fi
#endif
        :: else
        fi;
        if
        :: reply == no_frame && slot == NO_BLOCK -> /* Partition::insert */
           atomic {
             assert(word == 0);
             frame_block = b;
             frame_value = GARBAGE;
             word = block_bits(b) | FILLING | 1
           }
           slot = b;
           reply = fill
        :: else
        fi
     fi;
     d_step { answer[client] ! reply; client = 0; b = 0; w = 0; for_write = 0; ok = false; wish = 0; reply = 0 }
  od
}

/* ---- Clients ---- */

inline read_value(b) {
  assert(frame_block == b);
  assert(frame_value == latest[b])
}

inline store_value(b) {
  atomic {
    assert(frame_block == b);
    assert(frame_value == latest[b]);
    latest[b] = next_value(latest[b]);
    frame_value = latest[b]
  }
}

/* SharedCacheParts::wait_while_filling, with the futex's comparison. */
inline wait_while_filling(me, w, ok) {
  w = word;
  do
  :: state_of(w) == FILLING ->
     ok = true;
     if
     :: !(w & WAITERS) -> cas(w, (w | WAITERS), ok)
     :: else
     fi;
     if
     :: ok ->
        atomic {
          if
          :: word == (w | WAITERS) -> asleep[me] = true
          :: else
          fi
        }
        !asleep[me];
        w = word
     :: else
     fi
  :: else -> break
  od
}

/* AtomicPinWord::end_filling, and the wake-up. */
inline end_filling(new_state, flags, w, ok) {
  ok = false;
  w = word;
  do
  :: !ok -> cas(w, ((in_state(w, new_state) & ~WAITERS) | flags), ok)
  :: else -> break
  od;
#ifndef BUG_NO_WAKE
  if
  :: w & WAITERS -> atomic { asleep[0] = false; asleep[1] = false }
  :: else
  fi
#endif
}

inline leave_failed(me, w) {
  atomic { w = word; word = word - 1 }
  if
  :: refs_of(w) == 1 -> ask ! me, drop_wish, 0, 0; answer[me] ? dropped
  :: else
  fi
}

proctype client(byte me; byte ops) {
  byte b, w;
  bit for_write, upgrade;
  bool ok;
  mtype reply;

next_operation:
  atomic {
    w = 0; ok = false; reply = 0; for_write = 0; upgrade = 0; b = 0;
    if
    :: ops == 0 -> goto finished
    :: else -> ops--
    fi;
    if
    :: b = 0
    :: b = 1
    fi;
    if
    :: skip
    :: for_write = 1
    :: upgrade = 1
    fi
  }

again:
  atomic { w = 0; ok = false; reply = 0 }
  /* BlockTable::try_pin and SharedCacheParts::join_present, which make the same step of a resident block */
  if
  :: slot == b ->
     ok = false;
     w = word;
#ifdef BUG_PIN_WITHOUT_IDENTITY
     if
     :: state_of(w) == RESIDENT -> atomic { word = (word + 1) | dirty_if(for_write) } goto use
     :: else
     fi;
#endif
     do
     :: holds(w, b) && state_of(w) == RESIDENT ->
        cas(w, ((w + 1) | dirty_if(for_write)), ok);
        if
        :: ok -> goto use
        :: else
        fi
     :: holds(w, b) && state_of(w) == FILLING ->
        cas(w, (w + 1), ok);
        if
        :: ok -> goto await_filled
        :: else
        fi
     :: else -> break
     od
  :: else
  fi;
  ask ! me, pin_wish, b, for_write;
  answer[me] ? reply;
  if
  :: reply == pinned -> goto use
  :: reply == joined -> goto await_filled
  :: reply == fill -> goto do_fill
  :: reply == failed -> goto next_operation
  :: reply == no_frame -> goto again
  fi;

await_filled:
  wait_while_filling(me, w, ok);
  if
  :: state_of(w) == FAILED -> leave_failed(me, w); goto next_operation
  :: else
  fi;
  ok = !for_write;
  do
  :: !ok -> cas(w, (w | DIRTY), ok)
  :: else -> break
  od;
  goto use;

do_fill:
  assert(frame_block == b);
#ifdef BUG_LET_IN_BEFORE_THE_FILL
  end_filling(RESIDENT, dirty_if(for_write), w, ok);
  frame_value = stored[b];
  goto use;
#endif
  if
  :: frame_value = stored[b]
  :: atomic { fill_failures_left > 0 -> fill_failures_left-- }
     end_filling(FAILED, 0, w, ok);
     leave_failed(me, w);
     goto next_operation
  fi;
  end_filling(RESIDENT, dirty_if(for_write), w, ok);

use:
  if
  :: for_write -> store_value(b)
  :: upgrade ->
     read_value(b);
     word = word | DIRTY; /* SharedCacheParts::mark_dirty */
     store_value(b)
  :: else -> read_value(b)
  fi;
  assert(refs_of(word) > 0);
  word = word - 1; /* SharedCacheParts::unpin */
  goto next_operation;

finished:
  done++
}

init {
  atomic { run client(0, OPS_0); run client(1, OPS_1) }
}

/* Invariants between any two steps. */
active proctype monitor() {
end:
  atomic {
    (clean_and_let_go && stored[block_of(word)] != latest[block_of(word)]) || is_lost(0) || is_lost(1) ->
    assert(false)
  }
}

ltl every_pin_returns { <> (done == CLIENTS) }
