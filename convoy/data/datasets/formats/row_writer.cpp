// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/row_writer.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/formats/byte_stream.h"
#include "convoy/data/datasets/formats/parquet_plugin.h"
#include "convoy/data/datasets/formats/row_formats.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// A run of hours must not learn at its end that its output cannot be written.
void require_plugin(const fs::path& path) {
  try {
    require_parquet_plugin();
  } catch (const IoError& error) {
    throw IoError(
        fmt::format("a file like this is written through a plugin that is missing: {}",
                    error.what()),
        {.file = path.string(),
         .hint = fmt::format("{}; JSON lines need no plugin: name an output that ends in .jsonl",
                             error.location().hint)});
  }
}

}  // namespace

void require_row_format(const fs::path& path) {
  std::error_code code;
  if (path.filename().empty() || fs::is_directory(path, code))
    throw ConfigError(
        "the output is a folder, wanted the name of a file",
        {.file = path.string(), .hint = "such as rows.jsonl, rows.csv or rows.parquet in it"});
  const RowFormat& format = RowFormats::built_in().to_write(path);
  if (format.is_table || compression_named_by(path) != Compression::None) require_plugin(path);
}

void require_row_output(const fs::path& path) {
  require_row_format(path);
  std::error_code code;
  const fs::path folder = folder_of(path);
  fs::create_directories(folder, code);
  if (::access(folder.c_str(), W_OK) != 0)
    throw IoError(fmt::format("no file can be written into the folder of the output: {}",
                              std::strerror(errno)),
                  {.file = folder.string(), .hint = "check permissions, or name another output"});
}

std::unique_ptr<RowWriter> create_rows(const fs::path& path) {
  require_row_output(path);
  return RowFormats::built_in().to_write(path).create(path);
}

}  // namespace convoy::data
