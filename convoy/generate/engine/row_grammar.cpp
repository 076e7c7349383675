// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/row_grammar.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::generate {

RowGrammar::RowGrammar(const AnswerForm& form, std::vector<int32_t> end_ids, size_t lexer)
    : lexer_(lexer),
      place_(form.grammar->begin(lexer)),
      thoughts_(form.thoughts),
      end_ids_(std::move(end_ids)),
      words_(static_cast<size_t>((form.grammar->num_ids() + 31) / 32)),
      part_(thoughts_.are_open ? Part::Thoughts : Part::Begin) {}

void RowGrammar::allow(int32_t id, bool is_allowed) {
  const auto word = static_cast<size_t>(id / 32);
  if (id < 0 || word >= words_.size()) return;
  const uint32_t bit = 1U << (id % 32);
  words_[word] = is_allowed ? words_[word] | bit : words_[word] & ~bit;
}

void RowGrammar::mask_answer() {
  try {
    if (const std::optional<int32_t> id = std::exchange(unread_id_, {})) place_.take(*id);
    const bool may_end = place_.mask(begins_text_, words_);
    for (const int32_t id : end_ids_) allow(id, may_end);
    const bool is_stuck =
        std::all_of(words_.begin(), words_.end(), [](uint32_t word) { return word == 0; });
    if (is_stuck) fail("no token of the vocabulary goes on with it");
  } catch (const DataError& error) {
    fail(error.what());
  }
}

std::span<const uint32_t> RowGrammar::allowed() {
  if (std::exchange(is_masked_, true)) return words_;
  if (part_ == Part::Thoughts) {
    std::fill(words_.begin(), words_.end(), std::numeric_limits<uint32_t>::max());
    for (const int32_t id : end_ids_) allow(id, false);
    return words_;
  }
  if (problem_.empty()) mask_answer();
  if (part_ == Part::Begin && problem_.empty()) allow(thoughts_.begin, true);
  return words_;
}

void RowGrammar::take(int32_t id) {
  is_masked_ = false;
  begins_text_ = false;
  if (part_ == Part::Thoughts) {
    if (id == thoughts_.end) part_ = Part::Answer;
    return;
  }
  if (std::exchange(part_, Part::Answer) == Part::Begin && id == thoughts_.begin) {
    part_ = Part::Thoughts;
    return;
  }
  const bool ends = std::find(end_ids_.begin(), end_ids_.end(), id) != end_ids_.end();
  if (!ends && problem_.empty()) unread_id_ = id;
}

void RowGrammar::fail(const std::string& problem) {
  problem_ = problem;
  std::fill(words_.begin(), words_.end(), 0);
  for (const int32_t id : end_ids_) allow(id, true);
}

void find_allowed(const std::vector<RowGrammar*>& rows) {
  std::map<size_t, std::vector<RowGrammar*>> by_lexer;
  int64_t num_words = 0;
  for (RowGrammar* const row : rows) {
    by_lexer[row->lexer()].push_back(row);
    num_words += std::ssize(row->words());
  }
  std::vector<std::vector<RowGrammar*>> tasks;
  for (auto& [lexer, of_lexer] : by_lexer) tasks.push_back(std::move(of_lexer));
  // A mask costs more than this, so that only the smallest steps stay on one thread.
  const int64_t work = 32 * num_words * kernels::kWorkOfElement;
  kernels::for_tasks(std::ssize(tasks), work, [&] {
    return [&](int64_t task) {
      for (RowGrammar* const row : tasks[static_cast<size_t>(task)]) row->allowed();
    };
  });
}

}  // namespace convoy::generate
