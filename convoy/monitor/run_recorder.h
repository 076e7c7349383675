// SPDX-License-Identifier: Apache-2.0
//
// Watches GPUs and host beside a job, from a thread of its own, into the job's folder.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "convoy/base/log.h"
#include "convoy/monitor/device_reader.h"
#include "convoy/monitor/looks.h"
#include "convoy/monitor/recorder.h"

namespace convoy::monitor {

struct RunRecorderOptions {
  DeviceSources sources = {};
  std::optional<std::set<std::string>> uuids = {};  // as DeviceReader's
  RecorderOptions recorder = {};                    // output and interval_s are wanted
};

class RunRecorder {
 public:
  // Begins to watch. A file that can not be written costs one warning: a job does not fail for its figures.
  RunRecorder(RunRecorderOptions options, const Log& log);
  ~RunRecorder();
  RunRecorder(const RunRecorder&) = delete;
  RunRecorder& operator=(const RunRecorder&) = delete;

  // Ends the watching. What it came to, as Summary::json() tells it; null where nothing was written.
  nlohmann::ordered_json stop();
  // After stop(): one sentence on unequal or lost GPUs, or empty.
  std::string balance() const;

 private:
  void watch();

  RunRecorderOptions options_;
  Log log_;
  DeviceReader reader_;
  std::optional<Recorder> recorder_;
  std::optional<Looks> looks_;
  double cpu_seconds_ = 0;  // of the thread, after its end
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace convoy::monitor
