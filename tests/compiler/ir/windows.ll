; RUN: %opt -passes=spillway -spw-versions=0 -S %s | %filecheck %s
; RUN: %opt -passes=spillway -spw-versions=0 -spw-windows=0 -S %s | %filecheck %s --check-prefix=OFF
; RUN: %opt -passes=spillway -spw-versions=0 -spw-window-blocks-max=0 -S %s | %filecheck %s --check-prefix=NEST
; A stream of a loop whose length nobody knows keeps its granule in registers.
target triple = "x86_64-pc-linux-gnu"

define ptr @lower(ptr %p, i64 %pivot) {
; CHECK-LABEL: define ptr @lower
; CHECK: [[START:%.*]] = phi i64 {{.*}}-9223372036854775808
; CHECK: [[DISTANCE:%.*]] = sub i64 %spw.address, [[START]]
; CHECK: [[INSIDE:%.*]] = icmp ule i64 [[DISTANCE]], 4088
; CHECK: br i1 [[INSIDE]], label %spw.ready, label %spw.outside, !prof
; CHECK: {{^}}spw.outside:
; CHECK: [[FROZEN:%.*]] = freeze ptr %q
; CHECK: {{^}}spw.ready:
; CHECK: [[RAW:%.*]] = phi ptr [ %spw.window_raw.0, %loop ]
; CHECK: phi i64 [ [[DISTANCE]], %loop ]
; OFF-LABEL: define ptr @lower
; OFF-NOT: spw.outside
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %next, %loop ]
  %v = load i64, ptr %q
  %next = getelementptr i64, ptr %q, i64 1
  %c = icmp slt i64 %v, %pivot
  br i1 %c, label %loop, label %done
done:
  ret ptr %q
}

; What is stored through the same pointer behind the loop goes through its window, if the block may be stored to.
define void @swap_at(ptr %p, i64 %pivot) {
; CHECK-LABEL: define void @swap_at
; CHECK: getelementptr inbounds i8, ptr %spw.entry, i64 4
; CHECK: [[OPEN:%.*]] = icmp eq i32
; CHECK: [[MAY:%.*]] = phi i1 [ true, {{.*}} ], [ [[OPEN]], {{.*}} ], [ false, {{.*}} ]
; CHECK: select i1 [[MAY]], i64 {{.*}}, i64 -9223372036854775808
; CHECK: {{^}}done:
; CHECK: [[DISTANCE:%.*]] = sub i64 {{.*}}, %spw.store_window
; CHECK: icmp ule i64 [[DISTANCE]], 4088
; In a large function it does not, so that the window ends with the loop.
; NEST-LABEL: define void @swap_at
; NEST: {{^}}spw.outside:
; NEST: {{^}}done:
; NEST-NOT: spw.window
; NEST-NOT: spw.store_window
; NEST: icmp eq i32
; NEST: ret void
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %next, %loop ]
  %v = load i64, ptr %q
  %next = getelementptr i64, ptr %q, i64 1
  %c = icmp slt i64 %v, %pivot
  br i1 %c, label %loop, label %done
done:
  %found = phi ptr [ %q, %loop ]
  store i64 %pivot, ptr %found
  ret void
}

; Every iteration calls, which would close the window: there is none.
define ptr @calls(ptr %p) {
; CHECK-LABEL: define ptr @calls
; CHECK-NOT: spw.outside
; CHECK: ret ptr
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %next, %loop ]
  %v = load i64, ptr %q
  %next = getelementptr i64, ptr %q, i64 1
  %c = call i1 @stops(i64 %v)
  br i1 %c, label %loop, label %done
done:
  ret ptr %q
}
declare i1 @stops(i64)

; The miss of another access closes the window.
define i64 @chase_beside_stream(ptr %p, ptr %list) {
; CHECK-LABEL: define i64 @chase_beside_stream
; CHECK: {{^}}spw.ready:
; CHECK: {{^}}spw.use:
; CHECK-NEXT: phi i64 {{.*}}[ -9223372036854775808, %spw.miss{{[0-9]*}} ]
entry:
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %next, %loop ]
  %l = phi ptr [ %list, %entry ], [ %link, %loop ]
  %v = load i64, ptr %q
  %link = load ptr, ptr %l
  %next = getelementptr i64, ptr %q, i64 1
  %c = icmp eq i64 %v, 0
  br i1 %c, label %done, label %loop
done:
  ret i64 %v
}

; The nest is the largest one in which not every iteration calls. In a large function a window enters it closed.
define void @nests(ptr %p, i64 %pivot) {
; NEST-LABEL: define void @nests
; NEST: {{^}}outer:
; NEST-NEXT: br label %middle
; NEST: phi ptr [ poison, %outer ]
; NEST-NEXT: phi i64 [ -9223372036854775808, %outer ]
; NEST: {{^}}spw.ready:
entry:
  br label %outer
outer:
  br label %middle
middle:
  %m = phi i64 [ 0, %outer ], [ %up, %next ]
  br label %inner
inner:
  %q = phi ptr [ %p, %middle ], [ %step, %inner ]
  %v = load i64, ptr %q
  %step = getelementptr i64, ptr %q, i64 1
  %c = icmp slt i64 %v, %pivot
  br i1 %c, label %inner, label %next
next:
  %up = add i64 %m, %v
  %again = icmp slt i64 %up, %pivot
  br i1 %again, label %middle, label %last
last:
  %more = call i1 @stops(i64 %up)
  br i1 %more, label %outer, label %done
done:
  ret void
}
