// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/process_pool.h"

#include <fmt/format.h>
#include <poll.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "convoy/core/base/json_member.h"
#include "convoy/machine/processes/process_name.h"

namespace convoy::processes {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kTailBytes = 2048;
constexpr size_t kLongestLineBytes = 64 << 10;

// Cuts whole lines off the front of `text`.
std::vector<std::string> take_lines(std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  text.erase(0, begin);
  return lines;
}

bool is_stopped(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(") ");
  return name_end != std::string::npos && line.compare(name_end + 2, 1, "T") == 0;
}

}  // namespace

std::optional<Error> own_error(const ProcessDeath& death) {
  const size_t end = death.stderr_tail.find_last_not_of('\n');
  if (death.signal != 0 || end == std::string::npos) return std::nullopt;
  const size_t before = death.stderr_tail.rfind('\n', end);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const auto line =
      nlohmann::json::parse(death.stderr_tail.substr(begin, end + 1 - begin), nullptr, false);
  if (!line.is_object() || member_or(line, "code", int64_t{0}) != death.exit_code)
    return std::nullopt;
  ErrorLocation location;
  location.file = member_or(line, "file", std::string());
  location.hint = member_or(line, "hint", std::string());
  return Error(static_cast<ExitCode>(death.exit_code), member_or(line, "kind", std::string("bug")),
               member_or(line, "message", std::string("a worker failed")), location);
}

ProcessPool::ProcessPool(PoolOptions options)
    : options_(std::move(options)),
      workers_(static_cast<size_t>(options_.workers)),
      retired_(workers_.size(), false) {}

ProcessPool::~ProcessPool() {
  kill_all();
  for (const auto& worker : workers_)
    if (worker) wait_for_child(worker->process.pid);
}

void ProcessPool::start_missing(int64_t most) {
  for (size_t number = 0; number < workers_.size() && running() < most; ++number)
    if (!runs(number) && !retired_[number]) start(number);
}

void ProcessPool::start(size_t number) {
  ChildStart start;
  start.program = options_.command;
  if (number < options_.environment.size()) start.environment = options_.environment[number];
  start.signals = options_.signals;
  if (number < options_.cpus.size()) start.cpus = options_.cpus[number];
  const Descriptor input = options_.input ? options_.input(number) : Descriptor();
  start.input = input.get();
  Worker worker;
  worker.process = start_child(start);
  worker.name = process_name(worker.process.pid);
  worker.last_sign = Clock::now();
  workers_[number] = std::move(worker);
}

ProcessNews ProcessPool::wait(std::chrono::milliseconds limit, int other) {
  std::vector<pollfd> polled = {{.fd = other, .events = POLLIN, .revents = 0}};
  for (const auto& worker : workers_)
    for (const Descriptor* one :
         {worker ? &worker->process.exited : nullptr, worker ? &worker->process.output : nullptr,
          worker ? &worker->process.errors : nullptr})
      polled.push_back({.fd = one == nullptr ? -1 : one->get(), .events = POLLIN, .revents = 0});
  ProcessNews news;
  if (::poll(polled.data(), polled.size(), static_cast<int>(limit.count())) <= 0) return news;
  for (size_t number = 0; number < workers_.size(); ++number) {
    if (!workers_[number]) continue;
    const bool exited = polled[1 + 3 * number].revents != 0;
    if (exited || polled[2 + 3 * number].revents != 0) read_output(number, news);
    if (exited || polled[3 + 3 * number].revents != 0) read_errors(number, news);
    if (exited) reap(number, news);
  }
  return news;
}

void ProcessPool::read_output(size_t number, ProcessNews& news) {
  Worker& worker = *workers_[number];
  worker.output += read_available(worker.process.output);
  for (std::string& line : take_lines(worker.output)) {
    worker.last_sign = Clock::now();
    news.output.push_back({number, std::move(line)});
  }
}

void ProcessPool::read_errors(size_t number, ProcessNews& news) {
  Worker& worker = *workers_[number];
  const std::string text = read_available(worker.process.errors);
  if (text.empty()) return;
  if (!options_.log_folder.empty())
    std::ofstream(fmt::format("{}/worker-{}.log", options_.log_folder, number), std::ios::app)
        << text;
  worker.stderr_tail += text;
  if (worker.stderr_tail.size() > kTailBytes)
    worker.stderr_tail.erase(0, worker.stderr_tail.size() - kTailBytes);
  worker.errors += text;
  for (std::string& line : take_lines(worker.errors))
    news.errors.push_back({number, std::move(line)});
  // Pieces of an endless line count as lines, so that it is neither kept whole nor searched again
  // and again.
  if (worker.errors.size() > kLongestLineBytes)
    news.errors.push_back({number, std::exchange(worker.errors, {})});
}

void ProcessPool::reap(size_t number, ProcessNews& news) {
  Worker& worker = *workers_[number];
  const ChildEnd end = wait_for_child(worker.process.pid);
  news.deaths.push_back({.worker = number,
                         .name = worker.name,
                         .exit_code = end.exit_code,
                         .signal = end.signal,
                         .timed_out = worker.timed_out,
                         .stderr_tail = worker.stderr_tail});
  workers_[number].reset();
}

void ProcessPool::tell_stop() {
  for (const auto& worker : workers_)
    if (worker) ::kill(worker->process.pid, SIGTERM);
}

void ProcessPool::kill_all() {
  for (const auto& worker : workers_)
    if (worker) signal_group(worker->process.pid, SIGKILL);
}

void ProcessPool::kill(size_t worker) {
  workers_[worker]->timed_out = true;
  signal_group(workers_[worker]->process.pid, SIGKILL);
}

void ProcessPool::replace(size_t worker) { signal_group(workers_[worker]->process.pid, SIGKILL); }

void ProcessPool::retire(size_t worker) { retired_[worker] = true; }

int64_t ProcessPool::running() const {
  int64_t count = 0;
  for (const auto& worker : workers_) count += worker ? 1 : 0;
  return count;
}

std::vector<pid_t> ProcessPool::pids() const {
  std::vector<pid_t> pids;
  for (const auto& worker : workers_)
    if (worker) pids.push_back(worker->process.pid);
  return pids;
}

std::vector<std::string> ProcessPool::names() const {
  std::vector<std::string> names;
  for (const auto& worker : workers_)
    if (worker) names.push_back(worker->name);
  return names;
}

std::vector<size_t> ProcessPool::silent_for(std::chrono::duration<double> limit) const {
  std::vector<size_t> silent;
  for (size_t number = 0; number < workers_.size(); ++number)
    if (workers_[number] && !workers_[number]->timed_out &&
        Clock::now() - workers_[number]->last_sign > limit)
      silent.push_back(number);
  return silent;
}

std::vector<size_t> ProcessPool::stopped_for(std::chrono::duration<double> limit) const {
  std::vector<size_t> stopped;
  for (size_t number = 0; number < workers_.size(); ++number)
    if (workers_[number] && Clock::now() - workers_[number]->last_sign > limit &&
        is_stopped(workers_[number]->process.pid))
      stopped.push_back(number);
  return stopped;
}

}  // namespace convoy::processes
