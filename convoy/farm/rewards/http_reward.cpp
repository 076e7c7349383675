// SPDX-License-Identifier: Apache-2.0
//
// One POST with a list of texts; the answer is a list of numbers. A request is sent again
// as in the engine of farm/remote: to a server that is busy or cannot be reached until the time is
// over, to a server that failed some times.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <future>
#include <random>

#include "convoy/core/base/error.h"
#include "convoy/core/http/http_client.h"
#include "convoy/farm/remote/server_answer.h"
#include "convoy/farm/remote/server_load.h"
#include "convoy/farm/remote/servers.h"
#include "convoy/farm/rewards/judged_text.h"
#include "convoy/farm/rewards/reward_kinds.h"

namespace convoy::rewards {
namespace {

using nlohmann::ordered_json;
using remote::AnswerSense;
using remote::Clock;

constexpr std::chrono::milliseconds kStep{50};  // between looks at a stop request
constexpr int kMostFaults = 4;

// The key of the server is the environment's, as that of other servers.
remote::Servers server_of(const settings::RewardSettings& settings) {
  settings::RemoteSettings remote;
  remote.engine = {settings.url};
  remote.engine_model = "none";
  remote.engine_timeout = static_cast<int64_t>(std::ceil(settings.timeout_s)) + 1;
  return with_place_of(settings, "url", [&] { return remote::read_servers(remote, {}); });
}

class HttpReward final : public Reward {
 public:
  explicit HttpReward(settings::RewardSettings settings)
      : settings_(std::move(settings)),
        server_(server_of(settings_)),
        waits_(1, std::random_device()()),
        client_(curl_, server_.limits()) {}

  void ask(std::span<const JudgedText> texts, const std::function<bool()>& stop_requested,
           const TakeValue& take) override {
    if (texts.empty()) return;
    ordered_json list = ordered_json::array();
    for (const JudgedText& text : texts) list.push_back(json_of(text));
    const std::vector<double> numbers = numbers_in(answer_to(line_of(list), stop_requested), texts);
    for (size_t text = 0; text < numbers.size(); ++text) take(text, numbers[text]);
  }

 private:
  std::string answer_to(const std::string& body, const std::function<bool()>& stop_requested) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(settings_.timeout_s));
    std::string why = "the time was over before an answer";
    int faults = 0;
    for (int tries = 1;; ++tries) {
      const std::optional<http::RequestResult> result = post(body, end, stop_requested);
      if (!result) give_up(why);
      if (result->end == http::RequestEnd::Whole && result->answer.status == 200)
        return result->answer.body;
      const bool is_fault = look_at(*result, why);
      if (is_fault && ++faults >= kMostFaults) give_up(why);
      auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(waits_.wait_after(tries));
      if (const auto rest = remote::retry_after(curl_, result->answer)) wait = *rest;
      if (Clock::now() + wait >= end) give_up(why);
      for (const auto until = Clock::now() + wait; Clock::now() < until;) {
        check_stop(stop_requested);
        std::this_thread::sleep_for(std::min<Clock::duration>(kStep, until - Clock::now()));
      }
    }
  }

  // Empty: the time was over.
  std::optional<http::RequestResult> post(const std::string& body, Clock::time_point end,
                                          const std::function<bool()>& stop_requested) {
    const auto ended = std::make_shared<std::promise<http::RequestResult>>();
    std::future<http::RequestResult> result = ended->get_future();
    const int64_t number =
        client_.send({.url = settings_.url, .headers = server_.headers(), .body = body},
                     [ended](http::RequestResult found) { ended->set_value(std::move(found)); });
    try {
      while (result.wait_for(kStep) != std::future_status::ready) {
        check_stop(stop_requested);
        if (Clock::now() < end) continue;
        client_.cancel(number);
        return std::nullopt;
      }
    } catch (...) {
      client_.cancel(number);
      throw;
    }
    return result.get();
  }

  // Says in `why` what happened. True for a fault of the server, false where it only asks for a
  // pause or is not there yet. Throws for an answer that another try would get again.
  bool look_at(const http::RequestResult& result, std::string& why) const {
    if (result.end != http::RequestEnd::Whole) {
      why = result.why;
      return result.end != http::RequestEnd::NoConnection;
    }
    why = fmt::format("status {}: {}", result.answer.status,
                      remote::error_message(server_, result.answer));
    const AnswerSense sense = remote::sense_of(result.answer);
    if (sense == AnswerSense::OfLoad) return false;
    if (sense == AnswerSense::OfServer) return true;
    throw ConfigError(
        fmt::format("reward `{}`: {} refuses the texts with {}", settings_.name, settings_.url,
                    why),
        {.key = settings_.key + ".url",
         .hint = "the server gets a POST with a list of texts and answers a list of numbers; a key "
                 "is read from CONVOY_ENGINE_KEY"});
  }

  [[noreturn]] void give_up(const std::string& why) const {
    throw NetworkError(
        fmt::format("reward `{}`: {} gave no rewards within {} s: {}", settings_.name,
                    settings_.url, settings_.timeout_s, why),
        {.key = settings_.key + ".url",
         .hint = "look at the server, or raise timeout_s; the same command goes on"});
  }

  std::vector<double> numbers_in(const std::string& body, std::span<const JudgedText> texts) const {
    const std::string hint = fmt::format(
        "the server answers a list of {} numbers, in the order of the texts", texts.size());
    const ordered_json list = ordered_json::parse(body, nullptr, false);
    if (!list.is_array())
      refuse_text(settings_, texts.front(),
                  fmt::format("wanted a JSON list of numbers, found {}", server_.quoted(body)),
                  hint);
    std::vector<double> numbers;
    for (size_t text = 0; text < std::min(list.size(), texts.size()); ++text) {
      const double number = list[text].is_number() ? list[text].get<double>() : NAN;
      if (!std::isfinite(number))
        refuse_text(
            settings_, texts[text],
            fmt::format("wanted a finite number, found {}", server_.quoted(line_of(list[text]))),
            hint);
      numbers.push_back(number);
    }
    if (list.size() != texts.size())
      refuse_text(settings_, texts[std::min(list.size(), texts.size() - 1)],
                  fmt::format("wanted {} numbers, found {}", texts.size(), list.size()), hint);
    return numbers;
  }

  settings::RewardSettings settings_;
  http::CurlLibrary curl_;
  remote::Servers server_;
  remote::ServerLoad waits_;
  http::Client client_;
};

}  // namespace

std::unique_ptr<Reward> make_http_reward(const settings::RewardSettings& settings) {
  return std::make_unique<HttpReward>(settings);
}

void check_http_reward(const settings::RewardSettings& settings) { server_of(settings); }

}  // namespace convoy::rewards
