// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/sharded_rows_writer.h"

#include <fmt/format.h>

#include <utility>

namespace convoy::data {
namespace {

std::filesystem::path shard_path(const std::filesystem::path& path, size_t shard) {
  const std::string name = path.filename().string();
  const size_t dot = name.find('.', 1);
  return path.parent_path() /
         fmt::format("{}-{:05d}{}", name.substr(0, dot), shard, name.substr(dot));
}

}  // namespace

std::filesystem::path first_output(const std::filesystem::path& path, int64_t shard_rows) {
  return shard_rows == 0 ? path : shard_path(path, 0);
}

ShardedRowsWriter::ShardedRowsWriter(std::filesystem::path path, int64_t shard_rows)
    : path_(std::move(path)), shard_rows_(shard_rows) {
  writer_ = create_rows(next_path());
}

std::filesystem::path ShardedRowsWriter::next_path() const {
  return shard_rows_ == 0 ? path_ : shard_path(path_, written_.size());
}

void ShardedRowsWriter::write(const nlohmann::ordered_json& row) {
  if (shard_rows_ > 0 && rows_in_shard_ == shard_rows_) {
    written_.push_back(writer_->finish());
    writer_ = create_rows(next_path());
    rows_in_shard_ = 0;
  }
  writer_->write(row);
  ++rows_in_shard_;
}

std::vector<WrittenFile> ShardedRowsWriter::finish() {
  written_.push_back(writer_->finish());
  writer_.reset();
  return std::move(written_);
}

}  // namespace convoy::data
