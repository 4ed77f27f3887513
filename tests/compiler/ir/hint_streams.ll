; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -spw-versions=0 -S %s | %filecheck %s
; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -spw-versions=0 -spw-hint-chunks=0 -S %s | %filecheck %s --check-prefix=NOCHUNK
; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -spw-versions=0 -spw-hint-streams=0 -S %s | %filecheck %s --check-prefix=NOSTREAM
; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -spw-versions=0 -spw-hint-block-wise=0 -S %s | %filecheck %s --check-prefix=NOBLOCK
; Addresses that move through a loop by a constant stride.
target triple = "x86_64-pc-linux-gnu"

; A vector loop keeps its body and gets a nearer bound.
define <2 x i64> @vectors(ptr %p, i64 %n) {
; CHECK-LABEL: define <2 x i64> @vectors
; CHECK: [[DISTANCE:%.*]] = sub i64 %n, 2
; CHECK: [[LEFT:%.*]] = freeze i64 [[DISTANCE]]
; CHECK: icmp uge i64 [[LEFT]], 32768
; CHECK: [[BYTES:%.*]] = mul i64 {{.*}}, 16
; CHECK: icmp uge i64 [[BYTES]], 262144
; CHECK: call void @__spw_hint_stream_v1(ptr {{.*}}, i64 [[BYTES]], i64 0)
; CHECK: spw.dispatch:
; CHECK: [[Q:%.*]] = getelementptr i64, ptr %p, i64
; CHECK: [[LAST:%.*]] = getelementptr i8, ptr [[Q]], i64 15
; CHECK: [[ROOM:%.*]] = and i32 {{.*}}, 4095
; CHECK: udiv i32 [[ROOM]], 16
; CHECK: call i64 @llvm.umin.i64
; CHECK: call preserve_mostcc void @__spw_hint_load_v1
; CHECK: %spw.end = add
; CHECK: loop:
; CHECK-NEXT: phi i64
; CHECK-NEXT: phi <2 x i64>
; CHECK-NEXT: getelementptr
; CHECK-NEXT: load <2 x i64>
; CHECK-NEXT: add <2 x i64>
; CHECK-NEXT: add i64
; CHECK-NEXT: icmp eq i64 {{.*}}, %spw.end
; CHECK-NEXT: br i1 {{.*}}, label %spw.done, label %loop
; CHECK: spw.done:
; CHECK: icmp eq i64 {{.*}}, %n
; CHECK: br i1 {{.*}}, label %done, label %spw.dispatch
; NOCHUNK-LABEL: define <2 x i64> @vectors
; NOCHUNK-NOT: spw.dispatch
; NOCHUNK: loop:
; NOCHUNK: and i64 {{.*}}, 4080
; NOCHUNK: ret <2 x i64>
; NOSTREAM-NOT: __spw_hint_stream_v1
; NOBLOCK-LABEL: define <2 x i64> @vectors
; NOBLOCK-NOT: 4095
; NOBLOCK-NOT: __spw_hint_stream_v1
; NOBLOCK: loop:
; NOBLOCK: @__spw_hint_load_v1(ptr %q)
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi <2 x i64> [ zeroinitializer, %entry ], [ %t, %loop ]
  %q = getelementptr i64, ptr %p, i64 %i
  %v = load <2 x i64>, ptr %q, align 8
  %t = add <2 x i64> %s, %v
  %i.next = add i64 %i, 2
  %c = icmp eq i64 %i.next, %n
  br i1 %c, label %done, label %loop
done:
  ret <2 x i64> %t
}

; Where the chunks' own instructions would be more than what they save, loops are left whole: surely short ones...
define <2 x i64> @short_vectors(ptr %p) {
; CHECK-LABEL: define <2 x i64> @short_vectors
; CHECK-NOT: spw.dispatch
; CHECK: ret <2 x i64>
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi <2 x i64> [ zeroinitializer, %entry ], [ %t, %loop ]
  %q = getelementptr i64, ptr %p, i64 %i
  %v = load <2 x i64>, ptr %q, align 8
  %t = add <2 x i64> %s, %v
  %i.next = add i64 %i, 2
  %c = icmp eq i64 %i.next, 16
  br i1 %c, label %done, label %loop
done:
  ret <2 x i64> %t
}

