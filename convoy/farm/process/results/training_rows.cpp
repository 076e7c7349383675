// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/training_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/json_member.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/core/base/utf8.h"
#include "convoy/farm/process/parsing/think_text.h"
#include "convoy/farm/process/pipeline/pipeline_plan.h"
#include "convoy/farm/process/pipeline/row_values.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;
using settings::AnswerRowSettings;
using settings::PairSettings;
using settings::ProblemRowSettings;
using settings::ProcessSettings;

// ---- checks ----

void refuse_setting(const std::string& key, const std::string& reason, std::string hint) {
  throw ConfigError(fmt::format("{}: {}", key, reason), {.key = key, .hint = std::move(hint)});
}

// Requires that the stage runs, and runs before `vote`: after `vote` a stage sees only the winner.
void require_stage(const ProcessSettings& settings, const std::string& key, const char* stage) {
  const std::vector<std::string>& stages = settings.stages;
  const auto place = std::find(stages.begin(), stages.end(), stage);
  if (place == stages.end())
    refuse_setting(key, fmt::format("no stage computes it: stages has no {}", stage),
                   fmt::format("add {} to --stages", stage));
  if (std::find(stages.begin(), place, "vote") != place)
    refuse_setting(key, fmt::format("{} stands behind vote, and sees one solution alone", stage),
                   fmt::format("put {} before vote in --stages", stage));
}

void require_figures(const ProcessSettings& settings, const std::string& section,
                     const std::string& by, const std::vector<std::string>& orders) {
  require_stage(settings, section + ".by", by == "score" ? "evaluate" : "verify");
  for (const std::string& order : orders)
    if (order.ends_with("_score")) require_stage(settings, section, "evaluate");
}

// True if no problem is left out because of its difficulty.
bool is_any_difficulty(const ProblemRowSettings& wanted) {
  return wanted.min_difficulty <= 0 && wanted.max_difficulty >= 1;
}

bool is_usual(const PairSettings& wanted) {
  const PairSettings usual;
  return wanted.by == usual.by && wanted.per_problem == usual.per_problem &&
         wanted.chosen == usual.chosen && wanted.rejected == usual.rejected &&
         wanted.margin == usual.margin;
}

bool is_usual(const AnswerRowSettings& wanted) {
  const AnswerRowSettings usual;
  return wanted.by == usual.by && wanted.per_problem == usual.per_problem &&
         wanted.order == usual.order;
}

void check_pairs(const ProcessSettings& settings) {
  const PairSettings& wanted = settings.pairs;
  if (wanted.path.empty()) {
    if (!is_usual(wanted))
      refuse_setting("pairs", "no pairs are written, so nothing reads it",
                     "name their file with --pairs FILE");
    return;
  }
  require_figures(settings, "pairs", wanted.by, {wanted.chosen, wanted.rejected});
  if (wanted.margin > 0 && wanted.by != "score")
    refuse_setting("pairs.margin", "only pairs by score read it",
                   "remove it, or set --pairs-by score");
  if (settings.generate.n < 2)
    refuse_setting("pairs.path", "one solution of each problem makes no pair",
                   "draw several: --samples 4");
}

void check_answers(const ProcessSettings& settings) {
  const AnswerRowSettings& wanted = settings.answers;
  if (!wanted.path.empty()) return require_figures(settings, "answers", wanted.by, {wanted.order});
  if (!is_usual(wanted))
    refuse_setting("answers", "no solutions are written, so nothing reads it",
                   "name their file with --answers FILE");
}

void check_problems(const ProcessSettings& settings) {
  const ProblemRowSettings& wanted = settings.problems;
  if (wanted.min_difficulty > wanted.max_difficulty)
    refuse_setting("problems.min_difficulty", "it is above problems.max_difficulty",
                   "such as --problems-min-difficulty 0.1 --problems-max-difficulty 0.9");
  if (is_any_difficulty(wanted)) return;
  if (wanted.path.empty())
    refuse_setting("problems", "no problems are written, so nothing reads it",
                   "name their file with --problems FILE");
  require_stage(settings, "problems", "verify");
}

// ---- solutions ----

std::string text_or_empty(const Json& value, const char* key) {
  return member_or(value, key, std::string());
}

Solution sample_solution(const Json& row, const Json& sample) {
  const Json& texts = texts_of_sample(row, sample);
  Solution solution{.sample = sample.at("sample").get<int64_t>(),
                    .think = text_or_empty(texts, "think"),
                    .said = text_or_empty(texts, "reasoning"),
                    .verified = text_or_empty(sample, "verified")};
  if (const auto score = sample.find("quality_score"); score != sample.end() && score->is_number())
    solution.score = score->get<double>();
  solution.characters = count_characters(solution.think) + count_characters(solution.said);
  return solution;
}

