// SPDX-License-Identifier: Apache-2.0
//
// A conversation in the form that a chat template reads, and as the template renders it. Templates
// differ in whether a content is a string or a list of parts, and whether the arguments of a tool
// call are a text or an object. A row in another form is converted; a row of which the template
// does not write all texts is refused.
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
  // For the history of a chat, which a client repeats: the text of an assistant beside its tool
  // calls, and arguments that are no JSON.
  AllowInHistory,
};

// The form as given when the template writes every text of it. Otherwise, by role and with as few
// conversions as possible: lists of text parts as strings, joined by line breaks; strings as lists
// of one part. Arguments of calls are in the form that the template reads (call_arguments.h); a
// turn of calls alone has a content of null, none, or "", the first with which it is rendered and
// that is not printed. Calls without a type get `function` where the template fails without it.
// Throws DataError when no form is written whole, the template's own errors, and for a role that
// alone makes the template refuse the conversation.
ReadableChat readable_chat(const text::ChatTemplate& chat_template,
                           const nlohmann::ordered_json& messages,
                           const nlohmann::ordered_json& variables, bool add_generation_prompt,
                           Losses losses = Losses::Refuse);

// The same for a conversation as a row or a client gives it: turns may have weights, `developer` is
// `system` where the template does not name it, and a role that it does not write is refused.
ReadableChat chat_of_row(const text::ChatTemplate& chat_template,
                         const nlohmann::ordered_json& messages,
                         const nlohmann::ordered_json& variables, bool add_generation_prompt,
                         Losses losses = Losses::Refuse);

}  // namespace convoy::data
