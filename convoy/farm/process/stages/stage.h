// SPDX-License-Identifier: Apache-2.0
//
// The stages of a row: plain functions, in the order that the settings give. A stage handles one
// candidate, or all candidates of a row; it reads the row's state, requests texts, and writes its
// findings into the state. It runs again, from the beginning, each time the row has one more text,
// so it keeps no data and must do the same each time. Thread-safe.
//
// To add a stage, write a file with its functions and its entry, declare the entry below, and add
// one line in stages/registry.cpp. A stage with findings for which the state has no member stores
// an object in RowState::results; its entry makes columns of the output and figures of the filter
// from that object.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/farm/process/pipeline/pipeline_plan.h"
#include "convoy/farm/process/pipeline/row_state.h"
#include "convoy/farm/process/pipeline/row_texts.h"

namespace convoy::process {

struct StageInputs {
  const PipelinePlan& plan;
  RowTexts& texts;
};

// The largest number of texts that a stage requests for a row.
struct TextDemand {
  int64_t requests = 0;
  int64_t new_tokens = 0;
};

// A column that a stage adds to every row of the output, after the common columns; null if the
// stage did not run.
struct StageColumn {
  std::string_view name;
  nlohmann::ordered_json (*value)(const RowState& row);
};

// A member that a stage adds to each entry of the column `samples`; null = left out.
struct StageCandidateColumn {
  std::string_view name;
  nlohmann::ordered_json (*value)(const RowState& row, const Candidate& candidate);
};

// A figure that conditions of the filter can use; null = unknown. `version`: the text that
// represents the row; null if there is none.
struct StageFigure {
  std::string_view name;
  std::vector<std::string_view> words;  // allowed words; empty: the figure is a number
  nlohmann::ordered_json (*value)(const RowState& row, const Version* version);
};

struct Stage {
  std::string_view name;
  std::string_view summary;
  TextDemand (*demand)(const settings::ProcessSettings& settings) = nullptr;  // null: no texts
  // Exactly one of these functions is set. of_row() runs only when no candidate of the row waits
  // for a text.
  void (*of_candidate)(const StageInputs& inputs, const RowState& row,
                       Candidate& candidate) = nullptr;
  void (*of_row)(const StageInputs& inputs, RowState& row) = nullptr;
  std::vector<StageColumn> columns = {};
  std::vector<StageCandidateColumn> candidate_columns = {};
  std::vector<StageFigure> figures = {};
};

// Every stage of Convoy.
const std::vector<Stage>& all_stages();
// The stages that the settings name, in their order. Throws ConfigError if a stage is unknown, is
// named twice, or comes before a stage that it needs.
std::vector<const Stage*> stages_named(const std::vector<std::string>& names);

// Numbers the random draws of a candidate's texts within the row: no two texts share a number.
enum class TextKind : uint64_t { Solution = 0, Judgement = 1, Improvement = 2 };
DrawSource draw_source(const PipelinePlan& plan, const RowState& row, TextKind kind,
                       int64_t candidate, int64_t version);

// The text of `step` as a version of a candidate. `schema`: the JSON Schema that the text had to
// match, if any; its answer is then the member "answer" of its object, where there is one.
Version read_version(const KeptStep& step, bool prompt_opens_think, const std::string& schema = {});

void verify_version(const RowState& row, Version& version);
// Evaluates one version. Returns false while its judgement is not there yet.
bool evaluate_version(const StageInputs& inputs, const RowState& row, const Candidate& candidate,
                      size_t number, Version& version);
// The part of a judgement that is shown to the writer of the next version.
std::string feedback(const settings::ProcessSettings& settings, const Version& version);

Stage generate_stage();
Stage verify_stage();
Stage evaluate_stage();
Stage improve_stage();
Stage vote_stage();
Stage filter_stage();

}  // namespace convoy::process