// The text with one blank for each run of white space, and no blanks at its ends.
std::string with_single_blanks(const std::string& text) {
  std::string words;
  bool is_apart = false;
  for (const char letter : text) {
    if (std::isspace(static_cast<unsigned char>(letter)) != 0) {
      is_apart = !words.empty();
      continue;
    }
    if (std::exchange(is_apart, false)) words += ' ';
    words += letter;
  }
  return words;
}

bool precedes(const std::string& order, const Solution& left, const Solution& right) {
  if (order == "shortest") return left.characters < right.characters;
  if (order == "longest") return left.characters > right.characters;
  if (order == "highest_score") return left.score.value_or(-1) > right.score.value_or(-1);
  if (order == "lowest_score") return left.score.value_or(2) < right.score.value_or(2);
  return false;
}

// Equal solutions stay in the order of the samples.
void sort_by(const std::string& order, std::vector<Solution>& solutions) {
  std::stable_sort(solutions.begin(), solutions.end(), [&](const auto& left, const auto& right) {
    return precedes(order, left, right);
  });
}

template <class Condition>
std::vector<Solution> those(const std::vector<Solution>& solutions, const Condition& holds) {
  std::vector<Solution> found;
  std::copy_if(solutions.begin(), solutions.end(), std::back_inserter(found), holds);
  return found;
}

std::vector<Solution> with_verdict(const std::vector<Solution>& solutions, const char* verdict) {
  return those(solutions, [&](const Solution& one) { return one.verified == verdict; });
}

using Pairs = std::vector<std::pair<Solution, Solution>>;

// Makes pairs in rounds. Each round uses every entry of the longer list once, each with another
// entry of the shorter list.
Pairs every_pair(const std::vector<Solution>& chosen, const std::vector<Solution>& rejected,
                 size_t most) {
  Pairs pairs;
  const size_t longer = std::max(chosen.size(), rejected.size());
  const size_t all = chosen.size() * rejected.size();
  for (size_t turn = 0; turn < std::min(all, most); ++turn) {
    const size_t round = turn / longer;
    const size_t place = turn % longer;
    const size_t left = chosen.size() == longer ? place : place + round;
    const size_t right = chosen.size() == longer ? place + round : place;
    pairs.emplace_back(chosen[left % chosen.size()], rejected[right % rejected.size()]);
  }
  return pairs;
}

Pairs pairs_by_verdict(const std::vector<Solution>& solutions, const PairSettings& wanted,
                       TrainingCounts& counts) {
  std::vector<Solution> right = with_verdict(solutions, "yes");
  std::vector<Solution> wrong = with_verdict(solutions, "no");
  const bool is_checked = std::any_of(solutions.begin(), solutions.end(),
                                      [](const Solution& one) { return !one.verified.empty(); });
  if (solutions.empty())
    ++counts.without["a whole solution"];
  else if (!is_checked)
    ++counts.without["a reference"];
  else if (right.empty())
    ++counts.without["a right solution"];
  else if (wrong.empty())
    ++counts.without["a wrong solution"];
  sort_by(wanted.chosen, right);
  sort_by(wanted.rejected, wrong);
  return every_pair(right, wrong, static_cast<size_t>(wanted.per_problem));
}

// Pairs the best solution with the worst, the second best with the second worst, and so on, while
// their scores differ enough. So no solution is on both sides.
Pairs pairs_by_score(const std::vector<Solution>& solutions, const PairSettings& wanted,
                     TrainingCounts& counts) {
  std::vector<Solution> better =
      those(solutions, [](const Solution& one) { return one.score.has_value(); });
  std::vector<Solution> worse = better;
  sort_by(wanted.chosen, better);
  sort_by("highest_score", better);
  sort_by(wanted.rejected, worse);
  sort_by("lowest_score", worse);
  Pairs pairs;
  for (size_t place = 0; place < better.size() / 2; ++place) {
    const bool differ = *better[place].score - *worse[place].score > wanted.margin;
    if (!differ || std::ssize(pairs) == wanted.per_problem) break;
    pairs.emplace_back(better[place], worse[place]);
  }
  if (better.size() < 2)
    ++counts.without["two scored solutions"];
  else if (pairs.empty())
    ++counts.without["scores that differ"];
  return pairs;
}

// ---- rows ----

