// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "convoy/core/base/counted.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/farm/process/results/training_rows.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostReasons = 256;
constexpr size_t kMostReasonBytes = 160;

Json ratio(double part, double whole) { return whole > 0 ? Json(part / whole) : Json(nullptr); }

bool is_null(const Json& row, const char* name) {
  return !row.contains(name) || row.at(name).is_null();
}

// The text with every number replaced by one 0.
std::string without_numbers(const std::string& text) {
  std::string plain;
  for (const char letter : text) {
    const bool is_digit = letter >= '0' && letter <= '9';
    if (!is_digit || !plain.ends_with('0')) plain += is_digit ? '0' : letter;
  }
  return plain;
}

std::string percent(const Json& share) {
  return fmt::format("{:.1f} %", 100 * share.get<double>());
}

std::string states_text(const Json& states) {
  std::string text;
  for (const auto& [state, count] : states.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count.get<int64_t>(), state);
  return text;
}

std::string tokens_text(const Json& tokens) {
  std::string stages;
  for (const auto& [stage, count] : tokens.at("by_stage").items())
    stages += fmt::format("{}{} {}", stages.empty() ? "" : ", ", stage,
                          telemetry::count_text(count.get<double>()));
  return fmt::format("{} new ({}), {} of prompts",
                     telemetry::count_text(tokens.at("new").get<double>()), stages,
                     telemetry::count_text(tokens.at("prompt").get<double>()));
}

std::string accuracy_text(const Json& accuracy) {
  std::string text = fmt::format("{} of {} right", percent(accuracy.at("rows")),
                                 counted(accuracy.at("with_reference").get<int64_t>(), "row"));
  if (!accuracy.at("samples").is_null())
    text += fmt::format("; single samples {}, any sample {}", percent(accuracy.at("samples")),
                        percent(accuracy.at("any_sample")));
  if (accuracy.at("unknown").get<int64_t>() > 0)
    text += fmt::format("; {} unknown", accuracy.at("unknown").get<int64_t>());
  if (accuracy.value("unanswered", 0) > 0)
    text += fmt::format("; {} without a text", accuracy.at("unanswered").get<int64_t>());
  return text;
}

std::string pass_at_k_text(const Json& means) {
  std::string text;
  for (const auto& [k, mean] : means.items())
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", k, percent(mean.at("mean")));
  return text;
}

std::string time_text(const Json& seconds_by_stage) {
  std::string text;
  for (const auto& [stage, seconds] : seconds_by_stage.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", stage,
                        telemetry::duration_text(seconds.get<double>()));
  return text;
}

void add_start_lines(const Json& report, std::vector<std::string>& lines) {
  const Json& start = report.at("last_start");
  const bool is_part = start.at("rows") != report.at("rows");
  lines.push_back(fmt::format("speed      {} tokens/s, {:.2f} rows/s in {} with {}{}",
                              telemetry::count_text(start.at("tokens_per_second").get<double>()),
                              start.at("rows_per_second").get<double>(),
                              telemetry::duration_text(start.at("seconds").get<double>()),
                              counted(start.at("workers").get<int64_t>(), "worker"),
                              is_part ? fmt::format(" (the last start: {})",
                                                    counted(start.at("rows").get<int64_t>(), "row"))
                                      : ""));
  if (!start.at("seconds_by_stage").empty())
    lines.push_back("time       " + time_text(start.at("seconds_by_stage")) +
                    " (by shares of the engines' time)");
  if (start.at("workers_lost").get<int64_t>() > 0)
    lines.push_back(fmt::format("lost       {} died; their rows went to others",
                                counted(start.at("workers_lost").get<int64_t>(), "worker")));
}

// The reasons why judgements have no score.
std::string unread_text(const Json& judged) {
  const auto unread = judged.at("unread").get<int64_t>();
  const auto cut = judged.value("unread_cut", int64_t{0});
  std::vector<std::string> reasons;
  if (cut > 0) reasons.push_back(fmt::format("{} cut at evaluate.max_tokens", cut));
  if (unread > cut)
    reasons.push_back(
        fmt::format("{} without a score for each criterion of evaluate.weights", unread - cut));
  if (reasons.empty()) return "0 unread";
  return fmt::format("{} unread ({})", unread, fmt::join(reasons, ", "));
}

}  // namespace

void RunReport::Tally::add(const Json& verdict) {
  if (verdict.is_null()) return;
  ++(verdict == "yes" ? yes : verdict == "no" ? no : unknown);
}

Json RunReport::Tally::share() const {
  return ratio(static_cast<double>(yes), static_cast<double>(all()));
}

