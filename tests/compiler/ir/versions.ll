; RUN: %opt -passes=spillway,verify -S %s | %filecheck %s
; RUN: %opt -passes=spillway,verify -spw-polls=0 -S %s | %filecheck %s --check-prefix=NOPOLL
; RUN: %opt -passes=spillway,verify -spw-versions=0 -S %s | %filecheck %s --check-prefix=ONE
; RUN: %opt -passes=spillway,verify -spw-count-hits -S %s | %filecheck %s --check-prefix=ONE
; Two versions of a function for the translated engine, and where the plain one goes over to the translated one.
target triple = "x86_64-pc-linux-gnu"

define i64 @load(ptr %p) {
; CHECK-LABEL: define i64 @load
; CHECK-NEXT: [[SWITCH:%.*]] = load volatile i8, ptr inttoptr (i64 2147450880 to ptr)
; CHECK-NEXT: [[SET:%.*]] = icmp ne i8 [[SWITCH]], 0
; CHECK-NEXT: br i1 [[SET]], label %spw.instrumented, label %spw.instrumented.plain{{$}}
; CHECK: spw.instrumented.plain:
; CHECK-NEXT: [[PLAIN:%.*]] = load i64, ptr %p
; CHECK-NEXT: ret i64 [[PLAIN]]
; CHECK: spw.instrumented:
; CHECK: call preserve_mostcc ptr @__spw_load_v1(ptr %p, i64 8)
; ONE-LABEL: define i64 @load
; ONE-NOT: 2147450880
; ONE: ret i64
  %v = load i64, ptr %p
  ret i64 %v
}

; The crossing enters the translated loop in front of its header, which stays a loop with one entry.
define i64 @chase(ptr %p, i64 %k) {
; CHECK-LABEL: define i64 @chase
; CHECK: loop.plain:
; CHECK-NEXT: [[AT:%.*]] = phi ptr [ %p, %spw.instrumented.plain ]
; CHECK-NEXT: [[N:%.*]] = phi i64
; CHECK: br i1 {{.*}}, label %spw.front, label %spw.stay, !prof
; CHECK: spw.front:
; CHECK-NEXT: [[TWICE:%.*]] = phi i64 [ %twice.plain, %loop.plain ], [ %twice, %spw.instrumented ]
; CHECK-NEXT: [[FIRST:%.*]] = phi ptr [ %p, %spw.instrumented ], [ [[AT]], %loop.plain ]
; CHECK-NEXT: phi i64 [ %twice, %spw.instrumented ], [ [[N]], %loop.plain ]
; CHECK-NEXT: br label %loop{{$}}
; CHECK: loop:
; CHECK-NEXT: phi ptr [ [[FIRST]], %spw.front ], [ %next, %spw.use ]
; CHECK: exit:
; CHECK-NEXT: add i64 %n.next, [[TWICE]]
; NOPOLL-LABEL: define i64 @chase
; NOPOLL: load volatile i8
; NOPOLL-NOT: load volatile i8
; NOPOLL-LABEL: define i64 @nothing
entry:
  %twice = shl i64 %k, 1
  br label %loop
loop:
  %at = phi ptr [ %p, %entry ], [ %next, %loop ]
  %n = phi i64 [ %twice, %entry ], [ %n.next, %loop ]
  %next = load ptr, ptr %at
  %n.next = sub i64 %n, %k
  %done = icmp eq ptr %next, null
  br i1 %done, label %exit, label %loop
exit:
  %sum = add i64 %n.next, %twice
  ret i64 %sum
}

; No access, one version.
define i64 @nothing(i64 %a) {
; CHECK-LABEL: define i64 @nothing
; CHECK-NEXT: %b = add
  %b = add i64 %a, 1
  ret i64 %b
}

; A function that is to be small has one, too.
define i64 @small(ptr %p) minsize {
; CHECK-LABEL: define i64 @small
; CHECK-NOT: load volatile i8
; CHECK: ret i64
  %v = load i64, ptr %p
  ret i64 %v
}
