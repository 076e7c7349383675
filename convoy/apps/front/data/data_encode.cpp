// SPDX-License-Identifier: Apache-2.0
//
// `convoy data encode`: the tokens of a training run, made before it.
#include <fmt/format.h>

#include "convoy/apps/front/data/data_rows.h"
#include "convoy/apps/front/train/train_config.h"
#include "convoy/apps/front/train/train_inputs.h"
#include "convoy/core/base/error.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/data/datasets/encoding/encode_splits.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::apps {
namespace {

using Json = nlohmann::ordered_json;

Json report_json(const data::SplitReport& report) {
  Json json = {{"split", report.name}, {"files", report.files}, {"schema", report.schema}};
  data::SplitReport::for_each_count(report,
                                    [&](const char* name, int64_t count) { json[name] = count; });
  json["from_cache"] = report.from_cache;
  return json;
}

}  // namespace

int data_encode(Context& context, const std::vector<std::string>& arguments) {
  settings::DataEncodeFlags flags;
  const std::vector<std::string> words = context.parse(flags, arguments);
  settings::TrainSettings train;
  read_train_config(train, words, flags.preset, context.log(), settings::Wanted::TrainInputs);
  if (train.task_facts().data == settings::TaskData::Windows)
    throw ConfigError("windows of sensors have no tokens",
                      {.key = "task", .hint = "`convoy train` reads the windows itself"});
  refuse_problems(train);
  require_train_inputs(train);
  const auto folder = io::ModelFolder::open(train.model.name, train.model.revision).path();
  const text::Tokenizer tokenizer = text::Tokenizer::load(folder, train.data.eos_token);
  if (const std::string letters = tokenizer.missing_letters(); !letters.empty())
    context.log().info(letters);
  const auto chat_template =
      text::ChatTemplate::load(folder, train.data.template_path, train.data.eos_token);
  const data::EncodedSplits splits =
      data::encode_splits({.data = train.data,
                           .task = train.task,
                           .max_seq_len = train.model.max_seq_len,
                           .seed = static_cast<uint64_t>(train.seed),
                           .tokenizer = tokenizer,
                           .chat_template = chat_template ? &*chat_template : nullptr,
                           .log = context.log(),
                           .datasets = settings::mixed_datasets(train.datasets)},
                          data::Splits::All);
  if (!context.common.json) return 0;
  Json reports = Json::array();
  for (const data::SplitReport& report : splits.reports) reports.push_back(report_json(report));
  fmt::print("{}\n", reports.dump());
  return 0;
}

}  // namespace convoy::apps
