/* An extent between clients, the thread that moves extents, and the block cache, checked in every interleaving: the states
 * of src/cache/extents/extent_word.h, as extent_cache.cc (clients: publish, look, ask the block cache), extents.cc (pins) and
 * extent_mover.cc make them.
 *
 * The world: one extent of one block. Two clients that each do a few operations: whoever finds the word `none` asks the block
 * cache, which reads the block if it has it not; else he pins the extent, which he moves to its address if it is in its slot.
 * Either way he stores once, and everything he finds has to be the latest. The mover claims, reads, takes back (to rest, or for good), compares
 * and writes; its write may fail. The block cache evicts, and writes what is dirty. Where the extent is at its address, the
 * program stores to it without anybody's knowledge.
 *
 * What a client publishes (Client::in_extents) is a plain store, which others may see late: it waits in a buffer, and goes
 * at some time, or when the mover has all threads pass a barrier. Everything else is one atomic step and seen at once.
 *
 * Checked: a block is in memory in one way at a time; no store is lost; what is published covers who asks the block cache;
 * no deadlock; and, if every process that can move does move at some time, every client gets on.
 *
 * A define that begins with BUG switches one mistake on; check_model.py demands that each is found.
 */

#ifndef OPS_0
#define OPS_0 2 /* operations of client 0 */
#endif
#ifndef OPS_1
#define OPS_1 1
#endif
/* How often each may happen. */
#ifndef CLAIMS
#define CLAIMS 2
#endif
#ifndef EVICTIONS
#define EVICTIONS 1
#endif
#ifndef STORES
#define STORES 1 /* of the program, where nobody looks */
#endif
#ifndef RESTS
#define RESTS 1 /* taken from its address into its slot, to see whether somebody comes for it */
#endif
#ifndef WRITE_FAILURES
#define WRITE_FAILURES 0
#endif

#define CLIENTS 2
#define NOWHERE 99
#define next_value(v) ((v + 1) % 8)

#define NONE 0
#define CLAIMED 1
#define FILLING 2
#define PARKED 3
#define MOVING 4
#define PLACED 5
#define WRITING 6

byte state = NONE, pins = 0; /* the word */
bool published[CLIENTS], buffered[CLIENTS], is_buffered[CLIENTS];
byte asking[CLIENTS];        /* who asks the block cache now */

byte latest = 0, store = 0;
byte cached = NOWHERE;       /* in the block cache */
bool is_dirty = false, in_use = false;
byte slot = NOWHERE, page = NOWHERE, sum = NOWHERE;

byte clients_left = (OPS_0 > 0) + (OPS_1 > 0);
byte failures_left = WRITE_FAILURES;

inline one_way() {
  assert(cached == NOWHERE || (slot == NOWHERE && page == NOWHERE))
}

/* The publication of `me` reaches the others, at once or later. */
inline publish(me, value) {
  atomic {
    buffered[me] = value;
    is_buffered[me] = true
  }
}

proctype buffers(byte me) {
end_idle:
  do
  :: atomic { is_buffered[me] -> published[me] = buffered[me]; is_buffered[me] = false }
  od
}

inline barrier() {
#ifdef BUG_NO_BARRIER
  skip
#else
  atomic {
    if
    :: is_buffered[0] -> published[0] = buffered[0]; is_buffered[0] = false
    :: else
    fi;
    if
    :: is_buffered[1] -> published[1] = buffered[1]; is_buffered[1] = false
    :: else
    fi
  }
#endif
}

/* Brings the block in, and stores to it. The cache's own protocol is another model's: one user at a time. */
inline ask_block_cache() {
  atomic { !in_use -> in_use = true };
  if
  :: cached == NOWHERE -> atomic { cached = store; one_way() }
  :: else
  fi;
  atomic {
    assert(cached == latest);
    latest = next_value(latest);
    cached = latest;
    is_dirty = true;
    in_use = false
  }
}

