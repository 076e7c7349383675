// SPDX-License-Identifier: Apache-2.0
//
// The log-probabilities that a reference gives to the rows of a training: computed before the first
// step, each row once, by all ranks, and kept beside the token cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/training/language_start.h"
#include "convoy/train/loop/preference_objective.h"

namespace convoy::recipes {

// Collective. Call it while the model is as it was loaded, whatever a checkpoint holds: before a
// strategy has its values, or, where a run has no checkpoint, before its first step. A plan alone
// checks the reference's tokenizer. None when the run was stopped meanwhile; what is computed is
// kept. Throws ConfigError for another model of another tokenizer.
std::optional<train::ReferenceScores> reference_scores(const TrainingRun& run,
                                                       const LanguageInput& input,
                                                       const SettledBatch& batch,
                                                       comm::Group& group);

// `reference`: preference.reference. Where it names another model, reads its tokenizer alone.
// Throws ConfigError where that is another one than `own`, of `model`.
void require_tokenizer_of(const std::string& reference, const text::Tokenizer& own,
                          const std::string& model);

// Scores by row of a data set, NaN where there is none, in a safetensors file.
class ScoreFile {
 public:
  // An empty folder keeps nothing. `key`: says what they depend on.
  ScoreFile(const std::filesystem::path& folder, const std::string& key, const Log& log);

  // NaN for all when there is no file, or one with damage, which is said.
  std::vector<double> read(int64_t num_rows) const;
  // A folder that cannot be written costs a warning.
  void write(const std::vector<double>& scores) const;

  // Gives `scores` back, any number of times: from the file, which stays readable if its name is
  // removed, or from memory where the file does not hold them.
  using Reader = std::function<std::vector<double>()>;
  Reader reader(std::vector<double> scores) const;

 private:
  std::filesystem::path path_;  // empty: none
  const Log& log_;
};

}  // namespace convoy::recipes
