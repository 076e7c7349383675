// SPDX-License-Identifier: Apache-2.0
//
// Chat templates (Jinja) with the output of Hugging Face's apply_chat_template, rendered by the
// engine in rust/text/src/jinja on the calling thread. A render that exceeds a limit (steps,
// memory, depth, output) fails for that conversation only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/data/text/template_clock.h"

namespace convoy::text {

struct RenderedChat {
  std::string text;
  // The byte ranges [begin, end) of `text` that {% generation %} ... {% endgeneration %} encloses,
  // in order.
  std::vector<std::pair<int64_t, int64_t>> generation_spans;
};

// A conversation that is parsed once for several renders. Use it only on the thread that made it.
// The template must outlive it.
class Conversation {
 public:
  ~Conversation();
  Conversation(Conversation&&) noexcept;

  // Renders the first `num_messages` messages. Throws DataError.
  RenderedChat render(size_t num_messages, bool add_generation_prompt) const;

 private:
  friend class ChatTemplate;
  struct State;
  explicit Conversation(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class ChatTemplate {
 public:
  // Loads the template from chat_template.jinja, from tokenizer_config.json (`chat_template` as a
  // string or a list of named templates), or from `override_path`. Empty when the model has no
  // template. Throws DataError with file and template line. `eos_token`: replaces the model's value
  // of this variable in the template.
  static std::optional<ChatTemplate> load(const std::filesystem::path& model_folder,
                                          const std::filesystem::path& override_path = {},
                                          const std::string& eos_token = {});
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // `messages`: a JSON list of {role, content, ...}. `variables`: null or an object with the other
  // variables of the template: lists of `tools` and `documents`, and any other names, which
  // override the model's named tokens. Throws DataError.
  Conversation read(const nlohmann::ordered_json& messages,
                    const nlohmann::ordered_json& variables) const;
  // Calls read() and renders all messages.
  RenderedChat render(const nlohmann::ordered_json& messages,
                      const nlohmann::ordered_json& variables, bool add_generation_prompt) const;

  bool has_generation_tags() const;
  // True when the source of the template, or of the model's template for tools, contains `words`.
  bool mentions(std::string_view words) const;
  const std::string& text() const;          // source of the template that is used without tools
  const std::string& content_hash() const;  // hash of the sources, without the clock
  // The clock of strftime_now. At first it is stopped at the start of the command.
  TemplateClock& clock();
  const TemplateClock& clock() const;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A value as the filter `tojson` writes it in templates: json.dumps(value, ensure_ascii=False).
// Throws DataError.
std::string json_of_template(const nlohmann::ordered_json& value);

}  // namespace convoy::text
