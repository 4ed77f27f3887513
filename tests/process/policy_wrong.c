/* Libraries that are no eviction policies: compiled with -DKIND=N. */
#include <spillway/policy.h>
#include <stdlib.h>

static void* create(uint32_t frame_count) {
  (void)frame_count;
  return KIND == 11 ? NULL : malloc(1);
}
static void note(void* instance, uint32_t frame) { (void)instance, (void)frame; }
static void insert(void* instance, uint32_t frame, uint64_t block) {
  (void)instance, (void)frame, (void)block;
}
static uint32_t next(void* instance, const struct spw_frames* frames) {
  (void)instance, (void)frames;
  return KIND == 9    ? 0
         : KIND == 10 ? 4
                      : SPW_NO_CANDIDATE; /* the same one always; none that there is, of four */
}

#if KIND == 0 /* too small */
const uint32_t spw_policy_v1[4] = {SPW_POLICY_VERSION};
#elif KIND == 1 /* a function */
void spw_policy_v1(void) { abort(); }
#elif KIND == 2 /* fails before it is looked at */
__attribute__((constructor)) static void fail(void) { abort(); }
#elif KIND == 3
__attribute__((constructor)) static void fail(void) { *(volatile int*)16 = 1; }
#endif

#if KIND >= 2
const struct spw_policy spw_policy_v1 = {
    .version = SPW_POLICY_VERSION,
    .name = KIND == 4   ? "two\nlines"
            : KIND == 5 ? (const char*)16
            : KIND == 6 ? ""
                        : "wrong",
    .wants_touches = KIND == 7,
    .create = create,
    .destroy = KIND == 8 ? (void (*)(void*))0x1000 : free,
    .on_insert = insert,
    .on_remove = note,
    .on_keep = note,
    .next_candidate = next,
};
#else
void* const unused[] = {create, note, insert, next};
#endif
