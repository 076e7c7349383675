// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/tool_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/generate/engine/certain_text.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOpen = "<tool_call>";
constexpr std::string_view kClose = "</tool_call>";
constexpr std::string_view kLlamaTag = "<|python_tag|>";
constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kBetweenLlamaCalls = "; \t\r\n";

// The value of a member of a valid JSON object as it is written; empty where there is none. Of
// several the last, as parsers take it.
std::string_view member_text(std::string_view object, std::string_view name) {
  std::string_view found, last_word;
  int depth = 0;
  bool in_string = false;
  size_t word = 0;
  constexpr size_t kNone = std::string_view::npos;
  size_t value = kNone;  // its beginning
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

// The call that the JSON of `text` is, with arguments as the model wrote them: parsed and written
// again they could lose digits. `needs_arguments`: without them it is none.
std::optional<ToolCall> read_call(std::string_view text, bool needs_arguments) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return {};
  const std::string name = json["name"].get<std::string>();
  const char* const key = json.contains("arguments") ? "arguments" : "parameters";
  const Json arguments = json.value(key, Json());
  if (arguments.is_null() && !needs_arguments) return ToolCall{name, "{}"};
  if (!arguments.is_object()) return {};
  return ToolCall{name, std::string(member_text(text, key))};
}

size_t end_without_space(std::string_view text) { return text.find_last_not_of(kSpace) + 1; }

// The bytes of the JSON object that `text` begins with; 0: it goes on.
size_t object_bytes(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (in_string) {
      if (letter == '\\') ++at;
      in_string = letter != '"';
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '{') {
      ++depth;
    } else if (letter == '}' && --depth == 0) {
      return at + 1;
    }
  }
  return 0;
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

bool has_special_tags(ToolFormat format, const text::Tokenizer& tokenizer) {
  if (format != ToolFormat::Hermes) return false;
  const std::vector<int32_t> ids = tokenizer.encode(kOpen, text::SpecialTokens::Omit).ids;
  return ids.size() == 1 && tokenizer.is_special(ids.front());
}

ToolCallReader::Found ToolCallReader::take(std::string_view more) {
  held_ += more;
  Found found;
  if (format_ == ToolFormat::Hermes)
    read_hermes(found);
  else if (may_begin_)
    read_llama(found);
  else
    give_text(found, held_.size());
  return found;
}

ToolCallReader::Found ToolCallReader::end() {
  Found found;
  if (format_ == ToolFormat::Hermes) read_hermes_end(found);
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

void ToolCallReader::read_hermes(Found& found) {
  for (;;) {
    const std::string_view held = held_;
    const size_t open = held.find(kOpen);
    if (open == std::string_view::npos) {
      // White space may turn out to stand before a call.
      const size_t certain = held.size() - generate::begun_bytes(held, kOpen);
      return give_text(found, end_without_space(held.substr(0, certain)));
    }
    const size_t close = held.find(kClose, open);
    if (close == std::string_view::npos)
      return give_text(found, end_without_space(held.substr(0, open)));
    const size_t body = open + kOpen.size();
    const auto call = read_call(held.substr(body, close - body), false);
    const size_t end = close + kClose.size();
    if (!call) {
      give_text(found, end);
      continue;
    }
    give_text(found, end_without_space(held.substr(0, open)));
    held_.erase(0, held_.find(kClose) + kClose.size());
    found.calls.push_back(*call);
    follows_call_ = true;
  }
}

// A model may end its answer without the last tag.
void ToolCallReader::read_hermes_end(Found& found) {
  const size_t open = held_.find(kOpen);
  if (open == std::string::npos) return;
  const auto call = read_call(std::string_view(held_).substr(open + kOpen.size()), false);
  if (!call) return;
  give_text(found, end_without_space(std::string_view(held_).substr(0, open)));
  held_.clear();
  found.calls.push_back(*call);
  follows_call_ = true;
}

// Calls stand at the beginning of an answer. The tag is a special token in Llama 3's own
// vocabulary, which is no part of a text.
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
    const size_t bytes = is_object ? object_bytes(held.substr(begin)) : 0;
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
