# What `cmake --install` puts where, all of it movable:
#   bin/                     convoy, convoy-worker (`convoy --version` shows the LibTorch found)
#   lib/convoy/              private shared libraries: the Parquet plugin with Arrow
#   lib/libconvoy.a          the library: the objects of the layers behind the public headers
#   include/convoy/          the public headers, flat; detail/ holds headers that they include
#   lib/cmake/Convoy/        find_package(Convoy): Convoy::convoy, Convoy::sweep for function sweeps
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# convoy_closure(out layers...): the layers that these link, directly or not, and they themselves,
# in the order of the table.
function(convoy_closure out)
  set(_needed ${ARGN})
  set(_open ${ARGN})
  while(_open)
    list(POP_FRONT _open _layer)
    foreach(_included IN LISTS CONVOY_LAYER_${_layer}_INCLUDES)
      if(NOT _included IN_LIST _needed)
        list(APPEND _needed ${_included})
        list(APPEND _open ${_included})
      endif()
    endforeach()
  endwhile()
  set(_ordered "")
  foreach(_layer IN LISTS CONVOY_LAYERS)
    if(TARGET convoy_${_layer} AND _layer IN_LIST _needed)
      list(APPEND _ordered ${_layer})
    endif()
  endforeach()
  set(${out} ${_ordered} PARENT_SCOPE)
endfunction()

# convoy_foreign_libraries(out layers...): the libraries of others that a program links with these
# layers. No public header shows fmt.
function(convoy_foreign_libraries out)
  set(_links "")
  foreach(_layer IN LISTS ARGN)
    list(APPEND _links ${CONVOY_LIBRARIES_${_layer}})
  endforeach()
  list(REMOVE_ITEM _links convoy_fmt_headers)
  list(REMOVE_DUPLICATES _links)
  set(${out} "${_links}" PARENT_SCOPE)
endfunction()

# One archive. A linker takes from it only the objects that a program needs, so a sweep takes none
# that needs LibTorch.
convoy_closure(_sweep_layers sweep)
set(_public_layers sweep)
if(TARGET convoy_library)
  list(APPEND _public_layers library)
endif()
convoy_closure(_archived_layers ${_public_layers})
set(_objects "")
foreach(_layer IN LISTS _archived_layers)
  list(APPEND _objects $<TARGET_OBJECTS:convoy_${_layer}>)
endforeach()
add_library(convoy_archive STATIC ${_objects})
set_target_properties(convoy_archive PROPERTIES OUTPUT_NAME convoy LINKER_LANGUAGE CXX)
install(FILES $<TARGET_FILE:convoy_archive> DESTINATION lib COMPONENT library)
convoy_foreign_libraries(CONVOY_SWEEP_LINKS ${_sweep_layers})
convoy_foreign_libraries(CONVOY_LINKS ${_archived_layers})

# Programs of others include <convoy/NAME.h>: where a header lies in the source tree is no matter of
# theirs. So the public headers are written with such includes, for the installation and for the
# example that is built here.
set(_sources convoy/core/base/error_types.h convoy/farm/sweep/command/function_sweep.h)
set(_names error.h sweep.h)
if(TARGET convoy_library)
  file(GLOB _library_headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} convoy/library/*.h convoy/library/detail/*.h)
  list(FILTER _library_headers EXCLUDE REGEX "_test\\.h$")
  list(APPEND _sources ${_library_headers})
  list(TRANSFORM _library_headers REPLACE "^convoy/library/" "")
  list(APPEND _names ${_library_headers})
endif()
set(CONVOY_PUBLIC_INCLUDES ${CMAKE_BINARY_DIR}/public)
foreach(_source _name IN ZIP_LISTS _sources _names)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${_source})
  file(READ ${CMAKE_SOURCE_DIR}/${_source} _text)
  foreach(_other _other_name IN ZIP_LISTS _sources _names)
    string(REPLACE "#include \"${_other}\"" "#include \"convoy/${_other_name}\"" _text "${_text}")
  endforeach()
  string(REPLACE "#include \"convoy/detail/" "" _rest "${_text}")
  if(_rest MATCHES "#include \"(convoy/[a-z_]+/[^\"]*)")
    message(FATAL_ERROR "${_source} is public, but the header that it includes is not: ${CMAKE_MATCH_1}")
  endif()
  file(GENERATE OUTPUT ${CONVOY_PUBLIC_INCLUDES}/convoy/${_name} CONTENT "${_text}")
  get_filename_component(_folder convoy/${_name} DIRECTORY)
  install(FILES ${CONVOY_PUBLIC_INCLUDES}/convoy/${_name} DESTINATION include/${_folder} COMPONENT library)
endforeach()

foreach(_program convoy convoy-worker)
  if(TARGET ${_program})
    set_target_properties(${_program} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/convoy")
    install(TARGETS ${_program} RUNTIME DESTINATION bin COMPONENT programs)
  endif()
endforeach()
if(TARGET convoy)
  install(CODE "
    set(_man \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/man/man1\")
    file(MAKE_DIRECTORY \"\${_man}\")
    execute_process(COMMAND \"$<TARGET_FILE:convoy>\" help --man OUTPUT_FILE \"\${_man}/convoy.1\" COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT programs)
endif()
install(FILES completions/convoy.bash DESTINATION share/bash-completion/completions RENAME convoy COMPONENT programs)
install(FILES completions/_convoy DESTINATION share/zsh/site-functions COMPONENT programs)
install(FILES completions/convoy.fish DESTINATION share/fish/vendor_completions.d COMPONENT programs)
install(TARGETS convoy_parquet LIBRARY DESTINATION lib/convoy COMPONENT programs)
foreach(_library ${_arrow} ${_parquet})
  install(FILES ${_library} DESTINATION lib/convoy COMPONENT programs)
endforeach()

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/ConvoyConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/ConvoyConfig.cmake
  INSTALL_DESTINATION lib/cmake/Convoy NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/ConvoyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/ConvoyConfig.cmake ${CMAKE_BINARY_DIR}/generated/ConvoyConfigVersion.cmake
  DESTINATION lib/cmake/Convoy COMPONENT library)
if(CONVOY_WITH_LIBTORCH)
  install(FILES ${CMAKE_SOURCE_DIR}/cmake/LibTorchTarget.cmake DESTINATION lib/cmake/Convoy COMPONENT library)
endif()
