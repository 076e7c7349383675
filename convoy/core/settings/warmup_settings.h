// SPDX-License-Identifier: Apache-2.0
//
// Learning-rate keys of DeepSpeed's schedulers.
#pragma once

#include <cstdint>
#include <string>

namespace convoy::settings {

struct WarmupSettings {
  int64_t schedule_steps = 0;
  std::string warmup_type = "log";
  double warmup_min_lr = 0;
  double warmup_min_ratio = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("schedule_steps", schedule_steps,
          "steps over which the schedule runs; 0 = those of the run")
        .at_least(0);
    visit("warmup_type", warmup_type, "warmup_*_lr: how the rate rises").one_of({"log", "linear"});
    visit("warmup_min_lr", warmup_min_lr,
          "warmup_lr, warmup_decay_lr: rate before the warm-up, and after the decay")
        .at_least(0);
    visit("warmup_min_ratio", warmup_min_ratio,
          "warmup_cosine_lr: rate before the warm-up, as a share of the peak")
        .at_least(0)
        .at_most(1);
  }
};

}  // namespace convoy::settings
