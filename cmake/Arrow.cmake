# convoy::arrow: the Arrow and Parquet C++ libraries inside the pyarrow wheel.
set(CONVOY_ARROW "${CMAKE_SOURCE_DIR}/.deps/site/pyarrow" CACHE PATH "folder of the pyarrow wheel")
file(GLOB _arrow ${CONVOY_ARROW}/libarrow.so.*)
file(GLOB _parquet ${CONVOY_ARROW}/libparquet.so.*)
if(NOT _arrow OR NOT _parquet)
  message(FATAL_ERROR "Arrow was not found at ${CONVOY_ARROW}. Run ./run build, which fetches it, or set -DCONVOY_ARROW.")
endif()
add_library(convoy_arrow INTERFACE)
target_include_directories(convoy_arrow SYSTEM INTERFACE ${CONVOY_ARROW}/include)
target_link_libraries(convoy_arrow INTERFACE ${_parquet} ${_arrow})
add_library(convoy::arrow ALIAS convoy_arrow)

# The plugin that reads Parquet, opened by convoy/data/datasets/formats/parquet_plugin.cpp. Only it
# links Arrow.
function(convoy_parquet_plugin)
  file(GLOB _sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/convoy/data/datasets/plugin/*.cpp)
  add_library(convoy_parquet MODULE ${_sources})
  target_link_libraries(convoy_parquet PRIVATE convoy_datasets convoy::arrow)
  # Its copies of convoy/data and convoy/core/base stay its own. The Rust library is one archive:
  # what the plugin never calls of it (tokenizers, pictures) is not linked in.
  target_link_options(convoy_parquet PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
  set_target_properties(convoy_parquet PROPERTIES OUTPUT_NAME convoy_parquet-${PROJECT_VERSION}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/convoy INSTALL_RPATH "$ORIGIN")
  if(TARGET datasets_tests)
    add_dependencies(datasets_tests convoy_parquet)
  endif()
endfunction()
