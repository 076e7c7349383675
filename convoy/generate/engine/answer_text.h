// SPDX-License-Identifier: Apache-2.0
//
// The text of one answer while its tokens come, and the rules that end it. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/data/text/tokenizer.h"
#include "convoy/generate/engine/request.h"

namespace convoy::generate {

class AnswerText {
 public:
  // `tokenizer` and `end_ids` must outlive this object. `most_tokens`: limit of the number of
  // tokens.
  AnswerText(const text::Tokenizer& tokenizer, const std::vector<int32_t>& end_ids,
             const Request& request, int64_t most_tokens);

  // Adds a token. Returns why the answer ends with this token, or nothing while the answer goes on.
  std::optional<FinishReason> take(int32_t token);
  const std::vector<int32_t>& tokens() const { return tokens_; }
  std::string text() const;
  // Number of tokens that text() needs: without an end token, and without tokens that begin in a
  // stop string or after it.
  int64_t num_text_tokens() const;
  // The stop string that has ended the answer; empty: none has.
  std::string stop_string() const;
  // text() of an answer that goes on. Decodes only its newest tokens.
  std::string text_so_far();

 private:
  bool ends_text(int32_t token) const;
  std::string decode(size_t first_token, size_t end_token) const;
  // Position of the first stop string in the text.
  std::optional<size_t> find_stop() const;

  const text::Tokenizer& tokenizer_;
  const std::vector<int32_t>& end_ids_;
  std::vector<int32_t> stop_ids_;
  std::vector<std::string> stop_;
  size_t longest_stop_bytes_ = 0;
  int64_t most_tokens_;
  bool skips_special_;
  std::vector<int32_t> tokens_;
  bool ends_in_end_token_ = false;
  std::optional<size_t> stop_at_;
  // The text of the first `settled_tokens_` tokens; later tokens do not change it. The text of a
  // token depends on the token before it, so decoding begins at token `settled_before_`, where the
  // previous settled text ended.
  std::string settled_text_;
  size_t settled_tokens_ = 0;
  size_t settled_before_ = 0;
};

}  // namespace convoy::generate
