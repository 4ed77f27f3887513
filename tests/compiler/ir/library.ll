; RUN: %opt -passes=spillway,verify -spw-versions=0 -S %s | %filecheck %s
; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-versions=0 -S %s | %filecheck %s --check-prefix=MAPPED
; RUN: %opt -passes=spillway,verify -spw-versions=0 -spw-library=0 -S %s | %filecheck %s --check-prefix=OFF
; Functions of libstdc++ on nodes become ours, which come along, are instrumented, and are shared by all modules of a program.
target triple = "x86_64-pc-linux-gnu"

; CHECK: $__spw_tree_next_translated_v1 = comdat any
; CHECK-LABEL: define ptr @next
; CHECK: call ptr @__spw_tree_next_translated_v1(ptr
; OFF-LABEL: define ptr @next
; OFF: call ptr @_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base(ptr
define ptr @next(ptr %node) {
  %next = call ptr @_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base(ptr %node)
  ret ptr %next
}

; One that the module defines stays.
; CHECK-LABEL: define ptr @_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base
define ptr @_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base(ptr %node) {
  ret ptr %node
}

; CHECK: define linkonce_odr hidden {{.*}}ptr @__spw_tree_next_translated_v1({{.*}} comdat
; CHECK: call {{.*}}@__spw_load_v1
; CHECK-NOT: __spw_tree_insert
; MAPPED: define linkonce_odr hidden {{.*}}ptr @__spw_tree_next_mapped_v1({{.*}} comdat
; MAPPED: call {{.*}}@__spw_reach_load_v1

declare ptr @_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base(ptr)
