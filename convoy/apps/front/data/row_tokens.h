// SPDX-License-Identifier: Apache-2.0
//
// Tokens of rows, for the sub-commands of `convoy data` that count them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "convoy/apps/front/data/data_rows.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/data/datasets/encoding/encode_sample.h"

namespace convoy::apps {

// Tokenizer and template of a model, or empty.
class RowTokens {
 public:
  RowTokens();
  // Throws ConfigError, DataError.
  RowTokens(const std::filesystem::path& model_folder, const std::string& template_path,
            data::Supervision supervision);
  ~RowTokens();
  RowTokens(RowTokens&&) noexcept;

  const data::SampleEncoder* encoder() const;  // null: there is no model
  const text::Tokenizer& tokenizer() const;
  const text::ChatTemplate* chat_template() const;  // null: there is none

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Made from --model; empty without it.
RowTokens row_tokens_of(const settings::DataTokenFlags& flags, data::Supervision supervision);

// The schema that `flags` describe, with the flags that the chat template reads. Throws ConfigError
// for flags that have no effect without --model.
template <class Flags>
data::SchemaConfig schema_with_template(const Flags& flags) {
  if (flags.model.empty())
    config::refuse_without_effect(
        flags, {"template_path", "template_kwargs", "system_prompt", "supervise", "max_seq_len"},
        "without --model");
  data::SchemaConfig schema = schema_of(flags);
  schema.system_prompt = flags.system_prompt;
  schema.ranked_pairs = data::ranked_pairs_named(flags.ranked_pairs);
  schema.template_kwargs = settings::template_kwargs(flags.template_kwargs, "--template-kwargs");
  return schema;
}

}  // namespace convoy::apps