define <2 x i64> @longer_vectors(ptr %p) {
; CHECK-LABEL: define <2 x i64> @longer_vectors
; CHECK: spw.dispatch
; CHECK: ret <2 x i64>
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi <2 x i64> [ zeroinitializer, %entry ], [ %t, %loop ]
  %q = getelementptr i64, ptr %p, i64 %i
  %v = load <2 x i64>, ptr %q, align 8
  %t = add <2 x i64> %s, %v
  %i.next = add i64 %i, 2
  %c = icmp eq i64 %i.next, 18
  br i1 %c, label %done, label %loop
done:
  ret <2 x i64> %t
}

; ... and those without vectors that are not surely long.
define i64 @words(ptr %p) {
; CHECK-LABEL: define i64 @words
; CHECK-NOT: spw.dispatch
; CHECK: ret i64
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %t, %loop ]
  %q = getelementptr i64, ptr %p, i64 %i
  %v = load i64, ptr %q, align 8
  %t = add i64 %s, %v
  %i.next = add i64 %i, 1
  %c = icmp eq i64 %i.next, 127
  br i1 %c, label %done, label %loop
done:
  ret i64 %t
}

define i64 @many_words(ptr %p) {
; CHECK-LABEL: define i64 @many_words
; CHECK: spw.dispatch
; CHECK: ret i64
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %t, %loop ]
  %q = getelementptr i64, ptr %p, i64 %i
  %v = load i64, ptr %q, align 8
  %t = add i64 %s, %v
  %i.next = add i64 %i, 1
  %c = icmp eq i64 %i.next, 128
  br i1 %c, label %done, label %loop
done:
  ret i64 %t
}

; One instruction asks whether an aligned access is the first to its piece; the first iteration's address is tested before the loop.
define void @forwards(ptr %p) {
; CHECK-LABEL: define void @forwards
; CHECK: entry:
; CHECK: [[FIRST:%.*]] = freeze ptr %p
; CHECK: @__spw_hint_store_v1(ptr [[FIRST]])
; CHECK: loop:
; CHECK: [[BITS:%.*]] = and i64 {{.*}}, 4088
; CHECK: [[ENTERS:%.*]] = icmp eq i64 [[BITS]], 0
; CHECK: br i1 [[ENTERS]], {{.*}}, !prof [[WEIGHTS:!.*]]
; CHECK: @__spw_hint_store_v1(ptr %q)
; CHECK: ret void
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %q.next, %loop ]
  %v = call i64 @next()
  store i64 %v, ptr %q, align 8
  %q.next = getelementptr i8, ptr %q, i64 8
  %c = icmp slt i64 %v, 10
  br i1 %c, label %done, label %loop
done:
  ret void
}

; Down, and by a stride that is no power of two.
define void @backwards(ptr %p) {
; CHECK-LABEL: define void @backwards
; CHECK: loop:
; CHECK: [[BITS:%.*]] = and i64 {{.*}}, 4095
; CHECK: icmp uge i64 [[BITS]], 4072
; CHECK: @__spw_hint_store_v1
; CHECK: ret void
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %q.next, %loop ]
  %v = call i64 @next()
  store i64 %v, ptr %q, align 8
  %q.next = getelementptr i8, ptr %q, i64 -24
  %c = icmp slt i64 %v, 10
  br i1 %c, label %done, label %loop
done:
  ret void
}

; Not in every iteration: the first access to a piece may be left out, so each is tested.
define void @conditional(ptr %p, i1 %yes) {
; CHECK-LABEL: define void @conditional
; CHECK: loop:
; CHECK-NOT: and i64
; CHECK: @__spw_hint_store_v1(ptr %q)
; CHECK: ret void
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %q.next, %latch ]
  %v = call i64 @next()
  br i1 %yes, label %then, label %latch
then:
  store i64 %v, ptr %q, align 8
  br label %latch
latch:
  %q.next = getelementptr i8, ptr %q, i64 8
  %c = icmp slt i64 %v, 10
  br i1 %c, label %done, label %loop
done:
  ret void
}
declare i64 @next()
; CHECK: [[WEIGHTS]] = !{!"branch_weights", i32 1, i32 512}
