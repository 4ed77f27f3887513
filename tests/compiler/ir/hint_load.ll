; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -S %s | %filecheck %s
; Hints of single accesses, in functions too small for two versions, and what a module refers to.
target triple = "x86_64-pc-linux-gnu"
; CHECK: @__spw_hints_v2 = external global i8
; CHECK: @spw.hints_version = private constant ptr @__spw_hints_v2
; CHECK: @llvm.used = appending global [1 x ptr] [ptr @spw.hints_version]

define i64 @load(ptr %p) {
; CHECK-LABEL: define i64 @load
; CHECK: [[BITS:%.*]] = ptrtoint ptr %p to i64
; CHECK: [[PIECE:%.*]] = lshr i64 [[BITS]], 12
; CHECK: [[INDEX:%.*]] = add i64 [[PIECE]], 2147450880
; CHECK: [[PLACE:%.*]] = inttoptr i64 [[INDEX]] to ptr
; CHECK: [[HINT:%.*]] = load i8, ptr [[PLACE]], align 1, !tbaa {{.*}}, !nosanitize
; CHECK: [[NO:%.*]] = icmp slt i8 [[HINT]], 0
; CHECK: br i1 [[NO]], label %[[CALL:.*]], label %[[GO:.*]], !prof [[UNLIKELY:!.*]]
; CHECK: [[CALL]]:
; CHECK: call preserve_mostcc void @__spw_hint_load_v1(ptr %p)
; CHECK: br label %[[GO]]
; CHECK: [[GO]]:
; CHECK: load i64, ptr %p
  %v = load i64, ptr %p
  ret i64 %v
}

define void @store(ptr %p) {
; CHECK-LABEL: define void @store
; CHECK: [[HINT:%.*]] = load i8
; CHECK: icmp ne i8 [[HINT]], 0
; CHECK: call preserve_mostcc void @__spw_hint_store_v1(ptr %p)
; CHECK: store i64 1, ptr %p
  store i64 1, ptr %p
  ret void
}

; Atomic updates are stores, also where they write nothing.
define i64 @atomics(ptr %p, ptr %q) {
; CHECK-LABEL: define i64 @atomics
; CHECK: call preserve_mostcc void @__spw_hint_store_v1(ptr %p)
; CHECK: atomicrmw
; CHECK: call preserve_mostcc void @__spw_hint_store_v1(ptr %q)
; CHECK: cmpxchg
  %a = atomicrmw add ptr %p, i64 1 monotonic
  %b = cmpxchg ptr %q, i64 1, i64 2 monotonic monotonic
  ret i64 %a
}

define i64 @unmanaged() {
; CHECK-LABEL: define i64 @unmanaged
; CHECK-NOT: spw
; CHECK: ret i64
  %a = alloca i64
  store i64 1, ptr %a
  %v = load i64, ptr %a
  ret i64 %v
}

; No functions are redirected.
define ptr @allocates() {
; CHECK-LABEL: define ptr @allocates
; CHECK: call ptr @malloc(i64 8)
  %p = call ptr @malloc(i64 8)
  ret ptr %p
}
declare ptr @malloc(i64)
; CHECK: declare preserve_mostcc void @__spw_hint_load_v1(ptr) #[[ATTRIBUTES:[0-9]+]]
; CHECK: attributes #[[ATTRIBUTES]] = {{.*}}nonlazybind
; CHECK: [[UNLIKELY]] = !{!"branch_weights", i32 1, i32 1048576}
