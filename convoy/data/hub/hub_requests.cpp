// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/hub_requests.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "convoy/core/base/printable_text.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/hub/url.h"

namespace convoy::hub {
namespace {

constexpr int kMostFailures = 6;  // consecutive failures without a received byte
constexpr double kFirstWaitSeconds = 0.5;
constexpr double kLongestWaitSeconds = 60;

bool may_pass(int status) { return status == 408 || status == 429 || status >= 500; }

}  // namespace

int64_t whole_number(const std::string& text) { return text_as<int64_t>(text).value_or(-1); }

std::string reason_of(const http::Answer& answer) {
  std::string said = answer.header("x-error-message");
  if (said.empty()) {
    const nlohmann::json body = nlohmann::json::parse(answer.body, nullptr, false);
    if (body.is_object() && body.contains("error") && body["error"].is_string())
      said = body["error"].get<std::string>();
  }
  // A store answers XML.
  constexpr std::string_view kBegin = "<Message>";
  if (const size_t begin = answer.body.find(kBegin); said.empty() && begin != std::string::npos)
    said = answer.body.substr(begin + kBegin.size(),
                              answer.body.find("</Message>", begin) - begin - kBegin.size());
  return said.empty() ? "" : fmt::format(" ({:.300})", printable_text(said));
}

HubRequests::HubRequests(const http::CurlLibrary& curl, const HubSettings& settings,
                         int64_t stall_seconds, StopTest stop, Log log)
    : http_(curl, {.whole_time = {},
                   .stall_time = std::chrono::seconds(stall_seconds),
                   .certificates = settings.certificates}),
      settings_(settings),
      stop_(std::move(stop)),
      log_(std::move(log)) {}

void HubRequests::require_not_busy(const http::Answer& answer, const std::string& url) {
  if (!may_pass(answer.status)) return;
  const int64_t seconds = whole_number(answer.header("retry-after"));
  throw HubBusy(fmt::format("{} answers {}{}", shown_url(url), answer.status, reason_of(answer)),
                static_cast<double>(std::max<int64_t>(seconds, 0)));
}

http::Answer HubRequests::send(http::Request request, Credentials credentials) {
  const std::string url = request.url;
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    throw ConfigError(fmt::format("`{}` is no http:// or https:// address", url),
                      {.hint = "check HF_ENDPOINT"});
  if (credentials == Credentials::Token && !settings_.token.empty() &&
      same_origin(url, settings_.endpoint))
    request.headers.push_back("Authorization: Bearer " + settings_.token);
  request.must_end = stop_;
  http::RequestResult result = http_.ask(std::move(request)).get();
  if (result.failure) std::rethrow_exception(result.failure);
  if (stop_()) throw StopRequest("stopped on request");
  if (result.end == http::RequestEnd::Whole) return std::move(result.answer);
  if (result.code == CURLE_URL_MALFORMAT || result.code == CURLE_UNSUPPORTED_PROTOCOL)
    throw ConfigError(fmt::format("`{}` is no address", url), {.hint = "check HF_ENDPOINT"});
  if (result.is_too_long)
    throw DataError(fmt::format("{}: {}", shown_url(url), result.why),
                    {.hint = "check HF_ENDPOINT: this is no answer of a hub"});
  throw NetworkError(
      fmt::format("{}: {}", shown_url(url), result.why),
      {.hint = "set HF_ENDPOINT to a mirror, or https_proxy to a proxy, that this machine reaches; "
               "without a network, fetch on another machine and copy the folder that it prints: a "
               "folder can be given in place of an id and needs no network"});
}

void HubRequests::wait(double seconds) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (stop_()) throw StopRequest("stopped on request");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void HubRequests::with_retries(const std::function<void()>& attempt,
                               const std::function<int64_t()>& progress) {
  int failures = 0;
  int64_t before = progress ? progress() : 0;
  for (;;) {
    double asked_seconds = 0;
    std::string reason;
    try {
      return attempt();
    } catch (const NetworkError& error) {
      const int64_t now = progress ? progress() : 0;
      failures = now > before ? 1 : failures + 1;
      before = now;
      if (failures >= kMostFailures) throw;
      if (const auto* busy = dynamic_cast<const HubBusy*>(&error))
        asked_seconds = busy->wait_seconds();
      reason = error.what();
    }
    const double own_seconds = kFirstWaitSeconds * std::pow(2, failures - 1);
    if (asked_seconds > 10 * kLongestWaitSeconds)
      throw NetworkError(
          fmt::format("{}, and asks to wait {}", reason, telemetry::duration_text(asked_seconds)),
          {.hint = "run the same command later: what was transferred is kept"});
    const double seconds = std::max(asked_seconds, std::min(own_seconds, kLongestWaitSeconds));
    log_.info(fmt::format("{}; again in {:.1f} s", reason, seconds));
    wait(seconds);
  }
}

}  // namespace convoy::hub
