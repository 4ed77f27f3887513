/* A block of the mapped engine that is placed (its page is at its own address) or loose (its contents are in the pool
 * alone), checked in every interleaving: SharedCacheParts::place and pin_loose (src/cache/shared_cache.cc);
 * reach_block, put_in_place, end_fault and admit_fault (src/access/mapped/hints.cc and faults.cc); LooseHolds,
 * LooseAliases and MappedFrames beside them; and what writeback.cc, ranked_frames.cc, ranges.cc and range_flow.cc do to
 * such a block.
 *
 * The world: one block, one frame with a place in the pool, and the page at the block's own address with its
 * protection. Threads 0 and 1 are recompiled, thread 2 is foreign. Each loads from the block or stores to it a few
 * times.
 *   A recompiled thread goes to the block's own address or reaches for the block, whatever the hint says: hints may be
 *     late or lost, so that all has to be right with any. Who reaches pins the block (a miss fills it loose); if it is
 *     loose he places it, or holds it and accesses the raw address. The hold is kept to a later access, let go, or kept
 *     for ever, since its thread sleeps. A thread that goes to the own address may hold the block too: it runs foreign
 *     code then.
 *   At the own address an access that may not be is a SIGBUS where the page is missing or write-protected: its thread
 *     pins the block (a miss fills it placed), places it or makes an alias of it, unpins it and tries again. It is a
 *     SIGSEGV where an alias is for loads alone, or is going.
 *   The alias cleaner withdraws the alias, whoever uses it. The owner writes the block back (also one in use: a flush)
 *     and evicts it. Somebody discards it. Somebody who stores to its neighbour allows stores to it ahead
 *     (dirty_resident).
 * What nobody waits for happens a limited number of times (the defines): without a limit an eviction, say, could come
 * between a fault and its next try for ever.
 *
 * Of each copy of the contents (pool, page, store) the model keeps whether it has the latest version. A store makes the
 * copy that it goes to the only one that has; to copy copies that; memory that was given back has not. No stale copy
 * can become the latest again, so this says as much as a count of the stores would.
 *
 * One step here is one atomic operation, system call or transfer there. A compare-and-swap is one step with the loads
 * before it: the pin word alone decides, and who fails tries again. So is a step under the lock of the aliases with
 * taking that lock before it, or letting go of it after it; so is a miss's talk with the owner, which takes the frame.
 * To sleep while a block is filled is to wait for the state (pin_evict_writeback.pml has the futex). Memory is
 * sequentially consistent. Left out: other blocks (what the frame and the place hold for them is stale here), failures,
 * read-ahead, the reference bit and the policy (what may be evicted is), use counts (what may be placed is), kept
 * aliases, more slots than one (to give way is to be withdrawn), freed ranges and refused pages. A discard comes while
 * no access is under way, which is the program's duty; holds, aliases and pins of dirty_resident may be there.
 *
 * Checked
 *   every load and store goes to the latest version, at whichever address
 *   a raw address is held => the block is resident, pinned and loose, and no page of its own is at its own address
 *   an alias is there => the same, with its slot: no access through it meets a place that was given back
 *   a page is copied to where none is, and protection changes only where pages are the cache's; nobody meets a page of
 *     zeros that the kernel put there
 *   a clean block that nobody has, and one that is not resident, have their latest version in the store
 *   no access is refused
 *   no deadlock though holders sleep for ever; and, if every process that can move does move at some time (weak
 *     fairness), every thread gets through all of its accesses, or sleeps because it chose to
 *
 * A define that begins with BUG switches one mistake on; check_model.py demands that each is found. They are the
 * mistakes of the code that the model finds: in when a block is placed, and in which order; in what keeps it where it
 * is (references of holds and of aliases, and when they end); in what notices a store; in what an alias shows while it
 * goes, and whom it stops; in how a victim leaves; in whom dirty_resident changes the protection of; and in waiting for
 * who may sleep.
 */

#ifndef OPS_0
#define OPS_0 1 /* accesses of thread 0, recompiled */
#endif
#ifndef OPS_1
#define OPS_1 1 /* of thread 1, recompiled */
#endif
#ifndef OPS_2
#define OPS_2 1 /* of thread 2, foreign */
#endif
/* How often each may happen. */
#ifndef WRITEBACKS
#define WRITEBACKS 1
#endif
#ifndef EVICTIONS
#define EVICTIONS 1
#endif
#ifndef WITHDRAWALS
#define WITHDRAWALS 1
#endif
#ifndef DISCARDS
#define DISCARDS 0
#endif
#ifndef STORES_AHEAD
#define STORES_AHEAD 0
#endif

