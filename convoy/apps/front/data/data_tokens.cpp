// SPDX-License-Identifier: Apache-2.0
//
// `convoy data tokens`: shows the tokens of a text or of training rows, and which of them have a
// loss.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/apps/front/command.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/settings/data_settings.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/data/datasets/encoding/encode_file.h"
#include "convoy/data/datasets/encoding/encoded_rows.h"
#include "convoy/data/datasets/masks/supervision.h"
#include "convoy/data/datasets/schemas/preference_sample.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::apps {
namespace {

using nlohmann::ordered_json;

struct TokensFlags {
  std::string model;
  std::string text;
  std::string data;
  bool render = false;
  bool add_generation_prompt = false;
  bool special = true;
  std::string supervise = "auto";
  config::NameList roles_to_train{{"assistant"}};
  std::string train_on_eos = "turn";
  std::string schema = "auto";
  std::string system_prompt;
  std::string chat_template;
  config::JsonMap template_kwargs;
  std::string ranked_pairs = "best_vs_worst";
  std::string bad_rows = "error";
  int64_t limit = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("model", model, "model folder, or a hub id found in the local hub cache");
    visit("text", text, "the text to show; with --render it is a user's message");
    visit("data", data, "the rows to show: a JSONL, JSON, CSV or Parquet file, or any data set")
        .alias("dataset");
    visit("render", render, "show the text that the chat template makes, not tokens");
    visit("add_generation_prompt", add_generation_prompt,
          "end with the header of the assistant's turn, as for generation");
    visit("special", special, "add BOS and similar tokens to --text; --no-special omits them");
    visit("supervise", supervise, "tokens of each row that carry loss")
        .one_of({"auto", "assistant", "last", "all"});
    visit("roles_to_train", roles_to_train,
          "chat rows: roles whose turns carry loss; may be given more than once");
    visit("train_on_eos", train_on_eos, "chat rows: end-of-turn tokens that carry loss")
        .one_of({"turn", "all", "last", "none"});
    visit("schema", schema, "schema of the rows; auto recognises it");
    visit("system_prompt", system_prompt, "added to conversations without a system turn");
    visit("chat_template", chat_template, "a Jinja file in place of the model's template")
        .flag("template_path");
    visit("template_kwargs", template_kwargs, settings::kTemplateKwargsHelp);
    visit("ranked_pairs", ranked_pairs, settings::kRankedPairsHelp)
        .one_of(settings::ranked_pairs_words());
    visit("bad_rows", bad_rows, settings::kBadRowsHelp).one_of({"error", "skip", "replace"});
    visit("limit", limit, "show only the first rows; 0 shows all")
        .at_least(0)
        .alias("num_examples");
  }
};

// A token's text on one line, with all characters printable.
std::string printable(const std::string& piece) {
  const std::string quoted = nlohmann::json(piece).dump();
  return quoted.substr(1, quoted.size() - 2);
}

class TokenView {
 public:
  TokenView(const Context& context, const TokensFlags& flags, const std::filesystem::path& folder)
      : json_(context.common.json),
        flags_(flags),
        template_kwargs_(settings::template_kwargs(flags.template_kwargs, "--template-kwargs")),
        tokenizer_(text::Tokenizer::load(folder)),
        chat_template_(text::ChatTemplate::load(folder, flags.chat_template)),
        encoder_(tokenizer_, chat_template_ ? &*chat_template_ : nullptr,
                 data::Supervision::named(flags.supervise, flags.roles_to_train.names,
                                          flags.train_on_eos)) {}

  void show_text() const {
    if (flags_.render || flags_.add_generation_prompt) {
      data::Sample sample;
      sample.kind = data::Sample::Kind::Chat;
      sample.variables = template_kwargs_;
      sample.messages = ordered_json::array();
      if (!flags_.system_prompt.empty())
        sample.messages.push_back({{"role", "system"}, {"content", flags_.system_prompt}});
      sample.messages.push_back({{"role", "user"}, {"content", flags_.text}});
      return flags_.render ? show_text_of(sample, rendered(sample), false)
                           : show_row(encoded(sample), false);
    }
    data::EncodedRow row;
    row.ids = tokenizer_
                  .encode(flags_.text,
                          flags_.special ? text::SpecialTokens::Add : text::SpecialTokens::Omit)
                  .ids;
    row.supervised.assign(row.ids.size(), 1);
    if (!row.ids.empty()) row.supervised[0] = 0;
    show_row(row, false);
  }

