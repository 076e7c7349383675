// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/tokens/token_dataset.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/data/datasets/tokens/dataset_buffer.h"

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
  bool weighs = false;
  bool judges = false;
  for (const EncodedRow& row : rows) {
    total_tokens += row.ids.size();
    weighs = weighs || !row.weights.empty();
    judges = judges || !row.is_desirable;
  }
  buffer->owned_ids.reserve(total_tokens);
  buffer->owned_supervised.reserve(total_tokens);
  buffer->owned_offsets.push_back(0);
  for (const EncodedRow& row : rows) {
    CONVOY_INVARIANT(row.ids.size() == row.supervised.size(), "{} ids, {} mask entries",
                     row.ids.size(), row.supervised.size());
    CONVOY_INVARIANT(row.supervised.empty() || row.supervised[0] == 0,
                     "row {} supervises its first token", row.source_index);
    CONVOY_INVARIANT(row.weights.empty() || row.weights.size() == row.ids.size(),
                     "{} ids, {} weights", row.ids.size(), row.weights.size());
    if (weighs) {
      buffer->owned_weights.insert(buffer->owned_weights.end(), row.weights.begin(),
                                   row.weights.end());
      buffer->owned_weights.resize(buffer->owned_ids.size() + row.ids.size(), 1.0F);
    }
    buffer->owned_ids.insert(buffer->owned_ids.end(), row.ids.begin(), row.ids.end());
    int64_t count = 0;
    for (const uint8_t flag : row.supervised) {
      buffer->owned_supervised.push_back(flag != 0);
      count += flag != 0;
    }
    buffer->owned_offsets.push_back(static_cast<int64_t>(buffer->owned_ids.size()));
    buffer->owned_source_indices.push_back(row.source_index);
    if (judges) buffer->owned_labels.push_back(row.is_desirable);
    buffer->owned_supervised_counts.push_back(count);
  }
  buffer->offsets = buffer->owned_offsets;
  buffer->source_indices = buffer->owned_source_indices;
  buffer->supervised_counts = buffer->owned_supervised_counts;
  buffer->ids = buffer->owned_ids;
  buffer->supervised = buffer->owned_supervised;
  buffer->weights = buffer->owned_weights;
  buffer->labels = buffer->owned_labels;
  buffer->total_supervised_tokens = std::accumulate(buffer->supervised_counts.begin(),
                                                    buffer->supervised_counts.end(), int64_t{0});
  Sha256 hash;
  hash.update(bytes_of(buffer->owned_offsets));
  hash.update(bytes_of(buffer->owned_ids));
  hash.update(bytes_of(buffer->owned_supervised));
  hash.update(bytes_of(buffer->owned_weights));
  hash.update(bytes_of(buffer->owned_labels));
  buffer->content_hash = hash.hex();
  TokenDataset dataset;
  dataset.buffer_ = std::move(buffer);
  return dataset;
}

std::vector<EncodedRow> rows_of_pair(EncodedRow row) {
  if (row.first_of_pair == 0) return {std::move(row)};
  CONVOY_INVARIANT(row.weights.empty(), "a pair of rows has weights");
  EncodedRow second = row;
  second.first_of_pair = 0;
  second.ids.erase(second.ids.begin(), second.ids.begin() + row.first_of_pair);
  second.supervised.erase(second.supervised.begin(), second.supervised.begin() + row.first_of_pair);
  row.ids.resize(static_cast<size_t>(row.first_of_pair));
  row.supervised.resize(static_cast<size_t>(row.first_of_pair));
  row.first_of_pair = 0;
  return {std::move(row), std::move(second)};
}

EncodedRow pair_of_rows(EncodedRow chosen, const EncodedRow& rejected) {
  chosen.first_of_pair = std::ssize(chosen.ids);
  chosen.ids.insert(chosen.ids.end(), rejected.ids.begin(), rejected.ids.end());
  chosen.supervised.insert(chosen.supervised.end(), rejected.supervised.begin(),
                           rejected.supervised.end());
  chosen.own_bos |= rejected.own_bos;
  chosen.empty_answer |= rejected.empty_answer;
  chosen.tools_unread |= rejected.tools_unread;
  chosen.documents_unread |= rejected.documents_unread;
  chosen.calls_unread |= rejected.calls_unread;
  chosen.reasoning_unread |= rejected.reasoning_unread;
  chosen.text_unread |= rejected.text_unread;
  for (const std::string& key : rejected.keys_unread)
    if (std::find(chosen.keys_unread.begin(), chosen.keys_unread.end(), key) ==
        chosen.keys_unread.end())
      chosen.keys_unread.push_back(key);
  chosen.crosses_seam |= rejected.crosses_seam;
  return chosen;
}

