# What `cmake --install` puts where, all of it movable:
#   bin/                     convoy, convoy-worker (LibTorch is found at start, see `convoy --version`)
#   lib/convoy/              private shared libraries: the Parquet plugin with Arrow
#   lib/libconvoy_*.a        the layers behind the public headers
#   include/convoy/          the public headers: what CONVOY_PUBLIC_LAYERS offer, and nothing else
#   lib/cmake/Convoy/        find_package(Convoy): Convoy::library, Convoy::sweep, Convoy::convoy for both
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(CONVOY_PUBLIC_LAYERS sweep)
if(TARGET convoy_library)
  list(APPEND CONVOY_PUBLIC_LAYERS library)
endif()

# The layers that these link, directly or not, in the order of the table.
set(_needed ${CONVOY_PUBLIC_LAYERS})
set(_open ${CONVOY_PUBLIC_LAYERS})
while(_open)
  list(POP_FRONT _open _layer)
  foreach(_included IN LISTS CONVOY_LAYER_${_layer}_INCLUDES)
    if(NOT _included IN_LIST _needed)
      list(APPEND _needed ${_included})
      list(APPEND _open ${_included})
    endif()
  endforeach()
endwhile()
foreach(_layer IN LISTS CONVOY_LAYERS)
  if(TARGET convoy_${_layer} AND _layer IN_LIST _needed)
    install(TARGETS convoy_${_layer} ARCHIVE DESTINATION lib COMPONENT library)
    string(APPEND CONVOY_LAYER_CALLS
      "_convoy_layer(${_layer} \"${CONVOY_LAYER_${_layer}_INCLUDES}\" ${CONVOY_LAYER_${_layer}_LIBTORCH})\n")
  endif()
endforeach()

# Sweeps over functions: sweep/command/function_sweep.h, sweep/results/summary.h and what these include.
set(_public_headers base/error.h base/log.h jobs/job_store.h jobs/task.h sweep/command/function_sweep.h sweep/results/cell_result.h
  sweep/results/summary.h sweep/runner/coordinator.h sweep/runner/planned_cell.h sweep/runner/sweep_store.h sweep/shared_text.h
  sweep/workload.h telemetry/environment.h)
# The library: every header of its folder; `internal` is in a folder of its own.
if(TARGET convoy_library)
  file(GLOB _library_headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/convoy ${CMAKE_SOURCE_DIR}/convoy/library/*.h)
  list(FILTER _library_headers EXCLUDE REGEX "/test_[a-z_]*\\.h$|/convoy\\.h$")
  list(APPEND _public_headers ${_library_headers})
  install(FILES ${CMAKE_SOURCE_DIR}/convoy/library/convoy.h DESTINATION include/convoy COMPONENT library)
endif()
# Programs of others include <convoy/LAYER/...>: where a layer lies in the source tree is no matter of theirs. So the public
# headers are written with such includes, for the installation and for the examples that are built here.
set(CONVOY_PUBLIC_INCLUDES ${CMAKE_BINARY_DIR}/public)
foreach(_header IN LISTS _public_headers)
  string(REGEX MATCH "^[a-z_]+" _layer ${_header})
  string(REGEX REPLACE "^${_layer}/(.*)$" "\\1" _in_layer ${_header})
  set(_source ${CMAKE_SOURCE_DIR}/${CONVOY_LAYER_${_layer}_FOLDER}/${_in_layer})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_source})
  file(READ ${_source} _text)
  foreach(_other IN LISTS CONVOY_LAYERS)
    string(REPLACE "#include \"${CONVOY_LAYER_${_other}_FOLDER}/" "#include \"convoy/${_other}/" _text "${_text}")
  endforeach()
  file(GENERATE OUTPUT ${CONVOY_PUBLIC_INCLUDES}/convoy/${_header} CONTENT "${_text}")
  get_filename_component(_folder ${_header} DIRECTORY)
  install(FILES ${CONVOY_PUBLIC_INCLUDES}/convoy/${_header} DESTINATION include/convoy/${_folder} COMPONENT library)
endforeach()

foreach(_program convoy convoy-worker)
  if(TARGET ${_program})
    set_target_properties(${_program} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/convoy")
    install(TARGETS ${_program} RUNTIME DESTINATION bin COMPONENT programs)
  endif()
endforeach()
install(TARGETS convoy_parquet LIBRARY DESTINATION lib/convoy COMPONENT programs)
foreach(_library ${_arrow} ${_parquet})
  install(FILES ${_library} DESTINATION lib/convoy COMPONENT programs)
endforeach()

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/ConvoyConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/ConvoyConfig.cmake
  INSTALL_DESTINATION lib/cmake/Convoy NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/ConvoyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/ConvoyConfig.cmake ${CMAKE_BINARY_DIR}/generated/ConvoyConfigVersion.cmake
  ${CMAKE_SOURCE_DIR}/cmake/LayerLibraries.cmake DESTINATION lib/cmake/Convoy COMPONENT library)
if(CONVOY_WITH_LIBTORCH)
  install(FILES ${CMAKE_SOURCE_DIR}/cmake/LibTorchTarget.cmake DESTINATION lib/cmake/Convoy COMPONENT library)
endif()
