/* Deletion in the page index, checked in every interleaving: the life of nodes of src/files/page_index/page_index.h (rules 1 to
 * 5), as page_index.cc makes it.
 *
 * The world: a root that never dies, one slot in it for an inner node, one slot in that for a leaf, and two slots in the leaf, one
 * for each of two changers. A changer inserts its key, looks whether it is there, and erases it, a few times; a reader looks for a
 * key; a reclaimer unlinks dead nodes, and frees them when nobody is inside any more who may hold them. Nodes come from a few that are used
 * again once they are free. Tracking by epochs is modelled by what it has to guarantee, "nobody who was inside at the time of the
 * retirement is inside still": a set of who was.
 *
 * One step here is one atomic operation there. Memory is sequentially consistent. Left out: growth of the tree, tags, allocation that
 * fails (a changer waits for a node), two changers of one key (a compare-and-swap of one word).
 *
 * Checked: nobody works on a free node; a key is found by who inserted it, and is there until he erases it; only nodes without
 * LIVE children or entries die or are unlinked; when all is done every count is right, and after a last reclaiming all nodes but
 * the root are free.
 *
 * A define that begins with BUG switches one mistake on; check_model.py demands that each is found.
 */

#ifndef OPS_0
#define OPS_0 1 /* insertions and erasures of changer 0 */
#endif
#ifndef OPS_1
#define OPS_1 1
#endif
#ifndef RECLAIMS
#define RECLAIMS 1
#endif
#ifndef READS
#define READS 0
#endif

#define NODES 8 /* with the root, and no node 0 */
#define ROOT 1
#define NONE 0
#define CHANGERS 2
#define READER 2

/* The state word: count in bits 0-3, life above. */
#define LIVE 0
#define DEAD 16
#define UNLINKED 32
#define FREE 48
#define count_of(w) (w & 15)
#define life_of(w) (w & 48)

byte state[NODES];
byte slots[16];        /* two a node; an inner node uses the first, and so does the root */
#define slot(n, i) slots[(n) * 2 + (i)]
#define ENTRY 15       /* in a leaf's slot */

bool inside[3];        /* changers and the reader */
byte waits = 0;        /* who was inside when the last nodes were retired, and is still, as bits */
byte retired = 0;      /* nodes, as bits */
byte done = 0;

#define NO_CHILD 64
#ifdef BUG_REVIVE_WITHOUT_RESERVATION
#define needs_reservation(w) (w == NO_CHILD)
#else
#define needs_reservation(w) true
#endif
#define who_is_inside (inside[0] + 2 * inside[1] + 4 * inside[2])

#define is_any_free (state[2] == FREE || state[3] == FREE || state[4] == FREE || \
                     state[5] == FREE || state[6] == FREE || state[7] == FREE)

/* Whoever works on a node must find it not free. */
inline used(n) { assert(life_of(state[n]) != FREE) }

inline enter(me) { inside[me] = true }
/* Leaving lets go of all nodes. */
inline leave(me) {
  d_step {
    inside[me] = false;
    waits = waits & ~(1 << me)
  }
}

/* AtomicNodeState::reserve(): a failed compare-and-swap tries again, so one step. */
inline reserve(n, ok) {
  atomic {
    used(n);
#ifdef BUG_RESERVE_THE_DEAD
    state[n]++; ok = true
#else
    if
    :: life_of(state[n]) == LIVE -> state[n]++; ok = true
    :: else -> ok = false
    fi
#endif
  }
}

inline change(n, from, to, ok) {
  atomic {
    used(n);
    if
    :: state[n] == (from) -> state[n] = (to); ok = true
    :: else -> ok = false
    fi
  }
}

inline cas_slot(n, i, from, to, ok) {
  atomic {
    used(n);
    if
    :: slot(n, i) == (from) -> slot(n, i) = (to); ok = true
    :: else -> ok = false
    fi
  }
}

