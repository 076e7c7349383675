// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chats/readable_chat.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/chats/call_arguments.h"
#include "convoy/data/datasets/chats/chat_roles.h"
#include "convoy/data/datasets/formats/row_formats.h"
#include "convoy/data/datasets/masks/turn_weights.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

enum class ContentForm { Given, Joined, Wrapped };
// How to pass the content of an assistant turn that has calls and no text.
enum class NoContent { Null, Absent, Empty };

struct Form {
  std::map<std::string, ContentForm> contents;  // form of the contents by role
  NoContent none = NoContent::Null;

  auto cost() const {
    const auto count = [&](ContentForm form) {
      return std::ranges::count_if(contents, [&](const auto& of) { return of.second == form; });
    };
    return std::tuple(count(ContentForm::Wrapped), count(ContentForm::Joined), none);
  }
  bool wraps() const { return std::get<0>(cost()) > 0; }
};

bool carries_content(const ordered_json& message) {
  return message.is_object() && message.contains("content");
}

bool has_tool_calls(const ordered_json& message) {
  return message.contains("tool_calls") && !message["tool_calls"].empty();
}

bool lacks_content(const ordered_json& message) {
  return message.is_object() && (!message.contains("content") || message["content"].is_null());
}

bool is_bare_call(const ordered_json& message) {
  return lacks_content(message) && has_tool_calls(message);
}

bool are_texts(const ordered_json& parts) {
  return std::ranges::all_of(parts, [](const ordered_json& part) {
    return part.is_object() && part.contains("text") && part["text"].is_string();
  });
}

ordered_json joined_parts(const ordered_json& parts) {
  std::string text;
  for (const ordered_json& part : parts)
    text += (text.empty() ? "" : "\n") + part["text"].get<std::string>();
  return text;
}

bool can_be_joined(const ordered_json& message) {
  return carries_content(message) && message["content"].is_array() && are_texts(message["content"]);
}

bool can_be_wrapped(const ordered_json& message) {
  return carries_content(message) && message["content"].is_string();
}

void set_no_content(ordered_json& message, NoContent form) {
  if (!is_bare_call(message) || form == NoContent::Absent) {
    message.erase("content");
    return;
  }
  message["content"] = form == NoContent::Null ? ordered_json() : ordered_json("");
}

ordered_json in_form(const ordered_json& messages, const Form& form) {
  ordered_json formed = messages;
  for (ordered_json& message : formed) {
    if (lacks_content(message)) set_no_content(message, form.none);
    const auto role =
        message.is_object() ? form.contents.find(role_of(message)) : form.contents.end();
    if (role == form.contents.end()) continue;
    if (role->second == ContentForm::Joined && can_be_joined(message))
      message["content"] = joined_parts(message["content"]);
    if (role->second == ContentForm::Wrapped && can_be_wrapped(message))
      message["content"] = ordered_json::array({{{"type", "text"}, {"text", message["content"]}}});
  }
  return formed;
}

// All forms except the given one, the cheapest first.
std::vector<Form> other_forms(const ordered_json& messages) {
  std::map<std::string, std::vector<ContentForm>> choices;
  for (const ordered_json& message : messages) {
    if (!carries_content(message)) continue;
    std::vector<ContentForm>& of_role = choices[role_of(message)];
    if (of_role.empty()) of_role.push_back(ContentForm::Given);
    const auto add = [&](ContentForm form, bool is_possible) {
      if (is_possible && std::ranges::find(of_role, form) == of_role.end()) of_role.push_back(form);
    };
    add(ContentForm::Joined, can_be_joined(message));
    add(ContentForm::Wrapped, can_be_wrapped(message));
  }
  std::vector<Form> forms(1);
  const auto multiply = [&](const auto& variants) {
    std::vector<Form> more;
    for (const Form& form : forms)
      for (const auto& variant : variants) more.push_back(variant(form));
    forms = std::move(more);
  };
  for (const auto& [role, of_role] : choices) {
    std::vector<std::function<Form(Form)>> variants;
    for (const ContentForm content : of_role)
      variants.emplace_back([&role = role, content](Form form) {
        form.contents[role] = content;
        return form;
      });
    multiply(variants);
  }
  if (std::ranges::any_of(messages, is_bare_call)) {
    std::vector<std::function<Form(Form)>> variants;
    for (const NoContent none : {NoContent::Null, NoContent::Absent, NoContent::Empty})
      variants.emplace_back([none](Form form) {
        form.none = none;
        return form;
      });
    multiply(variants);
  }
  std::ranges::stable_sort(forms, {}, &Form::cost);
  forms.erase(forms.begin());
  return forms;
}

