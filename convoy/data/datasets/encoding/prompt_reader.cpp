// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/prompt_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/config/flags.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/data/datasets/sources/dataset.h"

namespace convoy::data {

PromptReader::PromptReader(const settings::GenerateFlags& flags, bool has_template,
                           EncodedRows::Encode encode, const Log& log)
    : flags_(flags),
      log_(log),
      variables_(settings::template_kwargs(flags.template_kwargs, "--template-kwargs")),
      encode_(std::move(encode)) {
  const bool is_typed = !flags.prompt.names.empty() || has_lines();
  chats_ = flags.chat == "on" || (flags.chat == "auto" && is_typed && has_template);
  if (is_typed && !chats_)
    config::refuse_without_effect(flags, {"system_prompt", "template_path", "template_kwargs"},
                                  "with prompts that are plain text");
}

void PromptReader::read(const Take& take) const {
  if (chats_ && flags_.chat == "auto")
    log_.info(fmt::format("{} through the model's chat template; --chat off reads {} as {}",
                          has_lines() ? "the lines go" : "--prompt goes",
                          has_lines() ? "them" : "it", has_lines() ? "they are" : "it is"));
  if (!flags_.prompt.names.empty()) return read_typed(take);
  return has_lines() ? read_lines(take) : read_rows(take);
}

// A .txt file has one prompt per line, as a person types them.
bool PromptReader::has_lines() const {
  return std::filesystem::path(flags_.prompts).extension() == ".txt";
}

EncodedRow PromptReader::encode(const Sample& sample) const {
  using Kind = Sample::Kind;
  const bool is_chat = sample.kind == Kind::Chat || sample.kind == Kind::ChatPromptCompletion;
  if (!chats_ || is_chat) return encode_(sample);
  Sample turn{.kind = Kind::Chat,
              .messages = nlohmann::ordered_json::array(),
              .variables = variables_,
              .file = sample.file,
              .line = sample.line,
              .index = sample.index};
  if (!flags_.system_prompt.empty())
    turn.messages.push_back({{"role", "system"}, {"content", flags_.system_prompt}});
  turn.messages.push_back(
      {{"role", "user"}, {"content", sample.kind == Kind::Text ? sample.text : sample.prompt}});
  return encode_(turn);
}

void PromptReader::read_typed(const Take& take) const {
  int64_t index = 0;
  int64_t num_own_bos = 0;
  RowLosses losses;
  for (const std::string& text : flags_.prompt.names) {
    const Sample sample{.kind = Sample::Kind::Text, .text = text, .file = "--prompt"};
    EncodedRow row = encode(sample);
    losses.add(sample, row);
    num_own_bos += row.own_bos ? 1 : 0;
    take(std::move(row), index++);
  }
  for (const std::string& warning : row_warnings(losses, 0, Truncation::KeepStart))
    log_.warning(warning);
  if (num_own_bos > 0 && !chats_) log_.info(own_bos_notice(num_own_bos));
}

namespace {

// True for a conversation with a system turn other than the flag's.
bool has_own_system(const Sample& sample, const std::string& system_prompt) {
  return is_chat(sample) &&
         std::any_of(sample.messages.begin(), sample.messages.end(), [&](const auto& turn) {
           const auto role = turn.value("role", "");
           return (role == "system" || role == "developer") &&
                  turn.value("content", nlohmann::ordered_json()) != system_prompt;
         });
}

}  // namespace

void PromptReader::read_rows(const Take& take) const {
  EncodedRows encoded(flags_.prompts,
                      {.system_prompt = flags_.system_prompt, .template_kwargs = variables_},
                      bad_rows_named(flags_.bad_rows), RowUse::Continue,
                      [&](const Sample& sample) { return encode(sample); });
  int64_t rows = 0;
  RowTally plain;
  RowTally own_system;
  while (std::optional<EncodedSample> next = encoded.next()) {
    ++rows;
    if (!chats_ && !is_chat(next->sample)) plain.add(next->sample);
    if (has_own_system(next->sample, flags_.system_prompt)) own_system.add(next->sample);
    const int64_t index = next->row.source_index;
    take(std::move(next->row), index);
  }
  encoded.finish(log_);
  say_flags_without_effect(plain, own_system, rows);
}

void PromptReader::say_flags_without_effect(const RowTally& plain, const RowTally& own_system,
                                            int64_t rows) const {
  if (plain.rows == rows)
    config::refuse_without_effect(flags_, {"system_prompt", "template_path", "template_kwargs"},
                                  "with rows of plain text: --chat on makes user turns of them");
  const std::string given = flags_for_chats();
  if (plain.rows > 0 && !given.empty())
    log_.warning(
        fmt::format("{} no effect on {} of plain text, {}: --chat on makes a user's turn of each",
                    given, counted(plain.rows, "row"), first_row_of(plain)));
  if (own_system.rows > 0 && !flags_.system_prompt.empty())
    log_.warning(fmt::format(
        "--system-prompt has no effect on {} with a system turn of {} own, {}: that turn counts; "
        "`convoy data system --mode replace` writes another one into the rows",
        counted(own_system.rows, "row"), own_system.rows == 1 ? "its" : "their",
        first_row_of(own_system)));
}

// The given flags that only chats read, as the beginning of a sentence: "--system-prompt has".
std::string PromptReader::flags_for_chats() const {
  std::vector<const char*> given;
  if (!flags_.system_prompt.empty()) given.push_back("--system-prompt");
  if (!flags_.template_path.empty()) given.push_back("--template-path");
  if (!variables_.empty()) given.push_back("--template-kwargs");
  if (given.empty()) return {};
  return fmt::format("{} {}", fmt::join(given, " and "), given.size() == 1 ? "has" : "have");
}

// One prompt per line; skips empty lines.
void PromptReader::read_lines(const Take& take) const {
  const auto lines =
      open_dataset(find_dataset({.name = flags_.prompts, .text_rows = TextRows::Line}));
  int64_t num_lines = 0;
  int64_t rows_own_bos = 0;
  RowLosses losses;
  while (const std::optional<Row> line = lines->next()) {
    const Sample sample{.kind = Sample::Kind::Text,
                        .text = line->value["text"].get<std::string>(),
                        .file = line->file,
                        .line = line->line,
                        .index = line->index};
    EncodedRow row = encode(sample);
    losses.add(sample, row);
    rows_own_bos += row.own_bos;
    ++num_lines;
    take(std::move(row), line->index);
  }
  if (num_lines == 0)
    throw DataError("the file has no prompt", {.file = flags_.prompts, .hint = "write one a line"});
  for (const std::string& warning : row_warnings(losses, 0, Truncation::KeepStart))
    log_.warning(warning);
  if (rows_own_bos > 0 && !chats_) log_.info(own_bos_notice(rows_own_bos));
}

}  // namespace convoy::data
