// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/engine_group.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "convoy/apps/serving/front_link.h"
#include "convoy/apps/serving/json_answer.h"
#include "convoy/apps/serving/metrics_text.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::serving {
namespace {

using Clock = std::chrono::steady_clock;

// Wait before the next start of an engine that ended before it was ready. It doubles each time.
constexpr std::chrono::seconds kFirstWait(1);
constexpr std::chrono::seconds kLongestWait(60);
// After this many engines died while they answered a request, the request may be the cause.
constexpr int kMostTries = 2;

[[noreturn]] void throw_failed_start(const processes::ProcessDeath& death,
                                     const std::string& end_words) {
  if (const std::optional<Error> own = processes::own_error(death)) throw *own;
  throw StateError(
      fmt::format("engine {} {} before it was ready", death.worker, end_words),
      {.hint = death.stderr_tail.empty() ? "look for memory that ran out" : death.stderr_tail});
}

}  // namespace

EngineGroup::EngineGroup(processes::PoolOptions pool, const Log& log,
                         std::chrono::seconds silence_limit)
    : log_(log),
      silence_limit_(silence_limit),
      engines_(static_cast<size_t>(pool.workers)),
      choice_(engines_.size()),
      wakes_(::epoll_create1(EPOLL_CLOEXEC)) {
  pool.environment.resize(engines_.size());
  for (size_t number = 0; number < engines_.size(); ++number)
    pool.environment[number][kEngineVariable] = std::to_string(number);
  pool.input = [this](size_t number) { return connect(number); };
  pool_ = std::make_unique<processes::ProcessPool>(std::move(pool));
}

EngineGroup::~EngineGroup() = default;

void EngineGroup::start_missing() {
  for (size_t number = 0; number < engines_.size(); ++number) {
    if (pool_->runs(number) || Clock::now() < engines_[number].next_start) continue;
    try {
      pool_->start(number);
    } catch (const Error& error) {  // its program may be missing while it is replaced
      if (!engines_[number].was_ready) throw;
      const std::chrono::seconds wait = wait_after_failure(engines_[number]);
      log_.warning(fmt::format("engine {} could not be started, again in {} s: {}", number,
                               wait.count(), error.sentence()));
    }
  }
}

std::chrono::seconds EngineGroup::wait_after_failure(Engine& engine) {
  const std::chrono::seconds wait =
      std::min(kLongestWait, kFirstWait * (1 << std::min(engine.failed_starts++, 6)));
  engine.next_start = Clock::now() + wait;
  return wait;
}

Descriptor EngineGroup::connect(size_t number) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    throw IoError(fmt::format("no line to an engine: {}", std::strerror(errno)),
                  {.hint = "raise the limit of open files (ulimit -n)"});
  const std::lock_guard lock(mutex_);
  engines_[number].socket = Descriptor(ends[0]);
  engines_[number].frames = {};
  engines_[number].unsent.clear();
  engines_[number].waits_for_room = false;
  engines_[number].loads = true;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
  ::epoll_ctl(wakes_.get(), EPOLL_CTL_ADD, ends[0], &event);
  return Descriptor(ends[1]);
}

void EngineGroup::take(std::unique_ptr<ClientExchange> exchange) {
  PromptPrefixes prefixes;
  if (engines_.size() > 1) prefixes = prompt_prefixes(exchange->body());
  const std::lock_guard lock(mutex_);
  const uint64_t number = next_number_++;
  open_[number] = {.exchange = std::move(exchange), .prefixes = std::move(prefixes)};
  pass_on(number);
}

EngineGroup::Metrics::~Metrics() {
  exchange->respond(200, {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}},
                    merged_metrics(texts));
}

void EngineGroup::take_metrics(std::unique_ptr<ClientExchange> exchange) {
  const std::lock_guard lock(mutex_);
  const auto metrics = std::make_shared<Metrics>(std::move(exchange));
  metrics->texts.push_back(own_metrics());
  for (size_t engine = 0; engine < engines_.size(); ++engine) {
    if (!engines_[engine].ready) continue;
    const uint64_t number = next_number_++;
    Open& open = open_[number];
    open = {.exchange = metrics->exchange, .metrics = metrics};
    give(number, open, engine);
  }
}

// Metrics about events that an engine cannot report, because it is dead.
std::string EngineGroup::own_metrics() const {
  return fmt::format(
      "# HELP convoy:engine_deaths_total Engines that ended and were replaced.\n"
      "# TYPE convoy:engine_deaths_total counter\n"
      "convoy:engine_deaths_total {}\n"
      "# HELP convoy:lost_requests_total Requests that ended with an error because their engine "
      "died.\n"
      "# TYPE convoy:lost_requests_total counter\n"
      "convoy:lost_requests_total {}\n",
      dead_engines_, lost_requests_);
}

