#include "base/check.h"
#include "durable/combining/techniques.h"

namespace spw::durable {

// A size is chosen after the line was taken in: a smaller one flushes
// older lines, not this one, whose store is still to come.
void AdaptiveCombiner::written_other(Line line) {
  cache_.written(line);
  if (profile_ == nullptr) [[likely]] {
    passed_ = line;
    return;
  }
  profile_->written(line);
  if (profile_->writes() < burst_writes_) return;
  cache_.resize(choose_size(profile_->curve(), cache_.capacity()));
  profile_.reset();
}

namespace {

std::unique_ptr<WriteCombiner> make_unwatched(const CombinerOptions& options, LineFlusher& flusher) {
  switch (options.technique) {
    case Technique::kEager:
      return std::make_unique<EagerCombiner>(flusher);
    case Technique::kLazy:
      return std::make_unique<LazyCombiner>(flusher);
    case Technique::kTable:
      return std::make_unique<TableCombiner>(flusher);
    case Technique::kAdaptive:
      return std::make_unique<AdaptiveCombiner>(options, flusher);
    case Technique::kFixed:
      return std::make_unique<FixedCombiner>(options.fixed_size, flusher);
    case Technique::kNone:
      break;
  }
  return std::make_unique<NoCombiner>();
}

}  // namespace

std::unique_ptr<WriteCombiner> make_combiner(const CombinerOptions& options, LineFlusher& flusher) {
  SPW_CHECK(options.size_max >= 1 && options.size_max <= kCombinerSizeMax);
  std::unique_ptr<WriteCombiner> combiner = make_unwatched(options, flusher);
  if (!options.profiles) return combiner;
  return std::make_unique<ProfilingCombiner>(std::move(combiner), options.size_max);
}

}  // namespace spw::durable
