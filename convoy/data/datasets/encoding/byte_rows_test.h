// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/encoding/encode_file.h"
#include "convoy/data/datasets/schemas/sample_reader.h"

namespace convoy::data {

// Encodes each byte as one token, behind a BOS (1). The prompt is unsupervised, the rest
// supervised.
inline EncodedRow encode_bytes(const Sample& sample) {
  EncodedRow row{{1}, {0}, 0};
  const auto append = [&](const std::string& text, uint8_t supervised) {
    for (const char byte : text) {
      row.ids.push_back(static_cast<uint8_t>(byte));
      row.supervised.push_back(supervised);
    }
  };
  append(sample.prompt, 0);
  append(sample.completion + sample.text, 1);
  if (sample.completion == "refuse")
    throw DataError("the template refuses", {.file = sample.file, .line = sample.line});
  return row;
}

inline std::string numbered_rows(int count) {
  std::string bytes;
  for (int row = 0; row < count; ++row)
    bytes += fmt::format("{{\"prompt\":\"p{}\",\"completion\":\"completion {}\"}}\n", row, row);
  return bytes;
}

}  // namespace convoy::data
