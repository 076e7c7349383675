// SPDX-License-Identifier: Apache-2.0
#include "convoy/monitor/run_recorder.h"

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/base/quiet_thread.h"

namespace convoy::monitor {
namespace {

// Of this thread alone: the program around it works too.
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
    looks_.emplace(reader_, options_.sources, &*recorder_);
    thread_ = quiet_thread([this] { watch(); });
  } catch (const Error& error) {
    log_.warning(fmt::format("devices are not watched: {}", error.sentence()));
    recorder_.reset();
  }
}

RunRecorder::~RunRecorder() { stop(); }

// A look more at the end: what happened since the one before counts, too.
void RunRecorder::watch() {
  const auto interval = std::chrono::duration<double>(options_.recorder.interval_s);
  bool ends = false;
  while (!ends) {
    looks_->take();
    std::unique_lock lock(mutex_);
    ends = wake_.wait_for(lock, interval, [this] { return stopping_; });
  }
  looks_->take();
  cpu_seconds_ = thread_cpu_seconds();
}

std::string RunRecorder::balance() const { return looks_ ? looks_->summary().balance() : ""; }

nlohmann::ordered_json RunRecorder::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (!thread_.joinable()) return nullptr;
  thread_.join();
  SamplerCost cost = looks_->cost();
  cost.cpu_seconds = cpu_seconds_;
  const nlohmann::ordered_json came_to = looks_->summary().json(cost);
  recorder_->write_meta(reader_, came_to);
  return came_to;
}

}  // namespace convoy::monitor
