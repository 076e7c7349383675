// SPDX-License-Identifier: Apache-2.0
//
// The Modelfile from which `ollama create` makes a model of a GGUF file: where turns begin and end,
// what ends an answer, how tokens are drawn.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/model_folder.h"
#include "convoy/data/text/chat_template.h"

namespace convoy::recipes {

struct Modelfile {
  std::string text;
  std::vector<std::string> notices;  // differences from the chat template
};

// `chat_template`: null = none. `ends`: ids at which texts end, before the ids that the folder's
// files name. `gguf_name`: name of the GGUF file beside the Modelfile. Throws DataError.
Modelfile make_modelfile(const io::ModelFolder& folder, const text::ChatTemplate* chat_template,
                         const std::vector<int32_t>& ends, const std::string& gguf_name);

// The texts around turns, taken from texts that a chat template renders.
struct TurnTexts {
  std::string start;                        // before the first turn, of chats without a system turn
  std::string system_before, system_after;  // empty: the template takes no system turns
  std::string user_before, user_after;
  std::string assistant_before, assistant_after;
  std::string prompt;  // after the last turn, where an answer begins

  // Returns a template in the language of Ollama (Go's text/template).
  std::string go_template() const;
  // Renders as that template does.
  std::string render(const nlohmann::ordered_json& messages) const;
};

// `bos`: the text that the tokenizer itself puts before texts; it is not part of a template.
// Returns nothing when the template's texts do not have this form.
std::optional<TurnTexts> turn_texts(const text::ChatTemplate& chat_template,
                                    const std::string& bos);

}  // namespace convoy::recipes