std::string message_place(const ordered_json& messages, size_t message) {
  return fmt::format("message {} ({})", message, role_of(messages[message]));
}

std::string content_words(const ordered_json& message) {
  if (lacks_content(message)) return "null";
  return message["content"].is_array() ? "a list of parts" : "a text";
}

ordered_json with_call_types(const ordered_json& messages) {
  ordered_json typed = messages;
  for (ordered_json& message : typed) {
    if (!message.is_object() || !has_tool_calls(message)) continue;
    for (ordered_json& call : message["tool_calls"])
      if (call.is_object() && call.contains("function") && !call.contains("type"))
        call["type"] = "function";
  }
  return typed;
}

constexpr const char* kWriteAnObject = "write them as a JSON object, or as a text that holds one";

// The hint for a message in which the arguments of a call are no object.
std::string arguments_hint(const ordered_json& message) {
  const bool is_damaged =
      std::ranges::any_of(argument_texts(message), [](const std::string& arguments) {
        std::string mended = arguments;
        return replace_damaged_text(mended) > 0;
      });
  return is_damaged ? kReplaceDamageHint : kWriteAnObject;
}

// How often a text contains null as Python or JSON writes it.
size_t num_nulls(const std::string& text) {
  size_t count = 0;
  for (const std::string_view word : {"None", "null"})
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      ++count;
  return count;
}

// Tries forms of one conversation until the template writes all texts of one.
class Reading {
 public:
  Reading(const text::ChatTemplate& chat_template, const ordered_json& messages,
          const ordered_json& variables, bool add_generation_prompt, Losses losses)
      : template_(chat_template),
        messages_(messages),
        variables_(variables),
        add_generation_prompt_(add_generation_prompt),
        losses_(losses) {}

  ReadableChat read() {
    if (auto chat = attempt({})) return std::move(*chat);
    for (const Form& form : other_forms(messages_)) {
      // A template that refuses a text will not get it as a list of parts.
      if (form.wraps() && is_refused_) break;
      if (auto chat = attempt(form)) return std::move(*chat);
    }
    if (loss_) throw *loss_;
    if (auto chat = with_types_of_calls()) return std::move(*chat);
    require_roles_are_not_the_cause();
    require_content_is_not_the_cause();
    throw *error_;
  }

 private:
  std::string render(const ordered_json& messages) const {
    return template_.render(messages, variables_, add_generation_prompt_).text;
  }

  std::optional<ReadableChat> attempt(const Form& form) {
    const RenderTexts render_texts = [&](const ordered_json& others) { return render(others); };
    try {
      ReadableArguments arguments = with_readable_arguments(render_texts, in_form(messages_, form));
      ordered_json& messages = arguments.messages;
      text::Conversation conversation = template_.read(messages, variables_);
      text::RenderedChat rendered = conversation.render(messages.size(), add_generation_prompt_);
      if (form.none == NoContent::Null && prints_null(messages, rendered.text)) return std::nullopt;
      MessageTexts texts = find_message_texts(render_texts, messages, rendered.text);
      if (auto lost = loss_of(arguments, texts, rendered.text)) {
        if (!loss_) loss_ = std::move(lost);
        return std::nullopt;
      }
      return ReadableChat{std::move(arguments.messages), std::move(conversation),
                          std::move(rendered), std::move(texts)};
    } catch (const DataError& error) {
      if (form.wraps() && error_) return std::nullopt;
      error_ = error;
      is_refused_ =
          std::string_view(error.what()).find("refuses the conversation") != std::string_view::npos;
      return std::nullopt;
    }
  }

  // True when the template writes a null content as a word, which an empty or absent content does
  // not cause.
  bool prints_null(const ordered_json& messages, const std::string& rendered) const {
    if (!std::ranges::any_of(messages, is_bare_call)) return false;
    for (const NoContent none : {NoContent::Empty, NoContent::Absent}) {
      ordered_json others = messages;
      for (ordered_json& message : others)
        if (lacks_content(message)) set_no_content(message, none);
      try {
        return num_nulls(rendered) > num_nulls(render(others));
      } catch (const DataError&) {
        continue;
      }
    }
    return false;
  }

  // OpenAI's calls have a `type`, which is always `function`. Some templates require it.
  std::optional<ReadableChat> with_types_of_calls() const {
    const ordered_json typed = with_call_types(messages_);
    if (typed == messages_) return std::nullopt;
    try {
      return readable_chat(template_, typed, variables_, add_generation_prompt_, losses_);
    } catch (const DataError&) {
      return std::nullopt;
    }
  }

