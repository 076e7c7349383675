// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "convoy/data/datasets/formats/row_writer.h"

namespace convoy::data {

// The path of the first file that ShardedRowsWriter writes.
std::filesystem::path first_output(const std::filesystem::path& path, int64_t shard_rows);

// Writes rows into one file, or into numbered files with a fixed number of rows:
// "rows-00000.jsonl.gz", "rows-00001.jsonl.gz". One thread.
class ShardedRowsWriter {
 public:
  // `shard_rows`: number of rows per file; 0 = one file. Throws as create_rows() does.
  explicit ShardedRowsWriter(std::filesystem::path path, int64_t shard_rows = 0);

  void write(const nlohmann::ordered_json& row);  // see RowWriter::write()
  // Publishes the last file, even when there are no rows. Throws IoError, DataError.
  std::vector<WrittenFile> finish();

 private:
  std::filesystem::path next_path() const;

  std::filesystem::path path_;
  int64_t shard_rows_;
  int64_t rows_in_shard_ = 0;
  std::unique_ptr<RowWriter> writer_;
  std::vector<WrittenFile> written_;
};

}  // namespace convoy::data
