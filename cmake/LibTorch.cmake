# convoy::libtorch: LibTorch 2.11 from a wheel unpacked under .deps/site, or from CONVOY_TORCH (a folder with include/
# and lib/, such as that of an installed Python torch). find_package(Torch) on the wheel demands a CUDA toolkit, and
# libtorch.so drags in every CUDA library, so only libtorch_cpu and libc10 are linked.
set(CONVOY_TORCH "${CMAKE_SOURCE_DIR}/.deps/site/torch" CACHE PATH "LibTorch folder (holds include/ and lib/)")
if(NOT EXISTS ${CONVOY_TORCH}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "LibTorch was not found at ${CONVOY_TORCH}. Run ./run build, which fetches it, or set -DCONVOY_TORCH.")
endif()
foreach(_lib c10 torch_cpu)
  add_library(convoy_${_lib} SHARED IMPORTED GLOBAL)
  set_target_properties(convoy_${_lib} PROPERTIES IMPORTED_LOCATION ${CONVOY_TORCH}/lib/lib${_lib}.so)
endforeach()
add_library(convoy_libtorch INTERFACE)
target_include_directories(convoy_libtorch SYSTEM INTERFACE
  ${CONVOY_TORCH}/include ${CONVOY_TORCH}/include/torch/csrc/api/include)
target_link_libraries(convoy_libtorch INTERFACE convoy_torch_cpu convoy_c10)
# The wheel's libraries find the CUDA runtime beside them through their own RPATH; ours must find the wheel's libgomp.
target_link_options(convoy_libtorch INTERFACE -Wl,--no-as-needed -Wl,-rpath-link,${CONVOY_TORCH}/lib
  -Wl,--allow-shlib-undefined)
# at::parallel_for is a header template that runs serially unless it is compiled with OpenMP; the runtime must be the
# one inside the wheel, so that there is one thread pool.
file(GLOB _gomp ${CONVOY_TORCH}/lib/libgomp*.so*)
target_compile_options(convoy_libtorch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
if(_gomp)
  target_link_libraries(convoy_libtorch INTERFACE ${_gomp})
else()
  target_link_libraries(convoy_libtorch INTERFACE gomp)
endif()
add_library(convoy::libtorch ALIAS convoy_libtorch)

# One precompiled header for every unit that sees LibTorch: a unit costs about 15 s without it.
file(WRITE ${CMAKE_BINARY_DIR}/libtorch_pch.cpp "")
add_library(convoy_libtorch_pch STATIC ${CMAKE_BINARY_DIR}/libtorch_pch.cpp)
target_link_libraries(convoy_libtorch_pch PUBLIC convoy_options convoy_libtorch)
target_precompile_headers(convoy_libtorch_pch PRIVATE
  <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <string> <unordered_map> <vector>
  <ATen/ATen.h> <ATen/Parallel.h> <torch/csrc/autograd/custom_function.h> <torch/csrc/autograd/autograd.h>)
