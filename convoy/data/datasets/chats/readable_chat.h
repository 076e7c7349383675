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
  // Allows two losses: an assistant's text beside its tool calls, and arguments that are not JSON.
  // For the history of a chat, which the client repeats in each request.
  AllowInHistory,
};

// Keeps the given form when the template writes every text in that form. Otherwise converts the
// contents of as few roles as possible: a list of text parts becomes one string, joined by line
// breaks; a string becomes a list of one part. Arguments of calls get the form that the template
// reads (call_arguments.h). A turn that has only calls is tried with the content null, without a
// content, and with the content "". The first of these that the template renders, and does not
// print as a word, is used. Calls without a type get `function` when the template fails without a
// type. Throws DataError when the template writes no form completely, when the template itself
// fails, and when the role of a message is the only reason why the template refuses the
// conversation.
ReadableChat readable_chat(const text::ChatTemplate& chat_template,
                           const nlohmann::ordered_json& messages,
                           const nlohmann::ordered_json& variables, bool add_generation_prompt,
                           Losses losses = Losses::Refuse);

// Like readable_chat(), for a conversation from a row or a client, whose turns may have weights.
// `developer` becomes `system` when the template does not know `developer`. Throws DataError also
// for a role that the template does not write.
ReadableChat chat_of_row(const text::ChatTemplate& chat_template,
                         const nlohmann::ordered_json& messages,
                         const nlohmann::ordered_json& variables, bool add_generation_prompt,
                         Losses losses = Losses::Refuse);

}  // namespace convoy::data
