// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "convoy/apps/recipes/serving/api_messages.h"

namespace convoy::recipes {
namespace {

constexpr int64_t kMostChoices = 128;     // as OpenAI's API
constexpr int64_t kMostStopStrings = 16;  // 4 in OpenAI's API
constexpr int64_t kMostBiases = 1024;     // 300 in OpenAI's API
constexpr int64_t kUsualCompletionTokens = 16;
constexpr int64_t kMostChatLogprobs = 20;
constexpr int64_t kMostCompletionLogprobs = 5;
constexpr int64_t kMostPromptLogprobs = 20;  // as vLLM's --max-logprobs

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

std::vector<std::variant<std::string, std::vector<int32_t>>> read_prompts(FieldReader& fields) {
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr || (prompt->is_array() && prompt->empty()))
    throw ApiError(400, "`prompt` must be a text, ids, or a list of these", "prompt");
  if (prompt->is_array() && prompt->front().is_number()) return {read_ids(*prompt, "prompt")};
  const Json list = prompt->is_array() ? *prompt : Json::array({*prompt});
  std::vector<std::variant<std::string, std::vector<int32_t>>> prompts;
  for (const Json& one : list) {
    if (one.is_string())
      prompts.emplace_back(one.get<std::string>());
    else if (one.is_array())
      prompts.emplace_back(read_ids(one, "prompt"));
    else
      FieldReader::refuse("prompt", "a text, ids, or a list of these", *prompt);
  }
  return prompts;
}

// Reads {"id": number}.
std::vector<kernels::LogitBias> read_logit_bias(FieldReader& fields) {
  constexpr double kMostBias = 100;  // as OpenAI's API
  const Json* given = fields.object("logit_bias");
  if (given == nullptr) return {};
  if (std::ssize(*given) > kMostBiases)
    throw ApiError(
        400, fmt::format("`logit_bias` may have {} tokens, found {}", kMostBiases, given->size()),
        "logit_bias", "invalid_value");
  std::vector<kernels::LogitBias> biases;
  for (const auto& [id, value] : given->items()) {
    kernels::LogitBias bias;
    const std::errc problem = std::from_chars(id.data(), id.data() + id.size(), bias.id).ec;
    if (problem != std::errc() || std::to_string(bias.id) != id || bias.id < 0)
      FieldReader::refuse("logit_bias", "an object of token ids", id);
    if (!value.is_number() || !(std::abs(value.get<double>()) <= kMostBias))
      FieldReader::refuse("logit_bias", "an object of numbers from -100 to 100", value);
    bias.bias = value.get<float>();
    biases.push_back(bias);
  }
  return biases;
}

void read_number(FieldReader& fields, const char* name, double least, double most,
                 config::AutoOr<double>& value) {
  if (fields.find(name) != nullptr) value = fields.number(name, 0, least, most);
}

void read_sampling(FieldReader& fields, const settings::SamplingSources& sources,
                   ApiRequest& request) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  settings::SamplingFlags& sampling = request.sampling;
  read_number(fields, "temperature", 0, 100, sampling.temperature);
  // 0 keeps only the likeliest token, as in OpenAI's API.
  read_number(fields, "top_p", 0, 1, sampling.top_p);
  if (sampling.top_p.value) sampling.top_p = std::max(*sampling.top_p.value, 1e-9);
  // -1 keeps all tokens, as in vLLM.
  if (fields.find("top_k") != nullptr)
    sampling.top_k = std::max<int64_t>(0, fields.integer("top_k", 0, -1, kMost));
  read_number(fields, "min_p", 0, 1, sampling.min_p);
  read_number(fields, "repetition_penalty", 1e-9, 1e9, sampling.repetition_penalty);
  request.frequency_penalty = fields.number("frequency_penalty", 0, -2, 2);
  request.presence_penalty = fields.number("presence_penalty", 0, -2, 2);
  request.logit_bias = read_logit_bias(fields);
  sampling.n = fields.integer("n", 1, 1, kMostChoices);
  sampling.stop = read_stop(fields);
  if (fields.find("seed") != nullptr)
    request.seed = fields.integer("seed", 0, INT64_MIN, INT64_MAX);
  if (request.seed == -1) request.seed.reset();  // -1 means no seed, as in vLLM
  const bool is_chat = request.kind == ApiKind::Chat;
  const bool model_says = !sources.model.values.max_new_tokens.is_auto();
  const int64_t limit =
      fields.integer("max_tokens", is_chat || model_says ? -1 : kUsualCompletionTokens, 0, kMost);
  const int64_t tokens = is_chat ? fields.integer("max_completion_tokens", limit, 0, kMost) : limit;
  if (tokens == 0 && !request.reads_prompt_logprobs())
    throw ApiError(400,
                   "`max_tokens` 0 needs `prompt_logprobs`, or `echo` with `logprobs`: without an "
                   "answer the log-probabilities of the prompt are all that can be asked for",
                   "max_tokens", "invalid_value");
  if (tokens >= 0) sampling.max_new_tokens = tokens;
  sampling = settings::settle_sampling(std::move(sampling), sources);
  // `max_tokens` is the older name of `max_completion_tokens`. Some clients send both.
  if (is_chat && limit >= 0 && limit != tokens)
    throw ApiError(400,
                   fmt::format("`max_tokens` is {} and `max_completion_tokens` is {}; they are the "
                               "same limit: leave one out",
                               limit, tokens),
                   "max_tokens", "invalid_value");
}

