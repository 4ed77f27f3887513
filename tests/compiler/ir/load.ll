; RUN: %opt -passes=spillway -spw-versions=0 -spw-trust-alignment -S %s | %filecheck %s
; The whole hot sequence of a load, and what changes when it can cross a granule or is wider than the runtime's buffer.
target triple = "x86_64-pc-linux-gnu"

define i64 @aligned(ptr %p) {
; CHECK-LABEL: define i64 @aligned
; CHECK: [[BITS:%.*]] = ptrtoint ptr %p to i64
; CHECK: [[TAG:%.*]] = lshr i64 [[BITS]], 44
; CHECK: [[MANAGED:%.*]] = icmp eq i64 [[TAG]], 2
; CHECK: br i1 [[MANAGED]], label %[[CHECK:.*]], label %[[USE:.*]]
; CHECK: [[CHECK]]:
; CHECK: [[THREAD:%.*]] = call align 8 ptr @llvm.threadlocal.address.p0(ptr align 8 @__spw_thread_v1)
; CHECK: [[MASKP:%.*]] = getelementptr inbounds i8, ptr [[THREAD]], i64 8
; CHECK: [[MASK:%.*]] = load i64, ptr [[MASKP]]
; CHECK: [[TABLE:%.*]] = load ptr, ptr [[THREAD]]
; CHECK: [[SHIFTED:%.*]] = lshr i64 [[BITS]], 8
; CHECK: [[INDEX:%.*]] = and i64 [[SHIFTED]], [[MASK]]
; CHECK: [[ENTRY:%.*]] = getelementptr i8, ptr [[TABLE]], i64 [[INDEX]]
; CHECK-NOT: add i64
; CHECK: [[GRANULE:%.*]] = lshr i64 [[BITS]], 12
; CHECK: [[GRANULE32:%.*]] = trunc i64 [[GRANULE]] to i32
; CHECK: [[SEEN:%.*]] = load i32, ptr [[ENTRY]]
; CHECK: icmp eq i32 [[SEEN]], [[GRANULE32]]
; CHECK: br i1 {{.*}}, label %[[HIT:.*]], label %[[MISS:.*]], !prof
; CHECK: [[HIT]]:
; CHECK: [[DELTAP:%.*]] = getelementptr inbounds i8, ptr [[ENTRY]], i64 8
; CHECK: [[DELTA:%.*]] = load i64, ptr [[DELTAP]]
; CHECK: [[RAW:%.*]] = getelementptr i8, ptr %p, i64 [[DELTA]]
; CHECK: [[USE]]:
; CHECK: [[ADDRESS:%.*]] = phi ptr [ %p, {{.*}} ], [ [[RAW]], %[[HIT]] ], [ [[SLOW:%.*]], %[[MISS]] ]
; CHECK: load i64, ptr [[ADDRESS]], align 8
; CHECK: [[MISS]]:
; CHECK: [[SLOW]] = call preserve_mostcc ptr @__spw_load_v1(ptr %p, i64 8)
  %v = load i64, ptr %p, align 8
  ret i64 %v
}

define i64 @may_cross(ptr %p) {
; CHECK-LABEL: define i64 @may_cross
; CHECK: [[LAST:%.*]] = add i64 {{.*}}, 7
; CHECK: lshr i64 [[LAST]], 12
; CHECK: @__spw_load_v1(ptr %p, i64 8)
  %v = load i64, ptr %p, align 1
  ret i64 %v
}

define x86_fp80 @long_double(ptr %p) {
; CHECK-LABEL: define x86_fp80 @long_double
; CHECK-NOT: add i64
; CHECK: @__spw_load_v1(ptr %p, i64 10)
  %v = load x86_fp80, ptr %p, align 16
  ret x86_fp80 %v
}

define <32 x i64> @wide(ptr %p) {
; CHECK-LABEL: define <32 x i64> @wide
; CHECK: [[SLOT:%.*]] = alloca <32 x i64>
; CHECK: phi ptr {{.*}} [ [[SLOT]], %[[MISS:.*]] ]
; CHECK: [[MISS]]:
; CHECK: call ptr @__spw_memcpy_v1(ptr [[SLOT]], ptr %p, i64 256)
  %v = load <32 x i64>, ptr %p, align 8
  ret <32 x i64> %v
}

; What is said of a constant memory would let the load leave its translation.
define i64 @invariant(ptr %p) {
; CHECK-LABEL: define i64 @invariant
; CHECK-NOT: invariant
; CHECK: ret i64
  %v = load i64, ptr %p, align 8, !invariant.load !0
  ret i64 %v
}

; CHECK: declare preserve_mostcc ptr @__spw_load_v1(ptr, i64) #[[ATTRIBUTES:[0-9]+]]
; CHECK: attributes #[[ATTRIBUTES]] = {{.*}}nonlazybind
!0 = !{}
