# `cmake --install build/release --prefix DIR` installs everything; `--component NAME` a part:
#   runtime      the tool, libspillway, libspillway_first, which it needs, libspillway_cxx, which recompiled C++ programs
#                need, and umap's interface
#   development  headers, links for the linker, umap's archive, pkg-config's and CMake's files
#   compiler     the drivers and the pass
# Each has its manual pages and completions. tests/tools/install_test.py works with an installation of everything,
# tests/packages/packages_test.py with the packages that are made of the parts.
include(CMakePackageConfigHelpers)

set(shared_libraries spillway spillway_cxx spillway_first)
if(TARGET umap)
  list(APPEND shared_libraries umap)
  install(TARGETS umap_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  install(DIRECTORY compat/umap/umap DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
endif()
install(TARGETS spillway_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(TARGETS ${shared_libraries} EXPORT SpillwayTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/spillway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

# find_package(Spillway): Spillway::spillway, Spillway::cxx, Spillway::umap.
set_target_properties(spillway_cxx PROPERTIES EXPORT_NAME cxx)
install(EXPORT SpillwayTargets NAMESPACE Spillway:: DESTINATION ${SPW_INSTALL_CMAKEDIR} COMPONENT development)
configure_package_config_file(cmake/SpillwayConfig.cmake.in ${CMAKE_BINARY_DIR}/SpillwayConfig.cmake
  INSTALL_DESTINATION ${SPW_INSTALL_CMAKEDIR} PATH_VARS CMAKE_INSTALL_BINDIR)
# Before 1.0 a minor version may break what an earlier one compiled (CHANGELOG.md).
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(${CMAKE_BINARY_DIR}/SpillwayConfigVersion.cmake COMPATIBILITY ${compatibility})
install(FILES ${CMAKE_BINARY_DIR}/SpillwayConfig.cmake ${CMAKE_BINARY_DIR}/SpillwayConfigVersion.cmake
  DESTINATION ${SPW_INSTALL_CMAKEDIR} COMPONENT development)

# spw_pkg_config(NAME DESCRIPTION LIBRARY [REQUIRES]). By its own place, so that an installation may be moved; /usr is not.
set(pkg_config_prefix /usr)
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE up)
  cmake_path(NATIVE_PATH up NORMALIZE up)
  set(pkg_config_prefix "\${pcfiledir}/${up}")
endif()
function(spw_pkg_config name description library requires)
  configure_file(cmake/pkg_config.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()
spw_pkg_config(spillway "Programs on data bigger than memory: the C API" spillway "")
spw_pkg_config(spillway-cxx "Programs on data bigger than memory: what C++ programs link, too" spillway_cxx spillway)
if(TARGET umap)
  spw_pkg_config(spillway-umap "UMap's interface over Spillway" umap "")
endif()

# spw_install_completions(TARGET NAME COMPONENT ARGUMENT): what the program says of itself when it is given this, with SHELL
# replaced by the name of one.
function(spw_install_completions target name component argument)
  set(made "")
  foreach(shell bash zsh fish)
    set(file ${CMAKE_BINARY_DIR}/completions/${name}.${shell})
    string(REPLACE "SHELL" ${shell} words "${argument}")
    add_custom_command(OUTPUT ${file}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/completions
      COMMAND ${target} ${words} > ${file} DEPENDS ${target} VERBATIM)
    list(APPEND made ${file})
  endforeach()
  add_custom_target(${target}_completions ALL DEPENDS ${made})
  set(folders ${CMAKE_INSTALL_DATADIR}/bash-completion/completions ${SPW_INSTALL_ZSHDIR} ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  set(names ${name} _${name} ${name}.fish)
  foreach(file folder as IN ZIP_LISTS made folders names)
    install(FILES ${file} DESTINATION ${folder} RENAME ${as} COMPONENT ${component})
  endforeach()
endfunction()

spw_install_completions(spillway_tool spillway runtime "completion;SHELL")
install(FILES docs/man/spillway.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 COMPONENT development FILES_MATCHING PATTERN "*.3")
install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man7 COMPONENT runtime FILES_MATCHING PATTERN "*.7")

if(SPILLWAY_COMPILER)
  install(TARGETS spillway-clang RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT compiler)
  install(FILES $<TARGET_FILE_DIR:spillway-clang>/spillway-clang++ DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT compiler)
  install(TARGETS spillway_pass LIBRARY DESTINATION ${SPW_INSTALL_PRIVATEDIR} COMPONENT compiler)
  spw_install_completions(spillway-clang spillway-clang compiler --spillway-completion=SHELL)
  install(FILES docs/man/spillway-clang.1 docs/man/spillway-clang++.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT compiler)
endif()
