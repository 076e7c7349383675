// SPDX-License-Identifier: Apache-2.0
//
// Some steps of one rank as slices of time: phases of the step, collectives from their start to
// their end, and the waits for them. Shown by Perfetto (ui.perfetto.dev) and chrome://tracing,
// summarised by `convoy profile report`. Thread-safe. Costs nothing outside the traced steps, and
// records its own cost within them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/core/base/trace_clock.h"
#include "convoy/core/telemetry/ranks/flight_record.h"

namespace convoy::telemetry {

// The rank that a trace belongs to.
struct TracedRank {
  int rank = 0;
  int world_size = 1;
  int num_threads = 0;  // threads that it computes with; 0 = not known
};

class StepTrace {
 public:
  // Traces `num_steps` steps from `first_step` on, numbered from 1; 0 = after the first two steps
  // of a process, which are not typical: memory is still being allocated and ddp's buckets are not
  // laid out. `clock`: the clock of the computing device, which must outlive this; null = the
  // host's. With a device clock, phases and waits show when the device does the work: a wait begins
  // when the device has no other work.
  explicit StepTrace(int64_t num_steps, int64_t first_step = 0, TraceClock* clock = nullptr)
      : num_steps_(num_steps), clock_(clock), first_(first_step - 1) {}
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  // Receives the same calls as FlightWriter. The first call gives the step at which the run starts.
  void set_step(int64_t completed_steps);
  void set_phase(std::string_view word);
  uint64_t next_number() { return next_number_++; }
  void enter(uint64_t number, const Collective& collective);
  void wait(uint64_t number);
  // The collective itself is done; its rank may still compute. Some groups cannot report this.
  void arrived(uint64_t number);
  void done(uint64_t number);

  bool empty() const;         // no step has ended yet
  int64_t num_steps() const;  // number of steps that have ended
  // `call` is called once, by the thread that ends the last step. Set it before the first step.
  void when_done(std::function<void()> call) { when_done_ = std::move(call); }
  // True when the trace holds kMostEvents events and has dropped later events.
  bool is_full() const { return full_; }
  static constexpr size_t kMostEvents = 1'000'000;
  // Chrome's trace format: slices of `phases` and `waits`, and collectives as asynchronous events
  // with their bytes. Times are microseconds of the host's monotonic clock, so that the traces of
  // all ranks of a host can be shown together; `baseTimeNanoseconds` converts them to the time
  // since 1970.
  std::string chrome_json(const TracedRank& owner) const;

 private:
  // Moments are nanoseconds of the host's clock; with a device clock they are the numbers that
  // TraceClock gave for its notes. 0: it has not happened yet.
  struct Slice {
    std::string name;
    int64_t begin = 0;
    int64_t end = 0;
  };
  struct Exchange {
    std::string name;
    std::string group;
    int64_t sequence = 0;
    int64_t bytes = 0;
    int64_t entered = 0;
    int64_t waited = 0;
    int64_t arrived = 0;
    int64_t left = 0;
  };

  int64_t now() const;
  int64_t host_ns(int64_t moment) const;
  double note_ns() const;
  void end_phase(int64_t moment);
  size_t num_events() const { return phases_.size() + steps_.size() + exchanges_.size(); }
  bool has_room();

  std::function<void()> when_done_;
  const int64_t num_steps_;
  TraceClock* const clock_;
  std::atomic<bool> active_ = false;
  std::atomic<bool> full_ = false;
  std::atomic<uint64_t> next_number_ = 1;
  mutable std::mutex mutex_;
  int64_t first_;  // completed steps at which the trace starts; -1: not known yet
  std::vector<Slice> phases_;
  std::vector<Slice> steps_;
  std::map<uint64_t, Exchange> exchanges_;
};

}  // namespace convoy::telemetry