void RunReport::add(const Json& row) {
  ++rows_;
  ++states_[row.at("state").get<std::string>()];
  rows_verified_.add(row.at("verified"));
  unanswered_ +=
      row.at("state") == "engine_error" && !is_null(row, "gold") && is_null(row, "verified");
  add_failure(row);
  if (!is_null(row, "scores")) {
    ++judged_;
    const bool is_unread = !row.at("scores").at("parsed").get<bool>();
    unread_judgements_ += is_unread;
    cut_judgements_ += is_unread && row.at("scores").value("finish", "") == "length";
  }
  if (!is_null(row, "quality_score")) {
    ++scored_;
    score_sum_ += row.at("quality_score").get<double>();
  }
  accepted_ += !is_null(row, "accepted") && row.at("accepted").get<bool>();
  improved_ += !is_null(row, "version") && row.at("version").get<int64_t>() > 0;
  const Json& tokens = row.at("tokens");
  prompt_tokens_ += tokens.at("prompt").get<int64_t>();
  new_tokens_ += tokens.at("new").get<int64_t>();
  for (const auto& [stage, count] : tokens.at("by_stage").items())
    tokens_by_stage_[stage] += count.get<int64_t>();
  add_samples(row);
  add_pass_at_k(row);
}

void RunReport::add_samples(const Json& row) {
  bool any = false;
  for (const Json& sample : row.at("samples")) {
    if (is_null(sample, "verified")) continue;
    samples_.add(sample.at("verified"));
    first_versions_.add(sample.at("first_verified"));
    any = any || sample.at("verified") == "yes";
  }
  rows_with_any_yes_ += any;
}

void RunReport::add_pass_at_k(const Json& row) {
  if (is_null(row, "pass_at_k")) return;
  for (const auto& [k, estimate] : row.at("pass_at_k").items()) {
    Mean& mean = pass_at_k_[std::stoll(k)];
    mean.sum += estimate.get<double>();
    ++mean.rows;
  }
}

// The mean of each k over the rows that have it, if problems have several samples.
Json RunReport::pass_at_k() const {
  if (pass_at_k_.size() < 2) return nullptr;
  Json means;
  for (const auto& [k, mean] : pass_at_k_)
    means[std::to_string(k)] = {{"mean", mean.sum / static_cast<double>(mean.rows)},
                                {"rows", mean.rows}};
  return means;
}

void RunReport::add_failure(const Json& row) {
  if (row.at("state") != "engine_error" && row.at("state") != "bad_input") return;
  std::string reason = "unknown";
  if (row.contains("metadata")) reason = row.at("metadata").value("error", reason);
  std::string kind = without_numbers(reason.substr(0, kMostReasonBytes));
  if (failures_.size() == kMostReasons && !failures_.contains(kind)) kind.clear();
  Failure& failure = failures_[kind];
  if (failure.rows++ == 0) failure.example = kind.empty() ? "other reasons" : reason;
}

bool RunReport::all_failed() const {
  int64_t failed = 0;
  for (const auto& [kind, failure] : failures_) failed += failure.rows;
  return rows_ > 0 && failed == rows_;
}

Json RunReport::failures() const {
  if (failures_.empty()) return nullptr;
  int64_t rows = 0;
  const Failure* common = nullptr;
  for (const auto& [kind, failure] : failures_) {
    rows += failure.rows;
    if (common == nullptr || failure.rows > common->rows) common = &failure;
  }
  return {{"rows", rows}, {"most_common", common->example}, {"of_rows", common->rows}};
}

Json RunReport::rows_by_state() const {
  Json states = Json::object();
  for (const auto& [state, count] : states_) states[state] = count;
  return states;
}

Json RunReport::cost() const {
  return {{"prompt", prompt_tokens_}, {"new", new_tokens_}, {"by_stage", tokens_by_stage_}};
}

Json RunReport::start_json(const StartFigures& start) const {
  double engine_seconds = 0;
  for (const auto& [stage, seconds] : start.seconds_by_stage) engine_seconds += seconds;
  Json by_stage = Json::object();
  for (const auto& [stage, seconds] : start.seconds_by_stage)
    if (engine_seconds > 0) by_stage[stage] = start.seconds * seconds / engine_seconds;
  return {{"seconds", start.seconds},
          {"workers", start.workers},
          {"workers_lost", start.workers_lost},
          {"rows", start.rows},
          {"new_tokens", start.new_tokens},
          {"prompt_tokens", start.prompt_tokens},
          {"tokens_per_second", ratio(static_cast<double>(start.new_tokens), start.seconds)},
          {"rows_per_second", ratio(static_cast<double>(start.rows), start.seconds)},
          {"seconds_by_stage", by_stage}};
}

