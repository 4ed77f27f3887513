// The plugin's door: where in LLVM's pipelines the pass runs.
//
// Last in the pipeline of one module, at every level. With link-time optimisation the drivers load the plugin
// into the linker instead of the compiler: full LTO then runs it last at link time, ThinLTO last in each
// backend. (ThinLTO's compile step would run "last" before vectorisation, and the optimiser would then work
// on translated code.) A compile step that is to be followed by such a link loads the plugin only to note the engine.
#include "llvm/Passes/PassBuilder.h"
#if __has_include("llvm/Plugins/PassPlugin.h")  // LLVM 22
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif
#include "pass/instrument.h"
#include "pass/options.h"

namespace {

using namespace llvm;

void add_pass(ModulePassManager& passes, OptimizationLevel) {
  if (!spw::pass::opt_mark_engine) passes.addPass(spw::pass::InstrumentPass());
}

void add_mark(ModulePassManager& passes, OptimizationLevel) {
  if (spw::pass::opt_mark_engine) passes.addPass(spw::pass::MarkEnginePass());
}

void register_callbacks(PassBuilder& builder) {
  builder.registerPipelineStartEPCallback(add_mark);
  // LLVM 20 and later say in which phase of link-time optimisation, too.
  builder.registerOptimizerLastEPCallback(
      [](ModulePassManager& passes, OptimizationLevel level, auto...) { add_pass(passes, level); });
  builder.registerFullLinkTimeOptimizationLastEPCallback(add_pass);
  builder.registerPipelineParsingCallback(
      [](StringRef name, ModulePassManager& passes, ArrayRef<PassBuilder::PipelineElement>) {
        if (name != "spillway") return false;
        passes.addPass(spw::pass::InstrumentPass());
        return true;
      });
}

}  // namespace

extern "C" LLVM_ATTRIBUTE_WEAK __attribute__((visibility("default"))) PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "spillway", "1", register_callbacks};
}
