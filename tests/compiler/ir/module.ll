; RUN: %opt -passes=spillway -spw-versions=0 -S %s | %filecheck %s
; RUN: %opt -passes=spillway,spillway -spw-versions=0 -S %s | %filecheck %s
; Every module refers to the version symbol, in a way that --gc-sections keeps, and is instrumented once.
target triple = "x86_64-pc-linux-gnu"
; CHECK: @__spw_abi_v3 = external global i8
; CHECK: @spw.abi_version = private constant ptr @__spw_abi_v3
; CHECK: @llvm.used = appending global [1 x ptr] [ptr @spw.abi_version]

@chosen = ifunc i64 (ptr), ptr @resolver

; The loader runs a resolver before thread-local storage exists.
define ptr @resolver(ptr %p) {
; CHECK-LABEL: define ptr @resolver
; CHECK-NOT: spw
; CHECK: ret ptr
  %v = load ptr, ptr %p
  ret ptr %v
}
define i64 @plain(ptr %p) disable_sanitizer_instrumentation {
; CHECK-LABEL: define i64 @plain
; CHECK-NOT: spw
; CHECK: ret i64
  %v = load i64, ptr %p
  ret i64 %v
}
define i64 @in_section(ptr %p) section ".text.spillway_plain" {
; CHECK-LABEL: define i64 @in_section
; CHECK-NOT: spw
; CHECK: ret i64
  %v = load i64, ptr %p
  ret i64 %v
}
; Also without optimisation; and what the optimiser inferred of memory holds no longer.
define i64 @normal(ptr %p) noinline optnone memory(argmem: read) {
; CHECK-LABEL: define i64 @normal
; CHECK-COUNT-1: @__spw_load_v1
; CHECK-NOT: @__spw_load_v1(ptr %p
  %v = load i64, ptr %p
  ret i64 %v
}
; CHECK-NOT: memory(argmem: read)
; CHECK: !{i32 7, !"spillway", i32 1}
