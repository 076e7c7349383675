// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/http_text_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/farm/remote/api_text.h"
#include "convoy/farm/remote/open_refusals.h"
#include "convoy/farm/remote/server_answer.h"
#include "convoy/farm/remote/server_load.h"

namespace convoy::remote {
namespace {

using process::TextFinish;
using process::TextResult;

constexpr std::chrono::milliseconds kStep{50};
// Tries for a text before it ends as an Error that may pass. Refusals because of load and
// unreachable servers do not count, since the text is not their cause.
constexpr int kMostTries = 4;
// The same limit for tries that made the server compute: such requests cost money.
constexpr int kMostPaidTries = 2;
// The most refusals of one text because of load, while other texts get answers.
constexpr int kMostBusy = 30;
// A pause of a server is reported if it is at least this long, because the progress seems to stand
// still.
constexpr std::chrono::seconds kLongRest{30};

// Ended requests, passed from the client's thread to the engine's thread.
class Mailbox {
 public:
  struct Letter {
    int64_t number = 0;  // number of the text, or of the server if `is_look`
    bool is_look = false;
    http::RequestResult result;
  };

  void put(Letter letter) {
    const std::lock_guard<std::mutex> lock(mutex_);
    letters_.push_back(std::move(letter));
    changed_.notify_one();
  }
  std::vector<Letter> take(Clock::time_point until) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_until(lock, until, [this] { return !letters_.empty(); });
    return std::exchange(letters_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Letter> letters_;
};

// A text whose connection broke. A request to its server (a look) shows whether the text or the
// server is the cause.
struct Break {
  int64_t number = 0;
  std::string why;
};

class HttpTextEngine final : public process::TextEngine {
 public:
  HttpTextEngine(const http::CurlLibrary& curl, Servers servers, HttpEngineOptions options, Log log)
      : servers_(std::move(servers)),
        options_(std::move(options)),
        log_(std::move(log)),
        load_(servers_.addresses.size(), std::random_device()()),
        refusals_(options_.was_answered),
        has_newer_limit_(servers_.addresses.size()),
        breaks_(servers_.addresses.size()),
        curl_(curl),
        client_(curl, servers_.limits()) {}

  void submit(process::TextRequest request) override {
    const int64_t number = request.number;
    try {
      texts_[number].api = api_text(request, servers_.model, options_.template_kwargs);
      texts_[number].place = {-request.priority, number};
      ready_.insert(texts_[number].place);
    } catch (const nlohmann::json::exception& error) {
      texts_.erase(number);
      ended_.push_back({.number = number,
                        .finish = TextFinish::Error,
                        .error = fmt::format("the prompt cannot be sent: {}", error.what())});
    }
  }

  void cancel(int64_t number) override {
    std::erase_if(ended_, [number](const TextResult& result) { return result.number == number; });
    const auto found = texts_.find(number);
    if (found == texts_.end()) return;
    if (found->second.is_sent) {
      client_.cancel(found->second.sent_as);
      load_.withdraw(found->second.request);
    }
    if (std::erase_if(breaks_[found->second.request.server],
                      [number](const Break& one) { return one.number == number; }) > 0)
      load_.withdraw(found->second.request);
    ready_.erase(found->second.place);
    refusals_.withdraw(number);
    std::erase_if(delayed_, [number](const auto& text) { return text.second == number; });
    texts_.erase(found);
  }

  int64_t unfinished() const override { return std::ssize(texts_) + std::ssize(ended_); }

  std::vector<TextResult> step() override {
    if (ended_.empty()) {
      end_without_credit();
      judge_refusals();
    }
    send_ready();
    const auto now = Clock::now();
    for (Mailbox::Letter& letter : mailbox_.take(ended_.empty() ? wake_time(now) : now))
      if (letter.is_look)
        judge_breaks(static_cast<size_t>(letter.number), letter.result);
      else
        take(letter);
    count_time();
    return std::exchange(ended_, {});
  }

  process::EngineFigures figures() const override { return figures_; }

 private:
  struct Text {
    ApiText api;
    std::pair<int64_t, int64_t> place;  // place in ready_, while the text waits there
    int tries = 0;                      // failed tries so far
    int lone_breaks = 0;                // breaks of only this text's connection, at the same server
    int busy = 0;                       // refusals because of load
    bool is_sent = false;
    bool has_newer_limit = false;  // value when the request was sent
    int64_t sent_as = 0;           // the client's number for the request
    ServerRequest request;
  };

  Clock::time_point wake_time(Clock::time_point now) const {
    Clock::time_point wake = now + kStep;
    if (!ready_.empty() && load_.in_flight() < options_.requests && !refusals_.are_many() &&
        !out_of_credit_)
      wake = std::min(wake, std::max(now, load_.next_time()));
    if (!delayed_.empty()) wake = std::min(wake, std::max(now, delayed_.begin()->first));
    return wake;
  }

