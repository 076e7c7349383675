// SPDX-License-Identifier: Apache-2.0
//
// `convoy eval --samples`: measures saved predictions. No model, no ranks.
#pragma once

#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/core/settings/worker_calls.h"
#include "convoy/data/evaluate/scored_answer.h"
#include "convoy/data/evaluate/text_metrics.h"

namespace convoy::apps {

// Measures answers as the flags of metrics say.
class Scoring {
 public:
  // `title`: the report's title; `folder`: for metrics.json, empty = none. Throws ConfigError.
  Scoring(const settings::MetricFlags& flags, std::string title, std::string folder);
  // Writes the files and prints the figures. Throws IoError.
  void report(const Context& context, const std::vector<evaluate::ScoredAnswer>& samples) const;

 private:
  settings::MetricFlags flags_;
  std::string title_;
  std::string folder_;
  evaluate::TextMetrics metrics_;
  std::string report_metric_;
};

// `positionals`: the words of `convoy eval` that are no flags. Returns the exit code. Throws
// DataError, ConfigError.
int evaluate_saved_samples(const Context& context, const settings::EvalCall& call,
                           const Words& positionals);

}  // namespace convoy::apps
