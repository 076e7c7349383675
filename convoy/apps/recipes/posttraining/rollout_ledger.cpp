// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/rollout_ledger.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "convoy/apps/recipes/rank_share.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/io/json_text.h"
#include "convoy/core/io/row_output.h"
#include "convoy/core/telemetry/runs/run_rollouts.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;
using io::Json;

// Log-probabilities as doubles: the text of a double is read back to the bit.
std::vector<double> doubles_of(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

std::vector<float> floats_of(const Json& values) {
  std::vector<float> floats;
  for (const Json& value : values) floats.push_back(static_cast<float>(value.get<double>()));
  return floats;
}

// As short as the text of a float is, for long lists. They are read back to the bit too.
std::vector<double> short_doubles_of(const std::vector<float>& values) {
  std::vector<double> doubles;
  for (const float value : values)
    doubles.push_back(text_as<double>(fmt::format("{}", value)).value());
  return doubles;
}

Json teacher_json(const train::TeacherTokens& tokens) {
  return {{"tokens", tokens.ids}, {"logprobs", short_doubles_of(tokens.logprobs)}};
}

train::TeacherTokens teacher_of(const Json& row) {
  return {.ids = row.at("tokens").get<std::vector<int32_t>>(),
          .logprobs = floats_of(row.at("logprobs"))};
}

// The part of a row that drawing gives.
Json text_json(const RecordedRollout& recorded) {
  const train::Rollout& rollout = recorded.rollout;
  return {{"problem", rollout.problem},
          {"sample", rollout.sample},
          {"truncated", rollout.is_truncated},
          {"text", recorded.text},
          {"prompt_tokens", rollout.prompt_tokens},
          {"tokens", rollout.ids},
          {"logprobs", doubles_of(rollout.drawn)}};
}

RecordedRollout rollout_of(const Json& row) {
  RecordedRollout recorded{.text = row.at("text").get<std::string>()};
  train::Rollout& rollout = recorded.rollout;
  rollout.problem = row.at("problem").get<int64_t>();
  rollout.sample = row.at("sample").get<int64_t>();
  rollout.is_truncated = row.at("truncated").get<bool>();
  rollout.prompt_tokens = row.at("prompt_tokens").get<int64_t>();
  rollout.ids = row.at("tokens").get<std::vector<int32_t>>();
  rollout.drawn = floats_of(row.at("logprobs"));
  return recorded;
}

// Throws nlohmann::json::exception for a value that is no such row.
RecordedRollout finished_row(const Json& row, const std::vector<std::string>& reward_names) {
  RecordedRollout recorded = rollout_of(row);
  train::Rollout& rollout = recorded.rollout;
  if (!reward_names.empty()) rollout.reward = row.at("reward").get<double>();
  for (const std::string& name : reward_names)
    rollout.rewards.push_back(row.at("rewards").at(name).get<double>());
  if (row.contains("reference_logprobs"))
    rollout.reference = floats_of(row.at("reference_logprobs"));
  if (row.contains("teacher")) rollout.teacher = teacher_of(row.at("teacher"));
  return recorded;
}

bool are_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

// Says which of the row's lists do not fit together; empty: all do.
std::string fault_of_lists(const train::Rollout& rollout) {
  if (rollout.prompt_tokens < 1 || rollout.text_tokens() < 0)
    return fmt::format("{} tokens with a prompt of {}", rollout.ids.size(), rollout.prompt_tokens);
  const auto tokens = static_cast<size_t>(rollout.text_tokens());
  if (rollout.drawn.size() != tokens)
    return fmt::format("{} log-probabilities of a text of {} tokens", rollout.drawn.size(), tokens);
  if (!rollout.reference.empty() && rollout.reference.size() != tokens)
    return fmt::format("{} log-probabilities under the reference of a text of {} tokens",
                       rollout.reference.size(), tokens);
  const train::TeacherTokens& teacher = rollout.teacher;
  if (tokens > 0 && !teacher.ids.empty() &&
      (teacher.ids.size() % tokens != 0 || teacher.logprobs.size() != teacher.ids.size() + tokens))
    return fmt::format("{} tokens of the teacher with {} log-probabilities for a text of {} tokens",
                       teacher.ids.size(), teacher.logprobs.size(), tokens);
  if (!are_finite(rollout.drawn) || !are_finite(rollout.reference) || !are_finite(teacher.logprobs))
    return "a log-probability that is not finite";
  return "";
}

}  // namespace

