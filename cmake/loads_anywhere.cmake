# spw_loads_anywhere(TARGET [WITH_LIBSTDCXX]): for what is loaded into programs of other systems and distributions, or
# runs beside them: no libstdc++ of the system's, whose version may be another, and no symbol of a glibc newer than 2.31.
# tests/api/loads_anywhere_test.py looks at the results.
#
# WITH_LIBSTDCXX: all the same but for that, where exceptions have to be the program's own.
#
# libgcc_s stays outside. It comes with every glibc, which needs it for cancelling threads, and what unwinds frames has to
# be the same in all of a process.
add_library(spw_glibc_floor OBJECT ${CMAKE_SOURCE_DIR}/src/platform/glibc_floor.cc)
target_compile_options(spw_glibc_floor PRIVATE -fno-exceptions)
target_include_directories(spw_glibc_floor PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(spw_glibc_floor PRIVATE spw_options)

add_library(spw_glibc_floor_program OBJECT ${CMAKE_SOURCE_DIR}/src/platform/glibc_floor_program.cc)
target_compile_options(spw_glibc_floor_program PRIVATE -fno-exceptions)
target_include_directories(spw_glibc_floor_program PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(spw_glibc_floor_program PRIVATE spw_options)

function(spw_loads_anywhere target)
  if(SPW_SANITIZE) # which have to stand before glibc's functions themselves
    return()
  endif()
  cmake_parse_arguments(ARG "WITH_LIBSTDCXX" "" "" ${ARGN})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:spw_glibc_floor>)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:spw_glibc_floor_program>)
  endif()
  if(NOT ARG_WITH_LIBSTDCXX)
    target_link_options(${target} PRIVATE -static-libstdc++)
  endif()
  # Where the old versions are before glibc 2.34, and what the runtime looks for by name. By their full names: from 2.34 on
  # nothing is linked with them any more.
  target_link_libraries(${target} PRIVATE -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -l:librt.so.1
    -Wl,--pop-state)
endfunction()
