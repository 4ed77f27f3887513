; RUN: %opt -passes=spillway -spw-versions=0 -spw-trust-alignment -S %s | %filecheck %s
; Masked accesses: whole when the SATC answers for all of it, lane by lane otherwise; gathers always lane by lane.
target triple = "x86_64-pc-linux-gnu"

define <4 x i32> @masked_load(ptr %p, <4 x i1> %m, <4 x i32> %else) {
; CHECK-LABEL: define <4 x i32> @masked_load
; CHECK: %spw.managed = icmp eq
; CHECK: call <4 x i32> @llvm.masked.load.v4i32.p0(ptr {{(align 4 )?}}%spw.raw, {{(i32 4, )?}}<4 x i1> %m, <4 x i32> %else)
; CHECK: phi <4 x i32>
; CHECK: store <4 x i32> %else, ptr %spw.values
; CHECK: bitcast <4 x i1> %m to i4
; CHECK: spw.lanes:
; CHECK: call preserve_mostcc ptr @__spw_load_v1(ptr {{.*}}, i64 4)
; CHECK-NOT: @__spw_load_v1(ptr %p, i64 16)
  %v = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %p, i32 4, <4 x i1> %m, <4 x i32> %else)
  ret <4 x i32> %v
}

define void @masked_store(ptr %p, <8 x double> %v, <8 x i1> %m) {
; CHECK-LABEL: define void @masked_store
; CHECK: call void @llvm.masked.store.v8f64.p0(<8 x double> %v, ptr {{(align 8 )?}}%spw.raw, {{(i32 8, )?}}<8 x i1> %m)
; CHECK: call preserve_mostcc ptr @__spw_store_v1(ptr {{.*}}, i64 8)
  call void @llvm.masked.store.v8f64.p0(<8 x double> %v, ptr %p, i32 8, <8 x i1> %m)
  ret void
}

define <4 x i64> @gather(<4 x ptr> %p, <4 x i1> %m) {
; CHECK-LABEL: define <4 x i64> @gather
; CHECK-NOT: masked.gather
; CHECK: call preserve_mostcc ptr @__spw_load_v1(ptr {{.*}}, i64 8)
; CHECK-NOT: masked.gather
  %v = call <4 x i64> @llvm.masked.gather.v4i64.v4p0(<4 x ptr> %p, i32 8, <4 x i1> %m, <4 x i64> zeroinitializer)
  ret <4 x i64> %v
}

define void @scatter(<4 x i16> %v, <4 x ptr> %p, <4 x i1> %m) {
; CHECK-LABEL: define void @scatter
; CHECK-NOT: masked.scatter
; CHECK: call preserve_mostcc void @__spw_store_across_v1(ptr {{.*}}, ptr {{.*}}, i64 2)
  call void @llvm.masked.scatter.v4i16.v4p0(<4 x i16> %v, <4 x ptr> %p, i32 1, <4 x i1> %m)
  ret void
}

define <4 x i32> @expand(ptr %p, <4 x i1> %m, <4 x i32> %else) {
; CHECK-LABEL: define <4 x i32> @expand
; CHECK-NOT: expandload
; The active lanes so far are the index.
; CHECK: [[INDEX:%.*]] = phi i64
; CHECK: [[ACTIVE:%.*]] = phi i64
; CHECK: getelementptr i32, ptr %p, i64 [[ACTIVE]]
  %v = call <4 x i32> @llvm.masked.expandload.v4i32(ptr %p, <4 x i1> %m, <4 x i32> %else)
  ret <4 x i32> %v
}

define void @compress(ptr %p, <4 x i32> %v, <4 x i1> %m) {
; CHECK-LABEL: define void @compress
; CHECK-NOT: compressstore
; CHECK: ret void
  call void @llvm.masked.compressstore.v4i32(<4 x i32> %v, ptr %p, <4 x i1> %m)
  ret void
}

define <8 x float> @avx(ptr %p, <8 x i32> %m) {
; CHECK-LABEL: define <8 x float> @avx
; CHECK: [[MASK:%.*]] = icmp slt <8 x i32> %m, zeroinitializer
; CHECK: call <8 x float> @llvm.masked.load.v8f32.p0(ptr {{(align 1 )?}}%spw.raw, {{(i32 1, )?}}<8 x i1> [[MASK]]
; CHECK-NOT: call {{.*}}x86.avx
  %v = call <8 x float> @llvm.x86.avx.maskload.ps.256(ptr %p, <8 x i32> %m)
  ret <8 x float> %v
}
declare <4 x i32> @llvm.masked.load.v4i32.p0(ptr, i32, <4 x i1>, <4 x i32>)
declare void @llvm.masked.store.v8f64.p0(<8 x double>, ptr, i32, <8 x i1>)
declare <4 x i64> @llvm.masked.gather.v4i64.v4p0(<4 x ptr>, i32, <4 x i1>, <4 x i64>)
declare void @llvm.masked.scatter.v4i16.v4p0(<4 x i16>, <4 x ptr>, i32, <4 x i1>)
declare <4 x i32> @llvm.masked.expandload.v4i32(ptr, <4 x i1>, <4 x i32>)
declare void @llvm.masked.compressstore.v4i32(<4 x i32>, ptr, <4 x i1>)
declare <8 x float> @llvm.x86.avx.maskload.ps.256(ptr, <8 x i32>)
