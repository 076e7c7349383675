// SPDX-License-Identifier: Apache-2.0
//
// Implements encode_splits() for any encoder: assigns rows to splits, uses the cache, and makes the
// reports and refusals.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/encoding/encode_splits.h"

namespace convoy::data {

struct SplitInputs {
  const settings::DataSettings& data;
  std::string task;
  int64_t max_seq_len = 0;
  uint64_t seed = 0;
  std::function<EncodedRow(const Sample&)> encode;   // thread-safe
  std::function<std::string(const Sample&)> policy;  // makes one line about BOS, EOS and the mask
  std::function<std::string(const std::vector<int32_t>&)> show;  // makes a text of token ids
  std::optional<int32_t> bos_id;
  std::string encoder_hash;  // hash of tokenizer and template, a part of the cache key
  const Log& log;
  bool warns = true;  // EncodeInputs::warns
};

// Throws as encode_splits() does.
EncodedSplits build_splits(const SplitInputs& inputs, Splits wanted);

// Bounds of the train, val and test shares of `num_rows` shuffled rows: [0, first), [first,
// second), [second, num_rows). Throws ConfigError when the ratios do not sum to 1 within 1e-6.
struct SplitBounds {
  int64_t first = 0;
  int64_t second = 0;
};
SplitBounds split_bounds(const settings::SplitSettings& split, int64_t num_rows);

}  // namespace convoy::data
