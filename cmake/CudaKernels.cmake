# Kernels for NVIDIA GPUs: clang++ compiles each source to PTX, which becomes a text inside a layer;
# the GPU's driver compiles that at run time (convoy/machine/nvidia/kernels.h). Nothing of CUDA is
# needed here. Without clang++ there are no texts.
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
if(NOT CONVOY_CLANG OR NOT CONVOY_CLANG_HAS_PTX)
  message(WARNING "no clang++ with NVIDIA's target was found: sweeps will not run on GPUs, training there only with "
    "CONVOY_CUDA_KERNELS=aten. Install clang (apt-get install clang) and configure again.")
endif()

set(CONVOY_COMPILES_PTX OFF)
if(CONVOY_CLANG AND CONVOY_CLANG_HAS_PTX AND (CONVOY_WHOLE OR EXISTS /dev/nvidiactl OR EXISTS /dev/dxg))
  set(CONVOY_COMPILES_PTX ON)
endif()

# convoy_cuda_kernels(layer DECLARED_IN header NAMESPACE name SOURCES sources...): defines the
# function kernel_texts() that the header declares, over the PTX of all sources. CONVOY_PTX_<layer>
# becomes the list of their files.
function(convoy_cuda_kernels layer)
  cmake_parse_arguments(ARG "" "DECLARED_IN;NAMESPACE" "SOURCES" ${ARGN})
  set(_folder ${CMAKE_BINARY_DIR}/generated/${layer}_kernels)
  file(MAKE_DIRECTORY ${_folder})
  set(_texts "")
  foreach(_source IN LISTS ARG_SOURCES)
    get_filename_component(_name ${_source} NAME_WE)
    set(_ptx ${_folder}/${_name}.ptx)
    if(CONVOY_COMPILES_PTX)
      # sm_75, PTX 6.3: every driver from CUDA 10.0 on compiles it for every GPU from Turing on. A
      # source whose name says sm80 uses matrix units in bf16, which GPUs have from Ampere on: PTX
      # 7.0, CUDA 11.0.
      set(_level sm_75 +ptx63)
      if(_name MATCHES "_sm80_")
        set(_level sm_80 +ptx70)
      endif()
      list(GET _level 0 _gpu)
      list(GET _level 1 _version)
      add_custom_command(OUTPUT ${_ptx}
        COMMAND ${CONVOY_CLANG} -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=${_gpu}
          -Xclang -target-feature -Xclang ${_version} -std=c++20 -O3 -ffp-contract=off -Wall -Wextra -I${CMAKE_SOURCE_DIR}
          -S ${_source} -o ${_ptx} -MD -MT ${_ptx} -MF ${_ptx}.d
        DEPENDS ${_source} DEPFILE ${_ptx}.d VERBATIM COMMENT "Compiling ${_name} for GPUs")
      list(APPEND _texts ${_ptx})
    endif()
  endforeach()
  set(_cpp ${_folder}/kernel_texts.cpp)
  string(REPLACE ";" "|" _list "${_texts}")
  add_custom_command(OUTPUT ${_cpp}
    COMMAND ${CMAKE_COMMAND} -DTEXTS=${_list} -DCPP=${_cpp} -DDECLARED_IN=${ARG_DECLARED_IN} -DNAMESPACE=${ARG_NAMESPACE}
      -P ${CMAKE_SOURCE_DIR}/cmake/EmbedKernels.cmake
    DEPENDS ${_texts} ${CMAKE_SOURCE_DIR}/cmake/EmbedKernels.cmake VERBATIM)
  set_source_files_properties(${_cpp} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  target_sources(convoy_${layer} PRIVATE ${_cpp})
  set(CONVOY_PTX_${layer} ${_texts} PARENT_SCOPE)
endfunction()
