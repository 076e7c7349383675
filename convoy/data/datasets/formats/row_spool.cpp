// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/row_spool.h"

#include "convoy/data/datasets/formats/json_rows.h"

namespace convoy::data {
namespace {

constexpr size_t kPendingSpoolBytes = size_t{1} << 20;

}  // namespace

RowSpool::RowSpool(const std::filesystem::path& folder)
    : file_(folder), compressor_(make_compressor(Compression::Zstd)) {}

void RowSpool::add(const std::string& json) {
  compressor_->add(json, pending_);
  compressor_->add("\n", pending_);
  if (pending_.size() >= kPendingSpoolBytes) flush();
}

std::unique_ptr<RowSource> RowSpool::rows() {
  compressor_->finish(pending_);
  flush();
  file_.flush();
  return open_json_lines(ByteReader(fmt::format("/proc/self/fd/{}", file_.descriptor())));
}

void RowSpool::flush() {
  file_.append(pending_);
  pending_.clear();
}

}  // namespace convoy::data