/* PageIndex::release(): path[0..level] is ROOT, inner, leaf. */
inline release(inner, leaf, level, w, ok) {
  if
  :: level == 2 ->
     atomic { used(leaf); assert(count_of(state[leaf]) > 0); w = state[leaf]; state[leaf]-- }
     ok = false;
     if
     :: count_of(w) == 1 ->
#ifdef BUG_DIE_WITHOUT_CAS
        atomic { used(leaf); state[leaf] = DEAD; ok = true }
#else
        change(leaf, LIVE, DEAD, ok)
#endif
     :: else
     fi;
#ifdef BUG_PARENT_NOT_COUNTED_DOWN
     ok = false;
#endif
  :: else -> ok = true
  fi;
  if
  :: ok && level >= 1 ->
     atomic { used(inner); assert(count_of(state[inner]) > 0); w = state[inner]; state[inner]-- }
     ok = false;
     if
     :: count_of(w) == 1 -> change(inner, LIVE, DEAD, ok)
     :: else
     fi;
  :: else
  fi;
  if
  :: ok || level == 0 -> atomic { assert(count_of(state[ROOT]) > 0); state[ROOT]-- }
  :: else
  fi
}

/* PageNodes::take(): the first free one, so that there are fewer states. */
inline take(n) {
  atomic {
    is_any_free;
    n = 2;
    do
    :: state[n] != FREE -> n++
    :: else -> break
    od;
    assert(slot(n, 0) == NONE && slot(n, 1) == NONE);
    state[n] = LIVE + 1
  }
}
inline put(n) { d_step { state[n] = FREE; n = NONE } }

/* PageIndex::step_down(), from node `at` at `depth` to `kid` by its first slot. */
inline step_down(at, kid, depth) {
  again = false;
  ok = false;
  do
  :: atomic { used(at); kid = slot(at, 0) }
     w = NO_CHILD;
     if
     :: kid != NONE -> atomic { used(kid); w = life_of(state[kid]) }
     :: else
     fi;
     if
     :: w == LIVE ->
        if
        :: reserved -> release(inner, leaf, depth, w, ok); reserved = false
        :: else
        fi;
        break
     :: w == UNLINKED -> cas_slot(at, 0, kid, NONE, ok)
     :: w == DEAD || w == NO_CHILD ->
        ok = true;
        if
        :: !reserved && needs_reservation(w) -> reserve(at, ok); reserved = ok
        :: else
        fi;
        if
        :: !ok -> again = true; break
        :: ok && w == DEAD ->
           change(kid, DEAD, LIVE + 1, ok);
           if
           :: ok ->
#ifdef BUG_REVIVE_WITHOUT_RESERVATION
              atomic { if :: !reserved -> used(at); state[at]++ :: else fi }
#endif
              reserved = true;
              break
           :: else
           fi
        :: ok && w == NO_CHILD ->
           take(kid);
           cas_slot(at, 0, NONE, kid, ok);
           if
           :: ok -> reserved = true; break
           :: else -> put(kid)
           fi
        fi
     fi
  od
}

proctype changer(byte me; byte ops) {
  byte inner, leaf, w;
  bool ok, reserved, again;

next_operation:
  atomic { inner = 0; leaf = 0; w = 0; ok = false; reserved = false; again = false }
  if
  :: ops == 0 -> goto finished
  :: else -> ops--
  fi;

  /* Insert. */
  enter(me);
from_the_root:
  atomic { inner = 0; leaf = 0; reserved = false }
  step_down(ROOT, inner, 0);
  assert(!again);
  step_down(inner, leaf, 1);
  if
  :: again -> goto from_the_root
  :: else
  fi;
  if
  :: !reserved ->
     reserve(leaf, ok);
     if
     :: !ok -> goto from_the_root
     :: else
     fi
  :: else
  fi;
  cas_slot(leaf, me, NONE, ENTRY, ok);
  assert(ok);
  leave(me);

  /* Find, and erase. */
  enter(me);
  d_step { inner = slot(ROOT, 0); assert(inner != NONE) }
  atomic { used(inner); leaf = slot(inner, 0); assert(leaf != NONE) }
#ifdef BUG_COUNT_BEFORE_SLOT
  release(inner, leaf, 2, w, ok);
  cas_slot(leaf, me, ENTRY, NONE, ok);
  assert(ok);
#else
  cas_slot(leaf, me, ENTRY, NONE, ok);
  assert(ok);
  release(inner, leaf, 2, w, ok);
#endif
  leave(me);
  goto next_operation;

finished:
  done++
}

