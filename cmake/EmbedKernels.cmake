# PTX texts as a C++ source, without their comments. TEXTS: files, with | between them.
string(REPLACE "|" ";" TEXTS "${TEXTS}")
set(_array "")
set(_result "{}")
foreach(_file IN LISTS TEXTS)
  file(READ ${_file} _text)
  string(REGEX REPLACE "[ \t]*//[^\n]*\n" "\n" _text "${_text}")
  string(REGEX REPLACE "\n\n+" "\n" _text "${_text}")
  string(APPEND _array "  R\"ptx(${_text})ptx\"sv,\n")
endforeach()
if(_array)
  set(_array "using namespace std::string_view_literals;\nstatic constexpr std::string_view kTexts[] = {\n${_array}};\n")
  set(_result kTexts)
endif()
file(WRITE ${CPP}.new "#include \"${DECLARED_IN}\"\n
${_array}
convoy::nvidia::KernelTexts ${NAMESPACE}::kernel_texts() { return ${_result}; }
")
file(RENAME ${CPP}.new ${CPP})
