// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_request.h"

#include <fmt/format.h>

#include <limits>
#include <set>

namespace convoy::recipes {
namespace {

constexpr int64_t kMostChoices = 128;     // as OpenAI's API
constexpr int64_t kMostStopStrings = 16;  // four there
constexpr int64_t kUsualCompletionTokens = 16;

// Reads the fields of a request by name, and remembers which were read.
class FieldReader {
 public:
  explicit FieldReader(const Json& object) : object_(object) {}

  // Null counts as absent, as in OpenAI's API.
  const Json* find(const std::string& name) {
    known_.insert(name);
    const auto at = object_.find(name);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }
  int64_t integer(const std::string& name, int64_t absent, int64_t least, int64_t most) {
    const Json* value = find(name);
    if (value == nullptr) return absent;
    if (!value->is_number_integer() || value->get<int64_t>() < least ||
        value->get<int64_t>() > most)
      refuse(name, fmt::format("an integer from {} to {}", least, most), *value);
    return value->get<int64_t>();
  }
  double number(const std::string& name, double absent, double least, double most) {
    const Json* value = find(name);
    if (value == nullptr) return absent;
    if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= most))
      refuse(name, fmt::format("a number from {} to {}", least, most), *value);
    return value->get<double>();
  }
  bool flag(const std::string& name) {
    const Json* value = find(name);
    if (value == nullptr) return false;
    if (!value->is_boolean()) refuse(name, "true or false", *value);
    return value->get<bool>();
  }
  std::string text(const std::string& name) {
    const Json* value = find(name);
    if (value == nullptr) return {};
    if (!value->is_string()) refuse(name, "a string", *value);
    return value->get<std::string>();
  }
  // A field that may only hold what changes nothing.
  void require_neutral(const std::string& name, const std::vector<Json>& neutral) {
    const Json* value = find(name);
    if (value == nullptr) return;
    for (const Json& one : neutral)
      if (*value == one) return;
    throw ApiError(400, fmt::format("`{}` is not served by convoy serve", name), name,
                   "unsupported_parameter");
  }
  void require_nothing_else() const {
    for (const auto& [name, value] : object_.items())
      if (!known_.contains(name))
        throw ApiError(400, fmt::format("`{}` is not served by convoy serve", name), name,
                       "unsupported_parameter");
  }
  [[noreturn]] static void refuse(const std::string& name, const std::string& wanted,
                                  const Json& found) {
    throw ApiError(400,
                   fmt::format("`{}` must be {}, found {}", name, wanted,
                               found.dump(-1, ' ', false, Json::error_handler_t::replace)),
                   name, "invalid_value");
  }

 private:
  const Json& object_;
  std::set<std::string> known_;
};

std::vector<std::string> read_stop(FieldReader& fields) {
  const Json* stop = fields.find("stop");
  if (stop == nullptr) return {};
  const Json list = stop->is_array() ? *stop : Json::array({*stop});
  std::vector<std::string> texts;
  for (const Json& one : list) {
    if (!one.is_string() || one.get<std::string>().empty())
      FieldReader::refuse("stop", "a string that is not empty, or a list of them", *stop);
    texts.push_back(one.get<std::string>());
  }
  if (std::ssize(texts) > kMostStopStrings)
    throw ApiError(400, fmt::format("`stop` has more than {} strings", kMostStopStrings), "stop");
  return texts;
}

Json read_messages(FieldReader& fields) {
  const Json* messages = fields.find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty())
    throw ApiError(400, "`messages` must be a list of messages that is not empty", "messages");
  for (size_t at = 0; at < messages->size(); ++at) {
    const Json& message = (*messages)[at];
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      throw ApiError(400, fmt::format("`messages[{}]` has no `role`", at),
                     fmt::format("messages[{}].role", at));
    if (message.contains("tool_calls") || message["role"] == "tool")
      throw ApiError(400, "tools are not served by convoy serve", fmt::format("messages[{}]", at),
                     "unsupported_parameter");
  }
  if (messages->back()["role"] == "assistant")
    throw ApiError(400, "the last message must not be the assistant's", "messages");
  return *messages;
}

std::vector<int32_t> read_ids(const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& id : list) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
        id.get<int64_t>() > std::numeric_limits<int32_t>::max())
      FieldReader::refuse("prompt", "a text, ids, or a list of these", list);
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

