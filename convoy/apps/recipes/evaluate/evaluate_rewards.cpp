// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/evaluate/evaluate_rewards.h"

#include <algorithm>
#include <map>
#include <utility>

#include "convoy/apps/recipes/generate/answer_prompts.h"
#include "convoy/apps/recipes/posttraining/reward_list.h"
#include "convoy/apps/recipes/posttraining/rollout_problems.h"
#include "convoy/core/io/row_output.h"
#include "convoy/data/evaluate/sample_files.h"

namespace convoy::recipes {
namespace {

// The answers of an evaluation during the training are drawn so.
settings::SamplingFlags sampling_of(const settings::RolloutSettings& rollout) {
  settings::SamplingFlags greedy;
  greedy.greedy = true;
  greedy.max_new_tokens = rollout.max_new_tokens;
  greedy.stop = rollout.stop;
  return settings::settle_sampling(greedy, {});
}

std::vector<AskedPrompt> asked_prompts(const std::vector<RolloutProblem>& problems) {
  std::vector<AskedPrompt> prompts;
  for (const RolloutProblem& problem : problems) prompts.push_back(problem.prompt);
  return prompts;
}

std::string line_of_answer(const rewards::JudgedText& text, const std::vector<double>& values,
                           const RewardList& rewards) {
  nlohmann::ordered_json row =
      evaluate::sample_row({.input = text.prompt, .pred = text.text, .refs = text.answers});
  row["reward"] = rewards.weighed(values);
  row["rewards"] = nlohmann::ordered_json::object();
  for (size_t part = 0; part < values.size(); ++part)
    row["rewards"][rewards.names()[part]] = values[part];
  return io::line_of(row);
}

}  // namespace

RewardsEvaluation evaluate_rewards(RankShare& share, OpenedModel opened,
                                   const settings::TrainSettings& settings,
                                   const settings::EngineFlags& engine, const std::string& file,
                                   int64_t limit, const Log& log) {
  std::vector<RolloutProblem> problems =
      read_problems(opened.tokenizer, opened.template_or_null(), settings,
                    {.path = file, .split = "problems"}, log);
  if (limit > 0 && limit < std::ssize(problems)) problems.resize(static_cast<size_t>(limit));
  const std::vector<AskedPrompt> prompts = asked_prompts(problems);
  const settings::SamplingFlags sampling = sampling_of(settings.rollout);
  RewardList rewards(settings.reward);
  sizing::GenerationRows together =
      rows_together(engine, opened.request.device, longest_row(prompts, sampling));
  together.rows = std::clamp<int64_t>(std::ssize(prompts), 1, together.rows);
  say_generation_memory(opened, engine, together, share.size(), log);
  const LoadedModel loaded = load_weights(std::move(opened), log);
  share.follow_free_cores(log);
  const at::NoGradGuard no_grad;
  std::map<int64_t, rewards::JudgedText> answered;
  answer_prompts(
      share, loaded, prompts,
      {.sampling = sampling, .engine = engine, .progress = {.label = "answer", .unit = "problem"}},
      log, [&](const Answer& answer) {
        const generate::Completion& ended = answer.completion;
        answered.emplace(
            answer.prompt,
            judged_text(problems[static_cast<size_t>(answer.prompt)],
                        {.text = ended.text,
                         .tokens = std::ssize(ended.token_ids),
                         .is_truncated = ended.finish_reason == generate::FinishReason::Length}));
      });
  std::vector<rewards::JudgedText> texts;
  for (const auto& [problem, text] : answered) texts.push_back(text);
  const std::vector<std::vector<double>> values = rewards.values(texts, {});
  std::vector<RewardedAnswer> own;
  std::vector<PlacedLine> lines;
  for (const auto& [problem, text] : answered) {
    const std::vector<double>& of_text = values[own.size()];
    own.push_back({.problem = problem, .tokens = text.tokens, .rewards = of_text});
    lines.emplace_back(problem, line_of_answer(text, of_text, rewards));
  }
  const train::Evaluation found =
      rewarded_evaluation(own, std::ssize(problems), rewards, share.group());
  RewardsEvaluation evaluation{.figures = {{"loss", found.loss}, {"rows", found.rows}}};
  for (const auto& [name, value] : found.others) evaluation.figures[name] = value;
  gather_in_order(share.group(), lines, 0, std::ssize(problems),
                  [&](const std::string& line) { evaluation.lines.push_back(line); });
  return evaluation;
}

}  // namespace convoy::recipes
