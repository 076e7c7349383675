// SPDX-License-Identifier: Apache-2.0
//
// The storage behind TokenDataset: flat arrays, either owned or views of a mapped cache file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convoy/core/base/files.h"
#include "convoy/data/datasets/tokens/token_dataset.h"

namespace convoy::data {

struct TokenDataset::Buffer {
  std::span<const int64_t> offsets;            // num_rows + 1 offsets, in tokens
  std::span<const int64_t> source_indices;     // one per row
  std::span<const int64_t> supervised_counts;  // one per row
  std::span<const int32_t> ids;
  std::span<const uint8_t> supervised;
  std::span<const float> weights;   // one per token; empty: 1 for all
  std::span<const uint8_t> labels;  // one per row, EncodedRow::is_desirable; empty: 1 for all
  int64_t total_supervised_tokens = 0;
  std::string content_hash;

  // Storage that the spans point into, unless a mapped file holds the data.
  std::vector<int64_t> owned_offsets, owned_source_indices, owned_supervised_counts;
  std::vector<int32_t> owned_ids;
  std::vector<uint8_t> owned_supervised, owned_labels;
  std::vector<float> owned_weights;
  std::optional<MappedFile> mapped;
};

}  // namespace convoy::data
