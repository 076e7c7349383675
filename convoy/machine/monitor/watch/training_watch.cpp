// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/watch/training_watch.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/core/base/json_member.h"

namespace convoy::monitor {

TrainingWatch::News TrainingWatch::look() {
  News news = News::None;
  for (const nlohmann::ordered_json& row : events_.new_rows()) {
    const std::string event = member_or(row, "event", std::string());
    step_ = member_or(row, "step", step_);
    if (event == "start") {
      // After a training resumes at step 4 the next step is 5; -1 = from the beginning.
      step_ = std::max<int64_t>(0, member_or(row, "resume_step", int64_t{-1}));
      tokens_ = supervised_tokens_ = 0;
      news = News::Began;
    }
    if (event != "end" && event != "failure") continue;
    const bool was_seen = news != News::Began;
    news = News::Ended;
    if (!was_seen || !row.contains("figures") || !row["figures"].is_object()) continue;
    tokens_ = member_or(row["figures"], "train_tokens", int64_t{0});
    supervised_tokens_ = member_or(row["figures"], "train_supervised_tokens", int64_t{0});
  }
  return news;
}

}  // namespace convoy::monitor