proctype client(byte me; byte ops) {
  bool is_done;
  do
  :: ops > 0 ->
    is_done = false;
    do
    :: is_done -> break
    :: else ->
#ifndef BUG_NOT_PUBLISHED
      publish(me, true);
#endif
      if
      :: atomic { state == CLAIMED ->
#ifndef BUG_CLAIM_IGNORED
           state = NONE
#endif
         }
      :: state != CLAIMED
      fi;
      if
#ifdef BUG_CLAIM_IGNORED
      :: state == NONE || state == CLAIMED ->
#else
      :: state == NONE ->
#endif
        ask_block_cache();
        publish(me, false);
        is_done = true
      :: else ->
        publish(me, false);
        if
        :: atomic { state == PLACED -> pins++ };
           atomic { assert(page == latest); latest = next_value(latest); page = latest };
           pins--;
           is_done = true
        :: atomic { state == PARKED -> state = MOVING };
           atomic { page = slot; slot = NOWHERE; one_way() };
           atomic { state = PLACED; pins++ };
           atomic { assert(page == latest); latest = next_value(latest); page = latest };
           pins--;
           is_done = true
        :: state == NONE || state == CLAIMED /* from the start */
        fi
      fi
    od;
    ops--
  :: else -> break
  od;
  clients_left--
}

/* Stores to the page that is there, by an instruction. */
proctype program() {
  byte stores = STORES;
end_idle:
  do
  :: atomic { stores > 0 && page != NOWHERE -> latest = next_value(latest); page = latest; stores-- }
  od
}

proctype block_cache() {
  byte evictions = EVICTIONS;
end_idle:
  do
  :: atomic { evictions > 0 && cached != NOWHERE && !in_use -> in_use = true };
     if
     :: is_dirty -> atomic { store = cached; is_dirty = false }
     :: else
     fi;
     atomic { cached = NOWHERE; in_use = false; evictions-- }
  od
}

/* Takes out what nobody uses of the block cache: whether it has none of it then. By its owner, who is one at a time. */
inline take_out(has_none) {
  atomic {
    if
    :: in_use -> has_none = false
    :: else ->
      if
      :: cached != NOWHERE && is_dirty -> has_none = false; store = cached; is_dirty = false
      :: cached != NOWHERE && !is_dirty -> cached = NOWHERE; has_none = true
      :: else -> has_none = true
      fi
    fi
  }
}

proctype mover() {
  byte claims = CLAIMS, rests = RESTS;
  bool has_none, is_somebody;
end_idle:
  do
  :: atomic { claims > 0 && state == NONE -> state = CLAIMED; claims-- };
     barrier();
     is_somebody = published[0] || published[1];
#ifdef BUG_NOT_QUIESCED
     is_somebody = false;
#endif
     if
     :: is_somebody -> has_none = false
     :: else ->
#ifdef BUG_CACHE_NOT_ASKED
       has_none = true
#else
       take_out(has_none)
#endif
     fi;
     if
     :: atomic { has_none && state == CLAIMED -> state = FILLING };
        atomic { slot = store; one_way() };
        sum = slot;
        state = PARKED
     :: atomic { !has_none && state == CLAIMED -> state = NONE }
     :: state != CLAIMED /* somebody has taken it back */
     fi
  :: atomic { state == PLACED && pins == 0 -> state = MOVING };
     atomic { slot = page; page = NOWHERE };
     state = WRITING;
     goto write
  :: atomic { rests > 0 && state == PLACED && pins == 0 -> state = MOVING; rests-- };
     atomic { slot = page; page = NOWHERE };
#ifdef BUG_RESTED_IS_CLEAN
     sum = slot;
#endif
     state = PARKED
  :: atomic { state == PARKED -> state = WRITING };
write:
     if
     :: failures_left > 0 && slot != sum -> failures_left--; state = PARKED
     :: else ->
#ifdef BUG_NOT_COMPARED
       skip;
#else
       if
       :: slot != sum -> store = slot
       :: else
       fi;
#endif
       slot = NOWHERE;
       state = NONE
     fi
  od
}

init {
  atomic {
    run buffers(0);
    run buffers(1);
    run client(0, OPS_0);
    run client(1, OPS_1);
    run program();
    run block_cache();
    run mover()
  }
}

ltl gets_on { <> (clients_left == 0) }
