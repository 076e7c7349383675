// SPDX-License-Identifier: Apache-2.0
//
// A place outside the run folder's own record that receives a training's figures, such as another
// program's file. Written by the training log's thread, on rank 0.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace convoy::telemetry {

class ReportSink {
 public:
  virtual ~ReportSink() = default;

  // Adds figures of one step, by TensorBoard's tags: "train/loss". A step may have several rows.
  // Never stops the run: what cannot be written is lost, with one warning.
  virtual void add_row(int64_t step, const std::map<std::string, double>& figures) = 0;

  // The run has ended. `exit_code`: 0 also for a run that was stopped on request.
  virtual void end(int exit_code) = 0;
};

}  // namespace convoy::telemetry