bool EngineGroup::any_ready() const {
  const std::lock_guard lock(mutex_);
  for (const Engine& engine : engines_)
    if (engine.ready) return true;
  return false;
}

bool EngineGroup::all_ready() const {
  const std::lock_guard lock(mutex_);
  for (const Engine& engine : engines_)
    if (!engine.ready) return false;
  return true;
}

int64_t EngineGroup::requests() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(open_);
}

EngineLoads EngineGroup::loads() const {
  EngineLoads loads(engines_.size());
  for (size_t number = 0; number < engines_.size(); ++number)
    if (engines_[number].ready) loads[number] = 0;
  for (const auto& [number, open] : open_)
    if (open.engine && loads[*open.engine]) ++*loads[*open.engine];
  return loads;
}

void EngineGroup::pass_on(uint64_t number) {
  Open& open = open_.at(number);
  const std::optional<size_t> chosen = choice_.choose(loads(), open.prefixes);
  if (chosen) return give(number, open, *chosen);
  open.engine.reset();
  waiting_.push_back(number);
}

void EngineGroup::give(uint64_t number, Open& open, size_t engine) {
  open.engine = engine;
  ++open.tries;
  put(engines_[engine], FrameKind::Request, number,
      fmt::format("{}\n{}", open.exchange->path(), open.exchange->body()));
}

void EngineGroup::pass_on_waiting() {
  for (const uint64_t number : std::exchange(waiting_, {}))
    if (open_.contains(number)) pass_on(number);
}

void EngineGroup::put(Engine& engine, FrameKind kind, uint64_t exchange, std::string_view payload) {
  append_frame(engine.unsent, kind, exchange, payload);
  send(engine);
}

// Sends as much as the socket takes. Never waits, because a stopped engine must not hold up the
// others. The rest is sent in a later turn, when the socket has room.
void EngineGroup::send(Engine& engine) {
  size_t done = 0;
  while (done < engine.unsent.size()) {
    const ssize_t sent = ::send(engine.socket.get(), engine.unsent.data() + done,
                                engine.unsent.size() - done, MSG_NOSIGNAL);
    if (sent > 0)
      done += static_cast<size_t>(sent);
    else if (errno != EINTR)
      break;  // the socket is full, or the engine has ended: bury() follows
  }
  engine.unsent.erase(0, done);
  if (engine.waits_for_room == !engine.unsent.empty() || !engine.socket.open()) return;
  engine.waits_for_room = !engine.waits_for_room;
  epoll_event event{.events = engine.waits_for_room ? EPOLLIN | EPOLLOUT : EPOLLIN,
                    .data = {.u64 = static_cast<uint64_t>(&engine - engines_.data())}};
  ::epoll_ctl(wakes_.get(), EPOLL_CTL_MOD, engine.socket.get(), &event);
}

void EngineGroup::turn(std::chrono::milliseconds limit, int other) {
  if (!stops_) start_missing();
  if (other_ != other) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = engines_.size()}};
    if (::epoll_ctl(wakes_.get(), EPOLL_CTL_ADD, other, &event) == 0) other_ = other;
  }
  const processes::ProcessNews news = pool_->wait(limit, wakes_.get());
  for (const processes::ProcessNews::Line& line : news.errors) say(line);
  const std::lock_guard lock(mutex_);
  for (size_t number = 0; number < engines_.size(); ++number) read(number);
  forget_gone_clients();  // before bury(), so that their requests are not tried again
  for (const processes::ProcessDeath& death : news.deaths) bury(death);
  if (!stops_) kill_silent();
  for (Engine& engine : engines_)
    if (!engine.unsent.empty()) send(engine);
}

void EngineGroup::read(size_t number) {
  Engine& engine = engines_[number];
  if (!engine.socket.open()) return;
  const bool lives = read_into(engine.socket.get(), engine.frames);
  while (const std::optional<Frame> frame = engine.frames.next()) {
    engine.last_sign = Clock::now();
    if (frame->kind != FrameKind::Ready) {
      handle(*frame);
      continue;
    }
    engine.loads = false;
    engine.ready = engine.was_ready = true;
    engine.failed_starts = 0;
    pass_on_waiting();
  }
  if (lives) return;
  engine.socket.reset();  // its process ends
  engine.ready = false;
}

