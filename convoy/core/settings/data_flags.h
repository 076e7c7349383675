// SPDX-License-Identifier: Apache-2.0
//
// Flags of `convoy data`: one struct per sub-command, with shared parts. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/config/field.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/settings/data_settings.h"

namespace convoy::settings {

// The input rows.
struct DataInputFlags {
  std::string data;
  std::string dataset_config;
  std::string dataset_split;
  std::string schema = "auto";
  std::string text_field = "text";
  std::string text_rows = "document";
  std::string bad_rows = "error";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(
        "data", data,
        "rows: a file such as .jsonl, .csv or .parquet, a folder, a pattern, a list, a data set of "
        "the local hub cache; or the first word")
        .alias("dataset")
        .alias("in")
        .alias("raw_path");
    visit("dataset_config", dataset_config, "configuration of a data set with several");
    visit("dataset_split", dataset_split, "split of a data set in several; empty = train");
    visit("schema", schema, "row schema; auto = by the row's keys")
        .one_of({"auto", "messages", "sharegpt", "alpaca", "prompt_completion", "triple",
                 "rendered", "text", "preference", "ranked", "unpaired_preference", "loose"});
    visit("text_field", text_field, "column of plain-text rows");
    visit("text_rows", text_rows, "rows of a .txt file: the whole of it, or each line")
        .one_of({"document", "line"});
    visit("bad_rows", bad_rows, kBadRowsHelp).one_of({"error", "skip", "replace"});
  }
};

inline constexpr const char* kForceOutputHelp =
    "overwrite existing files; without it they are refused";

// The output file of rows, or its shards.
struct DataOutputFlags {
  std::string output;
  bool force = false;
  int64_t shard_rows = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("output", output,
          "file to write; its suffix says the format, such as .jsonl, .csv.gz or .parquet; or the "
          "second word")
        .alias("out")
        .alias("o");
    visit("force", force, kForceOutputHelp);
    visit("shard_rows", shard_rows,
          "rows of each of several files, named OUTPUT-00000 and so on; 0 = one file")
        .at_least(0);
  }
};

struct DataConvertFlags : DataInputFlags, DataOutputFlags {
  std::string to = "same";
  config::NameList keep;

  template <class Visitor>
  void fields(Visitor& visit) {
    DataInputFlags::fields(visit);
    DataOutputFlags::fields(visit);
    visit("to", to, "schema of the output rows; same = unchanged rows in another format")
        .one_of({"same", "messages", "sharegpt", "alpaca", "prompt_completion", "triple",
                 "rendered", "text"});
    visit("keep", keep, "column to copy to the output; may be given more than once");
  }
};

// Mixes several data sets into one.
struct DataMixFlags : DataOutputFlags {
  config::NameList data;
  std::string to = "same";
  std::string stop = "all_exhausted";
  std::string schema = "auto";
  std::string text_field = "text";
  std::string text_rows = "document";
  std::string bad_rows = "error";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("data", data,
          "input rows, with an optional =WEIGHT behind them; may be given more than once; or the "
          "words")
        .alias("dataset")
        .alias("in");
    DataOutputFlags::fields(visit);
    visit("to", to, "schema of the output rows; same = unchanged rows")
        .one_of({"same", "messages", "sharegpt", "alpaca", "prompt_completion", "triple",
                 "rendered", "text"});
    visit("stop", stop,
          "with weights: end when every data set was read once (smaller ones repeat), or when the "
          "first one ends")
        .one_of({"all_exhausted", "first_exhausted"});
    visit("schema", schema, "with --to: row schema; auto = by the row's keys")
        .one_of({"auto", "messages", "sharegpt", "alpaca", "prompt_completion", "triple",
                 "rendered", "text", "loose"});
    visit("text_field", text_field, "with --to: column of plain-text rows");
    visit("text_rows", text_rows, "rows of a .txt file: the whole of it, or each line")
        .one_of({"document", "line"});
    visit("bad_rows", bad_rows, kBadRowsHelp).one_of({"error", "skip", "replace"});
  }
};

struct DataSystemFlags : DataInputFlags, DataOutputFlags {
  std::string prompt;
  std::string prompt_file;
  std::string mode = "missing";

  template <class Visitor>
  void fields(Visitor& visit) {
    DataInputFlags::fields(visit);
    DataOutputFlags::fields(visit);
    visit("prompt", prompt, "the system prompt").alias("system_prompt");
    visit("prompt_file", prompt_file, "file that holds it");
    visit("mode", mode, "for rows that already have one: missing keeps it")
        .one_of({"missing", "replace", "prepend", "append", "remove"});
  }
};

