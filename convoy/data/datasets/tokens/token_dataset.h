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

// Token t of a row is a target of the loss iff supervised[t] != 0. Token 0 never is: it has no
// predecessor.
struct EncodedRow {
  std::vector<int32_t> ids;
  std::vector<uint8_t> supervised;
  int64_t source_index = 0;  // 0-based row number in its source
  bool own_bos =
      false;  // its text begins with BOS, so the one that the tokenizer would add was left out
  bool empty_answer = false;  // an answer or completion without text, which is not learnt
  // True when the conversation has `tools`, or turns with `tool_calls`, that the chat template does
  // not write.
  bool tools_unread = false;
  bool documents_unread = false;
  bool calls_unread = false;
  bool reasoning_unread = false;
  bool text_unread = false;                   // a part of the text of a message
  std::vector<std::string> keys_unread = {};  // from Sample::further_keys
  // One token lies over the end of the prompt and the start of the completion; it is learnt.
  bool crosses_seam = false;
  bool own_weights = false;  // the row's own turn weights decide what is learnt
  // The weight of every token in the loss; counts only where supervised. Empty: 1 for all.
  std::vector<float> weights = {};
  // Above 0: a pair of rows, one behind the other, and the number of tokens of the first.
  int64_t first_of_pair = 0;
  bool is_desirable = true;  // false: a completion that the row calls a bad one
};

// The rows that it holds: itself, or both of a pair.
std::vector<EncodedRow> rows_of_pair(EncodedRow row);
// The opposite, of two.
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
  // The sum of the weights of its supervised tokens: their number, unless it has weights.
  double loss_weight(int64_t row) const;
  int64_t source_index(int64_t row) const;
  bool is_desirable(int64_t row) const;  // EncodedRow::is_desirable
  int64_t total_tokens() const;
  int64_t total_supervised_tokens() const;
  const std::string& content_hash() const;  // SHA-256 over ids, masks, weights, labels and order
  // The parts of a joined data set; empty: it is one data set.
  const std::vector<NamedRows>& parts() const;

 private:
  friend class TokenCache;
  struct Buffer;
  struct Joined;

  // The location of a row of a joined data set.
  struct Place {
    const Buffer& buffer;
    size_t row;
  };
  Place place_of(int64_t row) const;

  std::shared_ptr<const Buffer> buffer_;
  std::shared_ptr<const Joined> joined_;  // in place of buffer_
};

// One data set of several.
struct NamedRows {
  std::string name;
  TokenDataset rows;
};

}  // namespace convoy::data
