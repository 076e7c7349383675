# convoy::rust_text: the static library of rust/text (Hugging Face tokenizers, chat templates,
# pictures and an HTTP server behind a C ABI).
set(_rust_dir ${CMAKE_SOURCE_DIR}/rust/text)
set(_rust_target ${CMAKE_BINARY_DIR}/rust)
set(_rust_features "")
if(NOT CONVOY_WHOLE)
  set(_rust_features --no-default-features)  # no pictures
endif()
set(_rust_lib ${_rust_target}/release/libconvoy_text.a)
find_program(CONVOY_CARGO cargo HINTS $ENV{HOME}/.cargo/bin ${CMAKE_SOURCE_DIR}/.deps/cargo/bin REQUIRED)
file(GLOB_RECURSE _rust_sources CONFIGURE_DEPENDS ${_rust_dir}/src/*.rs ${_rust_dir}/fonts/*.ttf)
add_custom_command(
  OUTPUT ${_rust_lib}
  COMMAND ${CMAKE_COMMAND} -E env --unset=MAKEFLAGS CARGO_TARGET_DIR=${_rust_target}
          ${CONVOY_CARGO} build --release --locked --quiet ${_rust_features}
          --manifest-path ${_rust_dir}/Cargo.toml
  DEPENDS ${_rust_sources} ${_rust_dir}/Cargo.toml ${_rust_dir}/Cargo.lock
  COMMENT "Rust: tokenizers, templates, pictures and HTTP"
  VERBATIM)
add_custom_target(convoy_rust_text_build DEPENDS ${_rust_lib})
add_library(convoy_rust_text STATIC IMPORTED GLOBAL)
set_target_properties(convoy_rust_text PROPERTIES IMPORTED_LOCATION ${_rust_lib}
  INTERFACE_INCLUDE_DIRECTORIES ${_rust_dir}/include)
add_dependencies(convoy_rust_text convoy_rust_text_build)
target_link_libraries(convoy_rust_text INTERFACE pthread dl m)
add_library(convoy::rust_text ALIAS convoy_rust_text)

# convoy_rust_text_test(): the tests inside the crate. They are compiled when they run, from the
# libraries that the build made.
function(convoy_rust_text_test)
  add_test(NAME rust_text COMMAND ${CMAKE_COMMAND} -E env --unset=MAKEFLAGS CARGO_TARGET_DIR=${CMAKE_BINARY_DIR}/rust
    ${CONVOY_CARGO} test --release --locked --quiet --manifest-path ${CMAKE_SOURCE_DIR}/rust/text/Cargo.toml)
  set_tests_properties(rust_text PROPERTIES LABELS cpu)
endfunction()
