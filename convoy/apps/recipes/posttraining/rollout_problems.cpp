// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/rollout_problems.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/sources/dataset.h"
#include "convoy/farm/process/parsing/problem_fields.h"
#include "convoy/farm/process/parsing/prompt_template.h"
#include "convoy/farm/process/parsing/think_text.h"
#include "convoy/farm/process/pipeline/row_pipeline.h"
#include "convoy/farm/process/pipeline/row_values.h"
#include "convoy/farm/rewards/reward.h"

namespace convoy::recipes {
namespace {

constexpr const char* kProblemAlone = "{{ problem }}";

process::PromptTemplate prompt_of(const settings::RolloutSettings& rollout) {
  if (rollout.prompt.empty()) return {kProblemAlone, "the problem alone", {"problem"}};
  return {process::read_prompt_file(rollout.prompt, "rollout.prompt"), rollout.prompt, {"problem"}};
}

bool asks_in_chat(const text::ChatTemplate* chat_template,
                  const settings::RolloutSettings& rollout) {
  if (rollout.chat == "auto") return chat_template != nullptr;
  return rollout.chat == "on";
}

// As rewards::use_of_answers(), of the first reward that needs them.
std::string use_of_answers(const std::vector<settings::RewardSettings>& rewards) {
  for (const settings::RewardSettings& reward : rewards)
    if (std::string use = rewards::use_of_answers(reward); !use.empty()) return use;
  return "";
}

// A row for SFT may hold the answer under a name of its own.
std::string where_an_answer_may_be(const nlohmann::ordered_json& row) {
  for (const char* const key :
       {"completion", "response", "output", "ground_truth", "target", "label", "reference"})
    if (row.contains(key))
      return fmt::format(
          "if its column `{0}` is the answer alone: rollout.answer_field={0}; else "
          "add a column `answer`, or take another reward",
          key);
  return "name its column (rollout.answer_field), add a column `answer`, or take another reward";
}

// Throws unless some row has a value in the column, which the prompt of a reward shows.
void require_column(const settings::RewardSettings& reward, const std::string& column,
                    const std::vector<RolloutProblem>& problems, const std::string& file) {
  std::set<std::string> known;
  for (const RolloutProblem& problem : problems)
    for (const auto& [name, value] : process::prompt_values(problem.text, problem.row)) {
      if (name == "row." + column) return;
      if (name.starts_with("row.")) known.insert(name.substr(std::string_view("row.").size()));
    }
  throw DataError(
      fmt::format("the prompt of reward `{}` shows {{{{ row.{} }}}}, and no row has this column; "
                  "columns: {}",
                  reward.name, column, fmt::join(known, ", ")),
      {.file = file,
       .key = reward.key + ".prompt",
       .hint = "write one of these, or take the name out of the prompt"});
}

class ProblemReader {
 public:
  ProblemReader(const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template,
                const settings::TrainSettings& settings, const Log& log)
      : settings_(settings),
        log_(log),
        template_(prompt_of(settings.rollout)),
        is_chat_(asks_in_chat(chat_template, settings.rollout)),
        rewards_(settings::rewards_of(settings.reward)),
        use_of_answers_(use_of_answers(rewards_)),
        encoder_(tokenizer, chat_template, data::Supervision()),
        variables_(
            settings::template_kwargs(settings.data.template_kwargs, "data.template_kwargs")) {}

  std::vector<RolloutProblem> read(const std::string& name, const std::string& split) {
    const data::Dataset dataset = data::find_dataset(
        {.name = name, .text_rows = data::text_rows_named(settings_.data.text_rows)});
    const process::ProblemFields fields(dataset.known, {.problem = settings_.rollout.problem_field,
                                                        .answer = settings_.rollout.answer_field,
                                                        .section = "rollout"});
    const std::unique_ptr<data::RowSource> rows = data::open_dataset(dataset);
    const data::BadRows policy = data::bad_rows_named(settings_.data.bad_rows);
    data::BadRowList bad;
    std::vector<RolloutProblem> problems;
    int64_t too_long = 0;
    for (int64_t seen = 1;; ++seen) {
      try {
        std::optional<data::Row> row = rows->next();
        if (!row) break;
        RolloutProblem problem = problem_of(std::move(*row), fields);
        if (fits(problem))
          problems.push_back(std::move(problem));
        else
          ++too_long;
      } catch (const DataError& error) {
        bad.add(error, seen - 1, seen, policy);
      }
    }
    report(split, name, problems, too_long, bad);
    for (const settings::RewardSettings& reward : rewards_)
      for (const std::string& column : rewards::columns_of_reward(reward))
        require_column(reward, column, problems, name);
    return problems;
  }

 private:
  RolloutProblem problem_of(data::Row row, const process::ProblemFields& fields) const {
    try {
      const process::RowFields found = fields.read(row.value);
      std::vector<std::string> answers = process::golds_of(found);
      if (!use_of_answers_.empty() && answers.empty())
        throw DataError(fmt::format("the row has no answer, and {}", use_of_answers_),
                        {.hint = where_an_answer_may_be(row.value)});
      RolloutProblem problem{.text = found.problem,
                             .answers = std::move(answers),
                             .row = std::move(row.value),
                             .row_number = row.index + 1};
      const data::Sample sample = sample_of(found.problem, row);
      problem.prompt = {encoder_.encode_prompt(sample).ids, is_chat_};
      problem.asked = is_chat_ ? sample.messages : nlohmann::ordered_json(sample.text);
      problem.begins_in_think = process::opens_think(encoder_.render(sample, true));
      return problem;
    } catch (const DataError& error) {
      ErrorLocation place = error.location();
      place.file = row.file;
      place.line = row.line;
      throw DataError(error.what(), place);
    }
  }

