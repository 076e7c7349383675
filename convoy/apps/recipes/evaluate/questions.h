// SPDX-License-Identifier: Apache-2.0
//
// Rows of a data set as questions for a model with their expected answers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "convoy/apps/recipes/generate/answer_prompts.h"
#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/tokens/token_dataset.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::recipes {

struct Questions {
  std::vector<AskedPrompt> prompts;
  std::vector<std::string> inputs;  // the prompts as text
  std::vector<std::string> references;

  int64_t size() const { return static_cast<int64_t>(prompts.size()); }
};

struct QuestionRange {
  int64_t limit = 0;  // the first rows; 0 = all
  // Takes only the rows with these numbers in the file; empty = all rows.
  std::set<int64_t> rows = {};
  // A row without an assistant answer is skipped and counted, not refused.
  bool may_lack_answers = false;
};

// The questions of the file, in its order. `chat_template` may be null. Throws DataError.
Questions read_questions(const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template,
                         const std::filesystem::path& path, const settings::TrainSettings& settings,
                         const QuestionRange& range, const Log& log);

// The file of a split: its own file, or the file that is split by shares.
std::string file_of_split(const settings::DataSettings& data, const std::string& split);

// The rows of a split, when one file is split by shares; else empty: the whole file is the split.
std::set<int64_t> rows_of_split(const settings::DataSettings& data,
                                const data::TokenDataset& split);

}  // namespace convoy::recipes
