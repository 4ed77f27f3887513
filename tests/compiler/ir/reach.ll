; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-versions=0 -S %s | %filecheck %s
; Raw addresses of blocks that are not at their own: who asks for one, which accesses use it, and the numbers of sites.
target triple = "x86_64-pc-linux-gnu"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
; CHECK: @__spw_hints_v2 = external global i8

define i64 @load(ptr %p) {
; CHECK-LABEL: define i64 @load
; CHECK: [[HINT:%.*]] = load i8
; CHECK: [[NO:%.*]] = icmp slt i8 [[HINT]], 0
; CHECK: br i1 [[NO]], label %[[ASK:.*]], label %[[GO:.*]], !prof
; CHECK: [[ASK]]:
; CHECK: [[ANSWER:%.*]] = call preserve_mostcc ptr @__spw_reach_load_v1(ptr %p, i64 8)
; CHECK: br label %[[GO]]
; CHECK: [[GO]]:
; CHECK: [[RAW:%.*]] = phi ptr [ %p, %{{.*}} ], [ [[ANSWER]], %[[ASK]] ]
; CHECK: load i64, ptr [[RAW]]
  %v = load i64, ptr %p
  ret i64 %v
}

; One for both, as a store, and the range of both: 16 bytes.
define void @update(ptr %p) {
; CHECK-LABEL: define void @update
; CHECK: call preserve_mostcc ptr @__spw_reach_store_v1(ptr %p, i64 16)
; CHECK: [[RAW:%.*]] = phi ptr
; CHECK: load i64, ptr [[RAW]]
; CHECK: [[NEXT:%.*]] = getelementptr i8, ptr [[RAW]], i64 8
; CHECK: store i64 %{{.*}}, ptr [[NEXT]]
; CHECK-NOT: @__spw_
; CHECK: ret void
  %v = load i64, ptr %p
  %next = getelementptr i64, ptr %p, i64 1
  store i64 %v, ptr %next
  ret void
}

; The first is still of use when the second asks, and so is the second when the third does; the fourth comes when the
; first is not.
define void @sites(ptr %a, ptr %b, ptr %c, ptr %d) {
; CHECK-LABEL: define void @sites
; CHECK: @__spw_reach_store_v1(ptr %a, i64 8)
; CHECK: @__spw_reach_store_v1(ptr %b, i64 65544)
; CHECK: @__spw_reach_load_v1(ptr %c, i64 131080)
; CHECK: @__spw_reach_store_v1(ptr %d, i64 8)
; CHECK: ret void
  %x = load i64, ptr %a
  %y = load i64, ptr %b
  %z = load i64, ptr %c
  %s = add i64 %x, %y
  %t = add i64 %s, %z
  store i64 %t, ptr %a
  store i64 %t, ptr %b
  store i64 %t, ptr %d
  ret void
}

; What is called may ask, too: behind it a raw address is worth nothing.
declare void @unknown()
define i64 @across_a_call(ptr %p) {
; CHECK-LABEL: define i64 @across_a_call
; CHECK: @__spw_reach_load_v1(ptr %p, i64 8)
; CHECK: call void @unknown()
; CHECK: @__spw_reach_load_v1(ptr %p, i64 8)
; CHECK: ret i64
  %v = load i64, ptr %p
  call void @unknown()
  %w = load i64, ptr %p
  %s = add i64 %v, %w
  ret i64 %s
}