struct TokenDataset::Joined {
  std::vector<NamedRows> parts;
  std::vector<int64_t> ends;  // by part: number of rows up to its end
  int64_t total_tokens = 0;
  int64_t total_supervised_tokens = 0;
  std::string content_hash;
};

TokenDataset TokenDataset::joined(std::vector<NamedRows> parts) {
  auto joined = std::make_shared<Joined>();
  int64_t rows = 0;
  Sha256 hash;
  for (const auto& [name, part] : parts) {
    CONVOY_INVARIANT(part.joined_ == nullptr, "a joined data set is joined again");
    hash.update(part.content_hash() + "\n");
    rows += part.num_rows();
    joined->ends.push_back(rows);
    joined->total_tokens += part.total_tokens();
    joined->total_supervised_tokens += part.total_supervised_tokens();
  }
  joined->parts = std::move(parts);
  joined->content_hash = hash.hex();
  TokenDataset dataset;
  dataset.joined_ = std::move(joined);
  return dataset;
}

TokenDataset::Place TokenDataset::place_of(int64_t row) const {
  CONVOY_INVARIANT(row >= 0 && row < num_rows(), "row {} of {}", row, num_rows());
  if (!joined_) return {*buffer_, static_cast<size_t>(row)};
  const auto& ends = joined_->ends;
  const auto part = std::upper_bound(ends.begin(), ends.end(), row) - ends.begin();
  const int64_t begin = part == 0 ? 0 : ends[static_cast<size_t>(part) - 1];
  return {*joined_->parts[static_cast<size_t>(part)].rows.buffer_,
          static_cast<size_t>(row - begin)};
}

int64_t TokenDataset::num_rows() const {
  if (joined_) return joined_->ends.empty() ? 0 : joined_->ends.back();
  return buffer_ ? std::ssize(buffer_->source_indices) : 0;
}

std::span<const int32_t> TokenDataset::ids(int64_t row) const {
  const auto [buffer, at] = place_of(row);
  const auto begin = static_cast<size_t>(buffer.offsets[at]);
  return buffer.ids.subspan(begin, static_cast<size_t>(buffer.offsets[at + 1]) - begin);
}

std::span<const uint8_t> TokenDataset::supervised(int64_t row) const {
  const auto [buffer, at] = place_of(row);
  const auto begin = static_cast<size_t>(buffer.offsets[at]);
  return buffer.supervised.subspan(begin, static_cast<size_t>(buffer.offsets[at + 1]) - begin);
}

std::span<const float> TokenDataset::weights(int64_t row) const {
  const auto [buffer, at] = place_of(row);
  if (buffer.weights.empty()) return {};
  const auto begin = static_cast<size_t>(buffer.offsets[at]);
  return buffer.weights.subspan(begin, static_cast<size_t>(buffer.offsets[at + 1]) - begin);
}

double TokenDataset::loss_weight(int64_t row) const {
  const std::span<const float> own = weights(row);
  if (own.empty()) return static_cast<double>(supervised_tokens(row));
  const std::span<const uint8_t> mask = supervised(row);
  double sum = 0;
  for (size_t token = 0; token < own.size(); ++token)
    if (mask[token] != 0) sum += static_cast<double>(own[token]);
  return sum;
}

int64_t TokenDataset::length_tokens(int64_t row) const {
  const auto [buffer, at] = place_of(row);
  return buffer.offsets[at + 1] - buffer.offsets[at];
}

int64_t TokenDataset::supervised_tokens(int64_t row) const {
  const auto [buffer, at] = place_of(row);
  return buffer.supervised_counts[at];
}

int64_t TokenDataset::source_index(int64_t row) const {
  const auto [buffer, at] = place_of(row);
  return buffer.source_indices[at];
}

bool TokenDataset::is_desirable(int64_t row) const {
  const auto [buffer, at] = place_of(row);
  return buffer.labels.empty() || buffer.labels[at] != 0;
}

int64_t TokenDataset::total_tokens() const {
  if (joined_) return joined_->total_tokens;
  return buffer_ ? std::ssize(buffer_->ids) : 0;
}

int64_t TokenDataset::total_supervised_tokens() const {
  if (joined_) return joined_->total_supervised_tokens;
  return buffer_ ? buffer_->total_supervised_tokens : 0;
}

const std::vector<NamedRows>& TokenDataset::parts() const {
  static const std::vector<NamedRows> kNone;
  return joined_ ? joined_->parts : kNone;
}

const std::string& TokenDataset::content_hash() const {
  static const std::string kEmpty = sha256_hex("");
  if (joined_) return joined_->content_hash;
  return buffer_ ? buffer_->content_hash : kEmpty;
}

}  // namespace convoy::data
