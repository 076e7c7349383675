// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/tool_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/generate/engine/certain_text.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kThoughts = "<think>";
constexpr std::string_view kEndOfThoughts = "</think>";
constexpr std::string_view kLlamaTag = "<|python_tag|>";
constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kBetweenLlamaCalls = "; \t\r\n";
constexpr std::string_view kBetweenHermesCalls = ", \t\r\n";

// Returns the text of a member's value in a valid JSON object; empty without that member. Of
// several members with the name it returns the last, as parsers do.
std::string_view member_text(std::string_view object, std::string_view name) {
  std::string_view found, last_word;
  int depth = 0;
  bool in_string = false;
  size_t word = 0;
  constexpr size_t kNone = std::string_view::npos;
  size_t value = kNone;  // start of the value
  for (size_t at = 0; at < object.size(); ++at) {
    const char letter = object[at];
    if (in_string) {
      if (letter == '\\') ++at;
      in_string = letter != '"';
      if (!in_string && value == kNone) last_word = object.substr(word, at - word);
      continue;
    }
    in_string = letter == '"';
    if (in_string) word = at + 1;
    if (letter == '}' || letter == ']') --depth;
    const bool ends_member = (letter == ',' && depth == 1) || (letter == '}' && depth == 0);
    if (ends_member && value != kNone && last_word == name)
      found = object.substr(value, at - value);
    if (ends_member) value = kNone;
    if (letter == ':' && depth == 1) value = at + 1;
    if (letter == '{' || letter == '[') ++depth;
  }
  found.remove_prefix(std::min(found.find_first_not_of(kSpace), found.size()));
  return found.substr(0, found.find_last_not_of(kSpace) + 1);
}

// Reads `text` as a call in JSON. Keeps the arguments as the model wrote them, because numbers that
// are parsed and written again could lose digits. `needs_arguments`: JSON without arguments is no
// call.
std::optional<ToolCall> read_call(std::string_view text, bool needs_arguments) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return {};
  const std::string name = json["name"].get<std::string>();
  if (name.find_first_not_of(kSpace) == std::string::npos) return {};  // no client could call it
  const char* const key = json.contains("arguments") ? "arguments" : "parameters";
  const Json arguments = json.value(key, Json());
  if (arguments.is_null() && !needs_arguments) return ToolCall{name, "{}"};
  if (arguments.is_string() &&
      Json::parse(arguments.get<std::string>(), nullptr, false).is_object())
    return ToolCall{name, arguments.get<std::string>()};
  if (!arguments.is_object()) return {};
  return ToolCall{name, std::string(member_text(text, key))};
}

size_t end_without_space(std::string_view text) { return text.find_last_not_of(kSpace) + 1; }

