// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/token_dataset.h"

#include <numeric>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/data/dataset_buffer.h"

namespace convoy::data {
namespace {

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

TokenDataset TokenDataset::from_rows(const std::vector<EncodedRow>& rows) {
  auto buffer = std::make_shared<Buffer>();
  size_t total_tokens = 0;
  for (const EncodedRow& row : rows) total_tokens += row.ids.size();
  buffer->owned_ids.reserve(total_tokens);
  buffer->owned_supervised.reserve(total_tokens);
  buffer->owned_offsets.push_back(0);
  for (const EncodedRow& row : rows) {
    CONVOY_INVARIANT(row.ids.size() == row.supervised.size(), "{} ids, {} mask entries",
                     row.ids.size(), row.supervised.size());
    CONVOY_INVARIANT(row.supervised.empty() || row.supervised[0] == 0,
                     "row {} supervises its first token", row.source_index);
    buffer->owned_ids.insert(buffer->owned_ids.end(), row.ids.begin(), row.ids.end());
    int64_t count = 0;
    for (const uint8_t flag : row.supervised) {
      buffer->owned_supervised.push_back(flag != 0);
      count += flag != 0;
    }
    buffer->owned_offsets.push_back(static_cast<int64_t>(buffer->owned_ids.size()));
    buffer->owned_source_indices.push_back(row.source_index);
    buffer->owned_supervised_counts.push_back(count);
  }
  buffer->offsets = buffer->owned_offsets;
  buffer->source_indices = buffer->owned_source_indices;
  buffer->supervised_counts = buffer->owned_supervised_counts;
  buffer->ids = buffer->owned_ids;
  buffer->supervised = buffer->owned_supervised;
  buffer->total_supervised_tokens = std::accumulate(buffer->supervised_counts.begin(),
                                                    buffer->supervised_counts.end(), int64_t{0});
  Sha256 hash;
  hash.update(bytes_of(buffer->owned_offsets));
  hash.update(bytes_of(buffer->owned_ids));
  hash.update(bytes_of(buffer->owned_supervised));
  buffer->content_hash = hash.hex();
  TokenDataset dataset;
  dataset.buffer_ = std::move(buffer);
  return dataset;
}

int64_t TokenDataset::num_rows() const {
  return buffer_ ? static_cast<int64_t>(buffer_->source_indices.size()) : 0;
}

std::span<const int32_t> TokenDataset::ids(int64_t row) const {
  CONVOY_INVARIANT(row >= 0 && row < num_rows(), "row {} of {}", row, num_rows());
  const auto begin = static_cast<size_t>(buffer_->offsets[static_cast<size_t>(row)]);
  return buffer_->ids.subspan(begin, static_cast<size_t>(length_tokens(row)));
}

std::span<const uint8_t> TokenDataset::supervised(int64_t row) const {
  CONVOY_INVARIANT(row >= 0 && row < num_rows(), "row {} of {}", row, num_rows());
  const auto begin = static_cast<size_t>(buffer_->offsets[static_cast<size_t>(row)]);
  return buffer_->supervised.subspan(begin, static_cast<size_t>(length_tokens(row)));
}

int64_t TokenDataset::length_tokens(int64_t row) const {
  CONVOY_INVARIANT(row >= 0 && row < num_rows(), "row {} of {}", row, num_rows());
  return buffer_->offsets[static_cast<size_t>(row) + 1] -
         buffer_->offsets[static_cast<size_t>(row)];
}

int64_t TokenDataset::supervised_tokens(int64_t row) const {
  CONVOY_INVARIANT(row >= 0 && row < num_rows(), "row {} of {}", row, num_rows());
  return buffer_->supervised_counts[static_cast<size_t>(row)];
}

int64_t TokenDataset::source_index(int64_t row) const {
  CONVOY_INVARIANT(row >= 0 && row < num_rows(), "row {} of {}", row, num_rows());
  return buffer_->source_indices[static_cast<size_t>(row)];
}

int64_t TokenDataset::total_tokens() const {
  return buffer_ ? static_cast<int64_t>(buffer_->ids.size()) : 0;
}

int64_t TokenDataset::total_supervised_tokens() const {
  return buffer_ ? buffer_->total_supervised_tokens : 0;
}

const std::string& TokenDataset::content_hash() const {
  static const std::string kEmpty = sha256_hex("");
  return buffer_ ? buffer_->content_hash : kEmpty;
}

}  // namespace convoy::data