  data::Sample sample_of(const std::string& problem, const data::Row& row) const {
    const std::string text = template_.render({{"problem", problem}});
    data::Sample sample{.kind = data::Sample::Kind::Text,
                        .text = text,
                        .file = row.file,
                        .line = row.line,
                        .index = row.index};
    if (!is_chat_) return sample;
    sample.kind = data::Sample::Kind::Chat;
    sample.messages = nlohmann::ordered_json::array();
    if (!settings_.data.system_prompt.empty())
      sample.messages.push_back({{"role", "system"}, {"content", settings_.data.system_prompt}});
    sample.messages.push_back({{"role", "user"}, {"content", text}});
    sample.variables = variables_;
    return sample;
  }

  bool fits(const RolloutProblem& problem) const {
    return std::ssize(problem.prompt.ids) + settings_.rollout.max_new_tokens <=
           settings_.model.max_seq_len;
  }

  void report(const std::string& split, const std::string& name,
              const std::vector<RolloutProblem>& problems, int64_t too_long,
              const data::BadRowList& bad) const {
    if (!bad.summary().empty()) log_.warning(fmt::format("{}: {}", name, bad.summary()));
    if (too_long > 0)
      log_.warning(fmt::format(
          "{}: {} left out: the prompt and rollout.max_new_tokens {} exceed model.max_seq_len {}",
          name, counted(too_long, "problem is", "problems are"), settings_.rollout.max_new_tokens,
          settings_.model.max_seq_len));
    if (problems.empty())
      throw DataError("there is no problem that can be asked",
                      {.file = name, .hint = "look at the file, and at model.max_seq_len"});
    int64_t tokens = 0;
    for (const RolloutProblem& problem : problems) tokens += std::ssize(problem.prompt.ids);
    log_.info(fmt::format("{}: {} of {}, prompts of {} tokens in the mean{}", split,
                          counted(std::ssize(problems), "problem"), name,
                          tokens / std::ssize(problems), is_chat_ ? ", in the chat template" : ""));
  }

  const settings::TrainSettings& settings_;
  const Log& log_;
  const process::PromptTemplate template_;
  const bool is_chat_;
  const std::vector<settings::RewardSettings> rewards_;
  const std::string use_of_answers_;
  const data::SampleEncoder encoder_;
  const nlohmann::ordered_json variables_;
};

data::TokenDataset prompts_of(const std::vector<RolloutProblem>& problems) {
  std::vector<data::EncodedRow> rows;
  for (const RolloutProblem& problem : problems)
    rows.push_back({.ids = problem.prompt.ids,
                    .supervised = std::vector<uint8_t>(problem.prompt.ids.size(), 0),
                    .source_index = problem.row_number - 1});
  return data::TokenDataset::from_rows(rows);
}

data::SplitReport report_of(const std::string& split, const std::string& name,
                            const data::TokenDataset& rows) {
  const data::Dataset dataset = data::find_dataset({.name = name});
  data::SplitReport report;
  report.name = split;
  report.schema = "problems";
  report.rows_read = rows.num_rows();
  report.tokens = rows.total_tokens();
  report.content_hash = data::dataset_hash(dataset);
  for (const std::filesystem::path& file : dataset.files) report.files.push_back(file.string());
  return report;
}

}  // namespace

int64_t RolloutProblems::longest_prompt_tokens() const {
  int64_t longest = 0;
  for (const std::vector<RolloutProblem>* const split : {&train, &val})
    for (const RolloutProblem& problem : *split)
      longest = std::max(longest, std::ssize(problem.prompt.ids));
  return longest;
}

std::vector<RolloutProblem> read_problems(const text::Tokenizer& tokenizer,
                                          const text::ChatTemplate* chat_template,
                                          const settings::TrainSettings& settings,
                                          const ProblemFile& file, const Log& log) {
  return ProblemReader(tokenizer, chat_template, settings, log).read(file.path, file.split);
}

RolloutProblems read_rollout_problems(const LoadedModel& loaded,
                                      const settings::TrainSettings& settings, const Log& log) {
  ProblemReader reader(loaded.tokenizer, loaded.template_or_null(), settings, log);
  RolloutProblems problems{.train = reader.read(settings.data.train_path, "train")};
  if (!settings.data.val_path.empty()) problems.val = reader.read(settings.data.val_path, "val");
  return problems;
}

data::EncodedSplits splits_of(const RolloutProblems& problems, const settings::DataSettings& data) {
  data::EncodedSplits splits;
  splits.train = prompts_of(problems.train);
  splits.val = prompts_of(problems.val);
  splits.reports.push_back(report_of("train", data.train_path, splits.train));
  if (!problems.val.empty()) splits.reports.push_back(report_of("val", data.val_path, splits.val));
  return splits;
}

}  // namespace convoy::recipes
