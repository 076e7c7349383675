// SPDX-License-Identifier: Apache-2.0
//
// Finds the places where a chat template writes the texts of messages. The conversation is rendered
// once more with marks around all texts. If the marks change what the template does, each text is
// marked alone.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::data {

// The place in the rendered conversation where a text begins or ends, without its surrounding white
// space.
struct TextMark {
  size_t message = 0;
  size_t text = 0;      // number of the text in the conversation, from 0
  size_t position = 0;  // byte offset
  bool opens = true;    // true: the text begins here; false: it ends here

  bool operator==(const TextMark&) const = default;
};

struct MessageTexts {
  std::vector<TextMark> marks;  // a template may drop one end of a text, and write a text twice
  // The first message with a text that the template does not write.
  std::optional<size_t> unwritten = {};
  // The first message whose parts are written with their keys, because the template prints the list
  // as data.
  std::optional<size_t> printed = {};
  // True when the marks change nothing else in the output, so that all places are known.
  bool exact = true;
};

// Which texts the template writes only in part. Changes of white space and case are ignored.
struct CutTexts {
  bool thoughts = false;  // text before `</think>`
  bool others = false;
};
CutTexts find_cut_texts(const nlohmann::ordered_json& messages, std::string_view rendered);

using RenderTexts = std::function<std::string(const nlohmann::ordered_json& messages)>;

// Finds the texts of `messages` in `full`, their rendering. A content is a text, or a list of parts
// with texts. A text of white space only does not count.
MessageTexts find_message_texts(const RenderTexts& render, const nlohmann::ordered_json& messages,
                                const std::string& full);

// Where the content of a message begins and ends in the rendered conversation.
struct ContentPlace {
  std::optional<size_t> begin;
  std::optional<size_t> end;
};

// The places of the contents, by message. Empty when a place is unknown, or a text is written
// twice.
std::optional<std::vector<ContentPlace>> content_places(const MessageTexts& texts,
                                                        size_t num_messages);

}  // namespace convoy::data
