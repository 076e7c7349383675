// SPDX-License-Identifier: Apache-2.0
//
// The state of a row between stages. Rebuilt from the row and its kept texts each time, and never
// stored. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/answers/equivalence.h"
#include "convoy/farm/process/parsing/judge_scores.h"
#include "convoy/farm/process/parsing/think_text.h"
#include "convoy/farm/process/pipeline/row_fields.h"
#include "convoy/farm/process/pipeline/row_program.h"

namespace convoy::process {

// A judge's reply.
struct Judgement {
  JudgeScores scores = {};
  std::string text = {};  // the answer, without thoughts
  TextFinish finish = TextFinish::Stop;
  std::string other_finish = {};  // see TextResult::other_finish
};

// One text of a candidate, and the findings of the stages about it.
struct Version {
  ThinkText text = {};
  std::optional<std::string> answer = {};  // exactly as the text spells it
  TextFinish finish = TextFinish::Stop;
  std::string other_finish = {};  // see TextResult::other_finish
  std::string error = {};         // set if `finish` is TextFinish::Error
  int tries = 1;
  int64_t new_tokens = 0;
  std::optional<answers::Verdict> verdict = {};  // nullopt: not verified, or no reference
  std::optional<Judgement> judgement = {};

  std::optional<double> score() const { return judgement ? judgement->scores.score : std::nullopt; }
  // The part of the text that is evaluated: the answer, or the thoughts if there is no answer.
  const std::string& shown() const { return text.said.empty() ? text.think : text.said; }
};

struct Candidate {
  int64_t number = 0;
  std::vector<Version> versions = {};  // in order of arrival
  size_t kept = 0;                     // index of the version that counts
  bool waiting = false;                // a requested text is not there yet

  const Version& best() const { return versions[kept]; }
};

struct RowState {
  const InputRow* input = nullptr;
  RowFields fields = {};
  std::vector<std::string> golds = {};  // answers of the reference: each is right; empty = unknown
  std::vector<Candidate> candidates = {};
  std::optional<size_t> chosen = {};  // candidate that a stage chose: later stages see only it
  // Findings of row stages, by stage name: objects that only the stage itself reads, for the
  // columns and figures in its entry (stages/stage.h).
  std::map<std::string, nlohmann::ordered_json, std::less<>> results = {};
  // Figures by name, for conditions; their values when the filter checked them.
  nlohmann::ordered_json figures = nullptr;

  // Returns null if the stage did not run.
  const nlohmann::ordered_json* result(std::string_view stage) const {
    const auto found = results.find(stage);
    return found == results.end() ? nullptr : &found->second;
  }
};

}  // namespace convoy::process
