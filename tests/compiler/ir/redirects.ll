; RUN: %opt -passes=spillway -spw-versions=0 -S %s | %filecheck %s
; External functions of calls.def, in calls and as values; a function of the same name that the module defines stays.
target triple = "x86_64-pc-linux-gnu"
@table = global ptr @calloc
; CHECK: @table = global ptr @__spw_calloc_v1

define ptr @f(i64 %n) {
; CHECK-LABEL: define ptr @f
; CHECK: call ptr @__spw_malloc_v1(i64 %n)
; CHECK: call i64 @strlen(ptr
; CHECK: call void @free(ptr
  %p = call ptr @malloc(i64 %n)
  %l = call i64 @strlen(ptr %p)
  call void @free(ptr %p)
  ret ptr %p
}
define i64 @strlen(ptr %s) {
  ret i64 7
}
; CHECK: declare ptr @__spw_malloc_v1(i64)
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare void @free(ptr)