std::vector<std::variant<std::string, std::vector<int32_t>>> read_prompts(FieldReader& fields) {
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr || (prompt->is_array() && prompt->empty()))
    throw ApiError(400, "`prompt` must be a text, ids, or a list of these", "prompt");
  if (prompt->is_array() && prompt->front().is_number()) return {read_ids(*prompt)};
  const Json list = prompt->is_array() ? *prompt : Json::array({*prompt});
  std::vector<std::variant<std::string, std::vector<int32_t>>> prompts;
  for (const Json& one : list) {
    if (one.is_string())
      prompts.emplace_back(one.get<std::string>());
    else if (one.is_array())
      prompts.emplace_back(read_ids(one));
    else
      FieldReader::refuse("prompt", "a text, ids, or a list of these", *prompt);
  }
  return prompts;
}

void read_sampling(FieldReader& fields, ApiRequest& request) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  settings::SamplingFlags& sampling = request.sampling;
  sampling.temperature = fields.number("temperature", 1, 0, 100);
  sampling.top_p = fields.number("top_p", 1, 1e-9, 1);
  // -1: all, as in vLLM.
  sampling.top_k = std::max<int64_t>(0, fields.integer("top_k", 0, -1, kMost));
  sampling.min_p = fields.number("min_p", 0, 0, 1);
  sampling.repetition_penalty = fields.number("repetition_penalty", 1, 1e-9, 1e9);
  sampling.n = fields.integer("n", 1, 1, kMostChoices);
  sampling.stop = read_stop(fields);
  if (fields.find("seed") != nullptr) request.seed = fields.integer("seed", 0, 0, INT64_MAX);
  const bool is_chat = request.kind == ApiKind::Chat;
  const int64_t limit =
      fields.integer("max_tokens", is_chat ? 0 : kUsualCompletionTokens, 1, kMost);
  sampling.max_new_tokens =
      is_chat ? fields.integer("max_completion_tokens", limit, 1, kMost) : limit;
}

void read_log_probabilities(FieldReader& fields, ApiRequest& request) {
  if (request.kind == ApiKind::Chat) {
    request.sampling.logprobs = fields.flag("logprobs");
    fields.require_neutral("top_logprobs", {0});
  } else {
    request.sampling.logprobs = fields.find("logprobs") != nullptr;
    fields.require_neutral("logprobs", {0});
  }
  if (request.sampling.logprobs && request.streams)
    throw ApiError(400, "`logprobs` with `stream` is not served by convoy serve", "logprobs",
                   "unsupported_parameter");
}

}  // namespace

ApiRequest parse_api_request(ApiKind kind, std::string_view body) {
  const Json object = Json::parse(body, nullptr, false);
  if (object.is_discarded() || !object.is_object())
    throw ApiError(400, "the body must be a JSON object");
  ApiRequest request;
  request.kind = kind;
  FieldReader fields(object);
  request.model = fields.text("model");
  request.streams = fields.flag("stream");
  if (const Json* options = fields.find("stream_options")) {
    FieldReader of_stream(*options);
    request.reports_usage = of_stream.flag("include_usage");
    of_stream.require_nothing_else();
  }
  read_sampling(fields, request);
  read_log_probabilities(fields, request);
  if (kind == ApiKind::Chat) {
    request.messages = read_messages(fields);
    if (const Json* kwargs = fields.find("chat_template_kwargs")) {
      if (!kwargs->is_object()) FieldReader::refuse("chat_template_kwargs", "an object", *kwargs);
      request.template_kwargs = *kwargs;
    }
    fields.require_neutral("response_format", {{{"type", "text"}}});
    fields.require_neutral("tools", {Json::array()});
    fields.require_neutral("tool_choice", {"none"});
  } else {
    request.prompts = read_prompts(fields);
    fields.require_neutral("echo", {false});
    fields.require_neutral("best_of", {1});
    fields.require_neutral("suffix", {""});
  }
  fields.require_neutral("frequency_penalty", {0, 0.0});
  fields.require_neutral("presence_penalty", {0, 0.0});
  fields.require_neutral("logit_bias", {Json::object()});
  fields.text("user");  // a label of the caller's, without effect on the answer
  fields.require_nothing_else();
  return request;
}

}  // namespace convoy::recipes
