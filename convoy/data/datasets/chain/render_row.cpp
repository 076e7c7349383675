// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/render_row.h"

#include "convoy/core/base/files.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/data/datasets/chain/row_shape.h"
#include "convoy/data/datasets/chats/readable_chat.h"
#include "convoy/data/datasets/masks/turn_weights.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

Json conversation_with_answer(const Sample& sample) {
  if (sample.is_pair)
    throw DataError("a preference has two completions, and a rendered row has one",
                    {.hint = "`convoy data tokens --schema preference` shows both"});
  Json messages = sample.messages;
  if (sample.kind == Sample::Kind::ChatPromptCompletion)
    for (const Json& message : sample.completion_messages) messages.push_back(message);
  const bool is_chat =
      sample.kind == Sample::Kind::Chat || sample.kind == Sample::Kind::ChatPromptCompletion;
  if (is_chat && messages.size() > 1 && messages.back()["role"] == "assistant") return messages;
  throw DataError("wanted a conversation that ends with an assistant's turn",
                  {.hint = "add the answer, or leave the row out"});
}

std::string trimmed_text(const std::string& text) { return std::string(trimmed(text, " \t\r\n")); }

// Calls `work` and adds the row's place to an error that it throws.
template <class Work>
auto in_row(const Sample& sample, const Work& work) {
  try {
    return work();
  } catch (const DataError& error) {
    ErrorLocation location{.file = sample.file, .line = sample.line, .hint = error.location().hint};
    throw DataError(fmt::format("row {}: {}", sample.index + 1, error.what()), location);
  }
}

}  // namespace

RowRenderer::RowRenderer(const std::filesystem::path& model_folder,
                         const std::filesystem::path& template_path)
    : template_(text::ChatTemplate::load(model_folder, template_path)) {
  if (!template_)
    throw DataError("the model has no chat template",
                    {.file = model_folder.string(), .hint = "name one with --template"});
  if (!model_folder.empty()) {
    const text::Tokenizer tokenizer = text::Tokenizer::load(model_folder);
    if (const auto eos = tokenizer.eos_id()) end_mark_ = tokenizer.decode({*eos}, false);
  }
  if (!template_path.empty())
    reads_pairs_ = read_file(template_path).find("messages") == std::string::npos;
}

Json RowRenderer::input_and_target(const Sample& sample) const {
  return in_row(sample, [&]() -> Json {
    Json messages = conversation_with_answer(sample);
    if (reads_pairs_)
      return {{"input", render_pair(messages)},
              {"target", trimmed_text(content_text(messages.back()))}};
    if (turn_weights(messages, [](size_t) { return true; }).back() != 1)
      throw DataError("the last answer has a weight in the loss, which a rendered row cannot say",
                      {.hint = "leave the row out, or remove the weight"});
    const ReadableChat chat = chat_of_row(*template_, messages, sample.variables, false);
    const std::string& whole = chat.rendered.text;
    messages = chat.messages;
    messages.erase(messages.size() - 1);
    const std::string input = template_->render(messages, sample.variables, true).text;
    if (!whole.starts_with(input))
      throw DataError(
          "the template writes the turns before the last answer differently with it",
          {.hint = "take a plain template of `system` and `user`, or write other rows"});
    std::string target = whole.substr(input.size());
    while (target.ends_with('\n')) target.pop_back();
    if (!end_mark_.empty() && target.ends_with(end_mark_))
      target.resize(target.size() - end_mark_.size());
    return {{"input", input}, {"target", target}};
  });
}

std::string RowRenderer::render_pair(const Json& messages) const {
  const bool has_system = messages[0]["role"] == "system";
  const size_t user = has_system ? 1 : 0;
  if (messages.size() != user + 2 || messages[user]["role"] != "user")
    throw DataError(
        fmt::format("a template of `system` and `user` holds one turn of the user, found {} turns",
                    messages.size()),
        {.hint = "take a chat template, which writes any number of turns"});
  const Json variables = {
      {"system", has_system ? trimmed_text(content_text(messages[0])) : std::string()},
      {"user", trimmed_text(content_text(messages[user]))}};
  return trimmed_text(template_->render(messages, variables, false).text);
}

Json RowRenderer::whole_text(const Sample& sample) const {
  return in_row(sample, [&]() -> Json {
    return {
        {"text", chat_of_row(*template_, conversation_with_answer(sample), sample.variables, false)
                     .rendered.text}};
  });
}

}  // namespace convoy::data
