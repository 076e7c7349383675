// SPDX-License-Identifier: Apache-2.0
//
// Language modelling whose evaluations also generate answers to validation rows, and measure them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/evaluate/questions.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/evaluate/scored_answer.h"
#include "convoy/data/evaluate/text_metrics.h"
#include "convoy/generate/engine/request.h"
#include "convoy/train/loop/language_objective.h"

namespace convoy::recipes {

// The rows that evaluations answer, in the order of the file. Throws ConfigError when there are
// none, or when the metric that decides the best model cannot be measured on them.
Questions evaluation_questions(const LoadedModel& loaded, const settings::TrainSettings& settings,
                               const data::TokenDataset& validation, const Log& log);

struct GeneratingOptions {
  std::filesystem::path samples_folder = {};  // step-N.jsonl of every evaluation
  int engines_on_host = 1;                    // engines that share the memory of the CPU
};

class GeneratingObjective final : public train::LanguageObjective {
 public:
  // All but `options` must outlive it. `plan`, `validation`: as for LanguageObjective.
  GeneratingObjective(const LoadedModel& loaded, const data::BatchPlan& plan,
                      const data::TokenDataset& validation, const Questions& questions,
                      const settings::TrainSettings& settings, GeneratingOptions options,
                      const Log& log);

  void begin(train::StepRange steps, int rank) override;
  void step_done(const train::StepOutcome& outcome) override;
  // The loss and the named metrics of the answers. Every row is answered by one rank and
  // independently of other rows, and sums are made in the order of rows: the results are equal for
  // every number of ranks. Leaves the model unchanged: all traces are in its KV cache, which is
  // freed.
  std::optional<train::Evaluation> evaluate(comm::Group& group,
                                            const std::function<bool()>& stop_requested) override;

 private:
  struct Answers;
  std::optional<Answers> answer(comm::Group& group, const std::function<bool()>& stop_requested);
  generate::Request request_of(int64_t row) const;
  void write_samples(comm::Group& group, const Answers& answers) const;
  void add_figures(comm::Group& group, const Answers& answers, train::Evaluation& evaluation) const;

  const LoadedModel& loaded_;
  const Questions& questions_;
  const settings::TrainSettings& settings_;
  const GeneratingOptions options_;
  const Log& log_;
  evaluate::TextMetrics metrics_;
  int64_t longest_row_tokens_ = 0;
  int64_t step_ = 0;
};

}  // namespace convoy::recipes