#define THREADS 3

/* The pin word: refs in bits 0-2, flags, state. A free word is all zeros. */
#define REFS 7
#define DIRTY 8
#define WRITING 16
#define STATE 96
#define FREE 0
#define FILLING 32
#define RESIDENT 64
#define refs_of(w) (w & REFS)
#define state_of(w) (w & STATE)
#define in_state(w, s) ((w & ~STATE) | s)
#define dirty_if(for_write) (for_write * DIRTY)

#ifdef BUG_EVICT_WHILE_WRITING
#define is_evictable(w) (state_of(w) == RESIDENT && refs_of(w) == 0 && !(w & DIRTY))
#else
#define is_evictable(w) (state_of(w) == RESIDENT && refs_of(w) == 0 && !(w & (DIRTY | WRITING)))
#endif

/* What is at the block's own address. Registered with userfaultfd: NO_PAGE and OWN_PAGE. */
#define NO_PAGE 0
#define OWN_PAGE 1
#define ALIAS 2      /* the pool's file */
#define NO_ACCESS 3  /* a mapping with no rights */
#define UNWATCHED 4  /* an ordinary mapping: an access gets zeros from the kernel */

byte word = 0;
bool is_loose = false;       /* BlockPool: the frame has a place */
byte page = NO_PAGE;
bool page_writable = false;  /* not write-protected; of an alias: not for loads alone */
bool has_contents = true;    /* the store has; else a miss is a zero fill */

bool pool_latest = false, page_latest = false, store_latest = true;

bool slot_used = false, slot_writable = false, slots_locked = false; /* LooseAliases */
bool owner_busy = false;     /* evicts or discards: nobody is given a frame meanwhile */

bool held[THREADS];          /* LooseHolds: the thread has a raw address */
bool hold_writable[THREADS];
bool tried_again[THREADS];   /* after a SIGSEGV that nothing explains, and no alias has been withdrawn since */

byte accesses = 0;           /* under way */
bool discarding = false;
byte settled = (OPS_0 == 0) + (OPS_1 == 0) + (OPS_2 == 0); /* threads that have finished, or sleep */

byte writebacks_left = WRITEBACKS;
byte evictions_left = EVICTIONS;
byte withdrawals_left = WITHDRAWALS;
byte discards_left = DISCARDS;
byte stores_ahead_left = STORES_AHEAD;

/* ---- Contents ---- */

inline touch_pool(is_store) {
  assert(pool_latest);
  if
  :: is_store -> page_latest = false; store_latest = false
  :: else
  fi
}

inline touch_page(is_store) {
  assert(page_latest);
  if
  :: is_store -> pool_latest = false; store_latest = false
  :: else
  fi
}

/* ---- MappedFrames ---- */

inline allow_stores() {
  atomic {
    assert(page == OWN_PAGE || page == NO_PAGE); /* else ENOENT */
    page_writable = (page == OWN_PAGE)
  }
}

/* UFFDIO_COPY, by who has set the state to `filling`. */
inline copy_to_page(latest, writable) {
  assert(page == NO_PAGE); /* else EEXIST, ENOENT */
  page = OWN_PAGE;
  page_writable = writable;
  page_latest = latest
}

/* Of a victim, whose word is free already. */
inline release() {
  atomic {
    if
    :: is_loose -> pool_latest = false; is_loose = false
    :: else ->
#ifndef BUG_PAGE_STAYS_BEHIND
       page = NO_PAGE; page_writable = false; page_latest = false
#endif
    fi
  }
}

/* ---- SharedCacheParts ---- */

inline end_filling(flags) {
  word = in_state(word, RESIDENT) | flags
}

inline unpin() {
  assert(refs_of(word) > 0);
  word = word - 1
}

inline note_pinned() {
  was_clean = (for_write && !(word & DIRTY));
  word = word | dirty_if(for_write)
}