/* ScaleCacheIndex::find() (lab/page_index), by links only. */
proctype reader() {
  byte n, reads = READS;
  do
  :: reads > 0 ->
     reads--;
     enter(READER);
     n = slot(ROOT, 0);
     if
     :: n != NONE ->
        atomic { used(n); n = slot(n, 0) }
        if
        :: n != NONE -> atomic { used(n); n = slot(n, 0); assert(n == NONE || n == ENTRY); n = 0 }
        :: else
        fi
     :: else
     fi;
     leave(READER)
  :: else -> break
  od;
  done++
}

/* The child is UNLINKED, so it cannot be reserved, and what is below it is DEAD and stays so. */
inline take_out_below() {
  atomic { used(child); below = slot(child, 0) }
  if
  :: below != NONE && below != ENTRY ->
     change(below, DEAD, UNLINKED, ok);
     assert(ok && slot(below, 0) == NONE && slot(below, 1) == NONE);
     atomic { used(child); slot(child, 0) = NONE }
     retired = retired | (1 << below)
  :: else
  fi
}

inline free_one(n) {
  if
  :: retired & (1 << n) ->
#ifndef BUG_FREE_WITHOUT_WAITING
     waits == 0;
#endif
     d_step { assert(slot(n, 0) == NONE && slot(n, 1) == NONE); state[n] = FREE }
  :: else
  fi
}

/* PageIndex::reclaim(): sweep(), retire, and freeing when those inside have left. */
inline reclaim() {
  retired = 0;
  child = slot(ROOT, 0);
  if
  :: child != NONE ->
     ok = false;
     if
     :: life_of(state[child]) == LIVE ->
        atomic { used(child); below = slot(child, 0) }
        if
        :: below != NONE ->
           change(below, DEAD, UNLINKED, ok);
           if
           :: ok ->
              assert(slot(below, 0) == NONE && slot(below, 1) == NONE);
#ifndef BUG_LINK_LEFT
              atomic { used(child); if :: slot(child, 0) == below -> slot(child, 0) = NONE :: else fi }
#endif
              retired = retired | (1 << below)
           :: else
           fi
        :: else
        fi
     :: else
     fi;
#ifdef BUG_UNLINK_WITHOUT_CAS
     if
     :: life_of(state[child]) == DEAD -> state[child] = UNLINKED; ok = true
     :: else -> ok = false
     fi;
#else
     change(child, DEAD, UNLINKED, ok);
#endif
     if
     :: ok ->
#ifndef BUG_LINK_LEFT
        atomic { if :: slot(ROOT, 0) == child -> slot(ROOT, 0) = NONE :: else fi }
#endif
        retired = retired | (1 << child);
#ifndef BUG_CHILDREN_FORGOTTEN
        take_out_below()
#endif
     :: else
     fi
  :: else
  fi;
  d_step {
    waits = who_is_inside;
    child = 0; below = 0; ok = false
  }
  free_one(2); free_one(3); free_one(4); free_one(5); free_one(6); free_one(7);
  retired = 0
}

proctype reclaimer() {
  byte child, below, times = RECLAIMS;
  bool ok;
  do
  :: times > 0 -> times--; reclaim()
  :: else -> break
  od;
  /* At rest. */
  done == CHANGERS + 1;
  child = slot(ROOT, 0);
  if
  :: child != NONE ->
     assert(life_of(state[child]) == DEAD && count_of(state[child]) == 0);
     below = slot(child, 0);
     assert(below == NONE || state[below] == DEAD)
  :: else
  fi;
  assert(state[ROOT] == LIVE);
  reclaim();
  assert(state[2] == FREE && state[3] == FREE && state[4] == FREE && state[5] == FREE && state[6] == FREE && state[7] == FREE);
  assert(slot(ROOT, 0) == NONE)
}

init {
  atomic {
    state[ROOT] = LIVE;
    state[2] = FREE; state[3] = FREE; state[4] = FREE; state[5] = FREE; state[6] = FREE; state[7] = FREE;
    run changer(0, OPS_0);
    run changer(1, OPS_1);
    run reader();
    run reclaimer()
  }
}