  void send_ready() {
    const auto now = Clock::now();
    for (; !delayed_.empty() && delayed_.begin()->first <= now; delayed_.erase(delayed_.begin()))
      ready_.insert(texts_.at(delayed_.begin()->second).place);
    while (!ready_.empty() && load_.in_flight() < options_.requests && !out_of_credit_) {
      // Too many texts were refused. New texts wait until the answers in flight show whether any
      // text can succeed.
      if (refusals_.are_many() && texts_.at(ready_.begin()->second).tries == 0) return;
      const std::optional<ServerRequest> request = load_.choose(now);
      if (!request) return;
      const int64_t number = ready_.begin()->second;
      ready_.erase(ready_.begin());
      send(number, *request);
    }
  }

  void send(int64_t number, const ServerRequest& request) {
    Text& text = texts_.at(number);
    text.request = request;
    text.is_sent = true;
    text.has_newer_limit = has_newer_limit_[request.server];
    text.sent_as = client_.send(
        {.url = servers_.addresses[request.server] + text.api.path,
         .headers = servers_.headers(),
         .body = text.has_newer_limit ? with_newer_limit(text.api.body) : text.api.body,
         .fresh_connection = text.tries > 0},
        [this, number](http::RequestResult result) {
          mailbox_.put({.number = number, .result = std::move(result)});
        });
  }

  // A prompt that breaks its connection and a server that fails look the same from here. The text
  // stays in flight until a look at the server shows the cause.
  void look_after_break(int64_t number, std::string why) {
    const size_t server = texts_.at(number).request.server;
    breaks_[server].push_back({number, std::move(why)});
    if (breaks_[server].size() > 1) return;  // a look is in flight
    client_.send({.url = servers_.addresses[server] + "/models", .headers = servers_.headers()},
                 [this, server](http::RequestResult result) {
                   mailbox_.put({.number = static_cast<int64_t>(server),
                                 .is_look = true,
                                 .result = std::move(result)});
                 });
  }

  void judge_breaks(size_t server, const http::RequestResult& look) {
    const std::vector<Break> breaks = std::exchange(breaks_[server], {});
    const bool is_well = look.end == http::RequestEnd::Whole && look.answer.status < 500;
    for (const Break& one : breaks) {
      if (is_well)
        fail_alone(one.number, one.why, breaks.size() == 1);
      else
        fail(one.number, Trouble::Faulty, one.why);
    }
  }

  // The server is well and stays in use. If several texts broke together, one of them may have
  // caused all breaks. So only a text that broke alone each time fails for good.
  void fail_alone(int64_t number, const std::string& why, bool is_lone) {
    Text& text = texts_.at(number);
    log_.detail(fmt::format("{}: {}", address(text), why));
    load_.withdraw(text.request);
    text.lone_breaks += is_lone ? 1 : 0;
    if (++text.tries >= kMostTries)
      return end({.number = number,
                  .finish = TextFinish::Error,
                  .error = fmt::format("{}: {}, in the last of {} requests for it; the server "
                                       "answers otherwise",
                                       address(text), why, text.tries),
                  .error_may_pass = text.lone_breaks < text.tries});
    delayed_.emplace(Clock::now() + load_.wait_after(text.tries), number);
  }

  void take(Mailbox::Letter& letter) {
    const auto found = texts_.find(letter.number);
    if (found == texts_.end()) return;  // cancelled in the meantime
    Text& text = found->second;
    text.is_sent = false;
    http::RequestResult& result = letter.result;
    if (result.end == http::RequestEnd::NoConnection)
      return suffer(letter.number, Trouble::Down, result.why);
    if (result.end == http::RequestEnd::TimedOut)
      return fail(letter.number, Trouble::Busy,
                  fmt::format("no answer within {} s (--engine-timeout)", servers_.timeout_s));
    if (result.end == http::RequestEnd::Broken) return look_after_break(letter.number, result.why);
    if (result.answer.status != 200) return take_error(letter.number, std::move(result.answer));
    ApiAnswer read = read_api_text(result.answer.body);
    if (read.text) return succeed(letter.number, std::move(*read.text));
    if (read.error_status != 0) {
      result.answer.status = read.error_status;
      return take_error(letter.number, std::move(result.answer));
    }
    const std::string& body = result.answer.body;
    fail(letter.number, Trouble::Faulty,
         fmt::format("an answer that holds no text of the API: {}",
                     body.empty() ? "it is empty" : servers_.quoted(body)),
         {}, read.is_of_api ? kMostPaidTries : kMostTries);
  }

