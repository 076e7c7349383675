// SPDX-License-Identifier: Apache-2.0
//
// Settings of measurements by lm-evaluation-harness: the section `eval` of a training, and flags
// of `convoy eval --tasks`. Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/config/field.h"

namespace convoy::settings {

struct HarnessSettings {
  config::NameList tasks;
  std::string tasks_folder;
  int64_t limit = 0;
  int64_t num_fewshot = -1;
  bool chat = false;
  std::string harness_python;

  template <class Visitor>
  void fields(Visitor& visit) {
    shared_fields(visit);
    visit("tasks_rows", limit, kLimitHelp).at_least(0);
  }
  // The fields whose keys are the names of their flags.
  template <class Visitor>
  void shared_fields(Visitor& visit) {
    visit("tasks", tasks, "tasks of lm-evaluation-harness to measure, such as arc_easy,gsm8k");
    visit("tasks_folder", tasks_folder, "folder with further tasks, in the harness' YAML form")
        .alias("include_path");
    visit("num_fewshot", num_fewshot, "solved examples in each prompt; -1 = as each task says")
        .at_least(-1);
    visit("chat", chat,
          "ask by the model's chat template; for tasks with written answers, not for those that "
          "compare log-probabilities");
    visit("harness_python", harness_python,
          "Python that has the package lm-eval[api]; empty = lm_eval's in PATH, else python3");
  }

  static constexpr const char* kLimitHelp =
      "only the first rows of each task, for a quick look; 0 = all";
};

}  // namespace convoy::settings
