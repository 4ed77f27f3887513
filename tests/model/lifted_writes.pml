/* Dirty blocks at their own addresses that are written back: protected there, or lifted (src/cache/writeback/lifting.cc), beside
 * program threads that load and store without asking anybody. Checked in every interleaving.
 *
 * The world: one block and its frame; program threads that each load or store a few times, and fault where the page table does not
 * let them; the partition's owner (fills, begins and ends writebacks, puts back what somebody waits for, evicts); and the device,
 * which moves a write's bytes at some time in between and may fail. Contents are one number, the count of stores.
 *
 * One step here is one atomic operation there. A store to a page is one step, with the look at the page table; so is the moment at
 * which a page is gone for all processors. A pin that a fault makes is let go before the access is tried again, as there. Memory is
 * sequentially consistent. Left out: other blocks, flushes, how a client waits (it asks again), forks (nothing is lifted after one).
 *
 * Checked: a load finds the last store; a block that nobody has, and a clean one that cannot be stored to unseen, have it in the
 * store; a page that is there is its frame's; memory that a write reads stays; no deadlock; and, with weak fairness, every access ends.
 *
 * A define that begins with BUG switches one mistake on; check_model.py demands that each is found.
 */

#ifndef OPS_0
#define OPS_0 2 /* accesses of thread 0 */
#endif
#ifndef OPS_1
#define OPS_1 1
#endif
#ifndef WRITES
#define WRITES 2 /* writebacks that may begin */
#endif
#ifndef EVICTIONS
#define EVICTIONS 1
#endif
#ifndef WRITE_FAILURES
#define WRITE_FAILURES 0
#endif

#define THREADS 2
#define GARBAGE 99
#define next_value(v) ((v + 1) % 8)

#define REFS 3
#define DIRTY 4
#define WRITING 8
#define PARKED 16
#define STATE 96
#define FREE 0
#define FILLING 32
#define RESIDENT 64
#define refs_of(w) (w & REFS)
#define state_of(w) (w & STATE)
#define in_state(w, s) ((w & ~STATE) | s)
#define dirty_if(is_store) (is_store * DIRTY)

mtype = {absent, shielded, writable};
mtype page = absent; /* the page table's entry, as every processor sees it */
byte word = 0;
byte page_value = GARBAGE;   /* of the page, if there is one */
byte memory_value = GARBAGE; /* of the memory that a lifted block has */
bool has_memory = false;
byte stored = 0;
byte latest = 0; /* for the assertions only */

mtype = {idle, of_page, of_memory, written, failed};
mtype write = idle;
bool is_lifted_write = false; /* IoOp::lifted */
byte writes_left = WRITES, evictions_left = EVICTIONS, failures_left = WRITE_FAILURES;
byte done = 0;

mtype = {fill_wish, unpark_wish, served};
chan ask = [THREADS] of {byte, mtype, bit};
chan answer[THREADS] = [1] of {mtype};

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
end:
  do
  :: write == of_page || write == of_memory ->
     if
     :: atomic {
          /* A page that has been lifted or evicted since would be read no longer. */
          assert(write != of_page || page != absent);
          assert(write != of_memory || has_memory);
          if
          :: write == of_page -> stored = page_value
          :: else -> stored = memory_value
          fi;
          write = written
        }
     :: atomic { failures_left > 0 -> failures_left--; stored = GARBAGE; write = failed }
     fi
  od
}

/* ---- Owner ---- */

/* Writeback::put_back */
inline put_back() {
  page_value = memory_value;
#ifdef BUG_PUT_BACK_WRITABLE
  page = writable;
#else
  page = shielded;
#endif
#ifdef BUG_MEMORY_FORGOTTEN_WHILE_WRITTEN
  has_memory = false;
#else
  if
  :: !(word & WRITING) -> has_memory = false
  :: else
  fi;
#endif
  atomic { word = in_state(word, RESIDENT) & ~PARKED }
}

/* AtomicPinWord::try_begin_lift, and the lift. False (ok): it is where it was. */
inline lift() {
  ok = false;
  w = word;
  do
#ifdef BUG_LIFT_WHAT_IS_PINNED
  :: !ok && state_of(w) == RESIDENT && !(w & DIRTY) -> cas(w, in_state(w, FILLING), ok)
#elif defined(BUG_LIFT_WITHOUT_FILLING)
  :: !ok && state_of(w) == RESIDENT && !(w & DIRTY) && refs_of(w) == 0 -> ok = true
#else
  :: !ok && state_of(w) == RESIDENT && !(w & DIRTY) && refs_of(w) == 0 -> cas(w, in_state(w, FILLING), ok)
#endif
  :: else -> break
  od;
  if
  :: ok ->
     has_memory = true;
#ifdef BUG_COPY_BEFORE_IT_IS_GONE
     memory_value = page_value;
     page = absent;
#else
     page = absent;             /* the pipe has the page still */
     memory_value = page_value; /* and is read */
#endif
     page_value = GARBAGE;
     word = word | PARKED
#ifdef BUG_LIFT_WITHOUT_FILLING
     ; word = in_state(word, FILLING)
#endif
  :: else
  fi
}

