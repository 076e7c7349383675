// SPDX-License-Identifier: Apache-2.0
//
// The rows of a training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/config/field.h"

namespace convoy::settings {

using config::AutoOr;
using config::NameList;

struct SplitSettings {
  AutoOr<double> train_ratio;
  AutoOr<double> val_ratio;
  double test_ratio = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("train_ratio", train_ratio, "share of rows for training; auto = all that is left")
        .at_least(0)
        .at_most(1);
    visit("val_ratio", val_ratio,
          "share for evaluation during training; auto = a tenth, at most 500 rows, none where "
          "nothing is evaluated; all that is left where train_ratio is given")
        .at_least(0)
        .at_most(1);
    visit("test_ratio", test_ratio,
          "share kept for `convoy eval --split test`, which training never reads")
        .at_least(0)
        .at_most(1);
  }
};

inline constexpr const char* kRankedPairsHelp =
    "tasks of pairs: which answers of a ranked list make pairs; adjacent = each and the next worse "
    "one; answers of one rank make none";
inline std::vector<std::string> ranked_pairs_words() {
  return {"best_vs_worst", "best_vs_rest", "adjacent", "all"};
}

struct DataSettings {
  std::string train_path;
  std::string val_path;
  std::string test_path;
  SplitSettings split;
  std::string schema = "auto";
  std::string supervise = "auto";
  NameList roles_to_train{{"assistant"}};
  std::string train_on_eos = "turn";
  std::string eos_token;
  std::string empty_answers = "skip";
  std::string truncation = "auto";
  std::string template_path;
  config::JsonMap template_kwargs;
  std::string system_prompt;
  int64_t max_field_chars = 0;
  std::string bad_rows = "error";
  std::string unread_columns = "name";
  std::string cache_dir;
  std::string text_field = "text";
  std::string text_rows = "document";
  std::string ranked_pairs = "best_vs_worst";
  bool shuffle = true;
  bool balance_tokens = true;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("train_path", train_path,
          "training rows: a file such as .jsonl, .csv or .parquet, a folder or pattern of them, a "
          "data set of the local hub cache")
        .alias("path");
    visit("val_path", val_path, "evaluation rows; empty and no val share: none");
    visit("test_path", test_path, "test rows for `convoy eval`");
    visit("split", split,
          "used when only train_path is given and val_path and test_path are not; shares that are "
          "given sum to 1");
    visit("schema", schema, "row schema; auto = by the row's keys")
        .one_of({"auto", "messages", "sharegpt", "alpaca", "prompt_completion", "triple",
                 "rendered", "text", "preference", "ranked", "unpaired_preference", "loose"})
        .alias("format");
    visit("supervise", supervise,
          "which tokens carry loss; auto = assistant turns, completions, whole texts")
        .one_of({"auto", "assistant", "last", "all"})
        .alias_at_root("train_on_inputs")
        .alias_at_root("train_on_prompt")
        .alias_at_root("mask_history");
    visit("roles_to_train", roles_to_train, "chat rows: roles whose turns carry loss")
        .alias_at_root("roles_to_train");
    visit("train_on_eos", train_on_eos,
          "chat rows: which tokens that close turns carry loss: those of learnt turns, of all "
          "turns, the row's last, or none")
        .one_of({"turn", "all", "last", "none"})
        .alias_at_root("train_on_eos");
    visit("eos_token", eos_token,
          "token of the tokenizer that is its EOS in place of its own: it ends texts and "
          "completions, and the result names it; empty = the tokenizer's")
        .alias_at_root("eos_token")
        .alias_at_root("train.eos_token");
    visit("empty_answers", empty_answers,
          "answers and completions without text: skip = no loss, with a warning; learn = loss on "
          "the token that ends them; error = a bad row")
        .one_of({"skip", "learn", "error"});
    visit(
        "truncation", truncation,
        "rows longer than max_seq_len; split = cut into rows of that length, every token is kept; "
        "keep_end keeps the answer; auto = split for task pretrain, keep_start for others")
        .one_of({"auto", "split", "keep_start", "keep_end", "drop", "error"})
        .alias("truncation_side")
        .alias_at_root("truncation_side");
    visit("template_path", template_path,
          "chat template file (Jinja) that replaces the model's own");
    visit("template_kwargs", template_kwargs,
          "variables for the chat template; a row's chat_template_kwargs override them")
        .alias("chat_template_kwargs");
    visit("system_prompt", system_prompt,
          "system turn added to chat rows that have none; empty = none");
    visit("max_field_chars", max_field_chars,
          "cut fields longer than this, with a warning; 0 = off")
        .at_least(0);
    visit("bad_rows", bad_rows,
          "unreadable rows: stop, or count and list them; replace = U+FFFD for lone surrogates and "
          "bytes that are no UTF-8 in JSON, counted")
        .one_of({"error", "skip", "replace"});
    visit("unread_columns", unread_columns,
          "columns that nothing reads: name them once per file, or stop at the first such row")
        .one_of({"name", "error"});
    visit("cache_dir", cache_dir, "token cache; empty = ~/.cache/convoy/tokens; none = off");
    visit("text_field", text_field, "column of plain-text rows");
    visit("text_rows", text_rows, "rows of a .txt file: the whole of it, or each line")
        .one_of({"document", "line"});
    visit("ranked_pairs", ranked_pairs, kRankedPairsHelp).one_of(ranked_pairs_words());
    visit("shuffle", shuffle, "seeded shuffle of rows, new in each epoch");
    visit("balance_tokens", balance_tokens,
          "deal the rows of a step so that micro-batches have equal numbers of tokens");
  }
};

}  // namespace convoy::settings
