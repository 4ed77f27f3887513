; RUN: %opt -passes=spillway -spw-versions=0 -S %s | %filecheck %s
; RUN: %opt -passes=spillway -spw-versions=0 -spw-block-loops=0 -S %s | %filecheck %s --check-prefix=OFF
target triple = "x86_64-pc-linux-gnu"
; OFF-NOT: spw.dispatch

define i64 @sum(ptr %p, i64 %n) {
; CHECK-LABEL: define i64 @sum
; CHECK: [[SHORT:%spw.short]] = icmp ult i64 {{.*}}, 15
; CHECK: spw.dispatch:
; CHECK: %spw.iteration = phi i64 [ 0, {{.*}} ]
; CHECK: br i1 [[SHORT]], label %spw.slow_entry, label %spw.streams
; Eight bytes of stride eight: the iterations to the granule's end, less one.
; CHECK: [[ROOM:%.*]] = sub i32 4088, {{.*}}
; CHECK: udiv i32 [[ROOM]], 8
; CHECK: call i64 @llvm.umin.i64
; The fast loop: nothing but the access, and a count.
; CHECK: {{^}}loop:
; CHECK-NEXT: %spw.left = phi
; CHECK-NOT: br i1
; CHECK: load i64, ptr %spw.raw
; CHECK: icmp eq i64 %spw.left, 0
; CHECK-NEXT: add i64 %spw.left, -1
; CHECK-NEXT: br i1 {{.*}}, label %spw.fast_done, label %loop
; CHECK: loop.slow:
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %t, %loop ]
  %q = getelementptr inbounds i64, ptr %p, i64 %i
  %v = load i64, ptr %q
  %t = add i64 %s, %v
  %next = add nuw i64 %i, 1
  %c = icmp eq i64 %next, %n
  br i1 %c, label %done, label %loop
done:
  ret i64 %t
}

; An access that an iteration may skip could lie where no block is.
define void @conditional(ptr %p, ptr %q, i64 %n) {
; CHECK-LABEL: define void @conditional
; CHECK-NOT: spw.dispatch
; CHECK: ret void
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %a = getelementptr inbounds i64, ptr %p, i64 %i
  %v = load i64, ptr %a
  %even = icmp eq i64 %v, 0
  br i1 %even, label %then, label %latch
then:
  %b = getelementptr inbounds i64, ptr %q, i64 %i
  store i64 1, ptr %b
  br label %latch
latch:
  %next = add nuw i64 %i, 1
  %c = icmp eq i64 %next, %n
  br i1 %c, label %done, label %loop
done:
  ret void
}

; A dispatch for eleven iterations does not pay.
define void @few(ptr %p) {
; CHECK-LABEL: define void @few
; CHECK-NOT: spw.dispatch
; CHECK: ret void
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr inbounds i64, ptr %p, i64 %i
  store i64 1, ptr %a
  %next = add nuw i64 %i, 1
  %c = icmp eq i64 %next, 11
  br i1 %c, label %done, label %loop
done:
  ret void
}
