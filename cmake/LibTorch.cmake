# LibTorch 2.11 from a wheel unpacked under .deps/site, or from CONVOY_TORCH (a folder with include/ and lib/, such as
# that of an installed Python torch).
set(CONVOY_TORCH "${CMAKE_SOURCE_DIR}/.deps/site/torch" CACHE PATH "LibTorch folder (holds include/ and lib/)")
include(${CMAKE_CURRENT_LIST_DIR}/LibTorchTarget.cmake)

# One precompiled header for every unit that sees LibTorch: a unit costs about 15 s without it.
file(WRITE ${CMAKE_BINARY_DIR}/libtorch_pch.cpp "")
add_library(convoy_libtorch_pch STATIC ${CMAKE_BINARY_DIR}/libtorch_pch.cpp)
target_link_libraries(convoy_libtorch_pch PUBLIC convoy_options convoy_libtorch)
target_precompile_headers(convoy_libtorch_pch PRIVATE
  <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <string> <unordered_map> <vector>
  <ATen/ATen.h> <ATen/Parallel.h> <torch/csrc/autograd/custom_function.h> <torch/csrc/autograd/autograd.h>)
