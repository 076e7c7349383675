// SPDX-License-Identifier: Apache-2.0
//
// A conversation in the form that a chat template reads, and as the template renders it. Templates
// differ in whether a content is a string or a list of parts, and whether the arguments of a tool
// call are a text or an object. A row in another form is converted. A row is refused when the
// template leaves out one of its texts.
#pragma once

#include <nlohmann/json.hpp>

#include "convoy/data/datasets/chats/message_texts.h"
#include "convoy/data/text/chat_template.h"

namespace convoy::data {

struct ReadableChat {
  nlohmann::ordered_json messages;
  text::Conversation conversation;  // made from `messages`
  text::RenderedChat rendered;      // the whole conversation as text
  MessageTexts texts;               // in `rendered`
};

enum class Losses {
  Refuse,
  // Two texts may be left out: an assistant's text beside its tool calls, and arguments that are
  // not JSON. For the history of a chat, which the client repeats in each request.
  AllowInHistory,
};

// Keeps the given form when the template writes every text of it. Otherwise converts the contents
// of as few roles as possible: a list of text parts becomes one string, joined by line breaks; a
// string becomes a list of one part. Arguments of calls take the form that the template reads
// (call_arguments.h). For a turn that has only calls, the content null, no content, and "" are
// tried in this order: the first that the template renders without printing it is taken. Calls
// without a type get `function` when the template fails without one. Throws DataError when the
// template writes no form whole, when the template itself fails, and for a role that alone makes
// the template refuse the conversation.
ReadableChat readable_chat(const text::ChatTemplate& chat_template,
                           const nlohmann::ordered_json& messages,
                           const nlohmann::ordered_json& variables, bool add_generation_prompt,
                           Losses losses = Losses::Refuse);

// Like readable_chat(), for a conversation from a row or a client. Turns may have weights.
// `developer` becomes `system` when the template does not know `developer`. A role that the
// template does not write is refused.
ReadableChat chat_of_row(const text::ChatTemplate& chat_template,
                         const nlohmann::ordered_json& messages,
                         const nlohmann::ordered_json& variables, bool add_generation_prompt,
                         Losses losses = Losses::Refuse);

}  // namespace convoy::data
