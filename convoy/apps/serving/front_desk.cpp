// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/front_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "convoy/apps/serving/messages_client.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/json_depth.h"
#include "convoy/core/base/lower_case.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/core/http/host_header.h"
#include "convoy/core/http/request_target.h"

namespace convoy::serving {
namespace {

// The paths that an engine answers.
constexpr std::string_view kPostPaths[] = {"/v1/chat/completions", "/v1/completions", "/tokenize",
                                           "/detokenize"};

// Paths of the APIs for which a text model has no answer.
constexpr std::string_view kPathsOfOthers[] = {
    "/v1/embeddings", "/v1/responses", "/v1/images",      "/v1/audio",           "/v1/moderations",
    "/v1/files",      "/v1/batches",   "/v1/fine_tuning", "/v1/messages/batches"};

constexpr std::string_view kModelPath = "/v1/models/";

template <size_t count>
bool is_one_of(const std::string_view (&paths)[count], std::string_view path) {
  return std::find(std::begin(paths), std::end(paths), path) != std::end(paths);
}

[[noreturn]] void refuse_path(std::string_view path) {
  for (const std::string_view other : kPathsOfOthers)
    if (path.starts_with(other))
      throw ApiError(404,
                     fmt::format("convoy serve has no {}: it serves texts, by "
                                 "/v1/chat/completions, /v1/completions and /v1/messages",
                                 other.substr(std::string_view("/v1/").size())),
                     {}, "unsupported_path");
  throw ApiError(404, fmt::format("there is no {}", path));
}

// Allows HEAD for GET, because health probes use HEAD.
void require_method(const http::Exchange& exchange, std::string_view method) {
  if (exchange.method() != method && !(method == "GET" && exchange.method() == "HEAD"))
    throw ApiError(405, fmt::format("{} takes {} requests", exchange.path(), method), {}, {},
                   {{"allow", method == "GET" ? "GET, HEAD" : std::string(method)}});
}

// Pages of other sites can send plain forms to a server of this machine, but no JSON unless it
// allows them to.
void require_json(const http::Exchange& exchange) {
  if (!lower_case(std::string(exchange.header("content-type"))).starts_with("application/json"))
    throw ApiError(415, "the body must be JSON (Content-Type: application/json)");
}

// The key that a request carries: a client of OpenAI sends `Authorization: Bearer KEY`, a client of
// Anthropic `x-api-key`. Empty: none.
std::string_view key_of(const http::Exchange& exchange) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view given = exchange.header("authorization");
  if (lower_case(std::string(given.substr(0, kScheme.size()))) == kScheme)
    return given.substr(kScheme.size());
  return exchange.header("x-api-key");
}

}  // namespace

std::vector<std::string> read_api_keys(const std::string& file) {
  std::vector<std::string> keys;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);)
    if (std::string key(trimmed(line, " \t\r")); !key.empty()) keys.push_back(std::move(key));
  if (keys.empty())
    throw ConfigError("the file has no key",
                      {.file = file, .key = "--api-key-file", .hint = "write one a line"});
  return keys;
}

void FrontDesk::take(std::unique_ptr<http::Exchange> exchange) {
  try {
    direct(exchange);
  } catch (const ApiError& error) {
    if (!exchange->path().starts_with(kMessagesPath)) return respond_error(*exchange, error);
    exchange->respond(error.status(), error.headers(),
                      dumped(message_error(error.status(), error.body())) + "\n");
  }
}

void FrontDesk::direct(std::unique_ptr<http::Exchange>& exchange) {
  const std::string_view path = exchange->path();
  if (path == "/health") {
    require_method(*exchange, "GET");
    require_open();
    if (!engines_.any_ready()) throw ApiError(503, "no engine is ready");
    return respond_json(*exchange, {{"status", "ok"}});
  }
  require_key(*exchange);
  if (path == "/v1/models") {
    require_method(*exchange, "GET");
    return respond_json(*exchange, models());
  }
  if (path.starts_with(kModelPath)) {
    require_method(*exchange, "GET");
    return respond_json(*exchange,
                        named_model(http::parse_target(path).path.substr(kModelPath.size())));
  }
  if (path == "/tokenizer_info") {
    require_method(*exchange, "GET");
    require_open();
    return engines_.take(std::make_unique<PlainClient>(std::move(exchange)));
  }
  if (path == "/metrics") {
    require_method(*exchange, "GET");
    return engines_.take_metrics(std::make_unique<PlainClient>(std::move(exchange)));
  }
  const bool is_message = speaks_messages(path);
  if (!is_message && !is_one_of(kPostPaths, path)) refuse_path(path);
  require_method(*exchange, "POST");
  require_json(*exchange);
  require_open();
  if (nested_deeper(exchange->body())) throw ApiError(400, "the body is nested too deeply");
  if (!is_message) return engines_.take(std::make_unique<PlainClient>(std::move(exchange)));
  EngineRequest request = engine_request(path, exchange->body());
  engines_.take(std::make_unique<MessagesClient>(std::move(exchange), std::move(request)));
}

void FrontDesk::require_key(const http::Exchange& exchange) const {
  if (keys_.empty()) {
    const std::string_view header = exchange.header("host");
    if (header.empty() || http::belongs_to_no_site(http::read_host(header).host)) return;
    throw ApiError(403,
                   "the Host header is neither an address nor localhost; with --api-key-file any "
                   "name is taken");
  }
  const std::string_view given = key_of(exchange);
  bool is_valid = false;
  for (const std::string& key : keys_) is_valid = equal_in_constant_time(key, given) || is_valid;
  if (given.empty() || !is_valid)
    throw ApiError(401,
                   "the request carries no valid key (Authorization: Bearer KEY, or x-api-key)", {},
                   "invalid_api_key", {{"www-authenticate", "Bearer"}});
}

void FrontDesk::require_open() const {
  if (closed_) throw ApiError(503, "the server is about to stop");
}

Json FrontDesk::model(const std::string& name) const {
  return {{"id", name}, {"object", "model"}, {"created", started_}, {"owned_by", "convoy"}};
}

Json FrontDesk::models() const {
  Json list = Json::array();
  for (const std::string& name : model_names_) list.push_back(model(name));
  return {{"object", "list"}, {"data", list}};
}

Json FrontDesk::named_model(const std::string& name) const {
  if (std::find(model_names_.begin(), model_names_.end(), name) == model_names_.end())
    throw model_not_served(name);
  return model(name);
}

}  // namespace convoy::serving
