# A folder of src/ is one target, and a target sees only the headers of the layers it names. abi/ and lab/ are such folders
# outside of src/: the first layer and the last.
#
# Every layer NAME gets an include path of its own that holds a single link NAME -> src/NAME, so that
# `#include "store/store.h"` is found only by targets that depend on spw_store. scripts/check_layers.py
# checks the order of the layers themselves on every build.

set(SPW_LAYERS abi base platform telemetry locality page_cache store cache nodes region heap durable
    access access/translate access/mapped files libc process api lab)

function(spw_layer_include_path layer out)
  string(REPLACE "/" "_" flat ${layer})
  set(root ${CMAKE_BINARY_DIR}/layers/${flat})
  if(layer MATCHES "^(abi|lab)$")
    set(source ${CMAKE_SOURCE_DIR}/${layer})
  else()
    set(source ${CMAKE_SOURCE_DIR}/src/${layer})
  endif()
  get_filename_component(parent ${root}/${layer} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${source} ${root}/${layer} SYMBOLIC)
  set(${out} ${root} PARENT_SCOPE)
endfunction()

add_library(spw_options INTERFACE)
target_compile_options(spw_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror=return-type
    -Werror=unused-result -fno-omit-frame-pointer)
if(SPW_CHECKED)
  target_compile_definitions(spw_options INTERFACE SPW_CHECKED=1)
endif()
if(SPW_SANITIZE)
  target_compile_options(spw_options INTERFACE -fsanitize=${SPW_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(spw_options INTERFACE -fsanitize=${SPW_SANITIZE})
endif()

# Every layer's library and nothing else: what `./dev test gcc` builds.
add_custom_target(layers)

# spw_layer(NAME SOURCES ... DEPENDS ...): one layer of the runtime. No sources: a header-only layer.
function(spw_layer layer)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  string(REPLACE "/" "_" flat ${layer})
  set(target spw_${flat})
  spw_layer_include_path(${layer} include_path)
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    add_dependencies(layers ${target})
    set(scope PUBLIC)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions> -ftls-model=initial-exec)
    target_link_libraries(${target} PRIVATE ${ARG_PRIVATE})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${include_path})
  target_link_libraries(${target} ${scope} spw_options ${ARG_DEPENDS})
endfunction()

# spw_layer_part(LAYER PART SOURCES ... DEPENDS ...): a piece of a layer as target spw_<layer>_<part>, for a user that needs it
# without the rest (the command line tool reads options without starting a runtime).
function(spw_layer_part layer part)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  string(REPLACE "/" "_" flat ${layer})
  set(target spw_${flat}_${part})
  spw_layer_include_path(${layer} include_path)
  add_library(${target} STATIC ${ARG_SOURCES})
  target_compile_options(${target} PRIVATE -fno-exceptions)
  target_include_directories(${target} PUBLIC ${include_path})
  target_link_libraries(${target} PUBLIC spw_options ${ARG_DEPENDS})
endfunction()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_custom_target(check_layers ALL
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/check_layers.py ${CMAKE_SOURCE_DIR}
  COMMENT "Checking that no include goes up a layer")