Json RunReport::json(const StartFigures& start, const RunEstimate& estimate) const {
  const bool several = samples_.all() > rows_verified_.all();
  const int64_t with_reference = rows_verified_.all() + unanswered_;
  const Json accuracy_of_rows =
      ratio(static_cast<double>(rows_verified_.yes), static_cast<double>(with_reference));
  Json accuracy = {{"rows", accuracy_of_rows},
                   {"with_reference", with_reference},
                   {"unanswered", unanswered_},
                   {"unknown", rows_verified_.unknown},
                   {"samples", several ? samples_.share() : Json(nullptr)},
                   {"any_sample", ratio(static_cast<double>(rows_with_any_yes_),
                                        static_cast<double>(with_reference))},
                   {"before_improvement", first_versions_.share()},
                   {"choice_gain", several && !accuracy_of_rows.is_null()
                                       ? Json(rows_verified_.share().get<double>() -
                                              samples_.share().get<double>())
                                       : Json(nullptr)}};
  return {{"rows", rows_},
          {"rows_by_state", rows_by_state()},
          {"failures", failures()},
          {"accuracy", rows_verified_.all() == 0 ? Json(nullptr) : accuracy},
          {"pass_at_k", pass_at_k()},
          {"judgements",
           {{"rows", judged_},
            {"unread", unread_judgements_},
            {"unread_cut", cut_judgements_},
            {"accepted", accepted_},
            {"improved", improved_},
            {"mean_score", ratio(score_sum_, static_cast<double>(scored_))}}},
          {"tokens", cost()},
          {"last_start", start.rows == 0 ? Json(nullptr) : start_json(start)},
          {"estimate",
           {{"requests_at_most", estimate.requests},
            {"new_tokens_at_most", estimate.new_tokens},
            {"share_used",
             ratio(static_cast<double>(new_tokens_), static_cast<double>(estimate.new_tokens))}}}};
}

std::vector<std::string> report_lines(const Json& report) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("rows       {}: {}", report.at("rows").get<int64_t>(),
                              states_text(report.at("rows_by_state"))));
  const Json failures = report.value("failures", Json(nullptr));
  if (!failures.is_null())
    lines.push_back(fmt::format(
        "failed     {}; most often ({}): {}", counted(failures.at("rows").get<int64_t>(), "row"),
        failures.at("of_rows").get<int64_t>(), failures.at("most_common").get<std::string>()));
  const Json& accuracy = report.at("accuracy");
  if (!accuracy.is_null()) lines.push_back("answers    " + accuracy_text(accuracy));
  if (!accuracy.is_null() && !accuracy.at("choice_gain").is_null())
    lines.push_back(fmt::format("choice     {:+.1f} points over single samples",
                                100 * accuracy.at("choice_gain").get<double>()));
  if (const Json means = report.value("pass_at_k", Json()); !means.is_null())
    lines.push_back("pass@k     " + pass_at_k_text(means));
  const Json& judged = report.at("judgements");
  if (judged.at("rows").get<int64_t>() > 0) {
    const Json& mean = judged.at("mean_score");
    lines.push_back(fmt::format(
        "judge      {}, {} accepted, {} improved, {}{}",
        counted(judged.at("rows").get<int64_t>(), "row"), judged.at("accepted").get<int64_t>(),
        judged.at("improved").get<int64_t>(), unread_text(judged),
        mean.is_null() ? "" : fmt::format(", mean score {:.2f}", mean.get<double>())));
  }
  const Json training = report.value("training_rows", Json(nullptr));
  if (training.contains("pairs"))
    lines.push_back("pairs      " + training_text(training.at("pairs")));
  if (training.contains("answers"))
    lines.push_back("solutions  " + training_text(training.at("answers")));
  if (training.contains("problems"))
    lines.push_back("problems   " + training_text(training.at("problems")));
  lines.push_back("tokens     " + tokens_text(report.at("tokens")));
  if (!report.at("last_start").is_null()) add_start_lines(report, lines);
  const Json& estimate = report.at("estimate");
  if (!estimate.at("share_used").is_null())
    lines.push_back(
        fmt::format("estimate   at most {} new tokens, {} of them used",
                    telemetry::count_text(estimate.at("new_tokens_at_most").get<double>()),
                    percent(estimate.at("share_used"))));
  return lines;
}

}  // namespace convoy::process