void EngineGroup::handle(const Frame& frame) {
  const auto at = open_.find(frame.exchange);
  if (at == open_.end()) return;
  Open& open = at->second;
  bool is_there = true;
  if (frame.kind == FrameKind::Whole && open.metrics != nullptr) {
    open.metrics->texts.emplace_back(read_head(frame.payload).body);
  } else if (frame.kind == FrameKind::Part) {
    is_there = open.exchange->send(frame.payload);
  } else if (frame.kind != FrameKind::End) {
    const HeadAndBody head = read_head(frame.payload);
    open.started = true;
    if (frame.kind == FrameKind::Start)
      open.exchange->start(head.status, head.headers);
    else
      open.exchange->respond(head.status, head.headers, head.body);
  }
  if (!is_there) put(engines_[*open.engine], FrameKind::Gone, frame.exchange);
  if (!is_there || frame.kind == FrameKind::End) open_.erase(at);
}

void EngineGroup::forget_gone_clients() {
  std::erase_if(open_, [this](const auto& numbered) {
    const auto& [number, open] = numbered;
    if (open.exchange->is_open()) return false;
    if (open.engine) put(engines_[*open.engine], FrameKind::Gone, number);
    return true;
  });
}

// Kills engines that give no sign of life. bury() handles their death like any other.
void EngineGroup::kill_silent() {
  for (size_t number = 0; number < engines_.size(); ++number) {
    Engine& engine = engines_[number];
    if (!engine.ready || Clock::now() - engine.last_sign < silence_limit_) continue;
    engine.ready = false;  // takes no further request
    pool_->kill(number);
  }
}

std::string EngineGroup::end_words(const processes::ProcessDeath& death) const {
  if (death.timed_out)
    return fmt::format("gave no sign for {} s (--engine-timeout) and was killed",
                       silence_limit_.count());
  return death.signal != 0 ? fmt::format("was ended by {}", processes::signal_name(death.signal))
                           : fmt::format("ended with {}", death.exit_code);
}

void EngineGroup::bury(const processes::ProcessDeath& death) {
  Engine& engine = engines_[death.worker];
  engine.ready = false;
  engine.socket.reset();
  choice_.forget(death.worker);
  const int64_t requests = end_exchanges_of(death.worker);
  if (stops_) return;
  if (!engine.was_ready) throw_failed_start(death, end_words(death));
  ++dead_engines_;
  const bool was_loading = std::exchange(engine.loads, false);
  const std::chrono::seconds wait =
      was_loading ? wait_after_failure(engine) : std::chrono::seconds(0);
  const std::optional<Error> own = processes::own_error(death);
  log_.warning(fmt::format("engine {} {} with {}{}; it is replaced{}", death.worker,
                           end_words(death), counted(requests, "request"),
                           own ? ": " + own->sentence() : "",
                           wait.count() > 0 ? fmt::format(" in {} s", wait.count()) : ""));
}

void EngineGroup::fail(const Open& open, const ApiError& error) {
  if (open.started)
    open.exchange->send(event(error.body()));
  else
    respond_error(*open.exchange, error);
}

void EngineGroup::fail_all(const ApiError& error) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, open] : open_)
    if (open.metrics == nullptr) fail(open, error);
  open_.clear();
}

int64_t EngineGroup::end_exchanges_of(size_t engine) {
  const ApiError error(503, "the engine ended before the answer was complete; try again");
  int64_t requests = 0;
  std::vector<uint64_t> again;
  std::erase_if(open_, [&](auto& numbered) {
    auto& [number, open] = numbered;
    if (open.engine != engine) return false;
    if (open.metrics != nullptr) return true;
    ++requests;
    if (!open.started && open.tries < kMostTries && !stops_) {
      again.push_back(number);
      return false;
    }
    fail(open, error);
    ++lost_requests_;
    return true;
  });
  for (const uint64_t number : again) pass_on(number);
  return requests;
}

void EngineGroup::refuse_waiting(const ApiError& error) {
  const std::lock_guard lock(mutex_);
  for (const uint64_t number : std::exchange(waiting_, {})) {
    const auto at = open_.find(number);
    if (at == open_.end()) continue;
    respond_error(*at->second.exchange, error);
    open_.erase(at);
  }
}

void EngineGroup::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  refuse_waiting(ApiError(503, "the server is about to stop"));
  pool_->tell_stop();
}

// Logs a line of an engine. Leaves out the error of an engine that fails, which bury() reports.
void EngineGroup::say(const processes::ProcessNews::Line& line) const {
  if (line.text.starts_with('{') || line.text.starts_with("convoy: ")) return;
  const std::string prefix = engines_.size() > 1 ? fmt::format("engine {}: ", line.worker) : "";
  fmt::print(stderr, "{}{}\n", prefix, line.text);
}

}  // namespace convoy::serving
