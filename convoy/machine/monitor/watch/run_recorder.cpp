// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/watch/run_recorder.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/quiet_thread.h"
#include "convoy/core/base/seconds_since.h"

namespace convoy::monitor {
namespace {

// The largest delay with which the begin or the end of a training is seen.
constexpr std::chrono::milliseconds kBetweenEvents{200};

// CPU seconds of this thread only, since the rest of the program works too.
double thread_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

RunRecorder::RunRecorder(RunRecorderOptions options, const Log& log)
    : options_(std::move(options)), log_(log), reader_(options_.sources, options_.uuids) {
  try {
    recorder_.emplace(options_.recorder, log_);
    sampler_.emplace(reader_, options_.sources, &*recorder_, WatchedJob::OwnChildren);
    if (!options_.events.empty()) training_.emplace(options_.events);
    if (!options_.tensorboard.empty()) scalars_.emplace(options_.tensorboard, log_);
    ended_ = false;
    thread_ = quiet_thread([this] {
      watch();
      const std::lock_guard lock(mutex_);
      ended_ = true;
      wake_.notify_all();
    });
  } catch (const Error& error) {
    log_.warning(fmt::format("devices are not watched: {}", error.sentence()));
    recorder_.reset();
  }
}

RunRecorder::~RunRecorder() { stop(); }

// Takes one more reading at the end, so that the time since the last one counts too.
void RunRecorder::watch() {
  const auto interval = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(options_.recorder.interval_s));
  Clock::time_point next = Clock::now();
  bool ends = false;
  while (!ends) {
    if (Clock::now() >= next) {
      look();
      next = Clock::now() + interval;
    }
    follow_training();
    ends = wait_until(training_ ? std::min(next, Clock::now() + kBetweenEvents) : next);
  }
  follow_training();
  look();
  cpu_seconds_ = thread_cpu_seconds();
}

bool RunRecorder::wait_until(Clock::time_point time) {
  std::unique_lock lock(mutex_);
  return wake_.wait_until(lock, time, [this] { return stopping_; });
}

void RunRecorder::look() {
  const MachineReading reading = sampler_->take();
  if (!in_training_) return;
  of_training_->add(reading);
  training_cost_.ticks += 1;
  training_cost_.seconds = reading.elapsed_s - training_begin_s_;
  if (scalars_) scalars_->add(reading, training_->step());
}

// Takes a reading where a training begins and one where it ends: its figures are differences of
// counters.
void RunRecorder::follow_training() {
  if (!training_) return;
  const TrainingWatch::News news = training_->look();
  if (news == TrainingWatch::News::Began) {
    if (scalars_) scalars_->begin(training_->step() + 1);
    of_training_.emplace();
    training_cost_ = {};
    training_begin_s_ = seconds_since(sampler_->begin());
    in_training_ = true;
    look();
  }
  if (news == TrainingWatch::News::Ended) {
    if (in_training_) look();
    in_training_ = false;
  }
}

std::string RunRecorder::balance() const { return sampler_ ? sampler_->summary().balance() : ""; }

std::optional<TrainingRecord> RunRecorder::training() const {
  if (!of_training_) return std::nullopt;
  return TrainingRecord{of_training_->json(training_cost_), training_->tokens(),
                        training_->supervised_tokens()};
}

std::string RunRecorder::host_gap(HostMetric metric) const {
  if (!sampler_) return "devices were not watched";
  for (const HostGap& gap : sampler_->host_gaps())
    if (gap.metric == metric) return gap.reason;
  return "";
}

bool RunRecorder::ends_within(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  wake_.notify_all();
  return wake_.wait_for(lock, limit, [this] { return ended_; });
}

nlohmann::ordered_json RunRecorder::stop() {
  ends_within({});
  if (!thread_.joinable()) return nullptr;
  thread_.join();
  SamplerCost cost = sampler_->cost();
  cost.cpu_seconds = cpu_seconds_;
  const nlohmann::ordered_json came_to = sampler_->summary().json(cost);
  recorder_->write_meta(reader_, sampler_->host_gaps(), came_to);
  return came_to;
}

}  // namespace convoy::monitor
