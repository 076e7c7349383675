// SPDX-License-Identifier: Apache-2.0
//
// Where a chat template writes the texts of messages. The conversation is rendered once more with
// marks around all texts, and text by text where the marks change what the template does.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::data {

// One end of a text, without the white space around it, as a place in the rendered conversation.
struct TextMark {
  size_t message = 0;
  size_t text = 0;      // number of the text in the conversation
  size_t position = 0;  // byte
  bool opens = true;    // the text begins here; else it ends here

  bool operator==(const TextMark&) const = default;
};

struct MessageTexts {
  std::vector<TextMark> marks;  // a template may drop one end of a text, and write a text twice
  // The first message with a text of which nothing is written.
  std::optional<size_t> unwritten = {};
  // The first message whose parts are written with their keys: the template prints a list as data.
  std::optional<size_t> printed = {};
  // Marks change nothing else, so all places are known.
  bool exact = true;
};

// Texts of which the template leaves out a part, whatever it does with white space and case.
struct CutTexts {
  bool thoughts = false;  // what stands before `</think>`
  bool others = false;
};
CutTexts find_cut_texts(const nlohmann::ordered_json& messages, std::string_view rendered);

using RenderTexts = std::function<std::string(const nlohmann::ordered_json& messages)>;

// `full`: `messages` as rendered. A content is a text, or a list of parts with texts; a text that
// is only white space is none.
MessageTexts find_message_texts(const RenderTexts& render, const nlohmann::ordered_json& messages,
                                const std::string& full);

// The content of a message in the rendered conversation.
struct ContentPlace {
  std::optional<size_t> begin;
  std::optional<size_t> end;
};

// By message. Empty when a place is unknown, or a text is written twice.
std::optional<std::vector<ContentPlace>> content_places(const MessageTexts& texts,
                                                        size_t num_messages);

}  // namespace convoy::data
