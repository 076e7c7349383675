// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "convoy/farm/process/pipeline/row_values.h"
#include "convoy/farm/process/stages/stage.h"
#include "convoy/farm/process/text_sampling.h"

namespace convoy::process {
namespace {

using answers::Verdict;

bool is_yes(const Version& version) { return version.verdict == Verdict::Yes; }

bool needs_improvement(const settings::ProcessSettings& settings, const Version& version) {
  if (version.finish == TextFinish::Error) return false;
  if (version.verdict == Verdict::No) return true;
  // An unreadable judgement gives no information about the solution.
  return version.score() && *version.score() < settings.evaluate.threshold;
}

// External verification decides first: a verified answer is kept even if the judge prefers the
// other.
bool is_better(const Version& next, const Version& kept) {
  if (next.finish == TextFinish::Error) return false;
  if (is_yes(next) != is_yes(kept)) return is_yes(next);
  return next.score() && kept.score() && *next.score() > *kept.score();
}

std::string advice(const std::string& criterion) {
  static const std::map<std::string, std::string> sentences = {
      {"correctness", "Verify the calculations and make sure that the final answer is right."},
      {"step_by_step_clarity", "Break the solution into explicit steps and explain each of them."},
      {"logical_coherence", "Make sure that each step follows from the ones before it."},
      {"mathematical_precision", "Be precise in notation, terms and calculations."}};
  const auto found = sentences.find(criterion);
  if (found != sentences.end()) return found->second;
  std::string words = criterion;
  for (char& letter : words)
    if (letter == '_') letter = ' ';
  return fmt::format("Improve the {}.", words);
}

TextRequest improvement(const StageInputs& inputs, const RowState& row, const Candidate& candidate,
                        const std::string& text) {
  const settings::ProcessSettings& settings = inputs.plan.settings;
  const auto number = static_cast<int64_t>(candidate.versions.size());
  TextSampling sampling =
      text_sampling(settings.generate, settings.improve.temperature,
                    settings.improve.max_tokens.value.value_or(settings.generate.max_tokens));
  sampling.top_p = settings.improve.top_p;
  return {.prompt = inputs.plan.prompt(text),
          .sampling = std::move(sampling),
          .draw = draw_source(inputs.plan, row, TextKind::Improvement, candidate.number, number),
          .schema = inputs.plan.schema("improve")};
}

std::string improvement_text(const StageInputs& inputs, const RowState& row,
                             const Version& current) {
  std::map<std::string, std::string> values = row_values(row);
  values["current_solution"] = current.shown();
  values["feedback"] = feedback(inputs.plan.settings, current);
  return inputs.plan.improve.render(values);
}

}  // namespace

std::string feedback(const settings::ProcessSettings& settings, const Version& version) {
  std::string text;
  const auto add = [&text](const std::string& sentence) {
    text += (text.empty() ? "- " : "\n- ") + sentence;
  };
  if (version.verdict == Verdict::No) add("The final answer is wrong.");
  if (version.judgement)
    for (const auto& [criterion, score] : version.judgement->scores.criteria)
      if (score && *score < settings.improve.feedback_below) add(advice(criterion));
  if (text.empty()) add("Make the solution clearer and more precise.");
  if (version.judgement && !version.judgement->text.empty())
    text += "\n\n" + version.judgement->text;
  return text;
}

namespace {

void improve(const StageInputs& inputs, const RowState& row, Candidate& candidate) {
  if (candidate.versions.empty()) return;
  const settings::ProcessSettings& settings = inputs.plan.settings;
  for (int64_t iteration = 0; iteration < settings.improve.max_iterations; ++iteration) {
    const Version& current = candidate.best();
    if (!needs_improvement(settings, current)) return;
    const size_t number = candidate.versions.size();
    // At temperature 0 the same prompt gives the same text again.
    if (settings.improve.temperature == 0 && number > 1 && candidate.kept + 1 != number) return;
    const std::string text = improvement_text(inputs, row, current);
    const KeptStep* step =
        inputs.texts.find_or_ask(fmt::format("improve/{}/{}", candidate.number, number),
                                 [&] { return improvement(inputs, row, candidate, text); });
    if (step == nullptr) {
      candidate.waiting = true;
      return;
    }
    Version next =
        read_version(*step, inputs.plan.opens_think(text), inputs.plan.schema("improve"));
    if (inputs.plan.has_stage("verify")) verify_version(row, next);
    if (inputs.plan.has_stage("evaluate") &&
        !evaluate_version(inputs, row, candidate, number, next)) {
      candidate.waiting = true;
      return;
    }
    const bool better = is_better(next, current);
    candidate.versions.push_back(std::move(next));
    if (better) candidate.kept = number;
  }
}

TextDemand improve_demand(const settings::ProcessSettings& settings) {
  const int64_t times = settings.generate.n * settings.improve.max_iterations;
  const int64_t improved = settings.improve.max_tokens.value.value_or(settings.generate.max_tokens);
  return {.requests = 2 * times, .new_tokens = times * (improved + settings.evaluate.max_tokens)};
}

}  // namespace

Stage improve_stage() {
  return {.name = "improve",
          .summary = "lets the model improve weak solutions",
          .demand = improve_demand,
          .of_candidate = improve};
}

}  // namespace convoy::process