  // Throws DataError when a role that the template does not name is the only cause: with the role
  // `user` in its place the template renders the conversation.
  void require_roles_are_not_the_cause() const {
    for (const std::string& role : unnamed_roles(template_, messages_)) {
      try {
        readable_chat(template_, with_role(messages_, role, "user"), variables_,
                      add_generation_prompt_, losses_);
      } catch (const DataError&) {
        continue;
      }
      throw DataError(fmt::format("the chat template has no role `{}`, and refuses it", role),
                      {.key = "role",
                       .hint = "use a role of the template, or another template "
                               "(data.template_path, --template-path)"});
    }
  }

  // Throws DataError when the template took a content for one of another form: in its own words
  // this is a text without an element or an attribute.
  void require_content_is_not_the_cause() const {
    const std::string_view words = error_->what();
    if (words.find("has no element") == words.npos && words.find("has no attribute") == words.npos)
      return;
    for (size_t count = 1; count <= messages_.size(); ++count) {
      const ordered_json first(messages_.begin(),
                               messages_.begin() + static_cast<std::ptrdiff_t>(count));
      try {
        readable_form(first);
      } catch (const DataError&) {
        throw DataError(
            fmt::format("the chat template cannot read {}, whose content is {}: {}",
                        message_place(messages_, count - 1), content_words(messages_[count - 1]),
                        words),
            {.hint = "write its content in the form that the template reads, or use another "
                     "template (data.template_path, --template-path)"});
      }
    }
  }

  // Renders the messages in the first form that the template takes; throws its last error.
  void readable_form(const ordered_json& messages) const {
    std::vector<Form> forms = other_forms(messages);
    forms.insert(forms.begin(), Form());
    for (size_t form = 0; form < forms.size(); ++form) {
      try {
        template_.render(in_form(messages, forms[form]), variables_, add_generation_prompt_);
        return;
      } catch (const DataError&) {
        if (form + 1 == forms.size()) throw;
      }
    }
  }

  std::optional<DataError> loss_of(const ReadableArguments& arguments, const MessageTexts& texts,
                                   const std::string& rendered) const {
    const ordered_json& messages = arguments.messages;
    const bool allows = losses_ == Losses::AllowInHistory;
    const char* const hint =
        "use a template that writes it (data.template_path, --template-path), or leave it out of "
        "the row";
    if (texts.printed)
      return DataError(
          fmt::format("the chat template prints the content of {} as data, not as text",
                      message_place(messages, *texts.printed)),
          {.hint = "write the content as one string, or use another template"});
    if (texts.unwritten && !(allows && has_tool_calls(messages[*texts.unwritten])))
      return DataError(
          fmt::format("the chat template does not write a text of {}, which would be lost",
                      message_place(messages, *texts.unwritten)),
          {.hint = hint});
    if (arguments.unreadable && !allows)
      return DataError(fmt::format("the `arguments` of a tool call in {} are no JSON object",
                                   message_place(messages, *arguments.unreadable)),
                       {.hint = arguments_hint(messages[*arguments.unreadable])});
    if (const auto message =
            allows ? std::nullopt : message_with_lost_arguments(messages, rendered))
      return DataError(
          fmt::format("the `arguments` of a tool call in {} are a text, which the chat template "
                      "encodes once more or leaves out",
                      message_place(messages, *message)),
          {.hint = arguments_hint(messages[*message])});
    return std::nullopt;
  }

  const text::ChatTemplate& template_;
  const ordered_json& messages_;
  const ordered_json& variables_;
  const bool add_generation_prompt_;
  const Losses losses_;
  std::optional<DataError> loss_;   // what the first rendered form loses
  std::optional<DataError> error_;  // why the template refused the last refused form
  bool is_refused_ = false;
};

}  // namespace

ReadableChat readable_chat(const text::ChatTemplate& chat_template, const ordered_json& messages,
                           const ordered_json& variables, bool add_generation_prompt,
                           Losses losses) {
  return Reading(chat_template, messages, variables, add_generation_prompt, losses).read();
}

ReadableChat chat_of_row(const text::ChatTemplate& chat_template, const ordered_json& messages,
                         const ordered_json& variables, bool add_generation_prompt, Losses losses) {
  ordered_json given = without_turn_weights(messages);
  if (auto renamed = with_system_for_developer(chat_template, given)) given = std::move(*renamed);
  ReadableChat chat = readable_chat(chat_template, given, variables, add_generation_prompt, losses);
  require_known_roles(chat_template, chat.messages, variables, add_generation_prompt,
                      chat.rendered.text);
  return chat;
}

}  // namespace convoy::data
