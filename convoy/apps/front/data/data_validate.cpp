// SPDX-License-Identifier: Apache-2.0
//
// `convoy data validate`: reports faults in the rows of a data set or of a training run.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "convoy/apps/front/data/data_rows.h"
#include "convoy/apps/front/data/reported_rows.h"
#include "convoy/apps/front/data/row_tokens.h"
#include "convoy/apps/front/train/train_config.h"
#include "convoy/apps/front/train/train_inputs.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/data/datasets/chain/row_check.h"
#include "convoy/data/datasets/encoding/encode_splits.h"

namespace convoy::apps {
namespace {

using Json = nlohmann::ordered_json;

std::string place_text(const data::RowFault& fault) {
  std::string text = fault.file;
  if (fault.line > 0) text += fmt::format(":{}", fault.line);
  if (fault.column > 0) text += fmt::format(":{}", fault.column);
  return text;
}

Json fault_json(const data::RowFault& fault) {
  return {{"row", fault.index},
          {"file", fault.file},
          {"line", fault.line > 0 ? Json(fault.line) : Json()},
          {"column", fault.column > 0 ? Json(fault.column) : Json()},
          {"reason", fault.reason}};
}

std::string text_of(const data::RowFault& fault) {
  return fmt::format("{}: {}{}", place_text(fault), fault.reason,
                     fault.hint.empty() ? "" : fmt::format(" ({})", fault.hint));
}

std::string cut_text(const data::RowCheckReport& report, const data::RowCheck& check) {
  if (report.rows_cut == 0) return "";
  return fmt::format("; {} longer than {} tokens, which training would cut",
                     counted(report.rows_cut, "row"), check.truncation.max_tokens);
}

std::string dropped_text(const data::RowCheckReport& report) {
  if (report.rows_dropped == 0) return "";
  return fmt::format("; {} dropped without a supervised token",
                     counted(report.rows_dropped, "row"));
}

// Rows of one data set, and the settings for reading them.
struct CheckedSet {
  data::RowPass pass;
  data::RowCheck check;
};

// Throws DataError when a row is bad, after all sets were read.
void validate(const Context& context, const settings::DataValidateFlags& flags,
              const std::vector<CheckedSet>& sets) {
  std::vector<data::RowPass> passes;
  for (const CheckedSet& set : sets) passes.push_back(set.pass);
  ReportedRows faults(context, flags, passes);
  int64_t rows = 0;
  std::string names;
  std::string cut;
  for (const auto& [pass, check] : sets) {
    const data::RowCheckReport report = data::check_rows(
        pass.dataset, check,
        [&](const data::RowFault& fault) { faults.add(fault_json(fault), text_of(fault)); });
    if (context.common.json)
      fmt::print("{}\n", Json({{"rows", report.rows},
                               {"rows_bad", report.faults},
                               {"rows_dropped", report.rows_dropped},
                               {"schema", report.schema},
                               {"rows_above_max_seq_len", report.rows_cut},
                               {"columns_not_read", report.unread.names()}})
                             .dump());
    if (report.rows == 0)
      throw DataError("the data set has no rows",
                      {.file = pass.dataset.files[0].string(), .hint = "name a file with rows"});
    if (!report.unread.empty())
      context.log().warning(
          fmt::format("{}: {}", pass.dataset.name, report.unread.sentence("not read")));
    for (const std::string& warning : data::row_warnings(report.losses, check.truncation.max_tokens,
                                                         check.truncation.truncation))
      context.log().warning(fmt::format("{}: {}", pass.dataset.name, warning));
    if (const std::string replaced = report.bad.summary(); !replaced.empty())
      context.log().warning(fmt::format("{}: {}", pass.dataset.name, replaced));
    if (!report.ranked.empty()) context.log().info(report.ranked);
    if (report.faults == 0)
      context.log().info(fmt::format("{} good, all {}{}{}",
                                     counted(report.rows - report.rows_dropped, "row"),
                                     report.schema, dropped_text(report), cut_text(report, check)));
    if (report.rows_dropped > 0 && report.rows_dropped + report.faults == report.rows)
      throw DataError("no row is left to learn from",
                      {.file = pass.dataset.files[0].string(),
                       .hint = "write the answers that are empty; the warnings say which"});
    rows += report.rows;
    names += (names.empty() ? "" : ", ") + pass.dataset.name;
    cut += cut_text(report, check);
  }
  if (const int64_t bad = faults.finish(); bad > 0)
    throw DataError(fmt::format("{} of {} bad{}", bad, counted(rows, "row"), cut),
                    {.file = names,
                     .hint = flags.report.empty() ? "--report FILE lists them all"
                                                  : fmt::format("listed in {}", flags.report)});
}

// The data sets of a run, each with the run's settings for it.
std::vector<std::pair<settings::DataSettings, std::string>> data_of_run(
    const settings::TrainSettings& train) {
  std::vector<std::pair<settings::DataSettings, std::string>> sets;
  const auto add = [&](const std::string& path, const std::string& task,
                       const std::string& schema) {
    if (path.empty()) return;
    settings::DataSettings data = train.data;
    data.train_path = path;
    data.schema = schema;
    sets.emplace_back(std::move(data), task);
  };
  if (train.task_facts().data == settings::TaskData::Mix) {
    for (const settings::MixedDataset& dataset : settings::mixed_datasets(train.datasets))
      for (const std::string& path : {dataset.path, dataset.val_path})
        add(path, dataset.task, dataset.schema);
  } else {
    for (const std::string& path :
         {train.data.train_path, train.data.val_path, train.data.test_path})
      add(path, train.task, train.data.schema);
  }
  if (sets.empty())
    throw ConfigError(
        "the configuration names no rows",
        {.key = "data.train_path", .hint = "set data.train_path, or name the file with --data"});
  return sets;
}

// Checks every row of a run, then all data checks that the start of the run would make.
int validate_run(Context& context, const settings::DataValidateFlags& flags) {
  config::refuse_without_effect(
      flags,
      {"data", "dataset_config", "dataset_split", "schema", "text_field", "text_rows", "model",
       "template_path", "template_kwargs", "system_prompt", "supervise", "ranked_pairs",
       "empty_answers", "max_seq_len"},
      "with --config, which sets it");
  settings::TrainSettings train;
  read_train_config(train, {flags.config}, "", context.log(), settings::Wanted::TrainInputs);
  if (train.task_facts().data == settings::TaskData::Windows)
    throw ConfigError("windows of sensors have no tokens",
                      {.key = "task", .hint = "`convoy train` checks the windows itself"});
  refuse_problems(train);
  require_train_inputs(train);
  const auto folder = io::ModelFolder::open(train.model.name, train.model.revision).path();
  const RowTokens tokens(folder, train.data.template_path, data::Supervision::from(train.data));
  std::vector<CheckedSet> sets;
  for (const auto& [data, task] : data_of_run(train))
    sets.push_back(
        {.pass = {.dataset =
                      data::find_dataset({.name = data.train_path,
                                          .text_rows = data::text_rows_named(data.text_rows)})},
         .check = {.schema = data::SchemaConfig::from(data, task),
                   .encoder = tokens.encoder(),
                   .truncation = {.max_tokens = train.model.max_seq_len,
                                  .truncation = data::truncation_named(data.truncation, task),
                                  .bos_id = tokens.tokenizer().bos_id()},
                   .bad_rows = data::bad_rows_named(data.bad_rows)}});
  validate(context, flags, sets);
  train.data.cache_dir = "none";
  const data::EncodedSplits splits =
      data::encode_splits({.data = train.data,
                           .task = train.task,
                           .max_seq_len = train.model.max_seq_len,
                           .seed = static_cast<uint64_t>(train.seed),
                           .tokenizer = tokens.tokenizer(),
                           .chat_template = tokens.chat_template(),
                           .log = context.log(),
                           .datasets = settings::mixed_datasets(train.datasets),
                           .warns = false},  // validate() has already warned
                          data::Splits::All);
  context.log().info(splits.policy);
  return 0;
}

}  // namespace

int data_validate(Context& context, const std::vector<std::string>& arguments) {
  settings::DataValidateFlags flags;
  const std::vector<std::string> words = context.parse(flags, arguments);
  const data::BadRows bad_rows = data::bad_rows_named(flags.bad_rows);
  if (bad_rows == data::BadRows::Skip)
    config::refuse_without_effect(flags, {"bad_rows"}, "as skip here: every row is checked");
  if (!flags.config.empty() && words.empty()) return validate_run(context, flags);
  if (!flags.config.empty())
    throw ConfigError(
        fmt::format("unexpected word `{}` with --config", words[0]),
        {.key = words[0], .hint = "the configuration names the rows: leave the word out"});
  take_words(words, flags.data, nullptr);
  const auto supervision =
      data::Supervision::named(flags.supervise, {"assistant"}, "turn", flags.empty_answers);
  const RowTokens tokens = row_tokens_of(flags, supervision);
  validate(context, flags,
           {{.pass = row_pass_of(flags),
             .check = {.schema = schema_with_template(flags),
                       .encoder = tokens.encoder(),
                       .truncation = {.max_tokens = flags.max_seq_len},
                       .empty_answers = supervision.empty_answers,
                       .bad_rows = bad_rows}}});
  return 0;
}

}  // namespace convoy::apps
