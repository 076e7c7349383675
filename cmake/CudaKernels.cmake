# The kernels of sweeps on NVIDIA GPUs: clang++ compiles them to PTX, which becomes a text inside the layer `sweep`; the
# GPU's driver compiles that at run time. Nothing of CUDA is needed here. Without clang++ the text is empty.
find_program(CONVOY_CLANG NAMES clang++ clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19 clang++-20
  DOC "compiler of the kernels for NVIDIA GPUs")
if(CONVOY_CLANG AND NOT DEFINED CONVOY_CLANG_HAS_PTX)
  execute_process(COMMAND ${CONVOY_CLANG} --print-targets OUTPUT_VARIABLE _targets ERROR_QUIET)
  string(FIND "${_targets}" nvptx64 _found)
  if(_found GREATER -1)
    set(CONVOY_CLANG_HAS_PTX ON CACHE INTERNAL "")
  else()
    set(CONVOY_CLANG_HAS_PTX OFF CACHE INTERNAL "")
  endif()
endif()

# Adds the text of `source` to the target as `convoy::sweep::cuda::kernel_text()`.
function(convoy_cuda_kernels target source)
  set(_ptx ${CMAKE_BINARY_DIR}/generated/sweep_kernels.ptx)
  set(_cpp ${CMAKE_BINARY_DIR}/generated/sweep_kernels.cpp)
  if(CONVOY_CLANG AND CONVOY_CLANG_HAS_PTX)
    # sm_75, PTX 6.3: what every driver from CUDA 10.0 on compiles for every GPU from Turing on.
    add_custom_command(OUTPUT ${_ptx}
      COMMAND ${CONVOY_CLANG} -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_75
        -Xclang -target-feature -Xclang +ptx63 -std=c++20 -O3 -ffp-contract=off -Wall -Wextra -I${CMAKE_SOURCE_DIR}
        -S ${source} -o ${_ptx} -MD -MT ${_ptx} -MF ${_ptx}.d
      DEPENDS ${source} DEPFILE ${_ptx}.d VERBATIM COMMENT "Compiling kernels for GPUs")
  else()
    message(WARNING "no clang++ with NVIDIA's target was found: sweeps will not run on GPUs. Install clang (apt-get "
      "install clang) and configure again.")
    add_custom_command(OUTPUT ${_ptx} COMMAND ${CMAKE_COMMAND} -E touch ${_ptx} VERBATIM)
  endif()
  add_custom_command(OUTPUT ${_cpp}
    COMMAND ${CMAKE_COMMAND} -DPTX=${_ptx} -DCPP=${_cpp} -P ${CMAKE_SOURCE_DIR}/cmake/EmbedKernels.cmake
    DEPENDS ${_ptx} ${CMAKE_SOURCE_DIR}/cmake/EmbedKernels.cmake VERBATIM)
  target_sources(${target} PRIVATE ${_cpp})
endfunction()