/* Nobody waits for a frame, since this one is free or the block's. */
inline pin(takes_loose) {
  atomic {
    if
    :: state_of(word) == RESIDENT -> word = word + 1; note_pinned()
    :: state_of(word) == FILLING -> word = word + 1; waits = true
    :: state_of(word) == FREE && !owner_busy -> assert(word == 0); word = FILLING | 1; was_miss = true
    fi
  }
  if
  :: waits -> atomic { state_of(word) == RESIDENT; waits = false; note_pinned() }
  :: was_miss && takes_loose && has_contents ->
     atomic { is_loose = true; pool_latest = store_latest; end_filling(dirty_if(for_write)) }
  :: was_miss && !(takes_loose && has_contents) -> /* through staging, or zeros */
     atomic { copy_to_page(store_latest, for_write) }
     end_filling(dirty_if(for_write))
  :: else
  fi;
  if /* note_dirtied */
  :: was_clean && !is_loose -> allow_stores()
  :: else
  fi
}

#ifdef BUG_PLACE_WHILE_WRITING
#define is_unwritten(w) true
#else
#define is_unwritten(w) (!(w & WRITING))
#endif
#ifdef BUG_PLACE_WITH_TWO_REFERENCES
#define has_one_user(w) (refs_of(w) <= 2)
#else
#define has_one_user(w) (refs_of(w) == 1)
#endif

/* By who has a pin; `is_hold`: it is the hold, which ends. */
inline place(is_hold) {
  atomic {
    if
    :: !is_loose -> placed = true
    :: is_loose && state_of(word) == RESIDENT && has_one_user(word) && is_unwritten(word) ->
#ifndef BUG_PLACE_WHILE_OTHERS_PIN
       word = in_state(word, FILLING);
#endif
       placed = true;
       places = true;
       held[me] = held[me] && !is_hold;
       hold_writable[me] = held[me] && hold_writable[me];
#ifdef BUG_PLACED_CLEAN_BLOCK_TAKES_STORES
       was_dirty = true
#else
       was_dirty = ((word & DIRTY) != 0)
#endif
    :: else
    fi
  }
  if
  :: places ->
#ifdef BUG_POOL_PLACE_GIVEN_BACK_BEFORE_THE_COPY
     pool_latest = false;
#endif
     atomic { copy_to_page(pool_latest, was_dirty); was_dirty = false; places = false }
     atomic { pool_latest = false; is_loose = false; end_filling(0) }
  :: else
  fi
}

/* ---- LooseAliases ---- */

inline mark_dirty() {
  assert(refs_of(word) > 0);
  word = word | DIRTY
}

inline open_to_stores() {
  slots_locked = true;
#ifndef BUG_ALIAS_STORES_NOT_NOTICED
  mark_dirty()
#endif
}

inline opened_to_stores() {
  atomic {
    assert(page == ALIAS);
    page_writable = true;
    slot_writable = true;
    slots_locked = false
  }
}

inline admit() {
  atomic {
    !slots_locked;
    if
    :: !slot_used ->
       slots_locked = true;
       slot_used = true;
       slot_writable = for_write;
#ifndef BUG_ALIAS_WITHOUT_REFERENCE
       assert(state_of(word) == RESIDENT);
       word = (word + 1) | dirty_if(for_write);
#endif
       locked = true
    :: slot_used && for_write && !slot_writable -> open_to_stores(); opens = true
    :: else
    fi
  }
  if
  :: locked ->
     atomic {
       assert(page == NO_PAGE && is_loose);
       page = ALIAS;
       page_writable = for_write;
       slots_locked = false;
       locked = false
     }
  :: opens -> opened_to_stores(); opens = false
  :: else
  fi
}

inline take_alias_away() {
  page_writable = false;
#ifdef BUG_ALIAS_GOES_OPEN_TO_ALL
  page = UNWATCHED /* mapped with all rights, and registered afterwards */
#else
  page = NO_ACCESS
#endif
}

inline begin_vacating() {
  slots_locked = true;
#ifdef BUG_UNPIN_BEFORE_UNMAP
  unpin()
#else
  take_alias_away()
#endif
}

inline end_vacating() {
#ifdef BUG_UNPIN_BEFORE_UNMAP
  atomic { take_alias_away() }
#endif
#ifdef BUG_UNPIN_BEFORE_REGISTRATION
  atomic { unpin() }
#endif
  page = NO_PAGE; /* registered, then opened */
  atomic {
#if !defined(BUG_UNPIN_BEFORE_UNMAP) && !defined(BUG_UNPIN_BEFORE_REGISTRATION) && !defined(BUG_ALIAS_WITHOUT_REFERENCE)
    unpin();
#endif
#ifndef BUG_TRIES_AGAIN_ONCE_IN_A_LIFE
    tried_again[0] = false; tried_again[1] = false; tried_again[2] = false;
#endif
    slot_used = false;
    slot_writable = false;
    slots_locked = false
  }
}

