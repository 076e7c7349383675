// SPDX-License-Identifier: Apache-2.0
//
// Locates one turn of a conversation by rendering parts of the conversation: the part before the
// turn, and the turn with a letter added to its content. Every call costs a few renders of a
// prefix.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

namespace convoy::data {

// The byte range of a turn in the rendered text.
struct TurnSpan {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t message = 0;     // index of the message; -1: unknown, because of tags
  bool is_tagged = false;  // true: the template marks it with {% generation %}

  bool operator==(const TurnSpan&) const = default;
};

using RenderMessages =
    std::function<std::string(const nlohmann::ordered_json& messages, bool add_generation_prompt)>;
using RenderFirst = std::function<std::string(size_t num_messages, bool add_generation_prompt)>;

struct ChatRenders {
  RenderMessages other;  // renders any conversation
  RenderFirst first;     // renders the first messages of this conversation
};

// Throws DataError: the turn cannot be distinguished from the rest of the text.
[[noreturn]] void refuse_turn(size_t index);

class TurnFinder {
 public:
  // All arguments must outlive the finder. `full`: the rendered conversation.
  TurnFinder(const ChatRenders& renders, const nlohmann::ordered_json& messages,
             const std::string& full)
      : renders_(renders), messages_(messages), full_(full) {}

  // Finds the turn of an assistant, beginning behind its header. Throws DataError when it cannot be
  // located with certainty.
  TurnSpan find(size_t index) const;

  // Finds the turn of another role: its content and its closing. Empty when the template does not
  // write the content. Throws DataError as find() does, and for a content that is not a text.
  std::optional<TurnSpan> find_content(size_t index) const;

  // The text with which the template opens an assistant turn, which is the generation prompt.
  std::optional<std::string> turn_header(size_t index) const;

  // The first messages as the template writes them when an assistant turn follows. Empty when this
  // text cannot be determined.
  std::optional<std::string> first_followed(size_t num_messages) const;

 private:
  std::optional<TurnSpan> by_prefix(size_t index) const;
  std::optional<TurnSpan> by_probe(size_t index) const;
  std::optional<TurnSpan> by_closing(size_t index) const;
  size_t closing_length(size_t index, size_t content_end, size_t end) const;
  std::optional<std::string> without_prompt(std::string text, size_t index) const;
  std::string render_with_letter(size_t count, size_t index, size_t at,
                                 bool add_generation_prompt = false) const;
  std::optional<std::string> render_probed(size_t count, size_t index, bool at_end) const;
  std::optional<size_t> begin_by_prompt(size_t index) const;
  std::optional<size_t> probed_begin(size_t index) const;

  const ChatRenders& renders_;
  const nlohmann::ordered_json& messages_;
  const std::string& full_;
};

}  // namespace convoy::data
