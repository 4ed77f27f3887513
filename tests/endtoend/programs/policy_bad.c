/* Eviction policies that are none: compiled with -DKIND=N. */
#include <spillway/policy.h>
#include <stddef.h>

static void* create(uint32_t frame_count) {
  static int instance;
  (void)frame_count;
  return &instance;
}
static void nothing(void* instance) { (void)instance; }
static void insert_nothing(void* instance, uint32_t frame, uint64_t block) {
  (void)instance, (void)frame, (void)block;
}
static void note_nothing(void* instance, uint32_t frame) { (void)instance, (void)frame; }
/* None that there is. */
static uint32_t one_too_many(void* instance, const struct spw_frames* frames) {
  (void)instance, (void)frames;
  return 1u << 30;
}

#if KIND > 0
const struct spw_policy spw_policy_v1 = {
    .version = KIND == 1 ? SPW_POLICY_VERSION + 1 : SPW_POLICY_VERSION,
    .name = "one too many",
    .create = create,
    .destroy = nothing,
    .on_insert = insert_nothing,
    .on_remove = note_nothing,
    .on_keep = KIND == 2 ? NULL : note_nothing,
    .next_candidate = one_too_many,
};
#else
void* const not_a_policy[] = {create, nothing, insert_nothing, note_nothing, one_too_many};
#endif
