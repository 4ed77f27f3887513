// The symbols of abi/abi.h as seen from one module: declared when first asked for, so that a module that
// translates nothing refers to nothing but the version symbol.
#pragma once

#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace spw::pass {

#define SPW_STRING_(x) #x
#define SPW_STRING(x) SPW_STRING_(x)

// What both engines call: declares `name` with the preserve_most convention and calls it, as a cold function.
llvm::CallInst* call_preserve_most(llvm::IRBuilder<>& builder, const char* name, llvm::Type* result,
                                   llvm::ArrayRef<llvm::Value*> arguments);

// Makes the module refer to `symbol`, a char of the runtime, through a local pointer named `holder_name`.
void require_symbol(llvm::Module& module, const char* symbol, const char* holder_name);

class RuntimeSymbols {
 public:
  explicit RuntimeSymbols(llvm::Module& module);

  // preserve_most entry points. `bytes` is a pointer to plain memory.
  llvm::CallInst* call_load(llvm::IRBuilder<>& builder, llvm::Value* address, uint64_t size_bytes);
  llvm::CallInst* call_store(llvm::IRBuilder<>& builder, llvm::Value* address, uint64_t size_bytes);
  llvm::CallInst* call_span(llvm::IRBuilder<>& builder, llvm::Value* address, uint64_t size_bytes,
                            bool is_store);
  llvm::CallInst* call_store_across(llvm::IRBuilder<>& builder, llvm::Value* address, llvm::Value* bytes,
                                    uint64_t size_bytes);
  // C convention; size is an i64.
  llvm::CallInst* call_memcpy(llvm::IRBuilder<>& builder, llvm::Value* to, llvm::Value* from,
                              llvm::Value* size);
  llvm::CallInst* call_memmove(llvm::IRBuilder<>& builder, llvm::Value* to, llvm::Value* from,
                               llvm::Value* size);
  llvm::CallInst* call_memset(llvm::IRBuilder<>& builder, llvm::Value* to, llvm::Value* byte,
                              llvm::Value* size);

  // The address of this thread's struct __spw_thread, at the builder's place.
  llvm::Value* thread(llvm::IRBuilder<>& builder);

  // Makes the module refer to the version symbol, so that it links only with a runtime of the same ABI.
  void require_version();

  llvm::PointerType* pointer_type() const { return pointer_; }
  llvm::IntegerType* word_type() const { return word_; }

 private:
  llvm::CallInst* call_c(llvm::IRBuilder<>& builder, const char* name, llvm::Value* to, llvm::Value* second,
                         llvm::Value* size);

  llvm::Module& module_;
  llvm::PointerType* pointer_;
  llvm::IntegerType* word_;
};

}  // namespace spw::pass
