// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/text/chat_template.h"

#include <algorithm>
#include <array>
#include <map>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/utf8.h"
#include "convoy/data/text/rust_handles.h"
#include "convoy/data/text/template_sources.h"

namespace convoy::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct Compiled {
  RustTemplate handle;
  TemplateSource source;
};

// Line number `line` of a template, shortened for a message.
std::string line_of(const std::string& text, int64_t line) {
  size_t begin = 0;
  for (int64_t at = 1; at < line && begin != std::string::npos; ++at) {
    begin = text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin == std::string::npos) return "";
  constexpr size_t kMaxBytes = 120;
  std::string found = text.substr(begin, text.find('\n', begin) - begin);
  const size_t first = found.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  found = found.substr(first, found.find_last_not_of(" \t\r") + 1 - first);
  if (found.size() <= kMaxBytes) return found;
  return found.substr(0, whole_characters_bytes(found, kMaxBytes)) + "...";
}

[[noreturn]] void fail(ConvoyText error, int64_t line, const TemplateSource& source) {
  const std::string found = take_text(error);
  std::string message = fmt::format(
      "{}: {}", source.in_json ? "the chat template in this file" : "chat template", found);
  ErrorLocation location{
      .file = source.file,
      .hint =
          "change the rows to what the template asks for, or name another with --template-path"};
  if (found.find("no attribute 'content'") != std::string::npos)
    location.hint =
        "this template needs a text in every turn: where `content` is null, beside tool calls, "
        "write \"\", or use a template that handles tool calls";
  if (source.in_json) location.key = "chat_template";
  if (line > 0) {
    message += fmt::format("; template line {}: `{}`", line, line_of(source.text, line));
    if (!source.in_json) location.line = line;
  }
  throw DataError(message, location);
}

Compiled compile(const TemplateSource& source) {
  ConvoyTemplate* handle = nullptr;
  ConvoyText error{};
  int64_t line = 0;
  if (convoy_template_create(bytes_of(source.text), source.text.size(), &handle, &line, &error) !=
      0)
    fail(error, line, source);
  return {RustTemplate(handle), source};
}

constexpr std::array<const char*, 3> kReasoningKeys = {"reasoning_content", "thinking",
                                                       "reasoning"};

// True for a member that is not passed to the template. A null content is passed, because some
// templates test for it beside tool calls.
bool is_dropped(std::string_view key, const ordered_json& value) {
  return value.is_null() && key != "content";
}

bool is_normal(const ordered_json& message) {
  if (std::any_of(kReasoningKeys.begin(), kReasoningKeys.end(),
                  [&](const char* key) { return message.contains(key); }))
    return false;
  for (const auto& [key, value] : message.items())
    if (is_dropped(key, value)) return false;
  return true;
}

// The message as transformers passes it: without null members, and with the reasoning under each of
// its names.
ordered_json normalised(const ordered_json& message) {
  ordered_json kept = ordered_json::object();
  ordered_json reasoning;
  for (const char* key : kReasoningKeys)
    if (reasoning.is_null() && message.contains(key)) reasoning = message[key];
  if (!reasoning.is_null()) kept["thinking"] = reasoning;
  for (const auto& [key, value] : message.items())
    if (!is_dropped(key, value)) kept[key] = value;
  if (!reasoning.is_null()) kept["reasoning_content"] = reasoning;
  return kept;
}

// The members of an object as text, `"name":value,` for each; empty for null and for an object
// without members.
std::string members_of(const ordered_json& object) {
  if (object.is_null() || object.empty()) return "";
  const std::string text = object.dump();
  return text.substr(1, text.size() - 2) + ",";
}

std::string json_of(const ordered_json& messages) {
  if (!messages.is_array() || messages.empty())
    throw DataError("wanted a conversation of at least one message",
                    {.hint = "write [{\"role\": \"user\", \"content\": TEXT}]"});
  std::string text = "[";
  for (const ordered_json& message : messages) {
    if (!message.is_object())
      throw DataError("wanted messages that are objects with role and content",
                      {.hint = "write [{\"role\": \"user\", \"content\": TEXT}]"});
    if (text.size() > 1) text += ',';
    text += is_normal(message) ? message.dump() : normalised(message).dump();
  }
  return text + "]";
}

RustConversation read_conversation(const std::string& json, const Compiled& used) {
  ConvoyConversation* handle = nullptr;
  ConvoyText error{};
  if (convoy_conversation_read(bytes_of(json), json.size(), &handle, &error) != 0)
    fail(error, 0, used.source);
  return RustConversation(handle);
}

struct RenderOptions {
  size_t num_messages = 0;
  bool add_generation_prompt = false;
  int64_t clock_s = 0;
};

