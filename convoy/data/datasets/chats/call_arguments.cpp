// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chats/call_arguments.h"

#include <algorithm>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/data/datasets/formats/row_formats.h"
#include "convoy/data/text/chat_template.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kArgumentBlanks = " \t\r\n";
// Arguments that replace the row's own in a test rendering: one name and one word, of letters that
// no notation escapes.
constexpr const char* kArgumentName = "convoyname";
constexpr const char* kArgumentWord = "convoyword";

// Calls `visit` with the arguments of each tool call of a message; the call is
// {"function": {"arguments": ...}} or {"arguments": ...}. Stops when `visit` returns true.
template <class Message, class Visit>
bool visit_arguments(Message& message, const Visit& visit) {
  if (!message.is_object()) return false;
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return false;
  for (auto& call : *calls) {
    if (!call.is_object()) continue;
    const auto function = call.find("function");
    auto& named = function != call.end() && function->is_object() ? *function : call;
    const auto arguments = named.find("arguments");
    if (arguments != named.end() && visit(*arguments)) return true;
  }
  return false;
}

bool has_arguments(const ordered_json& messages) {
  return std::any_of(messages.begin(), messages.end(), [](const ordered_json& message) {
    return visit_arguments(message, [](const ordered_json&) { return true; });
  });
}

std::string_view bare_text(const ordered_json& text) {
  return trimmed(text.get_ref<const std::string&>(), kArgumentBlanks);
}

// JSON may write letters beyond ASCII as they are or as escapes.
bool holds_quoted(const std::string& rendered, const ordered_json& text) {
  return rendered.find(text.dump()) != std::string::npos ||
         rendered.find(text.dump(-1, ' ', true)) != std::string::npos;
}

enum class Notation {
  None,     // the arguments are not written, or the template fails
  Object,   // as a JSON object
  Quoted,   // as a JSON string that holds a JSON object
  Printed,  // as Python prints an object
  Own,      // in another way
};

// How the template writes test arguments. `arguments` has one name and one word.
Notation notation_of(const RenderTexts& render, const ordered_json& messages,
                     const ordered_json& arguments) {
  ordered_json probed = messages;
  for (ordered_json& message : probed)
    visit_arguments(message, [&](ordered_json& found) {
      found = arguments;
      return false;
    });
  std::string text;
  try {
    text = render(probed);
  } catch (const DataError&) {
    return Notation::None;
  }
  std::erase_if(text,
                [](char letter) { return kArgumentBlanks.find(letter) != std::string_view::npos; });
  const auto holds = [&](const std::string& words) { return text.find(words) != text.npos; };
  const auto pair_in = [](std::string_view quote) {
    return fmt::format("{0}{1}{0}:{0}{2}{0}", quote, kArgumentName, kArgumentWord);
  };
  if (holds(pair_in("'"))) return Notation::Printed;
  if (holds(pair_in("\\\""))) return Notation::Quoted;
  if (holds(pair_in("\""))) return Notation::Object;
  return holds(kArgumentName) && holds(kArgumentWord) ? Notation::Own : Notation::None;
}

// The object that a text holds; an empty object for a text without content; nothing for any other
// text.
std::optional<ordered_json> object_in(const ordered_json& text) {
  const std::string_view bare = bare_text(text);
  if (bare.empty() || bare == "null") return ordered_json::object();
  try {
    ordered_json value = parse_json_row(bare, {});
    if (value.is_object()) return value;
  } catch (const DataError&) {
    return std::nullopt;  // the check for lost arguments will report the message
  }
  return std::nullopt;
}

// True for a text that is JSON, or was meant to be.
bool is_like_json(const ordered_json& text) {
  const std::string_view bare = bare_text(text);
  return (!bare.empty() && std::string_view("{[\"").find(bare.front()) != std::string_view::npos) ||
         ordered_json::accept(bare);
}

// The notation in which a template writes arguments, for each of their two forms.
struct Taken {
  Notation of_objects;
  Notation of_texts;

  bool objects() const { return of_objects != Notation::None && of_objects != Notation::Printed; }
  bool texts() const { return of_texts == Notation::Object; }
  bool prefers_objects() const { return of_objects == Notation::Own || !texts(); }
};

// True for arguments that are neither an object, nor a text that holds one, nor a text in the way
// of a template that has its own.
bool has_wrong_form(const ordered_json& arguments, const Taken& taken) {
  if (!arguments.is_string()) return !arguments.is_object();
  return !object_in(arguments) && (taken.of_objects != Notation::Own || is_like_json(arguments));
}

void make_readable(ordered_json& arguments, const Taken& taken) {
  if (arguments.is_string()) {
    const auto found = object_in(arguments);
    if (found && (taken.prefers_objects() || found->empty())) arguments = *found;
  }
  if (!arguments.is_string() && !taken.objects() && taken.texts())
    arguments = text::json_of_template(arguments);
}

}  // namespace

ReadableArguments with_readable_arguments(const RenderTexts& render, const ordered_json& messages) {
  ReadableArguments readable{.messages = messages};
  if (!has_arguments(messages)) return readable;
  const ordered_json object = {{kArgumentName, kArgumentWord}};
  const Taken taken{
      .of_objects = notation_of(render, messages, object),
      .of_texts = notation_of(render, messages, text::json_of_template(object)),
  };
  for (size_t index = 0; index < messages.size(); ++index)
    visit_arguments(readable.messages[index], [&](ordered_json& arguments) {
      if (has_wrong_form(arguments, taken) && !readable.unreadable) readable.unreadable = index;
      make_readable(arguments, taken);
      return false;
    });
  return readable;
}

std::optional<size_t> message_with_lost_arguments(const ordered_json& messages,
                                                  const std::string& rendered) {
  for (size_t index = 0; index < messages.size(); ++index) {
    const bool is_lost = visit_arguments(messages[index], [&](const ordered_json& arguments) {
      return arguments.is_string() && (rendered.find(bare_text(arguments)) == std::string::npos ||
                                       holds_quoted(rendered, arguments));
    });
    if (is_lost) return index;
  }
  return std::nullopt;
}

std::vector<std::string> argument_texts(const ordered_json& message) {
  std::vector<std::string> texts;
  visit_arguments(message, [&](const ordered_json& arguments) {
    if (arguments.is_string()) texts.push_back(arguments.get<std::string>());
    return false;
  });
  return texts;
}

}  // namespace convoy::data
