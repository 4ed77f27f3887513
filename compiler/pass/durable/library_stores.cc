#include "pass/durable/library_stores.h"

#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "pass/llvm_versions.h"

namespace spw::pass {

using namespace llvm;

namespace {

// How many bytes are stored, in terms of the arguments `first` and `second`.
enum class Count {
  kConstant,     // `first` itself
  kBytes,        // argument `first`
  kWides,        // argument `first` times the size of a wchar_t
  kProduct,      // of the arguments
  kString,       // of the string `first` with its end
  kAppend,       // the same, behind the string that is there
  kAppendBound,  // the same, of at most argument `second` characters and an end
};

struct LibraryStore {
  const char* name;
  unsigned to;
  Count count;
  unsigned first;
  unsigned second = 0;
};

constexpr LibraryStore kLibraryStores[] = {
    {"memcpy", 0, Count::kBytes, 2},
    {"memmove", 0, Count::kBytes, 2},
    {"mempcpy", 0, Count::kBytes, 2},
    {"memset", 0, Count::kBytes, 2},
    {"explicit_bzero", 0, Count::kBytes, 1},
    {"bzero", 0, Count::kBytes, 1},
    {"bcopy", 1, Count::kBytes, 2},
    {"__memcpy_chk", 0, Count::kBytes, 2},
    {"__memmove_chk", 0, Count::kBytes, 2},
    {"__mempcpy_chk", 0, Count::kBytes, 2},
    {"__memset_chk", 0, Count::kBytes, 2},
    {"wmemcpy", 0, Count::kWides, 2},
    {"wmemmove", 0, Count::kWides, 2},
    {"wmemset", 0, Count::kWides, 2},
    {"strcpy", 0, Count::kString, 1},
    {"stpcpy", 0, Count::kString, 1},
    {"strncpy", 0, Count::kBytes, 2},
    {"stpncpy", 0, Count::kBytes, 2},
    {"strcat", 0, Count::kAppend, 1},
    {"strncat", 0, Count::kAppendBound, 1, 2},
    {"__strcpy_chk", 0, Count::kString, 1},
    {"__stpcpy_chk", 0, Count::kString, 1},
    {"__strncpy_chk", 0, Count::kBytes, 2},
    {"__stpncpy_chk", 0, Count::kBytes, 2},
    {"__strcat_chk", 0, Count::kAppend, 1},
    {"__strncat_chk", 0, Count::kAppendBound, 1, 2},
    {"qsort", 0, Count::kProduct, 1, 2},
    {"fread", 0, Count::kProduct, 1, 2},
    {"__fread_chk", 0, Count::kProduct, 2, 3},
    {"fgets", 0, Count::kBytes, 1},
    {"__fgets_chk", 0, Count::kBytes, 2},
    {"read", 1, Count::kBytes, 2},
    {"__read_chk", 1, Count::kBytes, 2},
    {"pread", 1, Count::kBytes, 2},
    {"pread64", 1, Count::kBytes, 2},
    {"recv", 1, Count::kBytes, 2},
    {"getrandom", 0, Count::kBytes, 1},
    {"__atomic_load", 2, Count::kBytes, 0},
    {"__atomic_store", 1, Count::kBytes, 0},
    {"__atomic_exchange", 1, Count::kBytes, 0},
    {"__atomic_compare_exchange", 1, Count::kBytes, 0},
    {"__atomic_store_16", 0, Count::kConstant, 16},
    {"__atomic_exchange_16", 0, Count::kConstant, 16},
    {"__atomic_compare_exchange_16", 0, Count::kConstant, 16},
    {"__atomic_fetch_add_16", 0, Count::kConstant, 16},
    {"__atomic_fetch_sub_16", 0, Count::kConstant, 16},
    {"__atomic_fetch_and_16", 0, Count::kConstant, 16},
    {"__atomic_fetch_or_16", 0, Count::kConstant, 16},
    {"__atomic_fetch_xor_16", 0, Count::kConstant, 16},
    {"__atomic_fetch_nand_16", 0, Count::kConstant, 16},
};

bool is_of_string(Count count) {
  return count == Count::kString || count == Count::kAppend || count == Count::kAppendBound;
}

bool is_pointer(const CallBase& call, unsigned argument) {
  return argument < call.arg_size() && call.getArgOperand(argument)->getType()->isPointerTy();
}
bool is_number(const CallBase& call, unsigned argument) {
  return argument < call.arg_size() && call.getArgOperand(argument)->getType()->isIntegerTy();
}

// A program may have another function of that name.
bool fits(const CallBase& call, const LibraryStore& store) {
  if (!is_pointer(call, store.to)) return false;
  if (store.count == Count::kConstant) return true;
  if (is_of_string(store.count))
    return is_pointer(call, store.first) &&
           (store.count != Count::kAppendBound || is_number(call, store.second));
  return is_number(call, store.first) && (store.count != Count::kProduct || is_number(call, store.second));
}

const LibraryStore* find(const CallBase& call) {
  const Function* callee = call.getCalledFunction();
  if (!callee || !callee->isDeclaration() || callee->isIntrinsic()) return nullptr;
  for (const LibraryStore& known : kLibraryStores)
    if (callee->getName() == known.name) return fits(call, known) ? &known : nullptr;
  return nullptr;
}

Value* call_length(IRBuilder<>& builder, const char* function, ArrayRef<Value*> arguments) {
  SmallVector<Type*, 2> types;
  for (Value* argument : arguments) types.push_back(argument->getType());
  Module& module = *builder.GetInsertBlock()->getModule();
  CallInst* length = builder.CreateCall(
      module.getOrInsertFunction(function, FunctionType::get(builder.getInt64Ty(), types, false)), arguments);
  length->setDoesNotThrow();
  return length;
}

void mark_string(CallBase& call, const LibraryStore& store, StoreMarks& marks) {
  IRBuilder<> builder(&call);
  Value* to = call.getArgOperand(store.to);
  Instruction* end = SplitBlockAndInsertIfThen(marks.in_range(builder, to), &call, false, marks.unlikely());
  builder.SetInsertPoint(end);
  builder.SetCurrentDebugLocation(call.getDebugLoc());
  Value* from = call.getArgOperand(store.first);
  Value* length;
  if (store.count == Count::kAppendBound) {
    Value* bound = builder.CreateZExtOrTrunc(call.getArgOperand(store.second), builder.getInt64Ty());
    length = call_length(builder, "strnlen", {from, bound});
  } else {
    length = call_length(builder, "strlen", {from});
  }
  if (store.count != Count::kString) to = ptr_add(builder, to, call_length(builder, "strlen", {to}));
  marks.put(builder, to, builder.CreateAdd(length, builder.getInt64(1)));
}

Value* count_bytes(IRBuilder<>& builder, const CallBase& call, const LibraryStore& store) {
  const auto number = [&](unsigned argument) {
    return builder.CreateZExtOrTrunc(call.getArgOperand(argument), builder.getInt64Ty());
  };
  switch (store.count) {
    case Count::kConstant:
      return builder.getInt64(store.first);
    case Count::kWides:
      return builder.CreateMul(number(store.first), builder.getInt64(sizeof(wchar_t)));
    case Count::kProduct:
      return builder.CreateMul(number(store.first), number(store.second));
    default:
      return number(store.first);
  }
}

}  // namespace

bool is_library_store(const CallBase& call, const UnmanagedPointers& unmanaged) {
  const LibraryStore* store = find(call);
  return store && !unmanaged.contains(call.getArgOperand(store->to));
}

void mark_library_store(CallBase& call, StoreMarks& marks) {
  const LibraryStore& store = *find(call);
  if (is_of_string(store.count)) return mark_string(call, store, marks);
  IRBuilder<> builder(&call);
  marks.put(builder, call.getArgOperand(store.to), count_bytes(builder, call, store));
}

}  // namespace spw::pass
