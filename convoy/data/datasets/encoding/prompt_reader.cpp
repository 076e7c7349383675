// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/prompt_reader.h"

#include <filesystem>

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
  for (const std::string& text : flags_.prompt.names) {
    EncodedRow row = encode({.kind = Sample::Kind::Text, .text = text, .file = "--prompt"});
    num_own_bos += row.own_bos ? 1 : 0;
    take(std::move(row), index++);
  }
  if (num_own_bos > 0 && !chats_) log_.info(own_bos_notice(num_own_bos));
}

void PromptReader::read_rows(const Take& take) const {
  EncodedRows encoded(flags_.prompts,
                      {.system_prompt = flags_.system_prompt, .template_kwargs = variables_},
                      bad_rows_named(flags_.bad_rows), RowUse::Continue,
                      [&](const Sample& sample) { return encode(sample); });
  while (std::optional<EncodedSample> next = encoded.next()) {
    const int64_t index = next->row.source_index;
    take(std::move(next->row), index);
  }
  encoded.finish(log_);
}

// One prompt per line; skips empty lines.
void PromptReader::read_lines(const Take& take) const {
  const auto lines =
      open_dataset(find_dataset({.name = flags_.prompts, .text_rows = TextRows::Line}));
  int64_t num_lines = 0;
  int64_t rows_own_bos = 0;
  while (const std::optional<Row> line = lines->next()) {
    EncodedRow row = encode({.kind = Sample::Kind::Text,
                             .text = line->value["text"].get<std::string>(),
                             .file = line->file,
                             .line = line->line,
                             .index = line->index});
    rows_own_bos += row.own_bos;
    ++num_lines;
    take(std::move(row), line->index);
  }
  if (num_lines == 0)
    throw DataError("the file has no prompt", {.file = flags_.prompts, .hint = "write one a line"});
  if (rows_own_bos > 0 && !chats_) log_.info(own_bos_notice(rows_own_bos));
}

}  // namespace convoy::data