// Number of bytes of the JSON object or list at the start of `text`; 0 when it is incomplete.
size_t value_bytes(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (in_string) {
      if (letter == '\\') ++at;
      in_string = letter != '"';
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '{' || letter == '[') {
      ++depth;
    } else if ((letter == '}' || letter == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return 0;
}

// Returns `text` without leading characters from `skipped`.
std::string_view after(std::string_view text, std::string_view skipped) {
  return text.substr(std::min(text.find_first_not_of(skipped), text.size()));
}

// Adds the calls of an object, or of a list of objects. Returns false for anything else.
bool add_calls(std::string_view value, std::vector<ToolCall>& calls) {
  if (value.front() == '{') {
    const auto call = read_call(value, false);
    if (call) calls.push_back(*call);
    return call.has_value();
  }
  value = after(value.substr(1), kBetweenHermesCalls);
  while (value.starts_with('{')) {
    const size_t bytes = value_bytes(value);
    if (bytes == 0 || !add_calls(value.substr(0, bytes), calls)) return false;
    value = after(value.substr(bytes), kBetweenHermesCalls);
  }
  return value == "]" && !calls.empty();
}

struct TaggedCalls {
  enum class State { Whole, GoesOn, None } state = State::None;
  std::vector<ToolCall> calls = {};
  size_t bytes = 0;  // including the closing tag
};

// Reads the calls after an opening tag. `is_whole`: the answer has ended, perhaps without the last
// tag.
TaggedCalls read_tagged_calls(const std::string_view text, bool is_whole) {
  using State = TaggedCalls::State;
  TaggedCalls tagged;
  std::string_view rest = after(text, kSpace);
  while (rest.starts_with('{') || rest.starts_with('[')) {
    const size_t bytes = value_bytes(rest);
    if (bytes == 0) return {.state = is_whole ? State::None : State::GoesOn};
    if (!add_calls(rest.substr(0, bytes), tagged.calls)) return {};
    rest = after(rest.substr(bytes), kBetweenHermesCalls);
  }
  const bool has_end = rest.starts_with(kCloseCall);
  if (!has_end && !is_whole && (kCloseCall.starts_with(rest) || kOpenCall.starts_with(rest)))
    return {.state = State::GoesOn};
  const bool may_lack_end = rest.starts_with(kOpenCall) || (is_whole && rest.empty());
  if (tagged.calls.empty() || !(has_end || may_lack_end)) return {};
  tagged.state = State::Whole;
  tagged.bytes = text.size() - rest.size() + (has_end ? kCloseCall.size() : 0);
  return tagged;
}

}  // namespace

ToolFormat tool_format(const std::string& parser, const text::ChatTemplate* chat_template) {
  if (parser == "hermes") return ToolFormat::Hermes;
  if (parser == "llama3_json") return ToolFormat::Llama3Json;
  if (parser == "none" || chat_template == nullptr) return ToolFormat::None;
  const auto teaches = [&](const char* words) { return chat_template->mentions(words); };
  // Some templates put other things than JSON between the tags.
  if (teaches("<tool_call>"))
    return teaches("<function=") || teaches("<arg_key>") ? ToolFormat::None : ToolFormat::Hermes;
  return teaches("\"name\": function name, \"parameters\"") ? ToolFormat::Llama3Json
                                                            : ToolFormat::None;
}

CallTags call_tags(ToolFormat format, const text::Tokenizer& tokenizer) {
  if (format != ToolFormat::Hermes) return {};
  const auto is_special = [&](std::string_view tag) {
    const auto id = tokenizer.id_of(std::string(tag));
    return id && tokenizer.is_special(*id);
  };
  return {.open_is_special = is_special(kOpenCall), .close_is_special = is_special(kCloseCall)};
}

bool opens_thoughts(const std::vector<int32_t>& prompt, const text::Tokenizer& tokenizer) {
  constexpr size_t kMostTokens = 8;  // tokens that the tag and the space behind it may take
  const size_t begin = prompt.size() - std::min(prompt.size(), kMostTokens);
  const std::string end =
      tokenizer.decode({prompt.begin() + static_cast<ptrdiff_t>(begin), prompt.end()}, false);
  return std::string_view(end).substr(0, end_without_space(end)).ends_with(kThoughts);
}

ToolCallReader::Found ToolCallReader::take(std::string_view more) {
  held_ += more;
  Found found;
  if (format_ == ToolFormat::Hermes)
    read_hermes(found, false);
  else if (may_begin_)
    read_llama(found);
  else
    give_text(found, held_.size());
  return found;
}

ToolCallReader::Found ToolCallReader::end() {
  Found found;
  if (format_ == ToolFormat::Hermes) read_hermes(found, true);
  const std::string_view between = format_ == ToolFormat::Llama3Json ? kBetweenLlamaCalls : kSpace;
  if (follows_call_ && held_.find_first_not_of(between) == std::string::npos) held_.clear();
  give_text(found, held_.size());
  return found;
}

void ToolCallReader::give_text(Found& found, size_t bytes) {
  if (bytes == 0) return;
  std::string_view text = std::string_view(held_).substr(0, bytes);
  if (follows_call_) text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  follows_call_ = follows_call_ && text.empty();
  found.text += text;
  held_.erase(0, bytes);
}

// Takes text of thoughts. Returns false when the thoughts go on.
bool ToolCallReader::read_thoughts(Found& found) {
  const size_t close = held_.find(kEndOfThoughts);
  is_thinking_ = close == std::string::npos;
  if (!is_thinking_) give_text(found, close + kEndOfThoughts.size());
  if (is_thinking_) give_text(found, held_.size() - generate::begun_bytes(held_, kEndOfThoughts));
  return !is_thinking_;
}

void ToolCallReader::read_hermes(Found& found, bool is_whole) {
  for (;;) {
    if (is_thinking_ && !read_thoughts(found)) return;
    const std::string_view held = held_;
    const size_t open = held.find(kOpenCall);
    const size_t thoughts = held.find(kThoughts);
    if (thoughts < open) {
      is_thinking_ = true;
      give_text(found, thoughts + kThoughts.size());
      continue;
    }
    if (open == std::string_view::npos) {
      const size_t begun =
          std::max(generate::begun_bytes(held, kOpenCall), generate::begun_bytes(held, kThoughts));
      // White space at the end is held back, because a call may follow it.
      return give_text(found, end_without_space(held.substr(0, held.size() - begun)));
    }
    const TaggedCalls tagged = read_tagged_calls(held.substr(open + kOpenCall.size()), is_whole);
    if (tagged.state == TaggedCalls::State::None) {
      give_text(found, open + kOpenCall.size());
      continue;
    }
    give_text(found, end_without_space(held.substr(0, open)));
    if (tagged.state == TaggedCalls::State::GoesOn) return;
    held_.erase(0, held_.find(kOpenCall) + kOpenCall.size() + tagged.bytes);
    found.calls.insert(found.calls.end(), tagged.calls.begin(), tagged.calls.end());
    follows_call_ = true;
  }
}

// Calls are only at the beginning of an answer. In Llama 3's own vocabulary the tag is a special
// token, so the text does not contain it.
void ToolCallReader::read_llama(Found& found) {
  for (;;) {
    const std::string_view held = held_;
    size_t begin = held.find_first_not_of(follows_call_ ? kBetweenLlamaCalls : kSpace);
    if (begin == std::string_view::npos) return;
    if (!follows_call_) {
      if (kLlamaTag.starts_with(held.substr(begin))) return;
      if (held.substr(begin).starts_with(kLlamaTag))
        begin = held.find_first_not_of(kSpace, begin + kLlamaTag.size());
      if (begin == std::string_view::npos) return;
    }
    const bool is_object = held[begin] == '{';
    const size_t bytes = is_object ? value_bytes(held.substr(begin)) : 0;
    if (is_object && bytes == 0) return;
    const auto call = read_call(held.substr(begin, bytes), true);
    if (!call) {
      may_begin_ = false;
      return give_text(found, held_.size());
    }
    held_.erase(0, begin + bytes);
    found.calls.push_back(*call);
    follows_call_ = true;
  }
}

}  // namespace convoy::recipes