  void show_data(const Log& log) const {
    std::vector<std::string> texts;  // texts of the last row: two for a preference
    data::EncodedRows rows(flags_.data,
                           {.schema = flags_.schema,
                            .system_prompt = flags_.system_prompt,
                            .template_kwargs = template_kwargs_,
                            .ranked_pairs = data::ranked_pairs_named(flags_.ranked_pairs)},
                           data::bad_rows_named(flags_.bad_rows), data::RowUse::Learn,
                           [&](const data::Sample& sample) {
                             if (!flags_.render) return encoded(sample);
                             texts.clear();
                             for (const data::Sample& side : sides_of(sample))
                               texts.push_back(rendered(side));
                             return with_losses(sample);
                           });
    for (int64_t shown = 0; flags_.limit == 0 || shown < flags_.limit; ++shown) {
      const auto next = rows.next();
      if (!next) break;
      if (shown == 0 && !flags_.render) log.info(encoder_.policy(next->sample));
      if (flags_.render)
        show_texts_of(next->sample, texts);
      else
        show_sides(next->row, next->sample.is_judged);
    }
    rows.finish(log);
  }

 private:
  std::string rendered(const data::Sample& sample) const {
    return encoder_.render(sample, flags_.add_generation_prompt);
  }

  static std::vector<data::Sample> sides_of(const data::Sample& sample) {
    return sample.is_pair ? data::sides_of_pair(sample) : std::vector<data::Sample>{sample};
  }

  // The encoded row, for the warnings about what it loses. Empty for a row whose learnt tokens
  // cannot be found: its text is shown all the same.
  data::EncodedRow with_losses(const data::Sample& sample) const {
    try {
      return encoder_.encode(sample);
    } catch (const DataError&) {
      return {};
    }
  }

  data::EncodedRow encoded(const data::Sample& sample) const {
    return flags_.add_generation_prompt ? encoder_.encode_prompt(sample) : encoder_.encode(sample);
  }

  void show_texts_of(const data::Sample& sample, const std::vector<std::string>& texts) const {
    if (!sample.is_pair) return show_text_of(sample, texts.front(), true);
    show_text_of(sample, texts.front(), true, "chosen");
    show_text_of(sample, texts.back(), true, "rejected");
  }

  // Prints a heading where `side` names a side of a preference.
  void show_text_of(const data::Sample& sample, const std::string& text, bool numbered,
                    const char* side = nullptr) const {
    if (!json_) {
      if (side != nullptr) fmt::print("row {}, {}:\n", sample.index + 1, side);
      fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
      return;
    }
    ordered_json line = ordered_json::object();
    if (numbered) line["index"] = sample.index;
    if (side != nullptr) line["side"] = side;
    line["text"] = text;
    fmt::print("{}\n", line.dump());
  }

  // Shows the row; for a preference, the chosen and the rejected side.
  void show_sides(const data::EncodedRow& row, bool is_judged) const {
    if (row.first_of_pair == 0)
      return show_row(row, true, !is_judged ? nullptr : row.is_desirable ? "good" : "bad");
    const std::vector<data::EncodedRow> sides = data::rows_of_pair(row);
    const int64_t shared = data::shared_tokens(sides[0], sides[1]);
    if (!json_)
      fmt::print("row {}: both sides begin with the same {}\n", row.source_index + 1,
                 counted(shared, "token"));
    show_row(sides[0], true, "chosen", shared);
    show_row(sides[1], true, "rejected", shared);
  }

  // `side`: "chosen" or "rejected" for a preference, the judgement for a judged answer, else null.
  // `shared`: number of equal tokens at the start of both sides of a preference; -1 without a pair.
  void show_row(const data::EncodedRow& row, bool numbered, const char* side = nullptr,
                int64_t shared = -1) const {
    std::vector<std::string> pieces;
    for (const int32_t id : row.ids) pieces.push_back(tokenizer_.piece(id));
    if (json_) {
      ordered_json line = ordered_json::object();
      if (numbered) line["index"] = row.source_index;
      if (side != nullptr) {
        line["side"] = side;
        if (shared >= 0) line["shared_tokens"] = shared;
      }
      line["ids"] = row.ids;
      line["pieces"] = pieces;
      line["mask"] = row.supervised;
      if (!row.weights.empty()) line["weights"] = weights_of(row);
      fmt::print("{}\n", line.dump());
      return;
    }
    const auto learnt = std::count(row.supervised.begin(), row.supervised.end(), uint8_t{1});
    if (numbered)
      fmt::print("row {}{}: ", row.source_index + 1,
                 side == nullptr ? "" : fmt::format(", {}", side));
    fmt::print("{}, {} supervised (*)\n", counted(std::ssize(row.ids), "token"), learnt);
    const std::vector<double> weights = weights_of(row);
    for (size_t token = 0; token < row.ids.size(); ++token)
      fmt::print("{} {:>7}  {}{}\n", row.supervised[token] != 0 ? '*' : ' ', row.ids[token],
                 printable(pieces[token]),
                 weights[token] == 0 || weights[token] == 1
                     ? ""
                     : fmt::format("  (weight {:g})", weights[token]));
  }

