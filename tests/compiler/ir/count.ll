; RUN: %opt -passes=spillway -spw-versions=0 -spw-count-hits -S %s | %filecheck %s
target triple = "x86_64-pc-linux-gnu"
define i64 @f(ptr %p) {
; CHECK: spw.hit:
; CHECK: [[COUNTER:%.*]] = getelementptr i8, ptr {{.*}}, i64 16
; CHECK: [[HITS:%.*]] = load i64, ptr [[COUNTER]]
; CHECK: [[MORE:%.*]] = add i64 [[HITS]], 1
; CHECK: store i64 [[MORE]], ptr [[COUNTER]]
  %v = load i64, ptr %p
  ret i64 %v
}