RenderedChat rendered(const Compiled& used, const RustConversation& conversation,
                      const RenderOptions& options) {
  ConvoyRender render{};
  ConvoyText error{};
  int64_t line = 0;
  if (convoy_template_render(used.handle.get(), conversation.get(), options.num_messages,
                             options.add_generation_prompt, options.clock_s, &render, &line,
                             &error) != 0)
    fail(error, line, used.source);
  RenderedChat chat;
  chat.text.assign(reinterpret_cast<const char*>(render.text.data), render.text.size);
  for (size_t span = 0; span < render.num_spans; ++span)
    chat.generation_spans.emplace_back(render.spans[2 * span], render.spans[2 * span + 1]);
  convoy_render_free(render);
  return chat;
}

}  // namespace

struct ChatTemplate::State {
  Compiled standard;
  std::optional<Compiled> with_tools;
  std::string defaults;  // JSON members for variables that no row sets
  std::string content_hash;
  TemplateClock clock;
};

struct Conversation::State {
  RustConversation handle;
  const Compiled& used;
  int64_t clock_s;
};

Conversation::Conversation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Conversation::~Conversation() = default;
Conversation::Conversation(Conversation&&) noexcept = default;

ChatTemplate::ChatTemplate(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::optional<ChatTemplate> ChatTemplate::load(const fs::path& model_folder,
                                               const fs::path& override_path,
                                               const std::string& eos_token) {
  const TokenizerSettings settings = TokenizerSettings::load(model_folder, eos_token);
  const auto sources = find_template_sources(model_folder, override_path, settings);
  if (sources.empty()) return std::nullopt;
  const auto standard = sources.find(kUsualTemplate);
  if (standard == sources.end())
    throw DataError("chat_template has no template named `default`",
                    {.file = sources.begin()->second.file,
                     .key = "chat_template",
                     .hint = "name the template to use by its own file"});
  auto state = std::make_unique<State>();
  state->standard = compile(standard->second);
  Sha256 hash;
  hash.update(standard->second.text);
  if (const auto tools = sources.find("tool_use"); tools != sources.end()) {
    state->with_tools = compile(tools->second);
    hash.update(std::string_view("\0", 1));
    hash.update(tools->second.text);
  }
  ordered_json defaults = {{"tools", nullptr}, {"documents", nullptr}};
  for (const auto& [name, token] : settings.named_tokens) {
    defaults[name] = token;
    hash.update(fmt::format("\n{}={}", name, token));
  }
  state->defaults = members_of(defaults);
  state->content_hash = hash.hex();
  for (const auto& [name, source] : sources)
    if (name == "default" || name == "tool_use") state->clock.add(source.text);
  state->clock.stop_at_command_start();
  return ChatTemplate(std::move(state));
}

Conversation ChatTemplate::read(const ordered_json& messages, const ordered_json& variables) const {
  const auto tools = variables.find("tools");
  const bool has_tools = tools != variables.end() && !tools->is_null();
  const Compiled& used = has_tools && state_->with_tools ? *state_->with_tools : state_->standard;
  std::string text;
  try {
    // If members have the same name, the last one counts.
    text = fmt::format("{{{}{}\"messages\":{}}}", state_->defaults, members_of(variables),
                       json_of(messages));
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("the conversation is not valid UTF-8: {}", error.what()),
                    {.hint = "save the file of the conversation as UTF-8"});
  }
  return Conversation(std::make_unique<Conversation::State>(read_conversation(text, used), used,
                                                            state_->clock.seconds()));
}

RenderedChat ChatTemplate::render(const ordered_json& messages, const ordered_json& variables,
                                  bool add_generation_prompt) const {
  return read(messages, variables).render(messages.size(), add_generation_prompt);
}

RenderedChat Conversation::render(size_t num_messages, bool add_generation_prompt) const {
  return rendered(state_->used, state_->handle,
                  {.num_messages = num_messages,
                   .add_generation_prompt = add_generation_prompt,
                   .clock_s = state_->clock_s});
}

std::string json_of_template(const ordered_json& value) {
  static const Compiled compiled = compile({"{{ messages[0].value | tojson }}", ""});
  const RustConversation conversation =
      read_conversation(fmt::format("{{\"messages\":[{{\"value\":{}}}]}}", value.dump()), compiled);
  return rendered(compiled, conversation, {.num_messages = 1}).text;
}

bool ChatTemplate::has_generation_tags() const {
  return convoy_template_has_generation(state_->standard.handle.get()) != 0;
}

bool ChatTemplate::mentions(std::string_view words) const {
  const Compiled& used = state_->with_tools ? *state_->with_tools : state_->standard;
  return used.source.text.find(words) != std::string::npos;
}

const std::string& ChatTemplate::text() const { return state_->standard.source.text; }
const std::string& ChatTemplate::content_hash() const { return state_->content_hash; }

TemplateClock& ChatTemplate::clock() { return state_->clock; }
const TemplateClock& ChatTemplate::clock() const { return state_->clock; }

}  // namespace convoy::text