// The prompt in the form in which the model read it: messages, or a text.
Json prompt_of_row(const PipelinePlan& plan, const Json& row) {
  const Prompt prompt = plan.prompt(rendered_problem(plan, row));
  return plan.chats() ? prompt.messages : Json(prompt.text);
}

// In a chat, thoughts are a member of the message, for the chat template. In a plain text they are
// a part of the text.
Json answer_of_solution(const PipelinePlan& plan, const Solution& solution, const Json& prompt) {
  if (plan.chats()) return Json::array({assistant_turn(solution.said, solution.think)});
  return text_with_thoughts(solution, begin_of_thoughts(plan, prompt.get<std::string>()));
}

Json score_or_null(const Solution& solution) {
  return solution.score ? Json(*solution.score) : Json(nullptr);
}

// Why a problem is left out; empty: it is not.
std::string reason_without(const ProblemRowSettings& wanted, const Json& row) {
  if (is_any_difficulty(wanted)) return {};
  const Json difficulty = row.value("difficulty", Json());
  if (!difficulty.is_number()) return "a difficulty";
  const bool is_within = difficulty >= wanted.min_difficulty && difficulty <= wanted.max_difficulty;
  return is_within ? "" : "a difficulty within the bounds";
}

// The problem and its answer by the names that every reader of problems knows, then the other
// columns of the data set, for rewards. The choices are a part of the problem already.
Json problem_row(const Json& row) {
  Json made = {{"problem", row.at("problem")},
               {"answer", row.at("gold")},
               {"difficulty", row.value("difficulty", Json())},
               {"problem_id", row.at("source_index")}};
  const Json& original = row.at("metadata").at("original_data");
  if (original.is_object())
    for (const auto& [name, value] : original.items())
      if (name != "options" && !made.contains(name)) made[name] = value;
  return made;
}

// True if the row has samples. A row without any text has none.
bool has_solutions(const Json& row) {
  return row.at("state") != "rejected" && row.at("problem").is_string() &&
         !row.at("samples").empty();
}

}  // namespace

const Json& texts_of_sample(const Json& row, const Json& sample) {
  return sample.at("sample") == row.at("sample") ? row : sample;
}

std::string rendered_problem(const PipelinePlan& plan, const Json& row) {
  return plan.generate.render(
      prompt_values(row.at("problem").get<std::string>(), row.at("metadata").at("original_data")));
}

std::vector<std::filesystem::path> training_files(const ProcessSettings& settings) {
  std::vector<std::filesystem::path> files;
  for (const std::string& path :
       {settings.pairs.path, settings.answers.path, settings.problems.path})
    if (!path.empty()) files.emplace_back(path);
  return files;
}

void check_training_rows(const ProcessSettings& settings) {
  check_pairs(settings);
  check_answers(settings);
  check_problems(settings);
}

Json TrainingCounts::json() const {
  return {{"rows", rows},         {"problems", problems}, {"with_rows", with_rows},
          {"repeated", repeated}, {"cut", cut},           {"without", without}};
}

std::vector<Solution> whole_solutions(const Json& row, TrainingCounts& counts) {
  std::vector<Solution> solutions;
  for (const Json& sample : row.at("samples")) {
    const std::string finish = text_or_empty(sample, "finish");
    if (finish.empty() || finish == "error") continue;
    Solution solution = sample_solution(row, sample);
    if (finish != "stop" || trimmed(solution.said, " \t\r\n").empty())
      ++counts.cut;
    else
      solutions.push_back(std::move(solution));
  }
  return solutions;
}

std::vector<Solution> distinct_solutions(std::vector<Solution> solutions, TrainingCounts& counts) {
  std::set<std::pair<std::string, std::string>> texts;
  counts.repeated += static_cast<int64_t>(std::erase_if(solutions, [&](const Solution& solution) {
    return !texts.emplace(with_single_blanks(solution.think), with_single_blanks(solution.said))
                .second;
  }));
  return solutions;
}

std::vector<Solution> solutions_of(const Json& row, TrainingCounts& counts) {
  return distinct_solutions(whole_solutions(row, counts), counts);
}

std::string text_with_thoughts(const Solution& solution, std::string_view begin) {
  if (solution.think.empty()) return solution.said;
  return fmt::format("{}{}\n</think>\n\n{}", begin, solution.think, solution.said);
}

std::string_view begin_of_thoughts(const PipelinePlan& plan, const std::string& prompt) {
  if (!plan.opens_think(prompt)) return "<think>\n";
  return prompt.ends_with('\n') ? "" : "\n";
}

