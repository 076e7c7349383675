// SPDX-License-Identifier: Apache-2.0
//
// The stages of a row: plain functions, in the order that the settings give. A stage handles one
// candidate, or all candidates of a row; it reads the row's state, requests texts, and writes its
// findings into the state. It runs again, from the beginning, each time the row has a text more, so
// it keeps nothing and does the same each time. Thread-safe.
//
// To add one: a file with its functions and its entry, the declaration of the entry below, one line
// in stages/registry.cpp. A stage that finds out more than the state has members for leaves an
// object in RowState::results; its entry makes columns of the output and figures of the filter from
// that.
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

// A column that a stage adds to every row of the output, behind the common columns; null if the
// stage did not run.
struct StageColumn {
  std::string_view name;
  nlohmann::ordered_json (*value)(const RowState& row);
};

// A member of each entry of the column `samples`; null = left out.
struct StageCandidateColumn {
  std::string_view name;
  nlohmann::ordered_json (*value)(const RowState& row, const Candidate& candidate);
};

// A figure that conditions of the filter can use; null = unknown. `version`: the text that
// represents the row, null where there is none.
struct StageFigure {
  std::string_view name;
  std::vector<std::string_view> words;  // empty: it is a number
  nlohmann::ordered_json (*value)(const RowState& row, const Version* version);
};

struct Stage {
  std::string_view name;
  std::string_view summary;
  TextDemand (*demand)(const settings::ProcessSettings& settings) = nullptr;  // null: none
  // One of the two. A stage of rows waits until no candidate of the row waits for a text.
  void (*of_candidate)(const StageInputs& inputs, const RowState& row,
                       Candidate& candidate) = nullptr;
  void (*of_row)(const StageInputs& inputs, RowState& row) = nullptr;
  std::vector<StageColumn> columns = {};
  std::vector<StageCandidateColumn> candidate_columns = {};
  std::vector<StageFigure> figures = {};
};

// Every stage there is.
const std::vector<Stage>& all_stages();
// The stages that the settings name, in their order. Throws ConfigError if one is unknown, stands
// twice, or stands before a stage that it needs.
std::vector<const Stage*> stages_named(const std::vector<std::string>& names);

// The numbers of a candidate's texts within the row, for their random draws: no two texts share
// one.
enum class TextKind : uint64_t { Solution = 0, Judgement = 1, Improvement = 2 };
DrawSource draw_source(const PipelinePlan& plan, const RowState& row, TextKind kind,
                       int64_t candidate, int64_t version);

// A text read as a version of a candidate.
Version read_version(const KeptStep& step, bool prompt_opens_think);

void verify_version(const RowState& row, Version& version);
// Judges one version. False while its judgement is under way.
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
