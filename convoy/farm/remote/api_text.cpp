// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/api_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "convoy/core/base/hash.h"
#include "convoy/core/base/lower_case.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/base/utf8.h"

namespace convoy::remote {
namespace {

using nlohmann::ordered_json;
using process::TextFinish;
using process::TextResult;

// Seeds keep these bits: llama.cpp reads a seed of 32 bits, other servers a signed integer.
constexpr uint64_t kSeedBits = 0x7fffffff;

uint64_t seed_of(const process::DrawSource& draw) {
  const std::array<uint64_t, 3> words = {draw.seed, static_cast<uint64_t>(draw.row), draw.sample};
  return mix_seed(words) & kSeedBits;
}

// Fields that OpenAI's API does not have are sent only if they are set.
ordered_json settings_of(const process::TextSampling& sampling) {
  ordered_json settings = {{"max_tokens", sampling.max_new_tokens},
                           {"temperature", sampling.temperature}};
  if (!sampling.stop.empty()) settings["stop"] = sampling.stop;
  if (sampling.repetition_penalty != 1)
    settings["repetition_penalty"] = sampling.repetition_penalty;
  if (sampling.temperature == 0) return settings;
  settings["top_p"] = sampling.top_p;
  if (sampling.top_k > 0) settings["top_k"] = sampling.top_k;
  if (sampling.min_p > 0) settings["min_p"] = sampling.min_p;
  return settings;
}

const ordered_json* member(const ordered_json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_or_empty(const ordered_json& object, const char* name) {
  const ordered_json* const found = member(object, name);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

// One place of vLLM's `prompt_logprobs`: {"ID": {"logprob", "rank", "decoded_token"}, ...}. What is
// no number becomes NaN, which JSON does not have.
std::vector<process::LikelyToken> likely_tokens(const ordered_json& place) {
  std::vector<process::LikelyToken> tokens;
  if (!place.is_object()) return tokens;
  for (const auto& [name, said] : place.items()) {
    const auto id = text_as<int32_t>(name);
    const ordered_json* const logprob = member(said, "logprob");
    if (!id) continue;
    const bool is_number = logprob != nullptr && logprob->is_number();
    tokens.push_back({.id = *id,
                      .logprob = is_number ? logprob->get<float>() : NAN,
                      .text = text_or_empty(said, "decoded_token")});
  }
  return tokens;
}

// A count that may be written as 3, 3.0 or "3".
int64_t count_or_zero(const ordered_json& usage, const char* name) {
  const ordered_json* const found = member(usage, name);
  if (found == nullptr) return 0;
  if (found->is_string()) return text_as<int64_t>(found->get<std::string>()).value_or(0);
  if (!found->is_number()) return 0;
  const double count = found->get<double>();
  return count >= 0 && count < 1e15 ? static_cast<int64_t>(count) : 0;
}

struct Said {
  std::string thought = {};
  std::string text = {};
  bool has_text = false;  // the message has a text, perhaps an empty one
};

// Adds a content: a text, or a list of parts such as {"type": "text", "text"} and {"type":
// "thinking", "thinking"}.
void add_content(const ordered_json& content, Said& said) {
  if (content.is_string()) {
    said.text += content.get<std::string>();
    said.has_text = true;
  } else if (content.is_array()) {
    for (const ordered_json& part : content) add_content(part, said);
  } else if (content.is_object()) {
    for (const char* name : {"thinking", "reasoning"})
      if (const ordered_json* const thoughts = member(content, name)) {
        Said inner;
        add_content(*thoughts, inner);
        said.thought += inner.text;
      }
    for (const char* name : {"text", "refusal"})
      if (const ordered_json* const text = member(content, name)) add_content(*text, said);
  }
}

// A tool call in the form that most models write (Hermes, Qwen). In the API its arguments are JSON
// within a text.
std::string call_text(const ordered_json& call) {
  const ordered_json* const function = member(call, "function");
  const ordered_json& told = function == nullptr ? call : *function;
  ordered_json written = {{"name", text_or_empty(told, "name")},
                          {"arguments", ordered_json::object()}};
  if (const ordered_json* const arguments = member(told, "arguments")) {
    const ordered_json read =
        arguments->is_string() ? ordered_json::parse(arguments->get<std::string>(), nullptr, false)
                               : *arguments;
    written["arguments"] = read.is_discarded() ? *arguments : read;
  }
  return "<tool_call>\n" + written.dump() + "\n</tool_call>";
}

// The text of a message. The reasoning parsers of vLLM and SGLang and DeepSeek's service put
// thoughts into `reasoning_content` or `reasoning`. Thoughts without an answer are closed only if
// `ended`: the server says that the text ended by itself. Returns nullopt if the message holds
// nothing that the model wrote.
std::optional<std::string> chat_text(const ordered_json& message, bool ended) {
  Said said;
  if (const ordered_json* const content = member(message, "content")) add_content(*content, said);
  if (said.text.empty()) said.text = text_or_empty(message, "refusal");
  if (said.thought.empty()) said.thought = text_or_empty(message, "reasoning_content");
  if (said.thought.empty()) said.thought = text_or_empty(message, "reasoning");
  const auto add_call = [&said](const ordered_json& call) {
    said.text += (said.text.empty() ? "" : "\n") + call_text(call);
  };
  if (const ordered_json* const calls = member(message, "tool_calls"); calls && calls->is_array())
    for (const ordered_json& call : *calls) add_call(call);
  if (const ordered_json* const call = member(message, "function_call")) add_call(*call);
  if (said.thought.empty() && said.text.empty() && !said.has_text) return std::nullopt;
  if (said.thought.empty()) return said.text;
  return "<think>" + said.thought + (said.text.empty() && !ended ? "" : "</think>" + said.text);
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The server gave up on the text; the same request may succeed.
bool is_broken_off(std::string_view reason) {
  return is_one_of(reason,
                   {"abort", "aborted", "cancelled", "error", "insufficient_system_resource"});
}

bool is_limit(std::string_view reason) {
  return is_one_of(reason,
                   {"length", "max_tokens", "max_output_tokens", "max_new_tokens", "model_length"});
}

// The text was cut: it did not end by itself.
bool is_cut(std::string_view reason) {
  return is_broken_off(reason) || is_limit(reason) ||
         is_one_of(reason, {"content_filter", "safety", "recitation"});
}

// The status of an error: its code as in 502 or "502", or a status by its type. OpenAI's codes are
// words.
int status_of_error(const ordered_json& error) {
  if (const ordered_json* const code = member(error, "code")) {
    const int64_t number = count_or_zero(error, "code");
    if (number >= 400 && number < 600) return static_cast<int>(number);
    if (code->is_string() && code->get<std::string>().find("rate_limit") != std::string::npos)
      return 429;
  }
  const std::string type = text_or_empty(error, "type");
  if (type.find("invalid_request") != std::string::npos || type == "BadRequestError") return 400;
  if (type.find("rate_limit") != std::string::npos) return 429;
  return 500;
}

// A half of a surrogate pair alone, such as \ud83d, is no character, and most parsers refuse it.
void replace_lone_surrogates(std::string& json) {
  const auto unit_at = [&json](size_t at) -> unsigned {
    unsigned unit = 0;
    if (at + 6 > json.size() || json[at] != '\\' || json[at + 1] != 'u') return 0;
    const char* const digits = json.data() + at + 2;
    const auto [stop, error] = std::from_chars(digits, digits + 4, unit, 16);
    return error == std::errc() && stop == digits + 4 ? unit : 0;
  };
  for (size_t at = json.find('\\'); at != json.npos; at = json.find('\\', at + 2)) {
    const unsigned unit = unit_at(at);
    if (unit < 0xd800 || unit > 0xdfff) continue;
    const unsigned next = unit_at(at + 6);
    if (unit < 0xdc00 && next >= 0xdc00 && next <= 0xdfff)
      at += 6;
    else
      json.replace(at, 6, "\\ufffd");
  }
}

void replace_ill_formed(std::string& text) {
  size_t done = 0;
  while (const auto bad = find_invalid_utf8(std::string_view(text).substr(done))) {
    text.replace(done + *bad, 1, "\xef\xbf\xbd");
    done += *bad + 3;
  }
}

ordered_json parsed_body(std::string_view body) {
  ordered_json answer = ordered_json::parse(body, nullptr, false);
  if (!answer.is_discarded()) return answer;
  std::string mended(body);
  replace_ill_formed(mended);
  replace_lone_surrogates(mended);
  return ordered_json::parse(mended, nullptr, false);
}

}  // namespace

ApiText api_text(const process::TextRequest& request, const std::string& model,
                 const ordered_json& template_kwargs) {
  const bool is_chat = !request.prompt.messages.is_null();
  ordered_json settings = {{"model", model}};
  settings.update(settings_of(request.sampling));
  if (!request.schema.empty())
    settings["response_format"] = {
        {"type", "json_schema"},
        {"json_schema",
         {{"name", "text"}, {"schema", ordered_json::parse(request.schema)}, {"strict", true}}}};
  if (request.prompt_likeliest > 0) settings["prompt_logprobs"] = request.prompt_likeliest;
  ordered_json variables =
      request.prompt.variables.is_null() ? template_kwargs : request.prompt.variables;
  ordered_json body = settings;
  if (is_chat)
    body["messages"] = request.prompt.messages;
  else if (!request.prompt.ids.empty())
    body["prompt"] = request.prompt.ids;
  else
    body["prompt"] = request.prompt.text;
  if (request.sampling.temperature > 0) body["seed"] = seed_of(request.draw);
  // In the API, tools are a field of the request.
  if (is_chat && variables.contains("tools")) {
    body["tools"] = variables["tools"];
    variables.erase("tools");
  }
  if (is_chat && !variables.empty()) body["chat_template_kwargs"] = variables;
  return {.path = is_chat ? "/chat/completions" : "/completions",
          .body = body.dump(),
          .settings = settings.dump()};
}

std::string with_newer_limit(const std::string& body) {
  const ordered_json given = ordered_json::parse(body);
  ordered_json renamed;
  for (const auto& [name, value] : given.items())
    renamed[name == "max_tokens" ? "max_completion_tokens" : name] = value;
  return renamed.dump();
}

ApiAnswer read_api_text(std::string_view body) {
  const ordered_json answer = parsed_body(body);
  if (!answer.is_object()) return {};
  const ordered_json* const choices = member(answer, "choices");
  const bool has_choice = choices != nullptr && choices->is_array() && !choices->empty() &&
                          choices->front().is_object();
  const ordered_json* error = member(answer, "error");
  if (error == nullptr && has_choice) error = member(choices->front(), "error");
  if (error == nullptr && text_or_empty(answer, "object") == "error") error = &answer;
  if (error != nullptr) return {.error_status = status_of_error(*error)};
  ApiAnswer read{.is_of_api = choices != nullptr || answer.contains("usage")};
  if (!has_choice) return read;
  const ordered_json& choice = choices->front();
  const ordered_json* const message = member(choice, "message");
  const std::string reason = text_or_empty(choice, "finish_reason");
  const std::string low = lower_case(reason);  // some services write "STOP" or "MAX_TOKENS"
  const bool ended = !low.empty() && !is_cut(low);
  std::optional<std::string> text;
  if (message != nullptr && message->is_object())
    text = chat_text(*message, ended);
  else if (choice.contains("text"))
    text = chat_text({{"content", choice["text"]}}, ended);
  else
    return read;
  if (is_broken_off(low) && text.value_or("").empty()) return read;
  TextResult result{.finish = is_cut(low) ? TextFinish::Length : TextFinish::Stop,
                    .other_finish = is_cut(low) && !is_limit(low) ? reason : "",
                    .text = text.value_or("")};
  if (!text && (!is_cut(low) || low == "content_filter")) {
    result.finish = TextFinish::Error;
    result.other_finish.clear();
    result.error = low == "content_filter"
                       ? "the server's content filter withheld the text"
                       : fmt::format("the server's answer holds no text (finish_reason `{}`)",
                                     reason.empty() ? "null" : reason);
  }
  if (const ordered_json* const usage = member(answer, "usage")) {
    result.prompt_tokens = count_or_zero(*usage, "prompt_tokens");
    result.new_tokens = count_or_zero(*usage, "completion_tokens");
  }
  if (const ordered_json* const places = member(choice, "prompt_logprobs");
      places != nullptr && places->is_array())
    for (const ordered_json& place : *places)
      result.prompt_likeliest.push_back(likely_tokens(place));
  read.text = std::move(result);
  return read;
}

}  // namespace convoy::remote
