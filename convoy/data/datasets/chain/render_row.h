// SPDX-License-Identifier: Apache-2.0
//
// Conversations as texts: the output of a chat template, cut at the start of the last answer.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/data/datasets/schemas/schema.h"
#include "convoy/data/text/chat_template.h"

namespace convoy::data {

// Thread-safe.
class RowRenderer {
 public:
  // Loads the template of a model folder, or the template at `template_path` in its place. A
  // template that never uses `messages` has SFT-Play's form: it gets `system` and `user` and
  // renders only the input. Throws DataError.
  RowRenderer(const std::filesystem::path& model_folder,
              const std::filesystem::path& template_path);

  // Returns {"input": everything before the last answer, "target": the answer as the template
  // writes it, without its last end mark, which training adds}. Throws DataError for a sample that
  // is not a conversation ending with an answer.
  nlohmann::ordered_json input_and_target(const Sample& sample) const;
  // Returns {"text": the whole conversation}.
  nlohmann::ordered_json whole_text(const Sample& sample) const;

 private:
  std::string render_pair(const nlohmann::ordered_json& messages) const;

  std::optional<text::ChatTemplate> template_;
  std::string end_mark_;  // end mark of the tokenizer; empty without a model
  bool reads_pairs_ = false;
};

}  // namespace convoy::data
