// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/pipeline/pipeline_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/config/describe.h"
#include "convoy/farm/process/parsing/wanted_columns.h"
#include "convoy/farm/process/results/training_rows.h"
#include "convoy/farm/process/stages/stage.h"

namespace convoy::process {
namespace {

// Increased when the same settings make other rows than before.
constexpr int kPipelineVersion = 3;

const std::map<std::string, std::vector<std::string>>& known_names() {
  static const std::map<std::string, std::vector<std::string>> names = {
      {"generate", {"problem"}},
      {"evaluate", {"problem", "reasoning", "solution"}},
      {"improve", {"problem", "current_solution", "feedback"}}};
  return names;
}

PromptTemplate prompt_of(const std::string& stage, const settings::PromptSettings& prompts,
                         const PromptTexts& texts) {
  const std::string& file = stage == "generate"   ? prompts.generate
                            : stage == "evaluate" ? prompts.evaluate
                                                  : prompts.improve;
  return {texts.at(stage), file.empty() ? fmt::format("the shipped prompt {}", stage) : file,
          known_names().at(stage)};
}

void check_weights(const settings::EvaluateSettings& evaluate) {
  double sum = 0;
  for (const auto& [criterion, weight] : evaluate.weights) sum += weight;
  if (evaluate.weights.empty() || std::abs(sum - 1) > 1e-6)
    throw ConfigError(
        fmt::format("evaluate.weights: wanted weights that sum to 1, found {:.7g}", sum),
        {.key = "evaluate.weights",
         .hint = "such as evaluate.weights: {correctness: 0.7, clarity: 0.3}"});
}

std::vector<FilterCondition> conditions_of(const settings::FilterSettings& filter,
                                           const std::vector<std::string>& stages) {
  std::vector<FilterCondition> conditions;
  for (const std::string& text : filter.keep.names) conditions.emplace_back(text);
  const auto place = std::find(stages.begin(), stages.end(), "filter");
  if (!conditions.empty() && place == stages.end())
    throw ConfigError("filter.keep is set, but stages has no filter",
                      {.key = "filter.keep", .hint = "add filter to stages"});
  for (const FilterCondition& condition : conditions)
    if (!condition.stage().empty() && std::find(stages.begin(), place, condition.stage()) == place)
      throw ConfigError(
          fmt::format("filter.keep: no stage before filter computes the figure in `{}`",
                      condition.text()),
          {.key = "filter.keep",
           .hint = fmt::format("put {} before filter in --stages", condition.stage())});
  return conditions;
}

}  // namespace

PromptTexts read_prompt_texts(const settings::PromptSettings& prompts, const PromptTexts& shipped) {
  PromptTexts texts = shipped;
  const std::pair<const char*, const std::string*> files[] = {{"generate", &prompts.generate},
                                                              {"evaluate", &prompts.evaluate},
                                                              {"improve", &prompts.improve}};
  for (const auto& [stage, file] : files) {
    if (!file->empty()) texts[stage] = read_prompt_file(*file, fmt::format("prompts.{}", stage));
  }
  return texts;
}

namespace {

const data::KnownDataset* known_dataset(const settings::ProcessDataSettings& data) {
  return data::find_known_dataset(data.dataset_name.empty() ? data.dataset : data.dataset_name);
}

}  // namespace

ProblemFields problem_fields(const settings::ProcessDataSettings& data) {
  return ProblemFields(known_dataset(data), {.problem = data.problem_field,
                                             .solution = data.solution_field,
                                             .answer = data.answer_field});
}

int64_t longest_request_tokens(const settings::ProcessSettings& settings) {
  constexpr int64_t kProblemTokens = 1024;
  const auto has = [&](const char* stage) {
    return std::find(settings.stages.begin(), settings.stages.end(), stage) !=
           settings.stages.end();
  };
  const int64_t solution = settings.generate.max_tokens;
  const int64_t judgement = has("evaluate") ? settings.evaluate.max_tokens : 0;
  int64_t longest = solution + judgement;
  if (has("improve") && settings.improve.max_iterations > 0)
    longest += settings.improve.max_tokens.value.value_or(solution);
  return longest + kProblemTokens;
}

PipelinePlan::PipelinePlan(settings::ProcessSettings given, const PromptTexts& prompts,
                           StageSchemas given_schemas)
    : settings(std::move(given)),
      generate(prompt_of("generate", settings.prompts, prompts)),
      evaluate(prompt_of("evaluate", settings.prompts, prompts)),
      improve(prompt_of("improve", settings.prompts, prompts)),
      schemas(std::move(given_schemas)),
      conditions(conditions_of(settings.filter, settings.stages)) {
  stages_named(settings.stages);
  check_weights(settings.evaluate);
  check_stage_schemas(settings, schemas);
  check_training_rows(settings);
  check_system_prompt(settings.prompts.system);
}

bool PipelinePlan::has_stage(const std::string& name) const {
  return std::find(settings.stages.begin(), settings.stages.end(), name) != settings.stages.end();
}

std::string PipelinePlan::schema(const std::string& stage) const {
  auto found = schemas.find(stage);
  if (found == schemas.end() && stage == "improve") found = schemas.find("generate");
  return found == schemas.end() ? "" : found->second;
}

Prompt PipelinePlan::prompt(const std::string& text) const {
  if (!chats()) return {.text = text};
  Prompt prompt{.messages = nlohmann::ordered_json::array()};
  if (!settings.prompts.system.empty())
    prompt.messages.push_back({{"role", "system"}, {"content", settings.prompts.system}});
  prompt.messages.push_back({{"role", "user"}, {"content", text}});
  return prompt;
}

bool PipelinePlan::opens_think(const std::string& text) const {
  return chats() ? settings.prompts.opens_think == "yes" : process::opens_think(text);
}

nlohmann::json PipelinePlan::content(const std::string& model) const {
  settings::ProcessSettings listed = settings;
  nlohmann::json content = config::dump_json(config::list_fields(listed));
  // These sections choose rows, workers and outputs; none of them changes the result of a row.
  for (const char* section : {"workers", "output", "pairs", "answers", "problems", "run_name",
                              "run_dir", "task", "remote"})
    content.erase(section);
  for (const char* key : {"dataset", "dataset_name", "config", "split", "num_examples",
                          "start_from", "force_download", "bad_rows"})
    content["data"].erase(key);
  // Conditions are checked on finished rows when they are published. The position of the filter
  // decides which texts are checked.
  content.erase("filter");
  nlohmann::json& stages = content["stages"];
  if (!stages.empty() && stages.back() == "filter") stages.erase(stages.size() - 1);
  const data::KnownDataset* known = known_dataset(settings.data);
  content["data"]["schema"] = known == nullptr ? "" : known->key;
  // The content of the files decides, not their names.
  content["prompts"]["generate"] = generate.text();
  content["prompts"]["evaluate"] = evaluate.text();
  content["prompts"]["improve"] = improve.text();
  for (const char* stage : {"generate", "evaluate", "improve"}) {
    content[stage].erase("schema");
    if (const auto own = schemas.find(stage); own != schemas.end())
      content[stage]["schema"] = own->second;
  }
  content["model"].erase("name");
  content["model"].erase("revision");
  content["model"].erase("adapter");
  content["model"].erase("template_path");
  content["model"]["identity"] = model;
  // Without the setting, weights stay as they are in the folder, whose identity covers them. So
  // runs from before this setting existed can continue.
  if (!settings.model.encodes()) {
    content["model"].erase("quantization");
    content["model"].erase("double_quant");
  }
  if (settings.engine.activations == "model") content["engine"].erase("activations");
  for (const char* key : {"kv_blocks", "prefill_chunk", "max_requests", "low_memory", "memory_gib"})
    content["engine"].erase(key);
  content["pipeline_version"] = kPipelineVersion;
  return content;
}

}  // namespace convoy::process
