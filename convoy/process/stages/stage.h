// SPDX-License-Identifier: Apache-2.0
//
// What is done to a row: plain functions, in the order that the settings give. A stage looks at one
// sample, or at all of a row's; it reads the row's state, asks for texts, and writes what it found into
// the state. It runs again, from the beginning, each time the row has a text more, so it keeps nothing
// and does the same each time. Thread-safe.
//
// To add one: a file with its function, the declaration below, one line in stages/registry.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "convoy/process/pipeline_plan.h"
#include "convoy/process/row_state.h"
#include "convoy/process/row_texts.h"

namespace convoy::process {

struct StageInputs {
  const PipelinePlan& plan;
  RowTexts& texts;
};

// The texts that a stage asks of a row at most.
struct TextDemand {
  int64_t requests = 0;
  int64_t new_tokens = 0;
};

struct Stage {
  std::string_view name;
  std::string_view summary;
  TextDemand (*demand)(const settings::ProcessSettings& settings);  // null: none
  // One of the two. A stage of rows waits until no sample of the row waits for a text.
  void (*of_sample)(const StageInputs& inputs, const RowState& row, SampleState& sample);
  void (*of_row)(const StageInputs& inputs, RowState& row);
};

// Every stage there is.
const std::vector<Stage>& all_stages();
// Those of the settings, in their order. Throws ConfigError: an unknown one, one twice, one before what
// it needs.
std::vector<const Stage*> stages_named(const std::vector<std::string>& names);

// The numbers of a sample's texts within the row, for their random draws: no two texts share one.
enum class TextKind : uint64_t { Solution = 0, Judgement = 1, Improvement = 2 };
DrawSource draw_source(const PipelinePlan& plan, const RowState& row, TextKind kind, int64_t sample,
                       int64_t version);

// What a text says, as a version of a sample.
Version read_version(const KeptStep& step, bool prompt_opens_think);

void generate(const StageInputs& inputs, RowState& row);
TextDemand generate_demand(const settings::ProcessSettings& settings);

void verify(const StageInputs& inputs, const RowState& row, SampleState& sample);
void verify_version(const RowState& row, Version& version);

void evaluate(const StageInputs& inputs, const RowState& row, SampleState& sample);
// Judges one version. False while its judgement is asked for.
bool evaluate_version(const StageInputs& inputs, const RowState& row, const SampleState& sample,
                      size_t number, Version& version);
TextDemand evaluate_demand(const settings::ProcessSettings& settings);

void improve(const StageInputs& inputs, const RowState& row, SampleState& sample);
TextDemand improve_demand(const settings::ProcessSettings& settings);
// What a judgement says to whoever writes the next version.
std::string feedback(const settings::ProcessSettings& settings, const Version& version);

void vote(const StageInputs& inputs, RowState& row);

void filter(const StageInputs& inputs, RowState& row);

}  // namespace convoy::process
