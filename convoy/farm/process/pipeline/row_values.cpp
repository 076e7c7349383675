// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/pipeline/row_values.h"

#include <algorithm>

#include "convoy/core/base/lower_case.h"
#include "convoy/farm/process/parsing/think_text.h"
#include "convoy/farm/process/stages/stage.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json verdict_json(const std::optional<answers::Verdict>& verdict) {
  return verdict ? Json(answers::verdict_name(*verdict)) : Json(nullptr);
}

// A text that stops inside its thoughts counts as cut too.
bool is_cut(const Version& version) {
  return version.finish == TextFinish::Length ||
         (version.finish == TextFinish::Stop && version.text.is_open);
}

// "stop", "length", "error", or the server's own word for another reason.
std::string_view finish_of(const Version& version) {
  return finish_word(is_cut(version) ? TextFinish::Length : version.finish, version.other_finish);
}

Json scores_json(const std::optional<Judgement>& judgement) {
  if (!judgement) return nullptr;
  Json scores = Json::object();
  for (const auto& [criterion, score] : judgement->scores.criteria)
    scores[criterion] = or_null(score);
  scores["parsed"] = judgement->scores.score.has_value();
  scores["finish"] = finish_word(judgement->finish, judgement->other_finish);
  return scores;
}

Json evaluation_json(const Version& version) {
  return version.judgement ? text_or_null(version.judgement->text) : Json(nullptr);
}

bool names_answer(const std::string& line) {
  const std::string lower = lower_case(line);
  for (const char* words : {"answer is", "result is", "solution is", "therefore", "thus"})
    if (lower.find(words) != std::string::npos) return true;
  return false;
}

// The column `solution` follows the rule of the reference program: the answer, else the last line
// that announces an answer, else the last line. The lines of tool calls do not count.
Json solution_of(const Version& version) {
  if (version.answer) return *version.answer;
  std::string last;
  std::string announced;
  const std::string text = without_calls(version.text.said);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != std::string::npos) {
      last = line;
      if (names_answer(line)) announced = line;
    }
    begin = end + 1;
  }
  return text_or_null(announced.empty() ? last : announced);
}

Json candidate_json(const RowState& row, const Candidate& candidate, bool with_texts) {
  Json value = {{"sample", candidate.number}};
  if (candidate.versions.empty()) return value;
  const Version& version = candidate.best();
  value["finish"] = finish_of(version);
  value["answer"] = or_null(version.answer);
  value["verified"] = verdict_json(version.verdict);
  value["first_verified"] = verdict_json(candidate.versions.front().verdict);
  value["quality_score"] = or_null(version.score());
  for (const Stage& stage : all_stages())
    for (const StageCandidateColumn& column : stage.candidate_columns)
      if (Json found = column.value(row, candidate); !found.is_null())
        value[column.name] = std::move(found);
  value["versions"] = candidate.versions.size();
  if (!version.error.empty()) value["error"] = version.error;
  if (!with_texts) return value;
  value["think"] = text_or_null(version.text.think);
  value["reasoning"] = text_or_null(version.text.said);
  return value;
}

Json candidates_json(const RowState& row, const Candidate* chosen) {
  Json candidates = Json::array();
  for (const Candidate& candidate : row.candidates)
    candidates.push_back(candidate_json(row, candidate, &candidate != chosen));
  return candidates;
}

// The versions that were not kept.
Json history_json(const Candidate& candidate) {
  Json history = Json::array();
  for (size_t number = 0; number < candidate.versions.size(); ++number) {
    if (number == candidate.kept) continue;
    const Version& version = candidate.versions[number];
    Json entry = {{"version", number},
                  {"finish", finish_of(version)},
                  {"think", text_or_null(version.text.think)},
                  {"reasoning", text_or_null(version.text.said)},
                  {"answer", or_null(version.answer)},
                  {"verified", verdict_json(version.verdict)},
                  {"quality_score", or_null(version.score())},
                  {"scores", scores_json(version.judgement)},
                  {"evaluation", evaluation_json(version)}};
    if (!version.error.empty()) entry["error"] = version.error;
    history.push_back(std::move(entry));
  }
  return history;
}

// The version that the kept version replaced; null if the kept version is the first.
Json previous_version_json(const Candidate& candidate) {
  if (candidate.kept == 0) return nullptr;
  const Version& version = candidate.versions[candidate.kept - 1];
  return {{"reasoning", text_or_null(version.text.said)},
          {"solution", solution_of(version)},
          {"quality_score", or_null(version.score())},
          {"evaluation", evaluation_json(version)}};
}

Json tokens_json(std::span<const KeptStep> kept) {
  int64_t prompt = 0;
  int64_t made = 0;
  std::map<std::string, int64_t> by_stage;
  for (const KeptStep& step : kept) {
    prompt += step.result.prompt_tokens;
    made += step.result.new_tokens;
    by_stage[step.key.substr(0, step.key.find('/'))] += step.result.new_tokens;
  }
  return {{"prompt", prompt}, {"new", made}, {"by_stage", by_stage}};
}

// Adds the error of a row that has no text.
void add_error(const RowState& row, Json& metadata) {
  for (const Candidate& candidate : row.candidates) {
    if (candidate.versions.empty() || candidate.best().error.empty()) continue;
    metadata["error"] = candidate.best().error;
    metadata["tries"] = candidate.best().tries;
    return;
  }
}

}  // namespace

