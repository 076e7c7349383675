// SPDX-License-Identifier: Apache-2.0
//
// `convoy data SUB`: data sets as files, without a model that computes.
#include <fmt/format.h>

#include <algorithm>

#include "convoy/apps/front/data_fetch.h"
#include "convoy/apps/front/data_rows.h"
#include "convoy/base/error.h"
#include "convoy/base/suggest.h"

namespace convoy::apps {
namespace {

struct SubCommand {
  Action action;
  int (*run)(Context& context, const std::vector<std::string>& arguments);
};

const std::vector<SubCommand>& sub_commands() {
  static const std::vector<SubCommand> list = {
      {{"process", "raw rows as conversations, split into train, val and test",
        "convoy data process RAW --output FOLDER\n"
        "convoy data process --config CONFIG.yaml --data RAW",
        config::flag_table_of<settings::DataProcessFlags>,
        "convoy data process raw.json --output data/processed\n"
        "convoy data process --config run.yaml --data raw.json"},
       data_process},
      {{"style", "puts an instruction before the system prompt of every row",
        "convoy data style INPUT OUTPUT --style TEXT",
        config::flag_table_of<settings::DataStyleFlags>,
        "convoy data style data/processed/train.jsonl styled.jsonl --style \"Answer briefly.\""},
       data_style},
      {{"render", "conversations as the texts that a chat template makes of them",
        "convoy data render INPUT OUTPUT (--model D | --template F)",
        config::flag_table_of<settings::DataRenderFlags>,
        "convoy data render styled.jsonl rendered.jsonl --model examples/tally-3m"},
       data_render},
      {{"convert", "rows in another schema, another file format, or in shards",
        "convoy data convert INPUT OUTPUT [--to SCHEMA]",
        config::flag_table_of<settings::DataConvertFlags>,
        "convoy data convert rows.parquet rows.jsonl.gz --to sharegpt"},
       data_convert},
      {{"mix", "several data sets as one: one after another, or drawn by weights",
        "convoy data mix INPUT[=WEIGHT] INPUT[=WEIGHT] ... --output OUTPUT",
        config::flag_table_of<settings::DataMixFlags>,
        "convoy data mix chat.jsonl=0.9 sums.jsonl=0.1 --output mixed.jsonl --to messages"},
       data_mix},
      {{"dedup", "leaves out rows that repeat an earlier one, exactly or nearly",
        "convoy data dedup INPUT OUTPUT [--near]", config::flag_table_of<settings::DataDedupFlags>,
        "convoy data dedup rows.jsonl unique.jsonl --near --threshold 0.8 --report twins.jsonl"},
       data_dedup},
      {{"split", "parts by a seed: by shares or counts, with equal mixes or whole groups",
        "convoy data split INPUT FOLDER [--ratios 0.7 0.1 0.2]",
        config::flag_table_of<settings::DataSplitFlags>,
        "convoy data split rows.jsonl parts --ratios 0.9 0.1 0 --group user_id"},
       data_split},
      {{"encode", "makes the tokens of a training run before it, into the token cache",
        "convoy data encode CONFIG.yaml [key=value ...]",
        config::flag_table_of<settings::DataEncodeFlags>,
        "convoy data encode run.yaml data.train_path=rows.jsonl"},
       data_encode},
      {{"stats", "rows, turns and lengths, with a histogram", "convoy data stats INPUT [--model D]",
        config::flag_table_of<settings::DataStatsFlags>,
        "convoy data stats rows.jsonl --model examples/tally-3m --max-seq-len 512"},
       data_stats},
      {{"system", "sets, changes or removes system prompts",
        "convoy data system INPUT OUTPUT --prompt TEXT",
        config::flag_table_of<settings::DataSystemFlags>,
        "convoy data system rows.jsonl with.jsonl --prompt \"You are careful.\" --mode replace"},
       data_system},
      {{"validate", "looks at every row; ends with 10 where one is bad",
        "convoy data validate INPUT [--model D]\n"
        "convoy data validate --config CONFIG.yaml",
        config::flag_table_of<settings::DataValidateFlags>,
        "convoy data validate rows.jsonl --model examples/tally-3m --report bad.jsonl\n"
        "convoy data validate --config run.yaml"},
       data_validate},
      {data_fetch_action(), data_fetch},
  };
  return list;
}

int run_data(Context& context, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  for (const SubCommand& sub : sub_commands()) known.emplace_back(sub.action.name);
  const std::string names = fmt::format("{}", fmt::join(known, ", "));
  if (arguments.empty()) throw ConfigError("data wants to know what to do", {.hint = names});
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  for (const SubCommand& sub : sub_commands())
    if (sub.action.name == arguments.front()) return sub.run(context, rest);
  throw ConfigError(fmt::format("unknown action `{}`{}", arguments.front(),
                                did_you_mean(arguments.front(), known)),
                    {.key = arguments.front(), .hint = names});
}

}  // namespace

Command data_command() {
  Command command{
      .name = "data",
      .summary =
          "prepares data sets: converts, mixes, deduplicates, splits, measures, validates, fetches "
          "rows",
      .usage =
          "convoy data "
          "process|style|render|convert|mix|dedup|split|encode|stats|system|validate|fetch "
          "[flags]",
      .examples =
          "convoy data validate rows.jsonl --model examples/tally-3m\n"
          "convoy data mix chat.jsonl=0.9 sums.jsonl=0.1 --output mixed.jsonl\n"
          "convoy data split rows.jsonl parts --ratios 0.9 0.1 0\n"
          "convoy data fetch openai/gsm8k",
      .flag_table = nullptr,
      .run = run_data};
  for (const SubCommand& sub : sub_commands()) command.actions.push_back(sub.action);
  return command;
}

}  // namespace convoy::apps
