# PTX as a C++ source: without its comments.
file(READ ${PTX} _text)
string(REGEX REPLACE "[ \t]*//[^\n]*\n" "\n" _text "${_text}")
string(REGEX REPLACE "\n\n+" "\n" _text "${_text}")
file(WRITE ${CPP}.new "#include \"convoy/sweep/cuda/device.h\"\n
std::string_view convoy::sweep::cuda::kernel_text() {
  return R\"ptx(${_text})ptx\";
}
")
file(RENAME ${CPP}.new ${CPP})
