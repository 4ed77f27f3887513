#include "pass/hints/stream_loops.h"

#include "abi/hints.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "pass/llvm_versions.h"
#include "pass/options.h"

namespace spw::pass {

using namespace llvm;

namespace {

uint64_t length(int64_t stride_bytes) { return static_cast<uint64_t>(std::abs(stride_bytes)); }

Value* moved(IRBuilder<>& builder, Value* address, int64_t bytes) {
  return bytes == 0 ? address : ptr_add(builder, address, builder.getInt64(static_cast<uint64_t>(bytes)));
}

// How many more iterations after this one `lead` stays in its piece.
Value* iterations_within(IRBuilder<>& builder, Value* lead, int64_t stride_bytes) {
  Value* bits = builder.CreateTrunc(builder.CreatePtrToInt(lead, builder.getInt64Ty()), builder.getInt32Ty());
  if (stride_bytes > 0) bits = builder.CreateNot(bits);
  Value* room = builder.CreateAnd(bits, builder.getInt32(SPW_HINT_PIECE_BYTES - 1));
  Value* count = builder.CreateUDiv(room, builder.getInt32(static_cast<uint32_t>(length(stride_bytes))));
  return builder.CreateZExt(count, builder.getInt64Ty());
}

template <typename Values>
void set_phis(const Loop& loop, const Values& values, ValueToValueMapTy& known) {
  for (auto [phi, value] : zip_equal(loop.getHeader()->phis(), values)) known[&phi] = value;
}

}  // namespace

void find_first_addresses(PlannedLoop& planned) {
  ValueToValueMapTy known;
  set_phis(*planned.loop, planned.entry_values, known);
  IRBuilder<> builder(planned.before);
  for (PlannedHint& stream : planned.streams)
    stream.first = compute(stream.address, *planned.loop, known, builder);
}

void cut_loop(const PlannedLoop& planned, HintWriter& writer, TwoVersions* versions) {
  const CountedLoop& counted = *planned.counted;
  const Loop& loop = *planned.loop;
  const auto chunk = [&](IRBuilder<>& builder, const ChunkedLoop& cut, Value* left) -> Value* {
    ValueToValueMapTy known;
    set_phis(loop, cut.phis, known);
    Value* way = left;
    SmallVector<Value*, 4> leads;
    for (const PlannedHint& stream : planned.streams) {
      leads.push_back(moved(builder, compute(stream.address, loop, known, builder), stream.lead_bytes()));
      Value* iterations = iterations_within(builder, leads.back(), stream.stride_bytes);
      Value* room = builder.CreateMul(iterations, builder.getInt64(counted.stride()));
      way = builder.CreateBinaryIntrinsic(Intrinsic::umin, way, room);
    }
    // What follows goes before this, at the end of the last of the blocks that the tests make.
    Instruction* end = builder.CreateUnreachable();
    for (auto [stream, lead] : zip_equal(planned.streams, leads))
      writer.test(*end, lead, stream.is_store, HintWriter::Address::kGuess);
    BasicBlock* last = end->getParent();
    end->eraseFromParent();
    builder.SetInsertPoint(last);
    return way;
  };
  const ChunkedLoop cut = ChunkedLoop::cut(counted, chunk);
  if (versions) versions->loop_is_cut(counted.header, cut);
}

namespace {

// In front of the loop: streams of many bytes in all are announced.
void announce(const PlannedLoop& planned, HintWriter& writer) {
  const CountedLoop& counted = *planned.counted;
  uint64_t longest_stride = 0;
  for (const PlannedHint& stream : planned.streams)
    longest_stride = std::max(longest_stride, length(stream.stride_bytes));
  IRBuilder<> builder(planned.before);
  Value* left = counted.distance(builder, planned.first_count);
  const uint64_t iterations_min = SPW_HINT_STREAM_BYTES_MIN / longest_stride;
  Value* is_long = builder.CreateICmpUGE(left, builder.getInt64(iterations_min * counted.stride()));
  Instruction* end =
      SplitBlockAndInsertIfThen(is_long, planned.before, false, writer.version_switch().unlikely());
  for (const PlannedHint& stream : planned.streams) {
    builder.SetInsertPoint(end);
    const uint64_t stride = length(stream.stride_bytes);
    Value* iterations = builder.CreateUDiv(left, builder.getInt64(counted.stride()));
    Value* bytes =
        builder.CreateMul(builder.CreateAdd(iterations, builder.getInt64(1)), builder.getInt64(stride));
    Value* low = stream.stride_bytes > 0
                     ? stream.first
                     : ptr_add(builder, stream.first, builder.CreateSub(builder.getInt64(stride), bytes));
    Value* is_worth_it = builder.CreateICmpUGE(bytes, builder.getInt64(SPW_HINT_STREAM_BYTES_MIN));
    Instruction* inner = SplitBlockAndInsertIfThen(is_worth_it, end, false);
    builder.SetInsertPoint(inner);
    writer.call_stream(builder, low, bytes, stream.is_store);
  }
}

}  // namespace

void write_streams(const PlannedLoop& planned, HintWriter& writer) {
  if (!planned.is_cut) {
    for (const PlannedHint& stream : planned.streams) {
      IRBuilder<> builder(planned.before);
      if (!stream.continues)
        writer.test(*planned.before, moved(builder, stream.first, stream.lead_bytes()), stream.is_store,
                    HintWriter::Address::kGuess);
      builder.SetInsertPoint(stream.before);
      writer.test_at_piece_entry(*stream.before, moved(builder, stream.address, stream.lead_bytes()),
                                 stream.stride_bytes, stream.is_store);
    }
  }
  if (opt_hint_streams && planned.counted) announce(planned, writer);
}

}  // namespace spw::pass
