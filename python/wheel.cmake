# What the wheel has of the repository: pyproject.toml has cmake read this file before the project's own CMakeLists.txt.
#
# The runtime is tested as clang compiles it, so that is what is taken where it is there. scikit-build-core always sets CC
# and CXX, to what Python was compiled with; another compiler is chosen by --config-setting=cmake.define.CMAKE_CXX_COMPILER=...
find_program(SPW_WHEEL_CLANG NAMES clang-19 NO_CACHE)
find_program(SPW_WHEEL_CLANGXX NAMES clang++-19 NO_CACHE)
if(SPW_WHEEL_CLANG AND SPW_WHEEL_CLANGXX AND NOT DEFINED CMAKE_CXX_COMPILER)
  set(CMAKE_C_COMPILER ${SPW_WHEEL_CLANG} CACHE FILEPATH "")
  set(CMAKE_CXX_COMPILER ${SPW_WHEEL_CLANGXX} CACHE FILEPATH "")
endif()

# What checks say names files of the repository, not of the machine that built it.
string(APPEND CMAKE_C_FLAGS_INIT " -ffile-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}/=")
string(APPEND CMAKE_CXX_FLAGS_INIT " -ffile-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}/=")

# A wheel is compiled as what is tested is: one source at a time.
function(spw_wheel_no_unity directory)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endforeach()
  get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(each IN LISTS below)
    spw_wheel_no_unity(${each})
  endforeach()
endfunction()

# After the project's own targets are known. The component is all that is installed.
function(spw_wheel_targets)
  spw_wheel_no_unity(${CMAKE_SOURCE_DIR})
  add_library(spillway_numpy MODULE ${CMAKE_SOURCE_DIR}/python/native/numpy_allocator.c)
  target_compile_options(spillway_numpy PRIVATE -std=gnu17 -Wall -Wextra)
  target_link_libraries(spillway_numpy PRIVATE Threads::Threads)
  set_target_properties(spillway_numpy PROPERTIES C_VISIBILITY_PRESET hidden)
  set_target_properties(spillway spillway_tool spillway_first PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  install(PROGRAMS $<TARGET_FILE:spillway_tool> DESTINATION bin COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES $<TARGET_FILE:spillway_numpy> DESTINATION lib COMPONENT python EXCLUDE_FROM_ALL)
  # A wheel holds no links: one name each, the one by which it is looked for.
  install(FILES $<TARGET_FILE:spillway> DESTINATION lib RENAME libspillway.so COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES $<TARGET_FILE:spillway_first> DESTINATION lib RENAME $<TARGET_SONAME_FILE_NAME:spillway_first>
    COMPONENT python EXCLUDE_FROM_ALL)
  # What is linked in has notices that go with it.
  foreach(package liburing-dev libfmt-dev libcli11-dev nlohmann-json3-dev)
    set(notice /usr/share/doc/${package}/copyright)
    if(EXISTS ${notice})
      install(FILES ${notice} DESTINATION licenses RENAME ${package}.txt COMPONENT python EXCLUDE_FROM_ALL)
    else()
      message(WARNING "${notice} is missing: a wheel to be given away needs the notice of ${package}")
    endif()
  endforeach()
  install(CODE "file(GLOB files \${CMAKE_INSTALL_PREFIX}/bin/* \${CMAKE_INSTALL_PREFIX}/lib/*)
    foreach(file IN LISTS files)
      execute_process(COMMAND ${CMAKE_STRIP} --strip-unneeded \${file} COMMAND_ERROR_IS_FATAL ANY)
    endforeach()" COMPONENT python EXCLUDE_FROM_ALL)
endfunction()
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL spw_wheel_targets)