struct DataStyleFlags : DataInputFlags, DataOutputFlags {
  std::string style;
  std::string style_file;
  std::string mode = "prepend";

  template <class Visitor>
  void fields(Visitor& visit) {
    DataInputFlags::fields(visit);
    DataOutputFlags::fields(visit);
    visit("style", style, "the instruction, such as \"Answer in two lines.\"");
    visit("style_file", style_file, "file that holds it");
    visit("mode", mode, "put it before the system prompt, or in its place")
        .one_of({"prepend", "replace"});
  }
};

struct DataRenderFlags : DataInputFlags, DataOutputFlags {
  std::string model;
  std::string template_path;
  config::JsonMap template_kwargs;
  std::string system_prompt;
  std::string to = "rendered";

  template <class Visitor>
  void fields(Visitor& visit) {
    DataInputFlags::fields(visit);
    DataOutputFlags::fields(visit);
    visit("model", model, "folder or hub id of the model whose template is used");
    visit("template_path", template_path,
          "chat template file (Jinja), or one of SFT-Play with `system` and `user`")
        .alias("template");
    visit("template_kwargs", template_kwargs, kTemplateKwargsHelp);
    visit("system_prompt", system_prompt, "system turn of rows without one");
    visit("to", to, "input and target, or the whole conversation as one text")
        .one_of({"rendered", "text"});
  }
};

struct DataDedupFlags : DataInputFlags, DataOutputFlags {
  bool near = false;
  double threshold = 0.8;
  std::string shingle = "words";
  int64_t shingle_length = 5;
  std::string column;
  std::string normalise = "text";
  std::string report;
  int64_t seed = 42;

  template <class Visitor>
  void fields(Visitor& visit) {
    DataInputFlags::fields(visit);
    DataOutputFlags::fields(visit);
    visit("near", near,
          "also find nearly equal rows: those whose runs of 5 words (--shingle) have a Jaccard "
          "index of at least 0.8 (--threshold) with an earlier row; MinHash finds them");
    visit("threshold", threshold,
          "near: smallest Jaccard index that counts as equal: the share of the two rows' runs of "
          "words that both have, above 0 to 1; 1 = equal runs")
        .above(0)
        .at_most(1);
    visit("shingle", shingle, "near: unit of a shingle").one_of({"words", "characters"});
    visit("shingle_length", shingle_length, "near: units per shingle").at_least(1).at_most(1000);
    visit("column", column, "compare only this column; empty = the texts of the row");
    visit("normalise", normalise,
          "text = white space and the case of ASCII letters do not count; none = bytes")
        .one_of({"text", "none"});
    visit("report", report, "file for one row per duplicate: which row it repeats");
    visit("seed", seed, "near: seed of the permutations").at_least(0);
  }
};

struct DataSplitFlags : DataInputFlags {
  std::string output;
  bool force = false;
  std::string format = "jsonl";
  std::string names = "train,val,test";
  std::vector<double> ratios = {0.7, 0.1, 0.2};
  std::vector<int64_t> counts;
  std::string stratify;
  std::string group;
  int64_t seed = 42;

  template <class Visitor>
  void fields(Visitor& visit) {
    DataInputFlags::fields(visit);
    visit("output", output, "folder for one file per part; or the second word")
        .alias("output_dir")
        .alias("out")
        .alias("o");
    visit("force", force, kForceOutputHelp);
    visit("format", format, "format of the files: jsonl, json, csv, tsv, parquet, jsonl.gz, ...");
    visit("names", names, "names of the parts, with commas");
    visit("ratios", ratios, "share of each part; they sum to 1; 0 = no file")
        .at_least(0)
        .at_most(1);
    visit("counts", counts,
          "rows of each part in place of shares; -1 = all that are left, 0 = no file")
        .at_least(-1);
    visit("stratify", stratify, "column to stratify by: all parts get equal shares of its values");
    visit("group", group, "column whose rows stay together, so that no value is in two parts");
    visit("seed", seed, "seed of the split, which equals training's split by data.split")
        .at_least(0);
  }
};

struct DataPrepareFlags : DataInputFlags {
  std::string config;
  std::string output;
  bool force = false;
  std::string format = "jsonl";
  std::string to = "messages";
  std::string system_prompt = "You are a helpful domain assistant.";
  int64_t max_field_chars = 4096;
  std::vector<double> ratios = {0.7, 0.1, 0.2};
  int64_t seed = 42;

