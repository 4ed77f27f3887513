// The plugin's door: where in LLVM's pipelines the pass runs.
//
// Last in the pipeline of one module, at every level. With link-time optimisation the drivers load the plugin
// into the linker instead of the compiler: full LTO then runs it last at link time, ThinLTO last in each
// backend. (ThinLTO's compile step would run "last" before vectorisation, and the optimiser would then work
// on translated code.) A compile step that is to be followed by such a link loads the plugin only to note the engine.
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
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
  builder.registerOptimizerLastEPCallback(add_pass);
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
