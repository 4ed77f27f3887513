; RUN: %opt -passes=spillway,verify -spw-engine=none -spw-durable -S %s | %filecheck %s
; Stores of some lanes: persistent memory's are announced and stored one by one.
target triple = "x86_64-pc-linux-gnu"

define void @masked(ptr %p, <4 x i32> %v, <4 x i1> %m) {
; CHECK-LABEL: define void @masked
; CHECK: [[FROZEN:%.*]] = freeze ptr %p
; CHECK: [[DISTANCE:%.*]] = sub i64
; CHECK: [[NEAR:%.*]] = add i64 [[DISTANCE]], 15
; CHECK: [[WIDER:%.*]] = add i64 {{.*}}, 15
; CHECK: [[HIT:%.*]] = icmp ult i64 [[NEAR]], [[WIDER]]
; CHECK: br i1 [[HIT]], label %[[LANES:.*]], label %[[WHOLE:.*]], !prof
; CHECK: [[LANES]]:
; CHECK: [[MASK:%.*]] = bitcast <4 x i1> %m to i4
; CHECK: [[BITS:%.*]] = zext i4 [[MASK]] to i64
; CHECK: icmp ne i64 [[BITS]], 0
; CHECK: [[WHOLE]]:
; CHECK-NEXT: @llvm.masked.store.v4i32.p0
; CHECK: [[LEFT:%.*]] = phi i64 [ [[BITS]], %[[LANES]] ], [ [[REST:%.*]], %{{.*}} ]
; CHECK: [[LANE:%.*]] = call i64 @llvm.cttz.i64(i64 [[LEFT]], i1 true)
; CHECK: [[PLACE:%.*]] = getelementptr i32, ptr %p, i64 [[LANE]]
; CHECK: [[VALUE:%.*]] = extractelement <4 x i32> %v, i64 [[LANE]]
; CHECK: @__spw_durable_store_v1(ptr [[PLACE]], i64 4)
; CHECK: store i32 [[VALUE]], ptr [[PLACE]], align 4
; CHECK-NOT: __spw_durable_store
; CHECK: ret void
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %v, ptr %p, i32 4, <4 x i1> %m)
  ret void
}

; The address of a lane that is switched off says nothing.
define void @scatter(<4 x ptr> %p, <4 x double> %v, <4 x i1> %m) {
; CHECK-LABEL: define void @scatter
; CHECK: [[BITS:%.*]] = ptrtoint <4 x ptr> %p to <4 x i64>
; CHECK: sub <4 x i64> [[BITS]]
; CHECK: [[INSIDE:%.*]] = icmp ult <4 x i64>
; CHECK: [[HITS:%.*]] = select <4 x i1> %m, <4 x i1> [[INSIDE]], <4 x i1> zeroinitializer
; CHECK: bitcast <4 x i1> [[HITS]] to i4
; CHECK: @llvm.masked.scatter.v4f64.v4p0
; CHECK: [[PLACE:%.*]] = extractelement <4 x ptr> %p, i64
; CHECK: @__spw_durable_store_v1(ptr [[PLACE]], i64 8)
; CHECK: store double {{.*}}, ptr [[PLACE]], align 8
; CHECK: ret void
  call void @llvm.masked.scatter.v4f64.v4p0(<4 x double> %v, <4 x ptr> %p, i32 8, <4 x i1> %m)
  ret void
}

define void @compress(ptr %p, <8 x i16> %v, <8 x i1> %m) {
; CHECK-LABEL: define void @compress
; CHECK: [[MASK:%.*]] = bitcast <8 x i1> %m to i8
; CHECK: [[BITS:%.*]] = zext i8 [[MASK]] to i64
; CHECK: [[COUNT:%.*]] = call i64 @llvm.ctpop.i64(i64 [[BITS]])
; CHECK: [[BYTES:%.*]] = mul i64 [[COUNT]], 2
; CHECK: @__spw_durable_store_v1(ptr {{.*}}, i64 [[BYTES]])
; CHECK: @llvm.masked.compressstore.v8i16
  call void @llvm.masked.compressstore.v8i16(<8 x i16> %v, ptr %p, <8 x i1> %m)
  ret void
}

; The processor's own, which looks at signs.
define void @x86(ptr %p, <8 x i32> %m, <8 x float> %v) {
; CHECK-LABEL: define void @x86
; CHECK: @llvm.masked.store.v8f32.p0
; CHECK: @__spw_durable_store_v1(ptr {{.*}}, i64 4)
; CHECK: store float
  call void @llvm.x86.avx.maskstore.ps.256(ptr %p, <8 x i32> %m, <8 x float> %v)
  ret void
}

define void @skipped(<4 x i32> %v, <4 x i1> %m) {
; CHECK-LABEL: define void @skipped
; CHECK-NOT: spw
; CHECK: ret void
  %a = alloca <4 x i32>
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %v, ptr %a, i32 4, <4 x i1> %m)
  ret void
}
declare void @llvm.masked.store.v4i32.p0(<4 x i32>, ptr, i32, <4 x i1>)
declare void @llvm.masked.scatter.v4f64.v4p0(<4 x double>, <4 x ptr>, i32, <4 x i1>)
declare void @llvm.masked.compressstore.v8i16(<8 x i16>, ptr, <8 x i1>)
declare void @llvm.x86.avx.maskstore.ps.256(ptr, <8 x i32>, <8 x float>)
