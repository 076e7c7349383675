// SPDX-License-Identifier: Apache-2.0
//
// Stores encoded rows until the split of each is known.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "convoy/data/datasets/encoding/encode_file.h"
#include "convoy/data/datasets/scratch_file.h"

namespace convoy::data {

struct SpooledRow {
  int64_t index = 0;
  RowRecord record;
  std::span<const int32_t> ids;         // ids of a kept row; valid until the next row is read
  std::span<const uint8_t> supervised;  // 0 or 1 per token
  std::span<const float> weights = {};  // empty: every weight is 1
};

// One thread. Throws IoError.
class EncodedSpool {
 public:
  explicit EncodedSpool(ScratchFile file) : file_(std::move(file)) {}

  void add(const RowRecord& record, const EncodedRow& row);  // in the order of the index
  void finish() { file_.flush(); }
  int64_t num_rows() const { return num_rows_; }
  void for_each(const std::function<void(const SpooledRow&)>& take) const;

 private:
  ScratchFile file_;
  int64_t num_rows_ = 0;
};

}  // namespace convoy::data