inline begin_writing(w, ok) {
  ok = false;
  w = word;
  do
  :: !ok && state_of(w) == RESIDENT && (w & DIRTY) && !(w & WRITING) && refs_of(w) == 0 ->
     cas(w, ((w | WRITING) & ~DIRTY), ok)
  :: else -> break
  od;
  if
  :: ok ->
     is_lifted_write = false;
     ok = false;
     if
     :: skip
     :: lift(); is_lifted_write = ok
     fi;
     if
     :: is_lifted_write -> write = of_memory
     :: else ->
#ifndef BUG_NOT_PROTECTED
        if
        :: page == writable -> page = shielded
        :: else
        fi;
#endif
        write = of_page
     fi;
     /* Whoever has joined before it was parked asks nobody. */
     if
     :: is_lifted_write && (word & PARKED) && refs_of(word) > 0 -> put_back()
     :: else
     fi
  :: else
  fi
}

/* Writeback::finish and end_lifted */
inline finish() {
  if
  :: write == failed && (word & PARKED) -> put_back()
  :: else
  fi;
  if
  :: is_lifted_write && !(word & PARKED) -> has_memory = false
  :: else
  fi;
  if
  :: write == written -> word = word & ~WRITING
#ifdef BUG_FAILED_WRITE_FORGOTTEN
  :: write == failed -> word = word & ~WRITING
#else
  :: write == failed -> atomic { word = (word & ~WRITING) | DIRTY }
#endif
  fi;
  write = idle
}

/* AtomicPinWord::try_free, and the release */
inline evict(w, ok) {
  ok = false;
  w = word;
  do
  :: !ok && (state_of(w) == RESIDENT || (w & PARKED)) && refs_of(w) == 0 &&
#ifdef BUG_EVICT_LIFTED_WHILE_WRITTEN
     !(w & DIRTY) && (!(w & WRITING) || (w & PARKED)) ->
#else
     !(w & DIRTY) && !(w & WRITING) ->
#endif
     cas(w, 0, ok)
  :: else -> break
  od;
  if
  :: ok && (w & PARKED) -> has_memory = false; memory_value = GARBAGE
  :: ok && !(w & PARKED) -> page = absent; page_value = GARBAGE
  :: else
  fi
}

active proctype owner() {
  byte thread, w;
  bit is_store;
  bool ok;
  mtype wish;
end:
  do
  :: write == written || write == failed -> finish()
  :: writes_left > 0 && (word & DIRTY) && !(word & WRITING) -> writes_left--; begin_writing(w, ok)
  :: evictions_left > 0 && !(word & DIRTY) && state_of(word) != FREE -> evictions_left--; evict(w, ok)
  :: ask ? thread, wish, is_store ->
     if
     :: wish == unpark_wish ->
        if
        :: word & PARKED -> put_back()
        :: else
        fi
     :: wish == fill_wish && state_of(word) == FREE ->
        word = FILLING | 1;
        page_value = stored;
        if
        :: is_store -> page = writable
        :: else -> page = shielded
        fi;
        atomic { word = in_state(word, RESIDENT) | dirty_if(is_store) };
        word = word - 1
     :: else
     fi;
     answer[thread] ! served;
     d_step { thread = 0; w = 0; is_store = 0; ok = false; wish = 0 }
  od
}

/* ---- Program ---- */

proctype program(byte me; byte ops) {
  byte w;
  bit is_store;
  bool ok;

next_access:
  atomic {
    w = 0; ok = false; is_store = 0;
    if
    :: ops == 0 -> goto finished
    :: else -> ops--
    fi;
    if
    :: skip
    :: is_store = 1
    fi
  }

try_it:
  atomic {
    w = 0; ok = false;
    if
    :: is_store && page == writable ->
       assert(page_value == latest);
       latest = next_value(latest);
       page_value = latest;
       goto next_access
    :: !is_store && page != absent ->
       assert(page_value == latest);
       goto next_access
    :: else
    fi
  }
  /* The fault: a pin, and what it leads to. */
  w = word;
  do
  :: state_of(w) == RESIDENT ->
     cas(w, ((w + 1) | dirty_if(is_store)), ok);
     if
     :: ok -> goto pinned
     :: else
     fi
  :: state_of(w) == FILLING ->
     cas(w, (w + 1), ok);
     if
     :: ok -> goto joined
     :: else
     fi
  :: else -> break
  od;
  ask ! me, fill_wish, is_store;
  answer[me] ? served;
  goto try_it;

joined:
  do
  :: state_of(word) != FILLING -> break
  :: word & PARKED -> ask ! me, unpark_wish, 0; answer[me] ? served
  od;
  atomic { w = word; word = word | dirty_if(is_store) }

pinned:
  assert(state_of(word) == RESIDENT);
  if
  :: is_store ->
     assert(page != absent);
     page = writable /* allow_stores */
  :: else
  fi;
  word = word - 1;
  goto try_it;

finished:
  done++
}

init {
  atomic { run program(0, OPS_0); run program(1, OPS_1) }
}

#define is_lost (stored != latest)

/* Invariants between any two steps. */
active proctype monitor() {
end:
  atomic {
    (state_of(word) == FREE && is_lost) ||
    (state_of(word) == RESIDENT && refs_of(word) == 0 && !(word & (DIRTY | WRITING)) && (is_lost || page == writable)) ->
    assert(false)
  }
}

ltl every_access_ends { <> (done == THREADS) }
