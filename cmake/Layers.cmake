# Reads layers.toml: CONVOY_LAYERS (in order), CONVOY_LAYER_<name>_INCLUDES,
# CONVOY_LAYER_<name>_LIBTORCH, CONVOY_LAYER_<name>_FOLDER (convoy/DISTRICT/NAME, or convoy/NAME
# where the layer is all of its district).
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/layers.toml)
file(STRINGS ${CMAKE_SOURCE_DIR}/layers.toml _lines)
set(CONVOY_LAYERS "")
foreach(_line IN LISTS _lines)
  # CMake lists treat brackets specially; make them plain before matching.
  string(REPLACE "[" "<" _line "${_line}")
  string(REPLACE "]" ">" _line "${_line}")
  if(_line MATCHES "^<([a-z_]+)>")
    set(_layer ${CMAKE_MATCH_1})
    list(APPEND CONVOY_LAYERS ${_layer})
    set(CONVOY_LAYER_${_layer}_LIBTORCH OFF)
    set(CONVOY_LAYER_${_layer}_FOLDER convoy/${_layer})
  elseif(_line MATCHES "^includes = <(.*)>")
    string(REGEX REPLACE "[\", ]+" ";" _includes "${CMAKE_MATCH_1}")
    list(REMOVE_ITEM _includes "")
    set(CONVOY_LAYER_${_layer}_INCLUDES ${_includes})
  elseif(_line MATCHES "^district = \"([a-z_]+)\"" AND NOT CMAKE_MATCH_1 STREQUAL _layer)
    set(CONVOY_LAYER_${_layer}_FOLDER convoy/${CMAKE_MATCH_1}/${_layer})
  elseif(_line MATCHES "^libtorch = true")
    set(CONVOY_LAYER_${_layer}_LIBTORCH ON)
  endif()
endforeach()

# Jumbo units: a few sources of a library are compiled as one, so that the headers they share are
# read and the templates they share are made once. Names of a layer's anonymous namespaces must
# differ for that. OFF compiles each source by itself:
# fewer seconds after an edit, more processor time for all.
option(CONVOY_JUMBO "compile several sources of a layer as one unit" ON)
set(CONVOY_JUMBO_SOURCES 20 CACHE STRING "sources in a jumbo unit")  # 10 take a fifth longer in all, and 1.2 GB in place of 1.4

# convoy_jumbo(target): compiles a target in jumbo units. A source with compile options of its own
# stays alone. The variants of an op (x_cpu.cpp, x_aten.cpp, x_cuda.cpp) name their functions alike,
# so each kind has units of its own.
function(convoy_jumbo target)
  if(NOT CONVOY_JUMBO)
    return()
  endif()
  get_target_property(_sources ${target} SOURCES)
  foreach(_source IN LISTS _sources)
    set(_kind "")
    if(_source MATCHES "_(aten|cpu|cuda)\\.cpp$")
      set(_kind _${CMAKE_MATCH_1})
    endif()
    math(EXPR _unit "${_num${_kind}} + 0")
    math(EXPR _num${_kind} "${_unit} + 1")
    math(EXPR _unit "${_unit} / ${CONVOY_JUMBO_SOURCES}")
    set_source_files_properties(${_source} PROPERTIES UNITY_GROUP ${target}${_kind}_${_unit})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC warns of members whose type is of an anonymous namespace, except in a unit's main file.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# The sources of layers in a build that leaves parts of them out (CONVOY_WHOLE).
set(CONVOY_PART_pictures picture.cpp drawing_absent.cpp)
set(CONVOY_PART_experiments find_workload.cpp registry_absent.cpp cuda/device.cpp)

# Tests are compiled more often than they run long.
set(CONVOY_TEST_FLAGS -O1)

# convoy_layer(name [LIBRARIES targets...] [OWN_FLAGS flags...]): the static library of one layer,
# from every source in its folder, linked by the layer table; and one test program from every
# *_test.cpp beside the sources.
function(convoy_layer name)
  cmake_parse_arguments(ARG "" "" "LIBRARIES;OWN_FLAGS" ${ARGN})
  set(_dir ${CMAKE_SOURCE_DIR}/${CONVOY_LAYER_${name}_FOLDER})
  file(GLOB_RECURSE _sources CONFIGURE_DEPENDS ${_dir}/*.cpp)
  set(_tests ${_sources})
  list(FILTER _sources EXCLUDE REGEX "_test\\.cpp$|/plugin/")  # plugins are libraries of their own
  list(FILTER _tests INCLUDE REGEX "_test\\.cpp$")
  if(CONVOY_WHOLE OR NOT CONVOY_PART_${name})
    list(FILTER _sources EXCLUDE REGEX "_absent\\.cpp$")
  else()
    list(TRANSFORM CONVOY_PART_${name} PREPEND ${_dir}/ OUTPUT_VARIABLE _sources)
  endif()
  set(_links "")
  foreach(_included IN LISTS CONVOY_LAYER_${name}_INCLUDES)
    if(TARGET convoy_${_included})
      list(APPEND _links convoy_${_included})
    endif()
  endforeach()
  if(NOT _sources)
    return()
  endif()
  if(NOT name STREQUAL "base")
    list(APPEND _links convoy_base)  # the shared precompiled headers leave what they only declare to it
  endif()
  if(CONVOY_LAYER_${name}_LIBTORCH AND NOT name STREQUAL "device")
    list(APPEND _links convoy_device)  # the same for LibTorch's fmt (formatting.cpp)
  endif()
  add_library(convoy_${name} STATIC ${_sources})
  convoy_jumbo(convoy_${name})
  target_link_libraries(convoy_${name} PUBLIC convoy_options ${_links} ${ARG_LIBRARIES})
  if(CONVOY_LAYER_${name}_LIBTORCH)
    target_link_libraries(convoy_${name} PUBLIC convoy::libtorch)
    convoy_precompiled(convoy_${name} libtorch)
  elseif(ARG_OWN_FLAGS)
    target_compile_options(convoy_${name} PRIVATE ${ARG_OWN_FLAGS})
    convoy_precompiled(convoy_${name} exact)
  else()
    convoy_precompiled(convoy_${name} plain)
  endif()
  if(_tests AND CONVOY_BUILD_TESTS)
    add_executable(${name}_tests ${_tests})
    convoy_jumbo(${name}_tests)
    target_compile_options(${name}_tests PRIVATE ${CONVOY_TEST_FLAGS})
    target_link_libraries(${name}_tests PRIVATE convoy_${name} convoy_testing GTest::gtest GTest::gtest_main)
    if(CONVOY_LAYER_${name}_LIBTORCH)
      convoy_precompiled(${name}_tests libtorch)
    else()
      convoy_precompiled(${name}_tests tests)
    endif()
    # The label `processes`: tests that start processes, which `./run stress` repeats.
    set(_processes "")
    if(name MATCHES "^(comm|jobs|logs|parallel|place|processes|rendezvous|supervisor|sweep|telemetry|workers)$")
      set(_processes ";processes")
    endif()
    add_test(NAME ${name} COMMAND ${name}_tests)
    # Threads that spin while they wait for each other cost the entries beside them their cores.
    set_tests_properties(${name} PROPERTIES LABELS "cpu${_processes}"
      ENVIRONMENT "OMP_WAIT_POLICY=PASSIVE;CONVOY_SOURCE_DIR=${CMAKE_SOURCE_DIR};CONVOY_BIN_DIR=${CMAKE_BINARY_DIR}/bin")
  endif()
endfunction()
