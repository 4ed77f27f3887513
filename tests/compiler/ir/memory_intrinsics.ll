; RUN: %opt -passes=spillway -spw-versions=0 -S %s | %filecheck %s
; RUN: %opt -passes=spillway -spw-versions=0 -spw-inline-copy-bytes-max=0 -S %s | %filecheck %s --check-prefix=CALLS
target triple = "x86_64-pc-linux-gnu"

define void @small(ptr %to, ptr %from) {
; CHECK-LABEL: define void @small
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr align 4 %spw.raw{{[0-9]*}}, ptr align 4 %spw.raw{{[0-9]*}}, i64 100, i1 false)
; CHECK-DAG: call ptr @__spw_memcpy_v1(ptr %to, ptr %from, i64 100)
; CHECK-DAG: icmp ugt i64 {{.*}}, 3996
; CHECK-DAG: call preserve_mostcc ptr @__spw_store_v1(ptr %to, i64 64)
; CHECK-DAG: call preserve_mostcc ptr @__spw_load_v1(ptr %from, i64 64)
; CALLS-LABEL: define void @small
; CALLS-NEXT: call ptr @__spw_memcpy_v1(ptr %to, ptr %from, i64 100)
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %to, ptr align 4 %from, i64 100, i1 false)
  ret void
}

define void @aligned_copy_never_crosses(ptr %to) {
; CHECK-LABEL: define void @aligned_copy_never_crosses
; CHECK-NOT: __spw_memset_v1
; CHECK: call void @llvm.memset.p0.i64(ptr align 32 %spw.raw, i8 0, i64 32, i1 false)
; CHECK-NOT: __spw_memset_v1
; CHECK: ret void
  call void @llvm.memset.p0.i64(ptr align 32 %to, i8 0, i64 32, i1 false)
  ret void
}

define void @any_size(ptr %to, ptr %from, i32 %n, i8 %c) {
; CHECK-LABEL: define void @any_size
; CHECK: [[N:%.*]] = zext i32 %n to i64
; CHECK: call ptr @__spw_memmove_v1(ptr %to, ptr %from, i64 [[N]])
; CHECK: [[C:%.*]] = zext i8 %c to i32
; CHECK: call ptr @__spw_memset_v1(ptr %to, i32 [[C]], i64
; CHECK: call ptr @__spw_memcpy_v1(ptr %to, ptr %from, i64 4096)
  call void @llvm.memmove.p0.p0.i32(ptr %to, ptr %from, i32 %n, i1 false)
  call void @llvm.memset.p0.i32(ptr %to, i8 %c, i32 %n, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 4096, i1 false)
  ret void
}

define void @stack_to_stack(i64 %n) {
; CHECK-LABEL: define void @stack_to_stack
; CHECK-NOT: spw
; CHECK: ret void
  %a = alloca [64 x i8]
  %b = alloca [64 x i8]
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 %n, i1 false)
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i32(ptr, ptr, i32, i1)
declare void @llvm.memset.p0.i32(ptr, i8, i32, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; A short comparison: in place on raw pointers, where code generation expands it; by the runtime where a range crosses.
define i32 @compare(ptr %a, ptr %b, i64 %n) {
; CHECK-LABEL: define i32 @compare
; CHECK: [[HERE:%.*]] = call i32 @memcmp(ptr %spw.raw{{[0-9]*}}, ptr %spw.raw{{[0-9]*}}, i64 10)
; CHECK: [[RESULT:%.*]] = phi i32 [ [[HERE]], {{.*}} ], [ [[ACROSS:%.*]], %spw.across{{[0-9]*}} ]
; CHECK: call i32 @__spw_memcmp_v1(ptr %a, ptr %b, i64 %n)
; CHECK: [[ACROSS]] = call i32 @__spw_memcmp_v1(ptr %a, ptr %b, i64 10)
  %r = call i32 @memcmp(ptr %a, ptr %b, i64 10)
  %s = call i32 @memcmp(ptr %a, ptr %b, i64 %n)
  %t = add i32 %r, %s
  ret i32 %t
}
declare i32 @memcmp(ptr, ptr, i64)
