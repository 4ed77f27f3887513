#include "pass/runtime_symbols.h"

#include "abi/abi.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace spw::pass {

using namespace llvm;

CallInst* call_preserve_most(IRBuilder<>& builder, const char* name, Type* result,
                             ArrayRef<Value*> arguments) {
  SmallVector<Type*, 3> types;
  for (Value* argument : arguments) types.push_back(argument->getType());
  Module& module = *builder.GetInsertBlock()->getModule();
  FunctionCallee callee = module.getOrInsertFunction(name, FunctionType::get(result, types, false));
  if (auto* function = dyn_cast<Function>(callee.getCallee())) {
    function->setCallingConv(CallingConv::PreserveMost);
    function->setDoesNotThrow();
    // A lazily bound PLT entry would run the loader's resolver, which keeps fewer registers than
    // preserve_most promises.
    function->addFnAttr(Attribute::NonLazyBind);
  }
  CallInst* call = builder.CreateCall(callee, arguments);
  call->setCallingConv(CallingConv::PreserveMost);
  call->setDoesNotThrow();
  call->addFnAttr(Attribute::Cold);
  return call;
}

void require_symbol(Module& module, const char* symbol, const char* holder_name) {
  Constant* version = module.getOrInsertGlobal(symbol, Type::getInt8Ty(module.getContext()));
  // A declaration that nothing refers to leaves no trace in the object, so a local pointer holds it;
  // llvm.used, not llvm.compiler.used, or --gc-sections drops the pointer and the check with it.
  auto* holder = new GlobalVariable(module, PointerType::getUnqual(module.getContext()), true,
                                    GlobalValue::PrivateLinkage, version, holder_name);
  appendToUsed(module, {holder});
}

RuntimeSymbols::RuntimeSymbols(Module& module)
    : module_(module),
      pointer_(PointerType::getUnqual(module.getContext())),
      word_(Type::getInt64Ty(module.getContext())) {}

CallInst* RuntimeSymbols::call_load(IRBuilder<>& builder, Value* address, uint64_t size_bytes) {
  return call_preserve_most(builder, "__spw_load_v1", pointer_, {address, builder.getInt64(size_bytes)});
}

CallInst* RuntimeSymbols::call_store(IRBuilder<>& builder, Value* address, uint64_t size_bytes) {
  return call_preserve_most(builder, "__spw_store_v1", pointer_, {address, builder.getInt64(size_bytes)});
}

CallInst* RuntimeSymbols::call_span(IRBuilder<>& builder, Value* address, uint64_t size_bytes,
                                    bool is_store) {
  return call_preserve_most(builder, "__spw_span_v1", pointer_,
                            {address, builder.getInt64(size_bytes), builder.getInt64(is_store)});
}

CallInst* RuntimeSymbols::call_store_across(IRBuilder<>& builder, Value* address, Value* bytes,
                                            uint64_t size_bytes) {
  return call_preserve_most(builder, "__spw_store_across_v1", builder.getVoidTy(),
                            {address, bytes, builder.getInt64(size_bytes)});
}

CallInst* RuntimeSymbols::call_c(IRBuilder<>& builder, const char* name, Value* to, Value* second,
                                 Value* size) {
  FunctionCallee callee = module_.getOrInsertFunction(
      name, FunctionType::get(pointer_, {to->getType(), second->getType(), word_}, false));
  CallInst* call = builder.CreateCall(callee, {to, second, builder.CreateZExtOrTrunc(size, word_)});
  call->setDoesNotThrow();
  return call;
}

CallInst* RuntimeSymbols::call_memcpy(IRBuilder<>& builder, Value* to, Value* from, Value* size) {
  return call_c(builder, "__spw_memcpy_v1", to, from, size);
}

CallInst* RuntimeSymbols::call_memmove(IRBuilder<>& builder, Value* to, Value* from, Value* size) {
  return call_c(builder, "__spw_memmove_v1", to, from, size);
}

CallInst* RuntimeSymbols::call_memset(IRBuilder<>& builder, Value* to, Value* byte, Value* size) {
  return call_c(builder, "__spw_memset_v1", to, builder.CreateZExt(byte, builder.getInt32Ty()), size);
}

Value* RuntimeSymbols::thread(IRBuilder<>& builder) {
  Type* type = ArrayType::get(builder.getInt8Ty(), sizeof(__spw_thread));
  auto* variable = cast<GlobalVariable>(module_.getOrInsertGlobal("__spw_thread_v1", type, [&] {
    auto* created = new GlobalVariable(module_, type, false, GlobalValue::ExternalLinkage, nullptr,
                                       "__spw_thread_v1", nullptr, GlobalValue::InitialExecTLSModel);
    created->setAlignment(Align(alignof(__spw_thread)));
    return created;
  }));
  return builder.CreateThreadLocalAddress(variable);
}

void RuntimeSymbols::require_version() {
  require_symbol(module_, SPW_STRING(SPW_ABI_VERSION_SYMBOL), "spw.abi_version");
}

}  // namespace spw::pass