active proctype alias_cleaner() {
end:
  do
  :: atomic { withdrawals_left > 0 && slot_used && !slots_locked -> withdrawals_left--; begin_vacating() }
     end_vacating()
  od
}

/* ---- Owner ----
 * Two processes, since it evicts while writebacks are under way; what is not to be at the same time has owner_busy. */

active proctype writer() {
  bool from_pool;
end:
  do
  :: atomic { /* AtomicPinWord::try_begin_writing */
       writebacks_left > 0 && !owner_busy && state_of(word) == RESIDENT && (word & DIRTY) && !(word & WRITING) ->
       writebacks_left--;
       owner_busy = true;
#ifdef BUG_CLEAR_DIRTY_WHILE_PINNED
       word = (word | WRITING) & ~DIRTY
#else
       if
       :: refs_of(word) == 0 -> word = (word | WRITING) & ~DIRTY
       :: else -> word = word | WRITING
       fi
#endif
     }
     atomic { /* MappedFrames::begin_writeback */
       from_pool = is_loose;
       if
       :: !from_pool ->
          assert(page == OWN_PAGE);
#ifndef BUG_WRITEBACK_NOT_PROTECTED
          page_writable = false
#endif
       :: else
       fi;
       owner_busy = false
     }
     atomic { /* the device */
       if
       :: from_pool -> store_latest = pool_latest
       :: else -> assert(page == OWN_PAGE); store_latest = page_latest
       fi;
       has_contents = true;
       from_pool = false
     }
     word = word & ~WRITING
  od
}

active proctype evicter() {
end:
  do
  :: atomic { /* RankedFrames::evict */
       evictions_left > 0 && !owner_busy && is_evictable(word) ->
       evictions_left--;
#ifndef BUG_RELEASE_AFTER_THE_NEXT_FILL
       owner_busy = true;
#endif
       word = 0
     }
     release();
     owner_busy = false
  od
}

/* ---- Others ---- */

#if DISCARDS > 0
/* Partition::discard_frame, after LooseAliases::withdraw. */
active proctype discarder() {
end:
  do
  :: atomic { discards_left > 0 && accesses == 0 && !discarding -> discards_left--; discarding = true }
     atomic {
       !slots_locked;
       if
       :: slot_used -> begin_vacating()
       :: else
       fi
     }
     if
     :: slot_used -> end_vacating()
     :: else
     fi;
     atomic { !owner_busy && (word == 0 || (state_of(word) == RESIDENT && !(word & WRITING))) -> owner_busy = true }
     if
     :: atomic { state_of(word) == RESIDENT && refs_of(word) == 0 -> word = 0 }
        release()
     :: atomic { refs_of(word) > 0 -> word = word + 1 }
        if
        :: !is_loose ->
           atomic { mark_dirty() }
           allow_stores();
           atomic { assert(page == OWN_PAGE); page_latest = true; pool_latest = false }
        :: else -> atomic { pool_latest = true; page_latest = false } /* zeros; the other is stale */
        fi;
        atomic { unpin() }
     :: word == 0
     fi;
     owner_busy = false;
     atomic { has_contents = false; store_latest = true; discarding = false }
  od
}
#endif

#if STORES_AHEAD > 0
/* SharedCacheParts::hold_clean and dirty_resident. */
active proctype stores_ahead() {
end:
  do
  :: atomic { stores_ahead_left > 0 && state_of(word) != FREE && !is_loose -> stores_ahead_left-- }
     if
     :: atomic { state_of(word) == RESIDENT && !(word & DIRTY) -> word = (word + 1) | DIRTY }
#ifdef BUG_STORES_AHEAD_TO_A_LOOSE_BLOCK
        allow_stores();
#else
        if
        :: !is_loose -> allow_stores()
        :: else
        fi;
#endif
        atomic { unpin() }
     :: else
     fi
  od
}
#endif

/* ---- Threads ---- */

inline forget() {
  was_miss = false;
  was_clean = false;
  placed = false
}

