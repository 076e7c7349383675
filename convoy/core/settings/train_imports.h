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
#include "convoy/core/settings/launch_wishes.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {

// What `resolve_train` is told and tells beside settings.
struct RankFacts {
  int64_t ranks = 0;         // of the whole job; 0 = not known
  LaunchWishes wishes = {};  // filled by resolve_train
};

class TrainImports {
 public:
  // `facts` outlives this, and this what list() returns.
  explicit TrainImports(RankFacts& facts) : facts_(facts) {}

  std::vector<config::Import> list();

  // What imported files say that one key alone can not contradict.
  void check(const TrainSettings& settings, const config::Resolved& resolved,
             config::ErrorList& errors) const;

 private:
  void check_batch(const DeepSpeedFacts& facts, const TrainSettings& settings,
                   const config::Resolved& resolved, config::ErrorList& errors) const;

  RankFacts& facts_;
  std::vector<DeepSpeedFacts> deepspeed_;
};

}  // namespace convoy::settings
