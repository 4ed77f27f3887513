/* An extent and a fork, checked in every interleaving: the words' states of src/cache/extents/extent_word.h, Extents::leaves(),
 * ExtentCache::begin_fork() and end_fork().
 *
 * The world: one extent of one block, which nothing else caches. A client pins it where it is in its slot or at its address,
 * may hold it for long, and stores to it. The mover reads it, lets it rest, takes it back, and writes what has changed. A
 * thread forks: it keeps new ones from coming, settles, holds what is left, and looks; then the kernel copies for the child
 * first what is known of the store, and later the page at the extent's address.
 *
 * Each statement is one step that all see at once: who holds extents and the mover have a full fence between their own store
 * and their look at the other's.
 *
 * Checked: the child finds what the parent had when it forked; no store of the parent is lost; no deadlock: a client that
 * keeps its pin until the fork is over is waited for only so long; and everybody gets on.
 *
 * A define that begins with BUG switches one mistake on; check_model.py demands that each is found.
 */

#ifndef PINS
#define PINS 2
#endif
#ifndef CLAIMS
#define CLAIMS 2
#endif
#ifndef FORKS
#define FORKS 1
#endif
#ifndef RESTS
#define RESTS 1
#endif

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
byte latest = 0, store = 0, slot = NOWHERE, page = NOWHERE;
bool may_come = true, are_held = false;
bool is_copying = false;     /* the kernel is: what is stored meanwhile the child may or may not see, so nothing is */
bool has_forked = false;
byte forks_left = FORKS;

proctype client() {
  byte left = PINS;
end_idle:
  do
  :: left > 0 ->
end_has_gone:
     if
     :: atomic { state == PLACED -> pins++ }
     :: atomic { state == PARKED -> state = MOVING };
        atomic { page = slot; slot = NOWHERE };
        atomic { state = PLACED; pins++ }
     fi;
     if
     :: atomic { !is_copying -> assert(page == latest); latest = next_value(latest); page = latest }
     :: forks_left == 0 /* pinned until all is over */
     fi;
     atomic { pins--; left-- }
  od
}

/* The word is another one, in which the contents may leave. */
inline leaves(from, to, do_they) {
#ifdef BUG_LOOKED_BEFORE_ALONE
  do_they = !are_held;
  if
  :: atomic { do_they && state == from && pins == 0 -> state = to }
  :: atomic { else -> do_they = false }
  fi
#else
  if
  :: atomic { state == from && pins == 0 -> state = to; do_they = true }
  :: atomic { else -> do_they = false }
  fi;
#ifndef BUG_NOT_HELD
  if
  :: do_they && are_held -> do_they = false; state = from
  :: else
  fi
#endif
#endif
}

proctype mover() {
  byte claims = CLAIMS, rests = RESTS;
  bool do_they;
end_idle:
  do
  :: atomic { claims > 0 && state == NONE && may_come -> state = CLAIMED; claims-- };
     if
     :: may_come ->
        if
        :: atomic { state == CLAIMED -> state = FILLING };
           slot = store;
           state = PARKED
        :: state != CLAIMED
        fi
     :: !may_come ->
        if
        :: atomic { state == CLAIMED -> state = NONE }
        :: state != CLAIMED
        fi
     fi
  :: state == PLACED && pins == 0 && !are_held ->
     leaves(PLACED, MOVING, do_they);
     if
     :: do_they ->
        atomic { slot = page; page = NOWHERE };
        if
        :: rests > 0 -> rests--; state = PARKED
        :: state = WRITING; goto write
        fi
     :: else
     fi
  :: state == PARKED && !are_held ->
     leaves(PARKED, WRITING, do_they);
     if
     :: do_they ->
write:
        store = slot;
        slot = NOWHERE;
        state = NONE
     :: else
     fi
  od
}

proctype forker() {
  byte child_has, child_page;
  do
  :: forks_left > 0 ->
     may_come = false;
again:
     are_held = false;
     /* Settled, or pinned for too long. */
     if
     :: state == NONE || state == CLAIMED
     :: pins > 0
     fi;
#ifndef BUG_NOT_HELD
     are_held = true;
#endif
     if
     :: atomic { state == CLAIMED -> state = NONE }
     :: state != CLAIMED
     fi;
#ifndef BUG_NOT_LOOKED_AGAIN
     if
     :: state != NONE && state != PLACED -> goto again
     :: state == NONE || state == PLACED
     fi;
#endif
     is_copying = true;
     child_has = store;
     child_page = page;
     if
     :: child_page != NOWHERE -> child_has = child_page
     :: else
     fi;
     assert(child_has == latest);
     is_copying = false;
     are_held = false;
     may_come = true;
     forks_left--
  :: else -> break
  od;
  has_forked = true
}

init {
  atomic {
    run client();
    run mover();
    run forker()
  }
}

ltl gets_on { <> has_forked }
