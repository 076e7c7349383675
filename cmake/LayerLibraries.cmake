# The libraries of others that each layer links; Install.cmake lists them for programs that
# find_package(Convoy).

# What fmt does with a parsed argument list is compiled once (core/base/formatting.cpp), not in
# every unit: half of the time of a small unit. A shared libfmt would be one more library to ship.
add_library(convoy_fmt_headers INTERFACE)
target_include_directories(convoy_fmt_headers SYSTEM INTERFACE
  $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
set(CONVOY_LIBRARIES_base convoy_fmt_headers nlohmann_json::nlohmann_json Threads::Threads)
set(CONVOY_LIBRARIES_config yaml-cpp)
set(CONVOY_LIBRARIES_pictures convoy_rust_text)
set(CONVOY_LIBRARIES_http convoy_rust_text ${CMAKE_DL_LIBS})
set(CONVOY_LIBRARIES_text convoy_rust_text)
set(CONVOY_LIBRARIES_evaluate convoy_rust_text)
set(CONVOY_LIBRARIES_nvidia ${CMAKE_DL_LIBS})
set(CONVOY_LIBRARIES_monitor ${CMAKE_DL_LIBS})
set(CONVOY_LIBRARIES_reports convoy_rust_text sqlite3)
set(CONVOY_LIBRARIES_jobs sqlite3 ${CMAKE_DL_LIBS})
set(CONVOY_LIBRARIES_datasets ${CMAKE_DL_LIBS})
set(CONVOY_LIBRARIES_adapters re2)
set(CONVOY_LIBRARIES_rewards re2)
