// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/data/row_tokens.h"

#include <optional>
#include <utility>

#include "convoy/core/io/model_folder.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::apps {

// The encoder refers to the other members.
struct RowTokens::State {
  State(const std::filesystem::path& folder, const std::string& template_path,
        data::Supervision supervision)
      : tokenizer(text::Tokenizer::load(folder)),
        chat_template(text::ChatTemplate::load(folder, template_path)),
        encoder(tokenizer, chat_template ? &*chat_template : nullptr, std::move(supervision)) {}

  text::Tokenizer tokenizer;
  std::optional<text::ChatTemplate> chat_template;
  data::SampleEncoder encoder;
};

RowTokens::RowTokens() = default;
RowTokens::RowTokens(const std::filesystem::path& model_folder, const std::string& template_path,
                     data::Supervision supervision)
    : state_(std::make_unique<State>(model_folder, template_path, std::move(supervision))) {}
RowTokens::~RowTokens() = default;
RowTokens::RowTokens(RowTokens&&) noexcept = default;

const data::SampleEncoder* RowTokens::encoder() const {
  return state_ ? &state_->encoder : nullptr;
}
const text::Tokenizer& RowTokens::tokenizer() const { return state_->tokenizer; }
const text::ChatTemplate* RowTokens::chat_template() const {
  return state_ && state_->chat_template ? &*state_->chat_template : nullptr;
}

RowTokens row_tokens_of(const settings::DataTokenFlags& flags, data::Supervision supervision) {
  if (flags.model.empty()) return RowTokens();
  return RowTokens(io::ModelFolder::open_without_config(flags.model).path(), flags.template_path,
                   std::move(supervision));
}

}  // namespace convoy::apps
