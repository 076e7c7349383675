// SPDX-License-Identifier: Apache-2.0
//
// Chat templates (Jinja) as Hugging Face's apply_chat_template renders them, with the engine of
// rust/text/src/jinja, on the calling thread. A render that passes a limit (steps, memory, depth,
// output) is an error of that conversation alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace convoy::text {

struct RenderedChat {
  std::string text;
  // Byte ranges [begin, end) of `text` enclosed by {% generation %} ... {% endgeneration %}, in
  // order.
  std::vector<std::pair<int64_t, int64_t>> generation_spans;
};

// A conversation that is rendered several times. Of the thread that made it, and of a template that
// outlives it.
class Conversation {
 public:
  ~Conversation();
  Conversation(Conversation&&) noexcept;

  // Its first messages. Throws DataError.
  RenderedChat render(size_t num_messages, bool add_generation_prompt) const;

 private:
  friend class ChatTemplate;
  struct State;
  explicit Conversation(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class ChatTemplate {
 public:
  // From chat_template.jinja, or tokenizer_config.json (`chat_template` as a string or a list of
  // named templates), or `override_path`. Empty when the model has none. Throws DataError with file
  // and template line.
  static std::optional<ChatTemplate> load(const std::filesystem::path& model_folder,
                                          const std::filesystem::path& override_path = {});
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // `messages`: a JSON list of {role, content, ...}; `variables`: null or an object of what else
  // the template reads: lists of `tools` and `documents`, and names of any kind, which win over the
  // model's named tokens. Throws DataError.
  Conversation read(const nlohmann::ordered_json& messages,
                    const nlohmann::ordered_json& variables) const;
  // read() and the render of all.
  RenderedChat render(const nlohmann::ordered_json& messages,
                      const nlohmann::ordered_json& variables, bool add_generation_prompt) const;

  bool has_generation_tags() const;
  const std::string& content_hash() const;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace convoy::text
