// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/front_desk.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/trimmed.h"

namespace convoy::recipes {
namespace {

void require_method(const http::Exchange& exchange, std::string_view method) {
  if (exchange.method() != method)
    throw ApiError(405, fmt::format("{} takes {} requests", exchange.path(), method));
}

}  // namespace

std::set<std::string> read_api_keys(const std::string& file) {
  std::set<std::string> keys;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);)
    if (const std::string key(trimmed(line, " \t\r")); !key.empty()) keys.insert(key);
  if (keys.empty())
    throw ConfigError("the file has no key; write one a line",
                      {.file = file, .key = "--api-key-file"});
  return keys;
}

void FrontDesk::take(ExchangePtr exchange) {
  try {
    direct(exchange);
  } catch (const ApiError& error) {
    respond_error(*exchange, error);
  }
}

std::deque<ExchangePtr> FrontDesk::passed_on(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return !waiting_.empty(); });
  return std::exchange(waiting_, {});
}

void FrontDesk::direct(ExchangePtr& exchange) {
  const std::string_view path = exchange->path();
  if (path == "/health") {
    require_method(*exchange, "GET");
    if (stop_wanted_) throw ApiError(503, "the server is about to stop");
    return exchange->respond(200, json_headers(), "{\"status\":\"ok\"}\n");
  }
  require_key(*exchange);
  if (path == "/v1/models") {
    require_method(*exchange, "GET");
    return exchange->respond(200, json_headers(), dumped(models()) + "\n");
  }
  if (path != "/v1/chat/completions" && path != "/v1/completions")
    throw ApiError(404, fmt::format("there is no {}", path));
  require_method(*exchange, "POST");
  if (stop_wanted_) throw ApiError(503, "the server is about to stop");
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(exchange));
  }
  changed_.notify_one();
}

void FrontDesk::require_key(const http::Exchange& exchange) const {
  if (keys_.empty()) return;
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given = exchange.header("authorization");
  if (!given.starts_with(kScheme) || !keys_.contains(std::string(given.substr(kScheme.size()))))
    throw ApiError(401, "the request carries no valid key (Authorization: Bearer KEY)", {},
                   "invalid_api_key");
}

Json FrontDesk::models() const {
  Json list = Json::array();
  for (const std::string& name : model_names_)
    list.push_back(
        {{"id", name}, {"object", "model"}, {"created", started_}, {"owned_by", "convoy"}});
  return {{"object", "list"}, {"data", list}};
}

}  // namespace convoy::recipes
