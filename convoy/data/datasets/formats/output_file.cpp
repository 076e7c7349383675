// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/output_file.h"

namespace convoy::data {
namespace {

constexpr size_t kPendingOutputBytes = size_t{1} << 20;

}  // namespace

OutputFile::OutputFile(const std::filesystem::path& path) : path_(path), file_(path) {
  const Compression compression = compression_named_by(path);
  if (compression != Compression::None) compressor_ = make_compressor(compression);
}

void OutputFile::write(std::string_view bytes) {
  if (compressor_) {
    compressor_->add(bytes, pending_);
  } else {
    pending_ += bytes;
  }
  if (pending_.size() >= kPendingOutputBytes) flush();
}

WrittenFile OutputFile::publish(int64_t rows) {
  if (compressor_) compressor_->finish(pending_);
  flush();
  file_.commit();
  return {path_, rows, bytes_, hash_.hex()};
}

void OutputFile::flush() {
  file_.write(pending_);
  hash_.update(pending_);
  bytes_ += static_cast<int64_t>(pending_.size());
  pending_.clear();
}

}  // namespace convoy::data
