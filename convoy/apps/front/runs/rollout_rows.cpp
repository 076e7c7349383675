// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/runs/rollout_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/farm/process/parsing/think_text.h"

namespace convoy::apps {
namespace {

using Json = nlohmann::ordered_json;

void require_parts(const Json& text) {
  const auto step = text.value("step", int64_t{0});
  if (!text.contains("reward"))
    throw DataError(fmt::format("step {} has texts without a reward", step),
                    {.key = "--as", .hint = "name runs of task grpo"});
  if (!text.contains("asked"))
    throw DataError(fmt::format("step {} has texts without `asked`, their prompt", step),
                    {.key = "--as",
                     .hint = "an older version wrote this run: `convoy process` makes such rows "
                             "anew"});
}

// The text in the form of its prompt: in a chat the assistant's turn.
Json answer_of(const Json& text) {
  const std::string said = text.at("text").get<std::string>();
  if (text.at("asked").is_string()) return said;
  const process::ThinkText parts = process::split_think(said, false);
  return Json::array({process::assistant_turn(parts.said, parts.think)});
}

bool is_whole(const Json& text) {
  return !text.value("truncated", false) &&
         !trimmed(text.at("text").get_ref<const std::string&>(), " \t\r\n").empty();
}

double reward_of(const Json& text) { return text.at("reward").get<double>(); }

}  // namespace

void RolloutRows::add_step(const std::vector<Json>& texts) {
  std::map<int64_t, std::vector<const Json*>> by_problem;
  for (const Json& text : texts) {
    require_parts(text);
    if (counts_.texts++ == 0 || reward_of(text) > counts_.best_reward)
      counts_.best_reward = reward_of(text);
    if (!is_whole(text))
      ++counts_.cut;
    else if (form_ == RolloutForm::Sft)
      add_good(text);
    else
      by_problem[text.value("row", int64_t{0})].push_back(&text);
  }
  for (const auto& [problem, of_problem] : by_problem) add_pair(of_problem);
}

void RolloutRows::add_good(const Json& text) {
  if (reward_of(text) < min_reward_) return;
  const Json row = {{"prompt", text.at("asked")}, {"completion", answer_of(text)}};
  if (is_new(row)) writer_.write(row);
}

// Takes the first of texts with the same reward.
void RolloutRows::add_pair(const std::vector<const Json*>& of_problem) {
  const auto is_less = [](const Json* left, const Json* right) {
    return reward_of(*left) < reward_of(*right);
  };
  const Json& worst = **std::min_element(of_problem.begin(), of_problem.end(), is_less);
  const Json& best = **std::max_element(of_problem.begin(), of_problem.end(), is_less);
  if (reward_of(best) <= reward_of(worst)) return;
  const Json row = {
      {"prompt", best.at("asked")}, {"chosen", answer_of(best)}, {"rejected", answer_of(worst)}};
  if (!is_new(row)) return;
  Json with_source = row;
  with_source["problem_id"] = best.at("row");
  with_source["score_chosen"] = reward_of(best);
  with_source["score_rejected"] = reward_of(worst);
  writer_.write(with_source);
}

bool RolloutRows::is_new(const Json& row) {
  const bool added = hashes_.insert(sha256_hex(row.dump())).second;
  ++(added ? counts_.rows : counts_.repeated);
  return added;
}

}  // namespace convoy::apps