  template <class Visitor>
  void fields(Visitor& visit) {
    DataInputFlags::fields(visit);
    visit("config", config,
          "configuration of `convoy train` that gives seed, data.split and the paths of the parts: "
          "data.train_path, val_path, test_path");
    visit("output", output,
          "folder for train, val and test; overrides the paths of the configuration")
        .alias("output_dir")
        .alias("out")
        .alias("o");
    visit("force", force, kForceOutputHelp);
    visit("format", format, "format of the files in --output");
    visit("to", to, "schema of the output rows").one_of({"messages", "triple"});
    visit("system_prompt", system_prompt, "system turn of rows without one; empty = none");
    visit("max_field_chars", max_field_chars,
          "cut fields longer than this, with a warning; 0 = off")
        .at_least(0);
    visit("ratios", ratios, "shares of train, val, test; they sum to 1; 0 = no file")
        .at_least(0)
        .at_most(1);
    visit("seed", seed, "seed of the split").at_least(0);
  }
};

struct DataEncodeFlags {
  std::string preset;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("preset", preset, "start from this preset (`convoy config presets`)");
  }
};

// Shows the tokens that a model's tokenizer and template make of the rows.
struct DataTokenFlags {
  std::string model;
  std::string template_path;
  config::JsonMap template_kwargs;
  std::string system_prompt;
  std::string supervise = "auto";
  std::string ranked_pairs = "best_vs_worst";
  int64_t max_seq_len = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("model", model, "folder or hub id of the model that counts tokens; empty = none");
    visit("template_path", template_path, "chat template file that replaces the model's own");
    visit("template_kwargs", template_kwargs, kTemplateKwargsHelp);
    visit("system_prompt", system_prompt, "system turn of rows without one");
    visit("supervise", supervise, "tokens of each row that carry loss")
        .one_of({"auto", "assistant", "last", "all"});
    visit("ranked_pairs", ranked_pairs, kRankedPairsHelp).one_of(ranked_pairs_words());
    visit("max_seq_len", max_seq_len,
          "report the number of rows longer than this, in tokens; 0 = off")
        .at_least(0);
  }
};

struct DataStatsFlags : DataInputFlags, DataTokenFlags {
  std::string histogram;
  bool force = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    DataInputFlags::fields(visit);
    DataTokenFlags::fields(visit);
    visit("histogram", histogram,
          "histogram of tokens, or of characters, to write as .svg, .png or .pdf");
    visit("force", force, kForceOutputHelp);
  }
};

// Rows that a check reports.
struct DataReportFlags {
  std::string report;
  bool force = false;
  int64_t show = 20;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("report", report, "file for one row per reported row: its place, and why");
    visit("force", force, kForceOutputHelp);
    visit("show", show, "reported rows that are printed").at_least(0);
  }
};

struct DataValidateFlags : DataInputFlags, DataTokenFlags, DataReportFlags {
  std::string config;
  std::string empty_answers = "skip";

  template <class Visitor>
  void fields(Visitor& visit) {
    DataInputFlags::fields(visit);
    DataTokenFlags::fields(visit);
    visit("config", config,
          "configuration of `convoy train` in place of INPUT and --model: check all of its rows as "
          "the run reads them, with the checks of its start");
    visit("empty_answers", empty_answers,
          "answers without text, as data.empty_answers: skip = counted, as training drops them; "
          "learn = as others; error = bad rows")
        .one_of({"skip", "learn", "error"});
    DataReportFlags::fields(visit);
  }
};

struct DataCheckFlags : DataInputFlags, DataReportFlags {
  config::NameList against;
  int64_t ngram_words = 8;
  double share = 0.5;
  std::string output;

  template <class Visitor>
  void fields(Visitor& visit) {
    DataInputFlags::fields(visit);
    visit("against", against, "rows of benchmarks, which the rows must not contain");
    visit("ngram_words", ngram_words, "words of a run").alias("ngram").at_least(1).at_most(1000);
    visit("share", share,
          "share of a benchmark text's runs of words from which a row is one that has it, above 0 "
          "to 1")
        .above(0)
        .at_most(1);
    visit("output", output, "file for the rows without a benchmark's text; empty = only look")
        .alias("out")
        .alias("o");
    DataReportFlags::fields(visit);
  }
};

}  // namespace convoy::settings
