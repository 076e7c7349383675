// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/parquet_plugin.h"

#include <dlfcn.h>

#include <string>
#include <system_error>

namespace convoy::data {
namespace {

// Loads the plugin from ../lib/convoy beside the program's folder, where builds and installations
// have it. Other programs that link this library find it in the loader's search path
// (LD_LIBRARY_PATH).
void* load_plugin() {
  const std::string name = std::string("libconvoy_parquet-") + CONVOY_VERSION + ".so";
  std::error_code ignored;
  const std::filesystem::path beside =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() /
      "lib/convoy" / name;
  std::string reasons;
  for (const std::string& candidate : {beside.string(), name}) {
    if (void* const plugin = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return plugin;
    const char* const reason = ::dlerror();
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", reason == nullptr ? "" : reason);
  }
  throw IoError(
      fmt::format("the Parquet plugin {} could not be loaded: {}", name, reasons),
      {.file = beside.string(),
       .hint =
           "`./run build` makes it; an installation has it in ../lib/convoy beside the program's "
           "folder"});
}

// The plugin is loaded once and never unloaded, because sources may live until the process ends.
void* plugin() {
  static void* const loaded = load_plugin();
  return loaded;
}

template <class Function>
Function* function_of(const char* name) {
  void* const symbol = ::dlsym(plugin(), name);
  if (symbol == nullptr)
    throw IoError(fmt::format("the Parquet plugin has no {}", name),
                  {.hint = "install the plugin of this version of Convoy"});
  return reinterpret_cast<Function*>(symbol);
}

}  // namespace

void require_parquet_plugin() { plugin(); }

std::unique_ptr<RowSource> open_parquet(const std::filesystem::path& path) {
  return std::unique_ptr<RowSource>(function_of<OpenParquetFunction>(kOpenParquetSymbol)(path));
}

std::string parquet_bytes(const std::vector<TableColumn>& columns) {
  const std::unique_ptr<std::string> bytes(
      function_of<ParquetBytesFunction>(kParquetBytesSymbol)(columns));
  return std::move(*bytes);
}

std::unique_ptr<ParquetWriter> create_parquet(const ColumnType& columns, ByteSink& sink) {
  return std::unique_ptr<ParquetWriter>(
      function_of<CreateParquetFunction>(kCreateParquetSymbol)(columns, sink));
}

std::unique_ptr<ByteStream> open_compressed(const std::filesystem::path& path,
                                            Compression compression) {
  return std::unique_ptr<ByteStream>(
      function_of<OpenCompressedFunction>(kOpenCompressedSymbol)(path, compression));
}

std::unique_ptr<Compressor> make_compressor(Compression compression) {
  return std::unique_ptr<Compressor>(
      function_of<MakeCompressorFunction>(kMakeCompressorSymbol)(compression));
}

}  // namespace convoy::data
