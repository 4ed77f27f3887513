; RUN: %opt -passes=spillway -spw-versions=0 -S %s | %filecheck %s
target triple = "x86_64-pc-linux-gnu"
%big = type { [20 x i64] }

define void @caller(ptr %p) {
; CHECK-LABEL: define void @caller
; CHECK: %spw.byval = alloca %big, align 8
; CHECK: call ptr @__spw_memcpy_v1(ptr %spw.byval, ptr %p, i64 160)
; CHECK: call void @callee(ptr byval(%big) align 8 %spw.byval)
  tail call void @callee(ptr byval(%big) align 8 %p)
  ret void
}

define i64 @reader(ptr byval(%big) align 8 %p) {
; CHECK-LABEL: define i64 @reader
; CHECK-NOT: spw
; CHECK: ret i64
  %v = load i64, ptr %p, align 8
  ret i64 %v
}
declare void @callee(ptr byval(%big) align 8)
