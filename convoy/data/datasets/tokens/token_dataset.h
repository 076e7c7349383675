// SPDX-License-Identifier: Apache-2.0
//
// Encoded rows: token ids and the supervision mask, in one flat buffer that a cache file maps
// read-only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace convoy::data {

// Token t of a row is a target of the loss if and only if supervised[t] != 0. Token 0 is never a
// target, because it has no predecessor.
struct EncodedRow {
  std::vector<int32_t> ids;
  std::vector<uint8_t> supervised;
  int64_t source_index = 0;   // 0-based row number in its source
  bool own_bos = false;       // the text has its own BOS, so the tokenizer's BOS was left out
  bool empty_answer = false;  // an answer or completion without text, which is not learnt
  // True when the conversation has `tools`, `documents`, `tool_calls` or reasoning that the chat
  // template does not write.
  bool tools_unread = false;
  bool documents_unread = false;
  bool calls_unread = false;
  bool reasoning_unread = false;
  std::string open_end = {};                  // the last learnt piece of a chat that learns no end
  bool text_unread = false;                   // a part of a message's text is not written
  std::vector<std::string> keys_unread = {};  // keys of Sample::further_keys that are not written
  std::vector<std::string> variables_unread = {};  // Sample::variables that the template lacks
  // True when a token crosses the boundary between prompt and completion. This token is learnt.
  bool crosses_seam = false;
  bool own_weights = false;  // the row's own turn weights decide what is learnt
  // The weight of every token in the loss, which counts for supervised tokens only. Empty: 1 for
  // all.
  std::vector<float> weights = {};
  // 0: one row. Otherwise a pair of rows, one behind the other: the number of tokens of the first
  // row.
  int64_t first_of_pair = 0;
  bool is_desirable = true;  // false: the row calls its completion a bad one
};

// The rows in `row`: itself, or both rows of a pair.
std::vector<EncodedRow> rows_of_pair(EncodedRow row);
// Joins two rows to a pair: the reverse of rows_of_pair().
EncodedRow pair_of_rows(EncodedRow chosen, const EncodedRow& rejected);

struct NamedRows;

// Immutable, cheap to copy, thread-safe.
class TokenDataset {
 public:
  TokenDataset() = default;
  static TokenDataset from_rows(const std::vector<EncodedRow>& rows);
  // The rows of all data sets, one after the other. Copies no rows.
  static TokenDataset joined(std::vector<NamedRows> parts);

  int64_t num_rows() const;
  std::span<const int32_t> ids(int64_t row) const;
  std::span<const uint8_t> supervised(int64_t row) const;
  std::span<const float> weights(int64_t row) const;  // empty: 1 for all
  int64_t length_tokens(int64_t row) const;
  int64_t supervised_tokens(int64_t row) const;
  // The sum of the weights of the supervised tokens. Without weights it is their number.
  double loss_weight(int64_t row) const;
  int64_t source_index(int64_t row) const;
  bool is_desirable(int64_t row) const;  // EncodedRow::is_desirable
  int64_t total_tokens() const;
  int64_t total_supervised_tokens() const;
  const std::string& content_hash() const;  // SHA-256 over ids, masks, weights, labels and order
  // The parts of a joined data set; empty for a single data set.
  const std::vector<NamedRows>& parts() const;

 private:
  friend class TokenCache;
  struct Buffer;
  struct Joined;

  // The place of a row: its buffer, and its number there. A joined data set has several buffers.
  struct Place {
    const Buffer& buffer;
    size_t row;
  };
  Place place_of(int64_t row) const;

  std::shared_ptr<const Buffer> buffer_;
  std::shared_ptr<const Joined> joined_;  // for a joined data set, in place of buffer_
};

// A named data set, for joining.
struct NamedRows {
  std::string name;
  TokenDataset rows;
};

}  // namespace convoy::data
