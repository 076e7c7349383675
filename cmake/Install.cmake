# What `cmake --install` puts where, all of it movable:
#   bin/                     convoy, convoy-worker (LibTorch is found at start, see `convoy --version`)
#   lib/convoy/              private shared libraries: the Parquet plugin with Arrow
#   lib/libconvoy_*.a        the layers, and the Rust text library
#   include/convoy/          their headers
#   lib/cmake/Convoy/        find_package(Convoy): Convoy::convoy, Convoy::<layer>
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_layers "")
set(_layer_targets "")
foreach(_layer IN LISTS CONVOY_LAYERS)
  if(TARGET convoy_${_layer})
    list(APPEND _layers ${_layer})
    install(TARGETS convoy_${_layer} ARCHIVE DESTINATION lib COMPONENT library)
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/convoy/${_layer} DESTINATION include/convoy COMPONENT library
      FILES_MATCHING PATTERN "*.h" PATTERN "test_*.h" EXCLUDE PATTERN "*_test.h" EXCLUDE PATTERN "*_fixture.h" EXCLUDE
      PATTERN "plugin" EXCLUDE
      PATTERN "libpq.h" EXCLUDE)  # it needs the development package of PostgreSQL
    string(APPEND CONVOY_LAYER_CALLS
      "_convoy_layer(${_layer} \"${CONVOY_LAYER_${_layer}_INCLUDES}\" ${CONVOY_LAYER_${_layer}_LIBTORCH})\n")
  endif()
endforeach()
# The layer `text` has the plain name.
install(FILES ${_rust_lib} DESTINATION lib RENAME libconvoy_rust_text.a COMPONENT library)
install(FILES ${_rust_dir}/include/convoy_text.h DESTINATION include COMPONENT library)

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

set(CONVOY_INSTALLED_LAYERS "${_layers}")
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/ConvoyConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/ConvoyConfig.cmake
  INSTALL_DESTINATION lib/cmake/Convoy NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/ConvoyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/ConvoyConfig.cmake ${CMAKE_BINARY_DIR}/generated/ConvoyConfigVersion.cmake
  ${CMAKE_SOURCE_DIR}/cmake/LayerLibraries.cmake DESTINATION lib/cmake/Convoy COMPONENT library)
if(CONVOY_WITH_LIBTORCH)
  install(FILES ${CMAKE_SOURCE_DIR}/cmake/LibTorchTarget.cmake DESTINATION lib/cmake/Convoy COMPONENT library)
endif()
