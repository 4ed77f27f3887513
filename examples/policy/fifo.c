/* An eviction policy of one's own: first in, first out, with a second chance for what was used.
 *
 *   cc -O2 -shared -fPIC -I include examples/policy/fifo.c -o libfifo.so
 *   spillway run --policy ./libfifo.so --memory 64M -- ./program */
#include <spillway/policy.h>
#include <stdlib.h>

/* A ring of links through the frames, oldest first. The one behind the last frame's is the anchor: its next is the oldest, its previous
 * the newest. A frame that is not in the ring is linked to itself. */
struct link {
  uint32_t previous;
  uint32_t next;
};
struct fifo {
  uint32_t frame_count;
  struct link links[];
};

static void unlink_frame(struct fifo* fifo, uint32_t frame) {
  struct link link = fifo->links[frame];
  fifo->links[link.previous].next = link.next;
  fifo->links[link.next].previous = link.previous;
  fifo->links[frame] = (struct link){frame, frame};
}

static void make_newest(struct fifo* fifo, uint32_t frame) {
  unlink_frame(fifo, frame);
  struct link* anchor = &fifo->links[fifo->frame_count];
  fifo->links[frame] = (struct link){anchor->previous, fifo->frame_count};
  fifo->links[anchor->previous].next = frame;
  anchor->previous = frame;
}

static void* create(uint32_t frame_count) {
  struct fifo* fifo = malloc(sizeof *fifo + (frame_count + 1ull) * sizeof(struct link));
  if (fifo == NULL) return NULL;
  fifo->frame_count = frame_count;
  for (uint32_t i = 0; i <= frame_count; ++i) fifo->links[i] = (struct link){i, i};
  return fifo;
}

static void on_insert(void* fifo, uint32_t frame, uint64_t block) {
  (void)block;
  make_newest(fifo, frame);
}

static void on_keep(void* fifo, uint32_t frame) { make_newest(fifo, frame); }

static void on_remove(void* fifo, uint32_t frame) { unlink_frame(fifo, frame); }

/* Two rounds: the first may find all of them used. */
static uint32_t next_candidate(void* instance, const struct spw_frames* frames) {
  struct fifo* fifo = instance;
  for (uint64_t looks = 2 * (uint64_t)fifo->frame_count; looks > 0; --looks) {
    uint32_t oldest = fifo->links[fifo->frame_count].next;
    if (oldest == fifo->frame_count) break;
    if (frames->look(frames->context, oldest) == SPW_EVICTABLE) {
      unlink_frame(fifo, oldest);
      return oldest;
    }
    make_newest(fifo, oldest);
  }
  return SPW_NO_CANDIDATE;
}

static uint64_t memory_bytes(void* instance) {
  struct fifo* fifo = instance;
  return sizeof *fifo + (fifo->frame_count + 1ull) * sizeof(struct link);
}

const struct spw_policy spw_policy_v1 = {
    .version = SPW_POLICY_VERSION,
    .name = "fifo with second chances",
    .create = create,
    .destroy = free,
    .on_insert = on_insert,
    .on_remove = on_remove,
    .on_keep = on_keep,
    .next_candidate = next_candidate,
    .memory_bytes = memory_bytes,
};
