// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/rejection/rejection_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/json_member.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/core/telemetry/progress.h"

namespace convoy::apps {
namespace {

using Json = nlohmann::ordered_json;

Json record_json(const RoundRecord& round) {
  Json record = {{"round", round.round}};
  if (round.round > 0)
    record.update(Json{{"problems", round.generated.problems},
                       {"solved", round.generated.solved},
                       {"samples", round.generated.samples},
                       {"right", round.generated.right_samples},
                       {"distinct", round.kept.distinct},
                       {"kept", round.kept.kept}});
  if (round.evaluated)
    record.update(Json{{"eval_problems", round.evaluated->problems},
                       {"eval_right", round.evaluated->solved},
                       {"eval_accuracy", round.evaluated->accuracy()}});
  record["seconds"] = round.seconds;
  return record;
}

RoundRecord round_of(const Json& record) {
  const auto count = [&](const char* key) { return member_or(record, key, int64_t{0}); };
  RoundRecord round{.round = record.at("round").get<int64_t>(),
                    .generated = {.problems = count("problems"),
                                  .solved = count("solved"),
                                  .samples = count("samples"),
                                  .right_samples = count("right")},
                    .kept = {.distinct = count("distinct"), .kept = count("kept")}};
  if (record.contains("eval_problems"))
    round.evaluated =
        process::AnswerCounts{.problems = count("eval_problems"), .solved = count("eval_right")};
  round.seconds = record.at("seconds").get<std::map<std::string, double>>();
  return round;
}

std::string share_text(const process::AnswerCounts& counts) {
  return fmt::format("{} of {} right ({:.1f} %)", counts.solved, counts.problems,
                     100 * counts.accuracy());
}

// The counts of the best round before the last one. There is one, because round 0 is evaluated.
const process::AnswerCounts& best_before(const std::vector<RoundRecord>& rounds) {
  const process::AnswerCounts* best = nullptr;
  for (size_t index = 0; index + 1 < rounds.size(); ++index)
    if (const auto& found = rounds[index].evaluated;
        found && (best == nullptr || found->solved > best->solved))
      best = &*found;
  CONVOY_INVARIANT(best != nullptr, "no round before {} is evaluated", rounds.back().round);
  return *best;
}

}  // namespace

std::vector<RoundRecord> read_rounds(const std::filesystem::path& file) {
  std::vector<RoundRecord> rounds;
  if (!std::filesystem::exists(file)) return rounds;
  std::istringstream lines(read_file(file));
  try {
    for (std::string line; std::getline(lines, line);)
      rounds.push_back(round_of(Json::parse(line)));
  } catch (const nlohmann::json::exception&) {
    throw DataError(
        fmt::format("line {} is no record of a round", rounds.size() + 1),
        {.file = file.string(),
         .hint = "remove that line and those below it: their rounds are done again from "
                 "what their folders hold"});
  }
  return rounds;
}

void write_rounds(const std::filesystem::path& file, const std::vector<RoundRecord>& rounds) {
  std::string lines;
  for (const RoundRecord& round : rounds) lines += record_json(round).dump() + "\n";
  write_file_atomic(file, lines);
}

nlohmann::ordered_json rounds_json(const std::vector<RoundRecord>& rounds) {
  Json list = Json::array();
  for (const RoundRecord& round : rounds) list.push_back(record_json(round));
  return list;
}

const RoundRecord* best_round(const std::vector<RoundRecord>& rounds) {
  const RoundRecord* best = nullptr;
  for (const RoundRecord& round : rounds)
    if (round.round > 0 && round.evaluated &&
        (best == nullptr || round.evaluated->solved > best->evaluated->solved))
      best = &round;
  return best;
}

std::string why_ended(const std::vector<RoundRecord>& rounds,
                      const settings::RejectionSettings& settings) {
  const RoundRecord& last = rounds.back();
  if (last.round > 0 && last.kept.kept == 0)
    return fmt::format("round {} kept nothing: none of {} is right", last.round,
                       counted(last.generated.samples, "sample"));
  if (last.round > 0 && settings.min_gain > -1) {
    const process::AnswerCounts& before = best_before(rounds);
    const double gain = last.evaluated->accuracy() - before.accuracy();
    // The difference of two fractions has a rounding error.
    constexpr double kRounding = 1e-9;
    if (gain <= 0 || gain + kRounding < settings.min_gain)
      return fmt::format("round {} gained {}: {}, {} before it", last.round,
                         gain <= 0 ? "nothing" : "less than rejection.min_gain",
                         share_text(*last.evaluated), share_text(before));
  }
  if (last.evaluated->solved == last.evaluated->problems && settings.min_gain > -1)
    return fmt::format("{}: no round can gain more", share_text(*last.evaluated));
  if (last.round >= settings.rounds)
    return fmt::format("rejection.rounds={} are done", settings.rounds);
  return {};
}

std::string round_line(const RoundRecord& round) {
  std::string line = fmt::format("round {}: ", round.round);
  if (round.round > 0)
    line += fmt::format("{} of {} right, {} of {} solved, {} distinct, {} kept; ",
                        round.generated.right_samples, counted(round.generated.samples, "sample"),
                        round.generated.solved, counted(round.generated.problems, "problem"),
                        round.kept.distinct, round.kept.kept);
  line += round.evaluated ? "evaluated " + share_text(*round.evaluated) : "nothing to learn";
  std::string phases;
  for (const auto& [phase, seconds] : round.seconds)
    phases += fmt::format("{}{} {}", phases.empty() ? " in " : ", ", phase,
                          telemetry::duration_text(seconds));
  return line + phases;
}

std::vector<std::string> round_lines(const Json& rounds) {
  std::vector<std::string> lines;
  for (const Json& round : rounds) lines.push_back(round_line(round_of(round)));
  return lines;
}

double worked_seconds(const std::filesystem::path& events) {
  double sum = 0;
  if (!std::filesystem::exists(events)) return sum;  // the disk was full
  std::optional<double> before;
  for (const Json& row : telemetry::read_events(events)) {
    const auto time = row.find("time");
    if (time == row.end() || !time->is_number()) continue;  // a line that someone added
    if (before && row["event"] != "start") sum += time->get<double>() - *before;
    before = time->get<double>();
  }
  return sum;
}

}  // namespace convoy::apps
