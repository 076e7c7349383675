# Precompiled headers: half of a small unit's compile time is the headers of JSON, fmt and the
# standard library, and 15 s of every unit that sees LibTorch.
option(CONVOY_PRECOMPILED_HEADERS "precompile the headers of libraries (off shows a unit that forgets an include)" ON)

set(CONVOY_PLAIN_HEADERS <algorithm> <array> <charconv> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream>
  <functional> <map> <memory> <mutex> <optional> <set> <span> <sstream> <string> <string_view> <thread>
  <unordered_map> <utility> <vector> <fmt/format.h> <fmt/ranges.h> ${CMAKE_SOURCE_DIR}/convoy/core/base/compiled_json.h)
set(CONVOY_LIBTORCH_HEADERS <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <string>
  <unordered_map> <vector> <ATen/ATen.h> <ATen/Parallel.h> <ATen/core/grad_mode.h> <torch/csrc/autograd/autograd.h> ${CMAKE_SOURCE_DIR}/convoy/core/base/compiled_json.h)

# convoy_precompiled_set(name LINKS targets... HEADERS headers...): headers that other targets
# share.
function(convoy_precompiled_set name)
  cmake_parse_arguments(ARG "" "" "LINKS;HEADERS" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/${name}_headers.cpp "")
  add_library(convoy_${name}_headers STATIC ${CMAKE_BINARY_DIR}/${name}_headers.cpp)
  target_link_libraries(convoy_${name}_headers PUBLIC convoy_options ${ARG_LINKS})
  target_precompile_headers(convoy_${name}_headers PRIVATE ${ARG_HEADERS})
endfunction()

# convoy_precompiled(target set): the target shares the headers of a set: plain, exact, tests or
# libtorch.
function(convoy_precompiled target set)
  if(CONVOY_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM convoy_${set}_headers)
    get_target_property(_type ${target} TYPE)
    if(_type STREQUAL "EXECUTABLE")
      # The headers were compiled with -fPIC; a program's default, -fPIE, would not match.
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIC>)
    endif()
  endif()
endfunction()