  void take_error(int64_t number, http::Answer answer) {
    const auto rest = retry_after(curl_, answer);
    switch (sense_of(answer)) {
      case AnswerSense::OfLoad:
        // Other texts get answers in the meantime, so this text is the cause.
        if (++texts_.at(number).busy > kMostBusy && last_success_ > texts_.at(number).request.sent)
          return fail(number, Trouble::Busy, status_text(answer), rest, 1);
        return suffer(number, Trouble::Busy, status_text(answer), rest);
      case AnswerSense::OfServer:
        return fail(number, Trouble::Faulty, status_text(answer), rest);
      default:
        return refuse(number, std::move(answer));
    }
  }

  std::string status_text(const http::Answer& answer) const {
    return fmt::format("status {}: {}", answer.status, error_message(servers_, answer));
  }

  const std::string& address(const Text& text) const {
    return servers_.addresses[text.request.server];
  }

  void succeed(int64_t number, TextResult result) {
    Text& text = texts_.at(number);
    const std::string settings = std::move(text.api.settings);
    load_.succeed(text.request);
    last_success_ = Clock::now();
    result.number = number;
    figures_.prefill_tokens += result.prompt_tokens;
    figures_.decode_tokens += result.new_tokens;
    end(std::move(result));
    for (const Refusal& refusal : refusals_.explained_by_answer(settings)) settle(refusal);
  }

  void end(TextResult result) {
    texts_.erase(result.number);
    ended_.push_back(std::move(result));
  }

  using Rest = std::optional<std::chrono::milliseconds>;  // pause that the server asks for

  // Notes trouble that the server caused, not the text.
  void suffer(int64_t number, Trouble trouble, const std::string& why, Rest rest = {}) {
    Text& text = texts_.at(number);
    note_trouble(text, trouble, why, rest);
    ready_.insert(text.place);
  }

  // Notes trouble that the text may have caused: a prompt may crash a server.
  void fail(int64_t number, Trouble trouble, const std::string& why, Rest rest = {},
            int most_tries = kMostTries) {
    Text& text = texts_.at(number);
    note_trouble(text, trouble, why, rest);
    if (++text.tries >= most_tries)
      return end({.number = number,
                  .finish = TextFinish::Error,
                  .error = fmt::format("{}: {}", address(text), why),
                  .error_may_pass = most_tries == kMostTries});
    delayed_.emplace(Clock::now() + load_.wait_after(text.tries), number);
  }

  void note_trouble(const Text& text, Trouble trouble, const std::string& why, Rest rest) {
    const auto now = Clock::now();
    log_.detail(fmt::format("{}: {}", address(text), why));
    if (load_.suffer(text.request, trouble, now, rest))
      warn(fmt::format("{} is set aside and tried again later: {}", address(text), why));
    else if (trouble == Trouble::Busy && !std::exchange(told_busy_, true))
      tell(fmt::format("{} is busy: {} at once now, more as it answers ({})", address(text),
                       counted(load_.limit(text.request.server), "request"), why));
    if (rest && *rest >= kLongRest && now + *rest > told_rest_until_) {
      told_rest_until_ = now + 2 * *rest;
      warn(fmt::format("{} gets no request for {} s, as it asked (Retry-After)", address(text),
                       std::chrono::ceil<std::chrono::seconds>(*rest).count()));
    }
    if (load_.in_flight() == 0 && now - last_success_ > options_.patience)
      throw NetworkError(
          fmt::format("no server has answered for {} s; {}: {}", options_.patience.count(),
                      address(text), why),
          {.key = "--engine",
           .hint = "all finished texts are kept; the same command goes on once a server answers"});
  }

  void warn(const std::string& message) const {
    if (options_.warn) return options_.warn(message);
    log_.warning(message);
  }

  void tell(const std::string& message) const {
    if (options_.warn) return options_.warn(message);
    log_.info(message);
  }

  // The next answer to another text with the same settings shows whether a refusal concerns one
  // text or all texts. Until then the text waits and is not sent again.
  void refuse(int64_t number, http::Answer answer) {
    Text& text = texts_.at(number);
    const AnswerSense sense = sense_of(answer);
    if (sense == AnswerSense::OfCredit) {
      load_.withdraw(text.request);
      ready_.insert(text.place);
      if (!out_of_credit_) out_of_credit_ = NoCredit{address(text), std::move(answer)};
      return;
    }
    if (sense == AnswerSense::OfAddress && refusals_.has_ended()) {
      load_.withdraw(text.request);  // the address is known to be right
    } else if (sense != AnswerSense::OfText) {
      note_trouble(text, Trouble::Faulty, status_text(answer), {});
    } else {
      load_.withdraw(text.request);
      if (!text.has_newer_limit && text.api.path == "/chat/completions" &&
          needs_newer_limit(answer)) {
        has_newer_limit_[text.request.server] = true;
        ready_.insert(text.place);
        return;
      }
      // Status 403 may be about the key or about the text.
      if (is_about_length(answer) ||
          (answer.status != 403 && refusals_.is_answered(text.api.settings)))
        return end_refused(number, answer);
    }
    const bool was_sent_again = text.tries > 0;
    refusals_.add({number, text.api.settings, std::move(answer)}, was_sent_again);
  }

