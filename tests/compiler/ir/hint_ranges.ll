; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -S %s | %filecheck %s
; Hints of memory intrinsics.
target triple = "x86_64-pc-linux-gnu"

; Few bytes: the first of each.
define void @small(ptr %to, ptr %from) {
; CHECK-LABEL: define void @small
; CHECK: @__spw_hint_load_v1(ptr %from)
; CHECK-NOT: __spw
; CHECK: @__spw_hint_store_v1(ptr %to)
; CHECK-NOT: __spw
; CHECK: call void @llvm.memcpy
; CHECK: ret void
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 64, i1 false)
  ret void
}

; More: the last, too.
define void @medium(ptr %to) {
; CHECK-LABEL: define void @medium
; CHECK: @__spw_hint_store_v1(ptr %to)
; CHECK: [[LAST:%.*]] = getelementptr i8, ptr %to, i64 999
; CHECK: @__spw_hint_store_v1(ptr [[LAST]])
; CHECK: call void @llvm.memset
  call void @llvm.memset.p0.i64(ptr %to, i8 1, i64 1000, i1 false)
  ret void
}

; Unknown: a call from 4096 on; else first and last, cut to what has a hint, because there may be no bytes at all.
define void @unknown(ptr %to, i64 %n) {
; CHECK-LABEL: define void @unknown
; CHECK: [[LONG:%.*]] = icmp uge i64 %n, 4096
; CHECK: br i1 [[LONG]], label %[[CALL:.*]], label %[[TEST:.*]]
; CHECK: [[CALL]]:
; CHECK: call void @__spw_hint_range_v1(ptr %to, i64 %n, i64 1)
; CHECK: [[TEST]]:
; CHECK: [[SAME:%.*]] = freeze ptr %to
; CHECK: [[BITS:%.*]] = ptrtoint ptr [[SAME]] to i64
; CHECK: and i64 [[BITS]], 140737488355327
; CHECK: call void @llvm.memset
  call void @llvm.memset.p0.i64(ptr %to, i8 1, i64 %n, i1 false)
  ret void
}

define void @none(ptr %to) {
; CHECK-LABEL: define void @none
; CHECK-NOT: spw
; CHECK: ret void
  call void @llvm.memset.p0.i64(ptr %to, i8 1, i64 0, i1 false)
  ret void
}

; Functions of the C library; not those of the module that only have their name.
define i32 @compare(ptr %a, ptr %b, i64 %n) {
; CHECK-LABEL: define i32 @compare
; CHECK: call void @__spw_hint_range_v1(ptr %b, i64 %n, i64 0)
; CHECK: call void @__spw_hint_range_v1(ptr %a, i64 %n, i64 0)
; CHECK: call i32 @memcmp
; CHECK: call i32 @bcmp
; CHECK-NOT: __spw
; CHECK: ret i32
  %c = call i32 @memcmp(ptr %a, ptr %b, i64 %n)
  %d = call i32 @bcmp(ptr %a, ptr %b, i64 %n)
  ret i32 %c
}
declare i32 @memcmp(ptr, ptr, i64)
define i32 @bcmp(ptr %a, ptr %b, i64 %n) {
  ret i32 0
}
