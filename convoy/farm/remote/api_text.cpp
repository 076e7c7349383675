// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/api_text.h"

#include <array>

#include "convoy/core/base/hash.h"

namespace convoy::remote {
namespace {

using nlohmann::ordered_json;
using process::TextFinish;
using process::TextResult;

// llama.cpp reads 32 bits, others a signed integer.
constexpr uint64_t kSeedBits = 0x7fffffff;

uint64_t seed_of(const process::DrawSource& draw) {
  const std::array<uint64_t, 3> words = {draw.seed, static_cast<uint64_t>(draw.row), draw.sample};
  return mix_seed(words) & kSeedBits;
}

// Fields that are not OpenAI's are there only where they are set.
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

std::string text_or_empty(const ordered_json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t count_or_zero(const ordered_json& usage, const char* name) {
  const auto found = usage.find(name);
  return found != usage.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

// vLLM's and SGLang's reasoning parsers, DeepSeek's service: `reasoning_content`, or `reasoning`.
std::string chat_text(const ordered_json& message) {
  const std::string text = text_or_empty(message, "content");
  std::string thought = text_or_empty(message, "reasoning_content");
  if (thought.empty()) thought = text_or_empty(message, "reasoning");
  if (thought.empty()) return text;
  return "<think>" + thought + (text.empty() ? "" : "</think>" + text);
}

bool take_finish(const std::string& reason, TextResult& result) {
  if (reason == "stop") {
    result.finish = TextFinish::Stop;
  } else if (reason == "length") {
    result.finish = TextFinish::Length;
  } else if (reason == "content_filter") {
    result.finish = TextFinish::Error;
    result.error = "the server's content filter withheld the text";
    result.text.clear();
  } else {
    return false;
  }
  return true;
}

}  // namespace

ApiText api_text(const process::TextRequest& request, const std::string& model,
                 const ordered_json& template_kwargs) {
  const bool is_chat = !request.prompt.messages.is_null();
  ordered_json settings = {{"model", model}};
  settings.update(settings_of(request.sampling));
  ordered_json variables =
      request.prompt.variables.is_null() ? template_kwargs : request.prompt.variables;
  ordered_json body = settings;
  if (is_chat)
    body["messages"] = request.prompt.messages;
  else
    body["prompt"] = request.prompt.text;
  if (request.sampling.temperature > 0) body["seed"] = seed_of(request.draw);
  // Tools are a field of their own in the API.
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

std::optional<TextResult> read_api_text(std::string_view body) {
  const ordered_json answer = ordered_json::parse(body, nullptr, false);
  if (!answer.is_object() || !answer.contains("choices")) return std::nullopt;
  const ordered_json& choices = answer["choices"];
  if (!choices.is_array() || choices.empty() || !choices[0].is_object()) return std::nullopt;
  const ordered_json& choice = choices[0];
  TextResult result;
  if (choice.contains("message") && choice["message"].is_object())
    result.text = chat_text(choice["message"]);
  else if (choice.contains("text") && choice["text"].is_string())
    result.text = choice["text"];
  else
    return std::nullopt;
  if (!take_finish(text_or_empty(choice, "finish_reason"), result)) return std::nullopt;
  if (answer.contains("usage") && answer["usage"].is_object()) {
    result.prompt_tokens = count_or_zero(answer["usage"], "prompt_tokens");
    result.new_tokens = count_or_zero(answer["usage"], "completion_tokens");
  }
  return result;
}

}  // namespace convoy::remote
