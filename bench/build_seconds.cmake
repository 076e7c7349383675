# Read by CMake right after project() when bench/build_seconds.py configures: each command of the
# build notes its processor seconds.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(_rule COMPILE LINK CUSTOM)
  set_property(GLOBAL PROPERTY RULE_LAUNCH_${_rule}
    "${Python3_EXECUTABLE} -IS ${CMAKE_CURRENT_LIST_DIR}/build_seconds.py --one ${CMAKE_BINARY_DIR}/seconds.tsv <TARGET_NAME> ${_rule}")
endforeach()