  // Waiting does not give an account credit. The answers in flight are paid for and still taken.
  void end_without_credit() const {
    if (out_of_credit_ && load_.in_flight() == 0)
      refuse_answer(servers_, out_of_credit_->address, out_of_credit_->answer);
  }

  void end_refused(int64_t number, const http::Answer& answer) {
    end({.number = number,
         .finish = TextFinish::Error,
         .error = fmt::format("the server refuses it with {}", status_text(answer))});
  }

  // Called after an answer to another text. The server knows path and key, so either it has
  // recovered or it refuses this text.
  void settle(const Refusal& refusal) {
    Text& text = texts_.at(refusal.number);
    if (sense_of(refusal.answer) == AnswerSense::OfText || ++text.tries >= kMostTries)
      return end_refused(refusal.number, refusal.answer);
    ask_soon(refusal.number);
  }

  void ask_soon(int64_t number) {
    Text& text = texts_.at(number);
    text.place.first = std::numeric_limits<int64_t>::min();
    delayed_.emplace(Clock::now() + load_.wait_after(text.tries), number);
  }

  // Called when no answer is left that could show what the refusals concern. If the path or the
  // model is missing, one text is sent again, because some servers answer like this while they
  // load. A refusal that does not concern every text ends its own text.
  void judge_refusals() {
    if (refusals_.empty() || load_.in_flight() > 0 || !delayed_.empty()) return;
    if (!refusals_.are_many() && !ready_.empty()) return;
    const Refusal first = refusals_.take_first();
    Text& text = texts_.at(first.number);
    const AnswerSense sense = sense_of(first.answer);
    if (sense == AnswerSense::OfAddress && ++text.tries < kMostTries) return ask_soon(first.number);
    if (refusals_.concerns_every_text(first)) refuse_answer(servers_, address(text), first.answer);
    end_unexplained(first);
    // The first text was sent again for all texts that were refused in the same way.
    if (sense == AnswerSense::OfAddress)
      for (const Refusal& other : refusals_.take_alike(first.settings, sense))
        end_unexplained(other);
  }

  void end_unexplained(const Refusal& refusal) {
    refusals_.note_end();
    end_refused(refusal.number, refusal.answer);
  }

  // The whole time in which requests run counts as time for new tokens, because the client cannot
  // see how a server divides it.
  void count_time() {
    const auto now = Clock::now();
    if (figures_.running > 0)
      figures_.decode_seconds += std::chrono::duration<double>(now - last_count_).count();
    last_count_ = now;
    figures_.running = load_.in_flight();
    figures_.waiting = std::ssize(texts_) - figures_.running;
  }

  Servers servers_;
  HttpEngineOptions options_;
  Log log_;
  ServerLoad load_;
  OpenRefusals refusals_;
  std::vector<bool> has_newer_limit_;       // by server: accepts only the newer name of the limit
  std::vector<std::vector<Break>> breaks_;  // by server; texts that wait for a look at the server
  bool told_busy_ = false;
  Clock::time_point told_rest_until_ = {};   // further pauses are not reported before this time
  std::unordered_map<int64_t, Text> texts_;  // unfinished texts by number
  // Places of the texts that can be sent, in order of sending.
  std::set<std::pair<int64_t, int64_t>> ready_;
  // Texts by the time at which they may be sent.
  std::multimap<Clock::time_point, int64_t> delayed_;
  struct NoCredit {
    std::string address;
    http::Answer answer;
  };
  std::optional<NoCredit> out_of_credit_;  // the first such answer; nothing is sent after it
  std::vector<TextResult> ended_;          // results for the next step()
  process::EngineFigures figures_;
  Clock::time_point last_success_ = Clock::now();
  Clock::time_point last_count_ = Clock::now();
  Mailbox mailbox_;
  const http::CurlLibrary& curl_;
  http::Client client_;  // destroyed before the mailbox
};

}  // namespace

std::unique_ptr<process::TextEngine> make_http_text_engine(const http::CurlLibrary& curl,
                                                           Servers servers,
                                                           HttpEngineOptions options,
                                                           const Log& log) {
  return std::make_unique<HttpTextEngine>(curl, std::move(servers), std::move(options), log);
}

}  // namespace convoy::remote
