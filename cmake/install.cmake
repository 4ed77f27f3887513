# `cmake --install build/release --prefix DIR`: the tool, the drivers, the runtime (libspillway, libspillway_first, which
# it needs, and libspillway_cxx, which recompiled C++ programs need), the pass, the headers and the manual pages.
# tests/tools/install_test.py works with one.
# The drivers look for the runtime and the pass in ../lib beside themselves, so bin and lib keep their places.
install(TARGETS spillway_tool RUNTIME DESTINATION bin)
install(TARGETS spillway spillway_cxx spillway_first LIBRARY DESTINATION lib)
if(TARGET umap)
  install(TARGETS umap umap_static LIBRARY DESTINATION lib ARCHIVE DESTINATION lib)
  install(DIRECTORY compat/umap/umap DESTINATION include)
endif()
if(SPILLWAY_COMPILER)
  install(TARGETS spillway-clang RUNTIME DESTINATION bin)
  install(CODE [[file(CREATE_LINK spillway-clang $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/spillway-clang++ SYMBOLIC)]])
  install(TARGETS spillway_pass LIBRARY DESTINATION lib)
endif()
install(DIRECTORY include/spillway DESTINATION include)
install(FILES docs/man/spillway.1 docs/man/spillway-clang.1 DESTINATION share/man/man1)
install(DIRECTORY docs/man/ DESTINATION share/man/man3 FILES_MATCHING PATTERN "*.3")
install(DIRECTORY docs/man/ DESTINATION share/man/man7 FILES_MATCHING PATTERN "*.7")