RolloutLedger::RolloutLedger(fs::path folder, std::vector<std::string> reward_names,
                             comm::Group& group)
    : folder_(std::move(folder)), reward_names_(std::move(reward_names)), group_(group) {}

fs::path RolloutLedger::file_of(int64_t step) const {
  return telemetry::rollout_file(folder_, step);
}

// The key is a part of the name, so that texts of other weights are neither read nor refused.
fs::path RolloutLedger::unfinished(int64_t step, const std::string& key,
                                   const std::string& kind) const {
  return folder_ / fmt::format("step-{}-{}.{}", step, key, kind);
}

std::optional<std::map<RolloutLedger::Place, RecordedRollout>> RolloutLedger::finished(
    int64_t step, const std::string& key, const std::vector<Place>& wanted,
    const FaultOf& fault_of) {
  const fs::path file = file_of(step);
  std::string text;
  if (group_.rank() == 0 && fs::exists(file)) text = read_file(file);
  group_.wait_for_all();
  text = group_.all_gather_bytes(text)[0];
  std::map<Place, RecordedRollout> found;
  std::istringstream lines(text);
  int64_t number = 0;
  const auto refuse = [&](const std::string& why, int64_t line) {
    throw DataError("wanted the texts of a step, found " + why,
                    {.file = file.string(),
                     .line = line,
                     .hint = key.empty() ? "take the file from a copy of the run folder, or start "
                                           "from a checkpoint at which new texts are drawn"
                                         : "remove the file: its texts are drawn again by the same "
                                           "weights"});
  };
  for (std::string line; std::getline(lines, line);) {
    ++number;
    RecordedRollout recorded;
    try {
      const Json row = io::parse_json(line, file.string());
      if (!key.empty() && row.at("weights").get<std::string>() != key) return std::nullopt;
      recorded = finished_row(row, reward_names_);
    } catch (const nlohmann::json::exception& error) {
      refuse(fmt::format("a row that is none: {}", error.what()), number);
    } catch (const DataError& error) {
      refuse(fmt::format("a row that is none: {}", error.what()), number);
    }
    const train::Rollout& rollout = recorded.rollout;
    std::string fault = fault_of_lists(rollout);
    if (fault.empty()) fault = fault_of(rollout);
    if (!fault.empty()) refuse(fault, number);
    const Place place{rollout.problem, rollout.sample};
    if (!found.emplace(place, std::move(recorded)).second) refuse("a text twice", number);
  }
  if (found.empty()) return std::nullopt;
  for (const Place& place : wanted)
    if (!found.contains(place))
      refuse(fmt::format("none of problem {}, sample {}", place.first, place.second), 0);
  return found;
}

void RolloutLedger::open(int64_t step, const std::string& key) {
  texts_.clear();
  rewards_.clear();
  teacher_.clear();
  fs::create_directories(folder_);
  const Log quiet(LogLevel::Quiet);
  text_journal_ = std::make_unique<io::AnswerJournal>(unfinished(step, key, "texts").string(), key,
                                                      group_.rank(), quiet);
  reward_journal_ = std::make_unique<io::AnswerJournal>(unfinished(step, key, "rewards").string(),
                                                        key, group_.rank(), quiet);
  teacher_journal_ = std::make_unique<io::AnswerJournal>(unfinished(step, key, "teacher").string(),
                                                         key, group_.rank(), quiet);
  const std::string place = folder_.string();
  for (const auto& [at, line] : text_journal_->kept())
    texts_.emplace(at, rollout_of(io::parse_json(line, place)));
  for (const auto& [at, line] : reward_journal_->kept())
    rewards_.emplace(at, io::parse_json(line, place).get<double>());
  for (const auto& [at, line] : teacher_journal_->kept())
    teacher_.emplace(at, teacher_of(io::parse_json(line, place)));
}

void RolloutLedger::add_text(const RecordedRollout& recorded) {
  const Place place{recorded.rollout.problem, recorded.rollout.sample};
  const std::string line = io::line_of(text_json(recorded));
  text_journal_->add(place, line);
  // As it is read back: a text may end inside a character, and its reward must not depend on a
  // kill.
  texts_.emplace(place, rollout_of(io::parse_json(line, folder_.string())));
}

// The rewards of a text lie behind each other, as if each were a sample.
RolloutLedger::Place RolloutLedger::place_of_reward(const Place& place, size_t part) const {
  return {place.first, place.second * std::ssize(reward_names_) + static_cast<int64_t>(part)};
}

