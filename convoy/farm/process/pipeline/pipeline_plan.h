// SPDX-License-Identifier: Apache-2.0
//
// The input of a run's stages: its settings, and the prompts as text. Everything that decides a
// row's texts is here, so content() is the key of the texts.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/core/settings/process_settings.h"
#include "convoy/farm/process/parsing/filter_condition.h"
#include "convoy/farm/process/parsing/problem_fields.h"
#include "convoy/farm/process/parsing/prompt_template.h"
#include "convoy/farm/process/pipeline/stage_schemas.h"
#include "convoy/farm/process/text_engine.h"

namespace convoy::process {

// The texts of the three prompts, by stage: "generate", "evaluate", "improve".
using PromptTexts = std::map<std::string, std::string>;

// Reads the prompts that the settings name and takes the others from `shipped`. Throws ConfigError.
PromptTexts read_prompt_texts(const settings::PromptSettings& prompts, const PromptTexts& shipped);

// The fields that are read from rows of this data set: first the fields that the settings name,
// then the catalog's fields.
ProblemFields problem_fields(const settings::ProcessDataSettings& data);

// Approximate length of the longest request of the stages: its prompt and its text.
int64_t longest_request_tokens(const settings::ProcessSettings& settings);

struct PipelinePlan {
  // Throws ConfigError for impossible stages, prompts, schemas or conditions.
  PipelinePlan(settings::ProcessSettings settings, const PromptTexts& prompts,
               StageSchemas schemas = {});

  settings::ProcessSettings settings;  // no setting of `prompts` is "auto"
  PromptTemplate generate;
  PromptTemplate evaluate;
  PromptTemplate improve;
  StageSchemas schemas;
  std::vector<FilterCondition> conditions;  // conditions that published rows must meet

  bool has_stage(const std::string& name) const;
  // The JSON Schema of a stage's texts; empty: any text. An improved solution has that of solutions
  // unless it has one of its own.
  std::string schema(const std::string& stage) const;
  bool chats() const { return settings.prompts.chat == "on"; }

  // The text as a prompt, for chat or plain.
  Prompt prompt(const std::string& text) const;
  bool opens_think(const std::string& text) const;

  // Everything that decides the content of a row. It is the version of a run's ledger. `model`: the
  // identity of the weights.
  nlohmann::json content(const std::string& model) const;
};

}  // namespace convoy::process