Pairs pairs_of(const std::vector<Solution>& solutions, const PairSettings& wanted,
               TrainingCounts& counts) {
  Pairs pairs = wanted.by == "score" ? pairs_by_score(solutions, wanted, counts)
                                     : pairs_by_verdict(solutions, wanted, counts);
  ++counts.problems;
  counts.with_rows += !pairs.empty();
  counts.rows += std::ssize(pairs);
  return pairs;
}

TrainingRows::TrainingRows(const PipelinePlan& plan) : plan_(plan) {
  if (!plan.settings.pairs.path.empty()) pairs_ = data::create_rows(plan.settings.pairs.path);
  if (!plan.settings.answers.path.empty()) answers_ = data::create_rows(plan.settings.answers.path);
  if (!plan.settings.problems.path.empty())
    problems_ = data::create_rows(plan.settings.problems.path);
}

void TrainingRows::add(const Json& row) {
  if (problems_) add_problem(row);
  if ((!pairs_ && !answers_) || !has_solutions(row)) return;
  const Json prompt = prompt_of_row(plan_, row);
  if (pairs_) add_pairs(row, prompt);
  if (answers_) add_answers(row, prompt);
}

void TrainingRows::add_pairs(const Json& row, const Json& prompt) {
  const auto solutions = solutions_of(row, of_pairs_);
  for (const auto& [chosen, rejected] : pairs_of(solutions, plan_.settings.pairs, of_pairs_))
    pairs_->write({{"prompt", prompt},
                   {"chosen", answer_of_solution(plan_, chosen, prompt)},
                   {"rejected", answer_of_solution(plan_, rejected, prompt)},
                   {"problem_id", row.at("source_index")},
                   {"sample_chosen", chosen.sample},
                   {"sample_rejected", rejected.sample},
                   {"score_chosen", score_or_null(chosen)},
                   {"score_rejected", score_or_null(rejected)},
                   {"length_chosen", chosen.characters},
                   {"length_rejected", rejected.characters}});
}

void TrainingRows::add_answers(const Json& row, const Json& prompt) {
  const AnswerRowSettings& wanted = plan_.settings.answers;
  const double threshold = plan_.settings.evaluate.threshold;
  std::vector<Solution> good = those(solutions_of(row, of_answers_), [&](const Solution& solution) {
    return wanted.by == "score" ? solution.score.value_or(-1) >= threshold
                                : solution.verified == "yes";
  });
  sort_by(wanted.order, good);
  const int64_t count = std::min<int64_t>(std::ssize(good), wanted.per_problem);
  ++of_answers_.problems;
  of_answers_.with_rows += count > 0;
  of_answers_.rows += count;
  if (count == 0) ++of_answers_.without["a good solution"];
  for (int64_t place = 0; place < count; ++place)
    answers_->write(
        {{"prompt", prompt},
         {"completion", answer_of_solution(plan_, good[static_cast<size_t>(place)], prompt)}});
}

void TrainingRows::add_problem(const Json& row) {
  if (row.at("state") == "rejected" || !row.at("problem").is_string()) return;
  ++of_problems_.problems;
  if (const std::string reason = reason_without(plan_.settings.problems, row); !reason.empty()) {
    ++of_problems_.without[reason];
    return;
  }
  ++of_problems_.with_rows;
  ++of_problems_.rows;
  problems_->write(problem_row(row));
}

std::vector<data::FileRecord> TrainingRows::finish() {
  std::vector<data::FileRecord> files;
  for (data::RowWriter* const writer : {pairs_.get(), answers_.get(), problems_.get()})
    if (writer != nullptr) files.push_back(data::record_of(writer->finish()));
  return files;
}

Json TrainingRows::report() const {
  Json report;
  if (pairs_) report["pairs"] = of_pairs_.json();
  if (answers_) report["answers"] = of_answers_.json();
  if (problems_) report["problems"] = of_problems_.json();
  return report;
}

std::string training_text(const Json& counts) {
  std::string text = fmt::format("{} of {}", counts.at("rows").get<int64_t>(),
                                 counted(counts.at("with_rows").get<int64_t>(), "problem"));
  for (const auto& [reason, problems] : counts.at("without").items())
    text += fmt::format("; {} without {}", counted(problems.get<int64_t>(), "problem"), reason);
  const auto mention = [&](const char* key, const char* what) {
    const auto samples = counts.at(key).get<int64_t>();
    if (samples > 0) text += fmt::format("; {} {}", counted(samples, "sample"), what);
  };
  mention("repeated", "with the text of another one left out");
  mention("cut", "without a whole text left out");
  return text;
}

}  // namespace convoy::process
