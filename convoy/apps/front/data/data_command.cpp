// SPDX-License-Identifier: Apache-2.0
//
// `convoy data ACTION`: commands on the files of data sets. No model computes.
#include "convoy/apps/front/data/data_rows.h"

namespace convoy::apps {

Command data_command() {
  return {
      .name = "data",
      .summary = "Prepare, mix, split, measure and check data sets",
      .usage = "convoy data ACTION [flags]",
      .examples =
          "convoy data validate rows.jsonl --model examples/tally-3m\n"
          "convoy data mix chat.jsonl=0.9 sums.jsonl=0.1 --output mixed.jsonl\n"
          "convoy data split rows.jsonl parts --ratios 0.9 0.1 0\n"
          "convoy data fetch openai/gsm8k",
      .actions =
          {
              {.name = "prepare",
               .summary = "Write raw rows as conversations, split into parts",
               .usage = "convoy data prepare RAW --output FOLDER\n"
                        "convoy data prepare --config CONFIG.yaml --data RAW",
               .examples = "convoy data prepare raw.json --output data/processed\n"
                           "convoy data prepare --config run.yaml --data raw.json",
               .flags = {flags_of<settings::DataPrepareFlags>()},
               .first_flags = {"data", "output", "config", "to", "ratios", "seed", "system-prompt",
                               "schema", "bad-rows", "force"},
               .run = data_prepare},
              {.name = "style",
               .summary = "Put an instruction before every system prompt",
               .usage = "convoy data style INPUT OUTPUT --style TEXT",
               .examples = "convoy data style data/processed/train.jsonl styled.jsonl --style "
                           "\"Answer briefly.\"",
               .flags = {flags_of<settings::DataStyleFlags>()},
               .first_flags = {"data", "output", "style", "style-file", "mode", "schema",
                               "bad-rows", "force"},
               .run = data_style},
              {.name = "render",
               .summary = "Write conversations as the text of a chat template",
               .usage = "convoy data render INPUT OUTPUT (--model D | --template F)",
               .examples =
                   "convoy data render styled.jsonl rendered.jsonl --model examples/tally-3m",
               .flags = {flags_of<settings::DataRenderFlags>()},
               .first_flags = {"data", "output", "model", "template-path", "template-kwargs",
                               "system-prompt", "to", "schema", "bad-rows", "force"},
               .run = data_render},
              {.name = "convert",
               .summary = "Write rows in another schema, format or in shards",
               .usage = "convoy data convert INPUT OUTPUT [--to SCHEMA]",
               .examples = "convoy data convert rows.parquet rows.jsonl.gz --to sharegpt",
               .flags = {flags_of<settings::DataConvertFlags>()},
               .first_flags = {"data", "output", "to", "keep", "shard-rows", "schema", "text-field",
                               "bad-rows", "force"},
               .run = data_convert},
              {.name = "mix",
               .summary = "Join data sets, one after another or by weights",
               .usage = "convoy data mix INPUT[=WEIGHT] INPUT[=WEIGHT] ... --output OUTPUT",
               .examples = "convoy data mix chat.jsonl=0.9 sums.jsonl=0.1 --output mixed.jsonl "
                           "--to messages",
               .flags = {flags_of<settings::DataMixFlags>()},
               .run = data_mix},
              {.name = "dedup",
               .summary = "Leave out rows that repeat an earlier one",
               .usage = "convoy data dedup INPUT OUTPUT [--near]",
               .examples = "convoy data dedup rows.jsonl unique.jsonl --near --threshold 0.8 "
                           "--report twins.jsonl",
               .flags = {flags_of<settings::DataDedupFlags>()},
               .first_flags = {"data", "output", "near", "threshold", "column", "normalise",
                               "report", "schema", "bad-rows", "force"},
               .run = data_dedup},
              {.name = "split",
               .summary = "Split rows by shares, counts or groups",
               .usage = "convoy data split INPUT FOLDER [--ratios 0.7 0.1 0.2]",
               .examples = "convoy data split rows.jsonl parts --ratios 0.9 0.1 0 --group user_id",
               .flags = {flags_of<settings::DataSplitFlags>()},
               .first_flags = {"data", "output", "ratios", "counts", "names", "stratify", "group",
                               "seed", "format", "schema", "force"},
               .run = data_split},
              {.name = "encode",
               .summary = "Fill the token cache before a training starts",
               .usage = "convoy data encode CONFIG.yaml [key=value ...]",
               .examples = "convoy data encode run.yaml data.train_path=rows.jsonl",
               .flags = {flags_of<settings::DataEncodeFlags>()},
               .run = data_encode},
              {.name = "stats",
               .summary = "Count rows, turns and lengths, with a histogram",
               .usage = "convoy data stats INPUT [--model D]",
               .examples =
                   "convoy data stats rows.jsonl --model examples/tally-3m --max-seq-len 512",
               .flags = {flags_of<settings::DataStatsFlags>()},
               .first_flags = {"data", "model", "max-seq-len", "histogram", "supervise",
                               "system-prompt", "schema", "bad-rows", "force"},
               .run = data_stats},
              {.name = "system",
               .summary = "Set, change or remove system prompts",
               .usage = "convoy data system INPUT OUTPUT --prompt TEXT",
               .examples = "convoy data system rows.jsonl with.jsonl --prompt \"You are careful.\" "
                           "--mode replace",
               .flags = {flags_of<settings::DataSystemFlags>()},
               .first_flags = {"data", "output", "prompt", "prompt-file", "mode", "schema",
                               "bad-rows", "force"},
               .run = data_system},
              {.name = "validate",
               .summary = "Check every row; end with 10 where one is bad",
               .usage = "convoy data validate INPUT [--model D]\n"
                        "convoy data validate --config CONFIG.yaml",
               .examples =
                   "convoy data validate rows.jsonl --model examples/tally-3m --report bad.jsonl\n"
                   "convoy data validate --config run.yaml",
               .flags = {flags_of<settings::DataValidateFlags>()},
               .first_flags = {"data", "model", "config", "max-seq-len", "report", "show",
                               "supervise", "schema", "bad-rows", "force"},
               .run = data_validate},
              {.name = "check",
               .summary = "Find a benchmark's texts in rows to learn from",
               .usage = "convoy data check INPUT --against BENCHMARK[,BENCHMARK] [--output F]",
               .examples =
                   "convoy data check train.jsonl --against test.jsonl\n"
                   "convoy data check train.jsonl --against test.jsonl --output clean.jsonl "
                   "--report found.jsonl",
               .flags = {flags_of<settings::DataCheckFlags>()},
               .first_flags = {"data", "against", "ngram-words", "share", "output", "report",
                               "show", "bad-rows", "force"},
               .run = data_check},
              data_tokens_action(),
              data_fetch_action(),
          },
      .group = HelpGroup::ModelsAndData};
}

}  // namespace convoy::apps
