// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/evaluate/questions.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/data/datasets/encoding/encoded_rows.h"
#include "convoy/data/datasets/schemas/question.h"

namespace convoy::recipes {
namespace {

bool is_dealt_by_shares(const settings::DataSettings& data) {
  return data.val_path.empty() && data.test_path.empty();
}

// Returns nothing for a row without an answer, when such rows are allowed.
std::optional<data::Question> question_of(const data::Sample& sample, bool may_lack_answer) {
  try {
    return data::split_answer(sample);
  } catch (const DataError&) {
    if (!may_lack_answer) throw;
    return std::nullopt;
  }
}

}  // namespace

Questions read_questions(const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template,
                         const std::filesystem::path& path, const settings::TrainSettings& settings,
                         const QuestionRange& range, const Log& log) {
  const data::SampleEncoder encoder(tokenizer, chat_template, data::Supervision());
  std::optional<data::Question> question;
  std::string input;
  const auto is_wanted = [&](int64_t row) {
    return range.rows.empty() || range.rows.contains(row);
  };
  data::EncodedRows encoded(path, data::SchemaConfig::from(settings.data, settings.task),
                            data::bad_rows_named(settings.data.bad_rows), data::RowUse::Learn,
                            [&](const data::Sample& sample) -> data::EncodedRow {
                              question.reset();
                              if (!is_wanted(sample.index)) return {};
                              question = question_of(sample, range.may_lack_answers);
                              if (!question) return {};
                              input = encoder.render(question->prompt, true);
                              return encoder.encode_prompt(question->prompt);
                            });
  Questions questions;
  int64_t unanswered = 0;
  const int64_t last_row = range.rows.empty() ? INT64_MAX : *range.rows.rbegin();
  while (range.limit == 0 || questions.size() < range.limit) {
    std::optional<data::EncodedSample> next = encoded.next();
    if (!next || next->row.source_index > last_row) break;
    if (!question) {
      unanswered += is_wanted(next->row.source_index) ? 1 : 0;
      continue;
    }
    questions.prompts.push_back({std::move(next->row.ids), data::is_chat(question->prompt)});
    questions.inputs.push_back(std::move(input));
    questions.references.push_back(std::move(question->reference));
  }
  // The encoding of the splits has named them.
  encoded.finish(log, data::EncodedRows::LostParts::Named);
  if (unanswered > 0)
    log.info(fmt::format("{}: {} no answer of the assistant to compare with", path.string(),
                         counted(unanswered, "row has", "rows have")));
  return questions;
}

std::string file_of_split(const settings::DataSettings& data, const std::string& split) {
  if (is_dealt_by_shares(data)) return data.train_path;
  return split == "val" ? data.val_path : data.test_path;
}

std::set<int64_t> rows_of_split(const settings::DataSettings& data,
                                const data::TokenDataset& split) {
  std::set<int64_t> rows;
  if (!is_dealt_by_shares(data)) return rows;
  for (int64_t row = 0; row < split.num_rows(); ++row) rows.insert(split.source_index(row));
  return rows;
}

}  // namespace convoy::recipes