Json golds_json(const std::vector<std::string>& golds) {
  if (golds.empty()) return nullptr;
  return golds.size() == 1 ? Json(golds.front()) : Json(golds);
}

std::map<std::string, std::string> row_values(const RowState& row) {
  return prompt_values(row.fields.problem, row.input->value);
}

std::map<std::string, std::string> prompt_values(const std::string& problem, const Json& columns) {
  std::map<std::string, std::string> values = {{"problem", problem}};
  if (!columns.is_object()) return values;
  for (const auto& [name, value] : columns.items())
    if (!value.is_null())
      values["row." + name] = value.is_string() ? value.get<std::string>() : value.dump();
  return values;
}

const Candidate* chosen_candidate(const RowState& row) {
  if (row.chosen) return &row.candidates[*row.chosen];
  const Candidate* best = nullptr;
  const auto rank = [](const Candidate& candidate) {
    const Version& version = candidate.best();
    return std::make_pair(version.verdict == answers::Verdict::Yes, version.score().value_or(-1));
  };
  for (const Candidate& candidate : row.candidates) {
    if (candidate.versions.empty() || candidate.best().finish == TextFinish::Error) continue;
    if (best == nullptr || rank(candidate) > rank(*best)) best = &candidate;
  }
  return best;
}

Json filter_figures(const RowState& row) {
  const Candidate* candidate = chosen_candidate(row);
  Json figures = {{"samples", row.candidates.size()}};
  for (const Stage& stage : all_stages())
    for (const StageFigure& figure : stage.figures)
      figures[figure.name] = figure.value(row, candidate == nullptr ? nullptr : &candidate->best());
  if (candidate == nullptr) return figures;
  const Version& version = candidate->best();
  figures["finish"] = finish_of(version);
  figures["tokens"] = version.new_tokens;
  figures["characters"] = version.text.said.size();
  figures["has_answer"] = version.answer ? "yes" : "no";
  return figures;
}

std::string row_state_name(const RowState& row) {
  const Candidate* candidate = chosen_candidate(row);
  if (candidate == nullptr) return "engine_error";
  return is_cut(candidate->best()) ? "truncated" : "ok";
}

Json output_value(const PipelinePlan& plan, const RowState& row, std::span<const KeptStep> kept) {
  const Candidate* candidate = chosen_candidate(row);
  const Version none;
  const Version& version = candidate == nullptr ? none : candidate->best();
  Json value = {{"problem", row.fields.problem},
                {"solution", solution_of(version)},
                {"reasoning", text_or_null(version.text.said)},
                {"quality_score", or_null(version.score())},
                {"metadata", {{"original_data", row.input->value}}}};
  if (candidate != nullptr)
    value["metadata"]["previous_version"] = previous_version_json(*candidate);
  if (candidate == nullptr) add_error(row, value["metadata"]);
  value["index"] = row.input->index;
  value["source_index"] = row.input->source_index;
  value["state"] = row_state_name(row);
  value["finish"] = candidate == nullptr ? Json("error") : Json(finish_of(version));
  value["think"] = text_or_null(version.text.think);
  value["answer"] = or_null(version.answer);
  value["gold"] = golds_json(row.golds);
  value["verified"] = verdict_json(version.verdict);
  value["accepted"] =
      version.score() ? Json(*version.score() >= plan.settings.evaluate.threshold) : Json(nullptr);
  value["scores"] = scores_json(version.judgement);
  value["evaluation"] = evaluation_json(version);
  for (const Stage& stage : all_stages())
    for (const StageColumn& column : stage.columns) value[column.name] = column.value(row);
  value["sample"] = candidate == nullptr ? Json(nullptr) : Json(candidate->number);
  value["version"] = candidate == nullptr ? Json(nullptr) : Json(candidate->kept);
  value["samples"] = candidates_json(row, candidate);
  value["history"] = candidate == nullptr ? Json::array() : history_json(*candidate);
  value["tokens"] = tokens_json(kept);
  value["figures"] = row.figures;
  return value;
}

void apply_conditions(const std::vector<FilterCondition>& conditions, Json& value) {
  const Json figures = value.value("figures", Json(nullptr));
  value.erase("figures");
  if (value.at("state") != "ok" && value.at("state") != "truncated") return;
  std::vector<std::string> failed;
  for (const FilterCondition& condition : conditions)
    if (!condition.holds(figures)) failed.push_back(condition.text());
  if (failed.empty()) return;
  value["state"] = "rejected";
  value["rejected_by"] = failed;
}

Json input_only_value(const InputRow& input, const std::string& state, const std::string& reason) {
  Json value = Json::object();
  for (const char* name : {"problem", "solution", "reasoning", "quality_score"})
    value[name] = nullptr;
  value["metadata"] = {{"original_data", input.value}, {"error", reason}};
  value["index"] = input.index;
  value["source_index"] = input.source_index;
  value["state"] = state;
  for (const char* name :
       {"finish", "think", "answer", "gold", "verified", "accepted", "scores", "evaluation"})
    value[name] = nullptr;
  for (const Stage& stage : all_stages())
    for (const StageColumn& column : stage.columns) value[column.name] = nullptr;
  for (const char* name : {"sample", "version"}) value[name] = nullptr;
  value["samples"] = Json::array();
  value["history"] = Json::array();
  value["tokens"] = {{"prompt", 0}, {"new", 0}, {"by_stage", Json::object()}};
  return value;
}

}  // namespace convoy::process