; Without one it is good in the blocks that follow, and what asks meanwhile has a higher number.
define i64 @in_other_blocks(ptr %p, ptr %q, i1 %c) {
; CHECK-LABEL: define i64 @in_other_blocks
; CHECK: @__spw_reach_load_v1(ptr %p, i64 8)
; CHECK: [[RAW:%.*]] = phi ptr [ %p
; CHECK: more:
; CHECK: @__spw_reach_load_v1(ptr %q, i64 65544)
; CHECK-NOT: @__spw_reach
; CHECK: load i64, ptr [[RAW]]
; CHECK: ret i64
  %v = load i64, ptr %p
  br i1 %c, label %more, label %done
more:
  %w = load i64, ptr %q
  br label %done
done:
  %r = phi i64 [ %v, %0 ], [ %w, %more ]
  %x = load i64, ptr %p
  %s = add i64 %r, %x
  ret i64 %s
}

; Nor is it behind a loop, or a call in one of the blocks.
define i64 @across_a_call_elsewhere(ptr %p, i1 %c) {
; CHECK-LABEL: define i64 @across_a_call_elsewhere
; CHECK-COUNT-2: @__spw_reach_load_v1(ptr %p, i64 8)
; CHECK: ret i64
  %v = load i64, ptr %p
  br i1 %c, label %more, label %done
more:
  call void @unknown()
  br label %done
done:
  %w = load i64, ptr %p
  %s = add i64 %v, %w
  ret i64 %s
}

; A short copy of known length is two accesses, and no end of a segment; a move needs the addresses themselves: both
; blocks are to be in place, and no raw address is of use any more (0 bytes, site 0).
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
define void @copies(ptr %to, ptr %from) {
; CHECK-LABEL: define void @copies
; CHECK: [[TO:%.*]] = call preserve_mostcc ptr @__spw_reach_store_v1(ptr %to, i64 100)
; CHECK: [[RAW_TO:%.*]] = phi ptr [ %to, %{{.*}} ], [ [[TO]], %{{.*}} ]
; CHECK: [[FROM:%.*]] = call preserve_mostcc ptr @__spw_reach_load_v1(ptr %from, i64 65636)
; CHECK: [[RAW_FROM:%.*]] = phi ptr [ %from, %{{.*}} ], [ [[FROM]], %{{.*}} ]
; CHECK: call void @llvm.memcpy.inline.p0.p0.i64(ptr [[RAW_TO]], ptr [[RAW_FROM]], i64 100, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 100, i1 false)
  ret void
}
define void @moves(ptr %to, ptr %from) {
; CHECK-LABEL: define void @moves
; CHECK: call preserve_mostcc ptr @__spw_reach_load_v1(ptr %from, i64 0)
; CHECK: call preserve_mostcc ptr @__spw_reach_store_v1(ptr %to, i64 0)
; CHECK: call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 100, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 100, i1 false)
  ret void
}

; An address that a loop uses again and again is placed, with a hint before it.
define i64 @hoisted(ptr %p, i64 %n) {
; CHECK-LABEL: define i64 @hoisted
; CHECK: call preserve_mostcc void @__spw_hint_load_v1(ptr
; CHECK-NOT: @__spw_reach
; CHECK: load volatile i64, ptr %p
; CHECK: ret i64
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %sum, %loop ]
  %v = load volatile i64, ptr %p
  %sum = add i64 %s, %v
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 %sum
}

; Round a loop that is entered in two places the request of %q comes before a use of %p again: its number says so.
define i64 @irreducible(ptr %p, ptr %q, i1 %c, i1 %d) {
; CHECK-LABEL: define i64 @irreducible
; CHECK: @__spw_reach_load_v1(ptr %p, i64 16)
; CHECK: @__spw_reach_load_v1(ptr %q, i64 65544)
; CHECK: ret i64
entry:
  %v = load i64, ptr %p
  br i1 %c, label %a, label %b
a:
  br label %b
b:
  %next = getelementptr i64, ptr %p, i64 1
  %w = load i64, ptr %next
  %x = load i64, ptr %q
  br i1 %d, label %a, label %exit
exit:
  %s = add i64 %w, %x
  ret i64 %s
}

; A thread-local variable may have to be made, by code that allocates.
@local = external thread_local global i64
declare ptr @llvm.threadlocal.address.p0(ptr)
define i64 @thread_local(ptr %p) {
; CHECK-LABEL: define i64 @thread_local
; CHECK-COUNT-2: @__spw_reach_load_v1(ptr %p, i64 8)
; CHECK: ret i64
  %v = load i64, ptr %p
  %l = call ptr @llvm.threadlocal.address.p0(ptr @local)
  %t = load i64, ptr %l
  %w = load i64, ptr %p
  %s = add i64 %v, %w
  %r = add i64 %s, %t
  ret i64 %r
}
