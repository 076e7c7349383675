// SPDX-License-Identifier: Apache-2.0
//
// Watches GPUs and host beside a job, from a thread of its own, into the job's folder.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "convoy/core/base/log.h"
#include "convoy/machine/monitor/gpus/device_reader.h"
#include "convoy/machine/monitor/watch/device_sampler.h"
#include "convoy/machine/monitor/watch/device_scalars.h"
#include "convoy/machine/monitor/watch/recorder.h"
#include "convoy/machine/monitor/watch/training_watch.h"

namespace convoy::monitor {

struct RunRecorderOptions {
  DeviceSources sources = {};
  std::optional<std::set<std::string>> uuids = {};  // see DeviceReader
  RecorderOptions recorder = {};                    // output and interval_s are required
  std::filesystem::path events = {};       // the job's events; empty = they are not followed
  std::filesystem::path tensorboard = {};  // a folder for these curves only; empty = no curves
};

// The record from the first step of a training to its end.
struct TrainingRecord {
  nlohmann::ordered_json summary;  // the result of Summary::json()
  int64_t tokens = 0;              // 0 = unknown, or there were none
  int64_t supervised_tokens = 0;
};

class RunRecorder {
 public:
  // Begins to watch. A file that cannot be written only causes a warning: a job must not fail for
  // its figures.
  RunRecorder(RunRecorderOptions options, const Log& log);
  ~RunRecorder();
  RunRecorder(const RunRecorder&) = delete;
  RunRecorder& operator=(const RunRecorder&) = delete;

  // Asks the thread to end. False: a call of the driver has not returned within `limit`, so this
  // object must not be destroyed. Blocks.
  bool ends_within(std::chrono::milliseconds limit);
  // Ends the watching and waits for its end. Returns the result of Summary::json(); null where
  // nothing was written.
  nlohmann::ordered_json stop();
  // After stop(): one sentence on unequal or lost GPUs, or empty.
  std::string balance() const;
  // After stop(): the record of the last training that was seen to begin. Nothing if none was seen.
  std::optional<TrainingRecord> training() const;
  // After stop(): why a figure of the host is unknown; empty = it is known.
  std::string host_gap(HostMetric metric) const;

 private:
  using Clock = std::chrono::steady_clock;

  void watch();
  void look();
  void follow_training();
  bool wait_until(Clock::time_point time);  // true: the watching ends

  RunRecorderOptions options_;
  Log log_;
  DeviceReader reader_;
  std::optional<Recorder> recorder_;
  std::optional<DeviceSampler> sampler_;
  std::optional<TrainingWatch> training_;
  bool in_training_ = false;
  std::optional<Summary> of_training_;
  SamplerCost training_cost_;  // readings and seconds of the training
  double training_begin_s_ = 0;
  std::optional<DeviceScalars> scalars_;
  double cpu_seconds_ = 0;  // CPU time of the thread, known after its end
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool ended_ = true;  // there is no thread yet
  std::thread thread_;
};

}  // namespace convoy::monitor
