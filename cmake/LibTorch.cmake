# LibTorch 2.11 from a wheel unpacked under .deps/site, or from CONVOY_TORCH (a folder with include/
# and lib/, such as that of an installed Python torch).
set(CONVOY_TORCH "${CMAKE_SOURCE_DIR}/.deps/site/torch" CACHE PATH "LibTorch folder (holds include/ and lib/)")
include(${CMAKE_CURRENT_LIST_DIR}/LibTorchTarget.cmake)
