// SPDX-License-Identifier: Apache-2.0
//
// Follows one answer through the grammar that it must match. A model that thinks before it answers
// thinks freely; the grammar begins behind its thoughts. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convoy/data/text/answer_grammar.h"
#include "convoy/generate/engine/request.h"

namespace convoy::generate {

class RowGrammar {
 public:
  // `end_ids`: ids that end the answer; not empty. They may come only where the grammar may end.
  RowGrammar(const AnswerForm& form, std::vector<int32_t> end_ids);

  // The ids that may come next, as in kernels::SamplingRow. When the grammar needs more work than
  // its limits allow, these are the end ids, and problem() says so. Valid until the next call.
  std::span<const uint32_t> allowed();
  void take(int32_t id);
  // Why the grammar does not hold for this answer; empty when it does.
  const std::string& problem() const { return problem_; }

 private:
  enum class Part { Begin, Thoughts, Answer };

  void allow(int32_t id, bool is_allowed);
  void mask_answer();
  void fail(const std::string& problem);

  text::GrammarPlace place_;
  ThoughtIds thoughts_;
  std::vector<int32_t> end_ids_;
  std::vector<uint32_t> words_;
  Part part_;
  bool is_masked_ = false;   // words_ hold what may come next
  bool begins_text_ = true;  // no token was taken
  std::string problem_;
};

}  // namespace convoy::generate
