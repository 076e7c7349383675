// SPDX-License-Identifier: Apache-2.0
//
// The problems of a training from rewards, as prompts for its model.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/apps/recipes/generate/answer_prompts.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/encoding/encode_splits.h"

namespace convoy::recipes {

struct RolloutProblem {
  AskedPrompt prompt = {};
  bool begins_in_think = false;  // the rendered prompt ends in "<think>"
  std::string text;              // the problem, as the row has it
  // The prompt of the model before its template: messages, or a text.
  nlohmann::ordered_json asked = {};
  std::vector<std::string> answers;  // any of them is right
  nlohmann::ordered_json row;
  int64_t row_number = 0;  // in its file, from 1
};

struct RolloutProblems {
  std::vector<RolloutProblem> train;
  std::vector<RolloutProblem> val = {};  // empty without data.val_path

  int64_t longest_prompt_tokens() const;
};

struct ProblemFile {
  std::string path;
  std::string split;  // its name in the log's line
};

// The problems of one file, for a model with this tokenizer; `chat_template` may be null. As
// read_rollout_problems().
std::vector<RolloutProblem> read_problems(const text::Tokenizer& tokenizer,
                                          const text::ChatTemplate* chat_template,
                                          const settings::TrainSettings& settings,
                                          const ProblemFile& file, const Log& log);

// Reads data.train_path and data.val_path, and logs a line for each. Prompts that leave no room for
// rollout.max_new_tokens in model.max_seq_len are left out with a warning. Throws DataError with
// the row, ConfigError.
RolloutProblems read_rollout_problems(const LoadedModel& loaded,
                                      const settings::TrainSettings& settings, const Log& log);

// The prompts as rows without a target, in the order of `problems`, for the plan of a training.
data::EncodedSplits splits_of(const RolloutProblems& problems, const settings::DataSettings& data);

}  // namespace convoy::recipes