proctype thread(byte me; byte ops) {
  bit for_write;
  bool was_miss, waits, was_clean, was_dirty, placed, places, locked, opens;

next_access:
  atomic {
    if
    :: ops == 0 -> goto finished
    :: ops > 0 && !discarding -> ops--; accesses++
    fi;
    if
    :: for_write = 0
    :: for_write = 1
    fi;
    if
    :: me < 2 -> goto reach
    :: goto own_address /* the hint says so, or it is foreign code */
    fi
  }

reach: /* MappedEngine::reach_block */
  if
  :: held[me] ->
     if
     :: for_write && !hold_writable[me] ->
        atomic {
          hold_writable[me] = true;
#ifndef BUG_HOLD_STORES_NOT_NOTICED
          mark_dirty()
#endif
        }
     :: else
     fi;
     if
     :: skip
     :: place(true);
        if
        :: placed -> atomic { unpin(); forget(); goto own_address }
        :: else
        fi
     fi
  :: else ->
     pin(true);
     if
     :: !is_loose -> atomic { unpin(); forget(); goto own_address }
     :: is_loose ->
        if
        :: skip
        :: place(false);
           if
           :: placed -> atomic { unpin(); forget(); goto own_address }
           :: else
           fi
        fi;
        atomic {
          held[me] = true;
          hold_writable[me] = for_write;
#ifdef BUG_HOLD_NOT_PINNED
          unpin();
#endif
          forget()
        }
     fi
  fi;
  atomic { touch_pool(for_write); goto accessed } /* at the raw address */

own_address:
  atomic {
    assert(page != UNWATCHED); /* zeros */
    if
    :: page == OWN_PAGE && (page_writable || !for_write) -> touch_page(for_write); goto accessed
    :: page == ALIAS && (page_writable || !for_write) -> touch_pool(for_write); goto accessed
    :: page == NO_PAGE || (page == OWN_PAGE && !page_writable && for_write) -> goto missing
    :: page == NO_ACCESS || (page == ALIAS && !page_writable && for_write) -> goto refused
    fi
  }

missing: /* SIGBUS: bring_in, put_in_place and end_fault */
  pin(false);
  place(false);
#ifdef BUG_FAULT_WAITS_FOR_HOLDERS
  do
  :: placed -> break
  :: else -> place(false)
  od;
#endif
  if
  :: !placed -> admit()
  :: placed && for_write && !was_miss && !was_clean -> allow_stores()
  :: else
  fi;
  atomic { unpin(); forget(); goto own_address }

refused: /* SIGSEGV: admit_fault */
  atomic {
    !slots_locked;
    if
    :: slot_used && for_write && !slot_writable -> open_to_stores()
    :: slot_used && !(for_write && !slot_writable) -> goto own_address
    :: !slot_used ->
       assert(!tried_again[me]); /* else the program gets the signal, for an access that is right */
       tried_again[me] = true;
       goto own_address
    fi
  }
  opened_to_stores();
  goto own_address;

accessed:
  atomic {
    for_write = 0;
    accesses--;
    if
    :: !held[me] -> goto next_access
    :: held[me] -> goto next_access
    :: held[me] -> goto asleep
    :: held[me] -> goto let_go
    fi
  }

let_go:
  atomic { unpin(); held[me] = false; hold_writable[me] = false; goto next_access }

finished:
  atomic {
    if
    :: !held[me] -> settled++; goto ended
    :: held[me] -> goto asleep
    :: held[me] -> goto let_go
    fi
  }

asleep:
  settled++;
end_asleep:
  false;

ended:
  skip
}

init {
  atomic {
#if OPS_0 > 0
    run thread(0, OPS_0);
#endif
#if OPS_1 > 0
    run thread(1, OPS_1);
#endif
#if OPS_2 > 0
    run thread(2, OPS_2)
#endif
  }
}

/* Invariants between any two steps. */
#define any_held (held[0] || held[1])
#define is_astray (any_held && (!is_loose || state_of(word) != RESIDENT || refs_of(word) == 0 || page == OWN_PAGE))
#define is_alias_astray (page == ALIAS && (!slot_used || !is_loose || state_of(word) != RESIDENT || refs_of(word) == 0))
#define clean_and_let_go (state_of(word) == RESIDENT && refs_of(word) == 0 && !(word & (DIRTY | WRITING)))
#define is_lost (!discarding && (state_of(word) == FREE || clean_and_let_go) && !store_latest)

active proctype monitor() {
end:
  atomic { is_astray || is_alias_astray || is_lost -> assert(false) }
}

ltl every_thread_gets_on { <> (settled == THREADS) }