void read_log_probabilities(FieldReader& fields, ApiRequest& request) {
  if (fields.find("prompt_logprobs") != nullptr)
    request.prompt_logprobs = fields.integer("prompt_logprobs", 0, 0, kMostPromptLogprobs);
  if (request.prompt_logprobs && request.streams)
    throw ApiError(400, "`prompt_logprobs` are not given in streams; leave `stream` out",
                   "prompt_logprobs", "unsupported_parameter");
  if (request.kind == ApiKind::Completion) {
    request.echoes = fields.flag("echo");
    if (request.echoes && request.streams)
      throw ApiError(400, "`echo` is not given in streams; leave `stream` out", "echo",
                     "unsupported_parameter");
    request.sampling.logprobs = fields.find("logprobs") != nullptr;
    request.top_logprobs = fields.integer("logprobs", 0, 0, kMostCompletionLogprobs);
    return;
  }
  request.sampling.logprobs = fields.flag("logprobs");
  request.top_logprobs = fields.integer("top_logprobs", 0, 0, kMostChatLogprobs);
  if (request.top_logprobs > 0 && !request.sampling.logprobs)
    throw ApiError(400, "`top_logprobs` needs `logprobs`: true", "top_logprobs", "invalid_value");
}

// Fields of OpenAI's service that change no answer here: labels for its bills, caches and logs.
void read_service_fields(FieldReader& fields) {
  fields.text("user");
  fields.object("metadata");
  fields.text("prompt_cache_key");
  fields.text("prompt_cache_retention");
  fields.text("safety_identifier");
  fields.require_neutral("store", {false});
  fields.require_neutral("service_tier", {"auto", "default"});
  fields.require_neutral("modalities", {Json::array({"text"})});
}

}  // namespace

std::vector<int32_t> read_ids(const Json& list, const std::string& field) {
  std::vector<int32_t> ids;
  for (const Json& id : list) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
        id.get<int64_t>() > std::numeric_limits<int32_t>::max())
      FieldReader::refuse(field, "a list of ids", list);
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

ApiRequest parse_api_request(ApiKind kind, std::string_view body,
                             const settings::SamplingSources& sources) {
  const Json object = parse_object(body);
  ApiRequest request;
  request.kind = kind;
  FieldReader fields(object);
  request.model = fields.text("model");
  request.streams = fields.flag("stream");
  if (const Json* options = fields.object("stream_options")) {
    // An empty object asks for nothing, as in vLLM.
    if (!request.streams && !options->empty())
      throw ApiError(400, "`stream_options` needs `stream`: true; leave it out", "stream_options",
                     "invalid_value");
    FieldReader of_stream(*options, "stream_options");
    request.reports_usage = of_stream.flag("include_usage");
    of_stream.flag("include_obfuscation");  // padding of streams, which hides the length of tokens
    of_stream.require_nothing_else();
  }
  read_log_probabilities(fields, request);
  read_sampling(fields, sources, request);
  if (kind == ApiKind::Chat) {
    request.messages = read_messages(fields);
    if (request.messages.back()["role"] == "assistant")
      throw ApiError(400, "the last message must not be the assistant's", "messages");
    request.template_kwargs = read_template_kwargs(fields);
    request.tools = read_tools(fields);
    // The older names of `tools` and `tool_choice` may only ask for no tools.
    fields.require_neutral("functions", {Json::array()});
    fields.require_neutral("function_call", {"none", "auto"});
  } else {
    request.prompts = read_prompts(fields);
    fields.require_neutral("best_of", {1});
    fields.require_neutral("suffix", {""});
  }
  request.form = read_form(fields);
  if (request.form && !request.tools.tools.is_null())
    throw ApiError(400,
                   fmt::format("`{}` beside `tools` is not served: leave one out, or set "
                               "`tool_choice` to \"none\"",
                               request.form->field),
                   request.form->field, "unsupported_parameter");
  read_service_fields(fields);
  fields.require_nothing_else();
  return request;
}

}  // namespace convoy::recipes