std::optional<double> RolloutLedger::reward(const Place& place, size_t part) const {
  const auto found = rewards_.find(place_of_reward(place, part));
  if (found == rewards_.end()) return std::nullopt;
  return found->second;
}

void RolloutLedger::add_reward(const Place& place, size_t part, double value) {
  reward_journal_->add(place_of_reward(place, part), io::line_of(Json(value)));
  rewards_.emplace(place_of_reward(place, part), value);
}

const train::TeacherTokens* RolloutLedger::teacher(const Place& place) const {
  const auto found = teacher_.find(place);
  return found == teacher_.end() ? nullptr : &found->second;
}

void RolloutLedger::add_teacher(const Place& place, train::TeacherTokens tokens) {
  teacher_journal_->add(place, io::line_of(teacher_json(tokens)));
  teacher_.emplace(place, std::move(tokens));
}

bool RolloutLedger::is_of_part(const Place& place_of_reward, size_t part) const {
  return place_of_reward.second % std::ssize(reward_names_) == static_cast<int64_t>(part);
}

void RolloutLedger::write_rewards_again() {
  reward_journal_->forget_own();
  for (const auto& [place, value] : rewards_) reward_journal_->add(place, io::line_of(Json(value)));
}

void RolloutLedger::forget_rewards(size_t part) {
  std::erase_if(rewards_, [&](const auto& kept) { return is_of_part(kept.first, part); });
  write_rewards_again();
}

void RolloutLedger::forget_torn_rewards(size_t part, int64_t samples) {
  std::map<int64_t, int64_t> num_saved;  // by problem
  for (const auto& [place, value] : rewards_)
    if (is_of_part(place, part)) ++num_saved[place.first];
  group_.wait_for_all();  // every rank has read the files of all before one writes its own again
  const size_t forgotten = std::erase_if(rewards_, [&](const auto& kept) {
    return is_of_part(kept.first, part) && num_saved[kept.first.first] < samples;
  });
  if (forgotten > 0) write_rewards_again();
}

void RolloutLedger::finish(int64_t step, const std::string& key,
                           const std::vector<RecordedRollout>& own,
                           const std::map<int64_t, ProblemFacts>& problems) {
  std::map<Place, std::string> rows;
  for (const RecordedRollout& recorded : own) {
    const train::Rollout& rollout = recorded.rollout;
    const ProblemFacts& problem = problems.at(rollout.problem);
    Json row = {{"step", step},           {"row", problem.row_number}, {"sample", rollout.sample},
                {"prompt", problem.text}, {"asked", problem.asked},    {"text", recorded.text}};
    if (!reward_names_.empty()) {
      Json rewards = Json::object();
      for (size_t part = 0; part < reward_names_.size(); ++part)
        rewards[reward_names_[part]] = rollout.rewards[part];
      row["reward"] = rollout.reward;
      row["rewards"] = rewards;
      row["advantage"] = rollout.advantage;
    }
    row["truncated"] = rollout.is_truncated;
    row["problem"] = rollout.problem;
    row["prompt_tokens"] = rollout.prompt_tokens;
    row["tokens"] = rollout.ids;
    row["logprobs"] = doubles_of(rollout.drawn);
    if (!rollout.reference.empty()) row["reference_logprobs"] = doubles_of(rollout.reference);
    if (!rollout.teacher.ids.empty()) row["teacher"] = teacher_json(rollout.teacher);
    row["weights"] = key;
    rows.emplace(Place{rollout.problem, rollout.sample}, io::line_of(row));
  }
  std::string packed;
  for (const auto& [place, row] : rows)
    packed += fmt::format("{} {} {}\n", place.first, place.second, row);
  const std::vector<std::string> all = group_.all_gather_bytes(packed);
  if (group_.rank() == 0) {
    std::map<Place, std::string> lines;
    for (const std::string& text : all) {
      std::istringstream stream(text);
      Place place;
      for (std::string row; stream >> place.first >> place.second;) {
        stream.get();
        std::getline(stream, row);
        lines[place] = row;
      }
    }
    std::string text;
    for (const auto& [place, row] : lines) text += row + "\n";
    write_file_atomic(file_of(step), text);
  }
  group_.wait_for_all();
  text_journal_.reset();
  reward_journal_.reset();
  teacher_journal_.reset();
  if (group_.rank() != 0) return;
  // Unfinished files of other weights too: this step's file takes their place.
  const std::string begin = fmt::format("step-{}-", step);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
    if (entry.path().filename().string().starts_with(begin)) fs::remove_all(entry.path());
}

}  // namespace convoy::recipes
