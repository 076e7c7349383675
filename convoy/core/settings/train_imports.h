// SPDX-License-Identifier: Apache-2.0
//
// The configurations of other programs that a training takes settings from: DeepSpeed's and
// accelerate's files, FSDP of TrainingArguments, NUM_GPUS.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/deepspeed_file.h"
#include "convoy/core/settings/launch_request.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {

// Input and output of `resolve_train` beside settings.
struct RankFacts {
  int64_t ranks = 0;                  // ranks of the whole job; 0 = unknown
  LaunchRequest launch_request = {};  // filled by resolve_train
};

class TrainImports {
 public:
  // `facts` must outlive this object, and this object must outlive the result of list().
  explicit TrainImports(RankFacts& facts) : facts_(facts) {}

  std::vector<config::Import> list();

  // Checks imported values that involve several keys.
  void check(const TrainSettings& settings, const config::Resolved& resolved,
             config::ErrorList& errors) const;

 private:
  void check_batch(const DeepSpeedFacts& facts, const TrainSettings& settings,
                   const config::Resolved& resolved, config::ErrorList& errors) const;

  RankFacts& facts_;
  std::vector<DeepSpeedFacts> deepspeed_;
};

}  // namespace convoy::settings
