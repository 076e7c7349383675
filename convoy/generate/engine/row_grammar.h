// SPDX-License-Identifier: Apache-2.0
//
// Follows one answer through the grammar that it must match. A model that thinks before it answers
// thinks freely; the grammar begins behind its thoughts. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convoy/data/text/answer_grammar.h"
#include "convoy/generate/engine/request.h"

namespace convoy::generate {

class RowGrammar {
 public:
  // `end_ids`: ids that end the answer; not empty. They may come only where the grammar may end.
  // `lexer`: as in text::AnswerGrammar::begin().
  RowGrammar(const AnswerForm& form, std::vector<int32_t> end_ids, size_t lexer = 0);

  // The ids that may come next, as in kernels::SamplingRow. When the grammar needs more work than
  // its limits allow, these are the end ids, and problem() says so. Valid until the next call.
  std::span<const uint32_t> allowed();
  // The memory of the words that allowed() returns; only allowed() sets their bits.
  std::span<const uint32_t> words() const { return words_; }
  size_t lexer() const { return lexer_; }
  void take(int32_t id);  // cheap: the grammar reads the id with the next allowed()
  // Why the grammar does not hold for this answer; empty when it does.
  const std::string& problem() const { return problem_; }

 private:
  enum class Part { Begin, Thoughts, Answer };

  void allow(int32_t id, bool is_allowed);
  void mask_answer();
  void fail(const std::string& problem);

  size_t lexer_;
  text::GrammarPlace place_;
  ThoughtIds thoughts_;
  std::vector<int32_t> end_ids_;
  std::vector<uint32_t> words_;
  Part part_;
  std::optional<int32_t> unread_id_;  // taken, and not yet read by the grammar
  bool is_masked_ = false;            // words_ hold what may come next
  bool begins_text_ = true;           // no token was taken
  std::string problem_;
};

// Calls allowed() of each row, on the threads of kernels: rows with the same lexer on one thread.
void find_allowed(const std::vector<RowGrammar*>& rows);

}  // namespace convoy::generate