  // The weight of every token in the loss.
  static std::vector<double> weights_of(const data::EncodedRow& row) {
    std::vector<double> weights(row.supervised.begin(), row.supervised.end());
    // Weights are rounded to six decimals, because fp32 has no exact 0.1.
    for (size_t token = 0; token < row.weights.size(); ++token)
      if (row.supervised[token] != 0)
        weights[token] = std::round(1e6 * static_cast<double>(row.weights[token])) / 1e6;
    return weights;
  }

  bool json_;
  const TokensFlags& flags_;
  ordered_json template_kwargs_;
  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> chat_template_;
  data::SampleEncoder encoder_;
};

// Refuses a flag that has no effect in the chosen view.
void check_flags(const TokensFlags& flags, bool has_text) {
  const bool chat = flags.render || flags.add_generation_prompt;
  if (!has_text)
    config::refuse_without_effect(flags, {"special"},
                                  "with --data: rows are shown as training reads them");
  if (has_text)
    config::refuse_without_effect(flags,
                                  {"supervise", "roles_to_train", "train_on_eos", "schema",
                                   "ranked_pairs", "bad_rows", "limit"},
                                  "with --text");
  if (has_text && chat)
    config::refuse_without_effect(flags, {"special"},
                                  "on a message: the chat template writes BOS and the like");
  if (has_text && !chat)
    config::refuse_without_effect(flags, {"system_prompt", "chat_template", "template_kwargs"},
                                  "on plain text: no chat template is used without --render");
  if (chat)
    config::refuse_without_effect(flags, {"supervise", "roles_to_train", "train_on_eos"},
                                  "with --render or --add-generation-prompt: no mask is shown");
}

int run_tokens(Context& context, const std::vector<std::string>& arguments) {
  TokensFlags flags;
  const std::vector<std::string> rest = context.parse(flags, arguments);
  if (!rest.empty())
    throw ConfigError(fmt::format("`convoy data tokens` takes flags only, found `{}`", rest[0]),
                      {.hint = "convoy data tokens --model D --text T, or --data F"});
  if (flags.model.empty())
    throw ConfigError("`convoy data tokens` needs --model",
                      {.hint = "convoy data tokens --model D --text T"});
  const bool has_text = std::find_if(arguments.begin(), arguments.end(), [](const auto& argument) {
                          return argument == "--text" || argument.starts_with("--text=");
                        }) != arguments.end();
  if (has_text == !flags.data.empty())
    throw ConfigError("`convoy data tokens` needs one of --text and --data",
                      {.hint = "--text TEXT for one text, --data FILE for rows"});
  check_flags(flags, has_text);
  const auto folder = io::ModelFolder::open_without_config(flags.model);
  const TokenView view(context, flags, folder.path());
  if (has_text)
    view.show_text();
  else
    view.show_data(context.log());
  return 0;
}

}  // namespace

Command data_tokens_action() {
  return {.name = "tokens",
          .summary = "Show ids, pieces and the loss mask of text or rows",
          .usage = "convoy data tokens --model D (--text T | --data F) [--render] [--json]",
          .examples =
              "convoy data tokens --model examples/tally-3m --text \"What is 12 + 30?\"\n"
              "convoy data tokens --model examples/tally-3m --data train.jsonl --limit 1\n"
              "convoy data tokens --model examples/tally-3m --data train.jsonl --render --limit 1",
          .flags = {flags_of<TokensFlags>()},
          .first_flags = {"model", "text", "data", "limit", "render", "add-generation-prompt",
                          "supervise", "system-prompt", "schema", "bad-rows"},
          .run = run_tokens};
}

}  // namespace convoy::apps
