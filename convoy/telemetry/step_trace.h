// SPDX-License-Identifier: Apache-2.0
//
// Some steps of one rank as slices of time: phases of the step, collectives from their start to
// their end, and the waits for them. Shown by Perfetto (ui.perfetto.dev) and chrome://tracing.
// Thread-safe. Costs nothing outside the traced steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/telemetry/flight_record.h"

namespace convoy::telemetry {

class StepTrace {
 public:
  // Traces `num_steps` steps after the first two of a process: those are not like the others, memory
  // is still taken and ddp's buckets are not laid out.
  explicit StepTrace(int64_t num_steps) : num_steps_(num_steps) {}
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  // What FlightWriter is told, too. The first call says where the run starts.
  void set_step(int64_t completed_steps);
  void set_phase(std::string_view word);
  uint64_t next_number() { return next_number_++; }
  void enter(uint64_t number, const Collective& collective);
  void wait(uint64_t number);
  // The collective itself is done; its rank may still compute. Not every group knows.
  void arrived(uint64_t number);
  void done(uint64_t number);

  bool empty() const;  // no step has ended yet
  // Chrome's trace format: slices of `phases` and `waits`, and collectives as asynchronous events
  // with their bytes. Times are microseconds of the host's monotonic clock, so that the traces of
  // all ranks of a host can be shown together.
  std::string chrome_json(int rank) const;

 private:
  struct Slice {
    std::string name;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
  };
  struct Exchange {
    std::string name;
    int64_t bytes = 0;
    int64_t entered_ns = 0;
    int64_t waited_ns = 0;  // 0: not, so far
    int64_t arrived_ns = 0;
    int64_t left_ns = 0;
  };

  void end_phase();

  const int64_t num_steps_;
  std::atomic<bool> active_ = false;
  std::atomic<uint64_t> next_number_ = 1;
  mutable std::mutex mutex_;
  int64_t first_ = -1;  // completed steps at which the trace starts
  std::vector<Slice> phases_;
  std::vector<Slice> steps_;
  std::map<uint64_t, Exchange> exchanges_;
};

}  // namespace convoy::telemetry
