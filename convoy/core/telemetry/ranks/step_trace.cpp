// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/ranks/step_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::telemetry {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kUntracedSteps = 2;
constexpr int kStepTrack = 0;
constexpr int kPhaseTrack = 1;
constexpr int kWaitTrack = 2;

int64_t trace_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Offset from the host's monotonic clock to nanoseconds since 1970.
int64_t wall_offset_ns() {
  const int64_t wall = std::chrono::duration_cast<std::chrono::nanoseconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
  return wall - trace_clock_ns();
}

double microseconds(int64_t ns) { return static_cast<double>(ns) / 1e3; }

ordered_json slice(const std::string& name, const char* category, int rank, int track,
                   int64_t begin_ns, int64_t end_ns) {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", microseconds(begin_ns)},
          {"dur", microseconds(end_ns - begin_ns)},
          {"pid", rank},
          {"tid", track}};
}

ordered_json name_of(const char* what, int rank, int track, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", track}, {"args", {{"name", name}}}};
}

}  // namespace

int64_t StepTrace::now() const { return clock_ != nullptr ? clock_->note() : trace_clock_ns(); }

int64_t StepTrace::host_ns(int64_t moment) const {
  return clock_ != nullptr ? clock_->host_ns(moment) : moment;
}

// Measures the cost of recording one phase on this machine now, in nanoseconds.
double StepTrace::note_ns() const {
  constexpr int kNotes = 200;
  StepTrace scratch(1, 1, clock_);
  scratch.set_step(0);
  const int64_t begin = trace_clock_ns();
  for (int note = 0; note < kNotes; ++note) scratch.set_phase("forward");
  return static_cast<double>(trace_clock_ns() - begin) / kNotes;
}

bool StepTrace::has_room() {
  if (num_events() >= kMostEvents) {
    full_ = true;
    active_ = false;
  }
  return active_;
}

// Ends the running phase, if there is one.
void StepTrace::end_phase(int64_t moment) {
  if (!phases_.empty() && phases_.back().end == 0) phases_.back().end = moment;
}

void StepTrace::set_step(int64_t completed_steps) {
  std::unique_lock lock(mutex_);
  if (first_ < 0) first_ = completed_steps + kUntracedSteps;
  const bool starts = !full_ && completed_steps >= first_ && completed_steps < first_ + num_steps_;
  const int64_t moment = active_ || full_ || starts ? now() : 0;
  if (active_ || full_) end_phase(moment);
  if (active_) steps_.back().end = moment;
  active_ = starts;
  if (starts)
    steps_.push_back({.name = fmt::format("step {}", completed_steps + 1), .begin = moment});
  if (!when_done_ || starts || steps_.empty()) return;
  const std::function<void()> call = std::exchange(when_done_, nullptr);
  lock.unlock();
  call();
}

void StepTrace::set_phase(std::string_view word) {
  if (!active_) return;
  const std::lock_guard lock(mutex_);
  const int64_t moment = now();
  end_phase(moment);
  if (has_room()) phases_.push_back({.name = std::string(word), .begin = moment});
}

void StepTrace::enter(uint64_t number, const Collective& collective) {
  if (!active_) return;
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  exchanges_[number] = {.name = fmt::format("{} {}", collective.group, collective.operation),
                        .group = std::string(collective.group),
                        .sequence = collective.sequence,
                        .bytes = collective.bytes,
                        .entered = now()};
}

void StepTrace::wait(uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (const auto found = exchanges_.find(number); found != exchanges_.end())
    found->second.waited = now();
}

void StepTrace::arrived(uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (const auto found = exchanges_.find(number); found != exchanges_.end())
    found->second.arrived = now();
}

void StepTrace::done(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = exchanges_.find(number);
  if (found == exchanges_.end()) return;
  found->second.left = now();
  if (found->second.arrived == 0) found->second.arrived = found->second.left;
}

int64_t StepTrace::num_steps() const {
  const std::lock_guard lock(mutex_);
  return std::count_if(steps_.begin(), steps_.end(),
                       [](const Slice& step) { return step.end != 0; });
}

bool StepTrace::empty() const { return num_steps() == 0; }

std::string StepTrace::chrome_json(const TracedRank& owner) const {
  const std::lock_guard lock(mutex_);
  const int rank = owner.rank;
  ordered_json events = {
      name_of("process_name", rank, kStepTrack, fmt::format("rank {}", rank)),
      name_of("thread_name", rank, kStepTrack, "steps"),
      name_of("thread_name", rank, kPhaseTrack, "phases"),
      name_of("thread_name", rank, kWaitTrack, "waits"),
  };
  for (const Slice& step : steps_)
    if (step.end > 0)
      events.push_back(
          slice(step.name, "step", rank, kStepTrack, host_ns(step.begin), host_ns(step.end)));
  for (const Slice& phase : phases_)
    if (phase.end > 0)
      events.push_back(
          slice(phase.name, "phase", rank, kPhaseTrack, host_ns(phase.begin), host_ns(phase.end)));
  for (const auto& [number, exchange] : exchanges_) {
    if (exchange.left == 0) continue;  // a failed collective
    ordered_json edge = {
        {"name", exchange.name},
        {"cat", "collective"},
        {"ph", "b"},
        {"ts", microseconds(host_ns(exchange.entered))},
        {"pid", rank},
        {"tid", kPhaseTrack},
        {"id", number},
        {"args",
         {{"bytes", exchange.bytes}, {"group", exchange.group}, {"sequence", exchange.sequence}}}};
    events.push_back(edge);
    edge["ph"] = "e";
    edge["ts"] = microseconds(host_ns(exchange.arrived));
    events.push_back(edge);
    if (exchange.waited == 0) continue;
    events.push_back(slice(exchange.name, "wait", rank, kWaitTrack, host_ns(exchange.waited),
                           host_ns(exchange.left)));
    events.back()["args"] = {{"id", number}};
  }
  // A collective is recorded when it is entered, waited for, completed and left.
  const size_t notes = phases_.size() + steps_.size() + 4 * exchanges_.size();
  return ordered_json{{"displayTimeUnit", "ms"},
                      {"distributedInfo", {{"rank", rank}, {"world_size", owner.world_size}}},
                      {"baseTimeNanoseconds", wall_offset_ns()},
                      {"convoy",
                       {{"schema", "convoy.trace/1"},
                        {"host", host_name()},
                        {"num_threads", owner.num_threads},
                        {"clock", clock_ != nullptr ? "device" : "host"},
                        {"is_full", full_.load()},
                        {"num_notes", notes},
                        {"note_ns", note_ns()}}},
                      {"traceEvents", std::move(events)}}
             .dump() +
         "\n";
}

}  // namespace convoy::telemetry
