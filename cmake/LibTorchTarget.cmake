# convoy::libtorch, from the folder CONVOY_TORCH. Read by the build, and by find_package(Convoy)
# where it is installed. find_package(Torch) on the wheel demands a CUDA toolkit, and libtorch.so
# drags in every CUDA library, so only libtorch_cpu and libc10 are linked.
if(NOT EXISTS ${CONVOY_TORCH}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "LibTorch 2.11 was not found at ${CONVOY_TORCH}. Set CONVOY_TORCH to a folder with include/ and lib/; "
    "in a source tree, ./run build fetches one.")
endif()
foreach(_lib c10 torch_cpu)
  add_library(convoy_${_lib} SHARED IMPORTED GLOBAL)
  set_target_properties(convoy_${_lib} PROPERTIES IMPORTED_LOCATION ${CONVOY_TORCH}/lib/lib${_lib}.so)
endforeach()
add_library(convoy_libtorch INTERFACE)
target_include_directories(convoy_libtorch SYSTEM INTERFACE
  ${CONVOY_TORCH}/include ${CONVOY_TORCH}/include/torch/csrc/api/include)
# The wheel's own fmt headers, of another version than the system's, come first where LibTorch is
# seen; no library of the wheel has their functions, the layer `device` compiles them.
target_link_libraries(convoy_libtorch INTERFACE convoy_torch_cpu convoy_c10)
# The wheel's libraries find the CUDA runtime beside them through their own RPATH; ours must find
# the wheel's libgomp.
target_link_options(convoy_libtorch INTERFACE -Wl,--no-as-needed -Wl,-rpath-link,${CONVOY_TORCH}/lib
  -Wl,--allow-shlib-undefined)
# at::parallel_for is a header template that runs serially unless it is compiled with OpenMP; the
# runtime must be the one inside the wheel, so that there is one thread pool.
file(GLOB _gomp ${CONVOY_TORCH}/lib/libgomp*.so*)
target_compile_options(convoy_libtorch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
if(_gomp)
  target_link_libraries(convoy_libtorch INTERFACE ${_gomp})
else()
  target_link_libraries(convoy_libtorch INTERFACE gomp)
endif()
add_library(convoy::libtorch ALIAS convoy_libtorch)
