// SPDX-License-Identifier: Apache-2.0
//
// The rank's side of its flight record. A thread of its own sends a heartbeat every 250 ms, so that
// a rank that is stopped or gets no CPU becomes silent even while it waits in a collective.
// Thread-safe. Never throws, never blocks: watching must not be able to stop a rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "convoy/core/telemetry/ranks/flight_record.h"

namespace convoy::telemetry {

class StepTrace;

class FlightWriter {
 public:
  // A writer that writes nothing.
  FlightWriter();
  // Takes over the pages whose descriptor CONVOY_FLIGHT_FD names. Writes nothing when the variable
  // is missing, names anything but such pages, or names pages of another living process.
  static FlightWriter attach();
  ~FlightWriter();  // ends the record, so that the silence afterwards is no fault
  FlightWriter(FlightWriter&&) noexcept;
  FlightWriter& operator=(FlightWriter&&) noexcept;

  bool attached() const { return pages_ != nullptr; }

  void set_step(int64_t completed_steps);
  void set_checkpoint_step(int64_t step);
  void set_phase(std::string_view word);  // at most 8 characters: "data", "backward"

  // Returns the number of the collective, for the functions below. Takes 0.1 us.
  uint64_t enter(const Collective& collective);
  void wait(uint64_t number);  // the caller blocks from here on
  void done(uint64_t number);
  void failed(uint64_t number);

  // The parts of wait() and done(), for collectives where a device waits instead of the caller. The
  // thread that watches the device calls record_wait() and record_done(), which write the pages.
  // The thread that drives the device calls trace_wait() and trace_done(), which write the trace.
  void record_wait(uint64_t number);
  void record_done(uint64_t number);
  void trace_wait(uint64_t number);
  void trace_done(uint64_t number);

  // All later records also go to `trace`, which must outlive this. Call it before any collective.
  void trace_to(StepTrace* trace) { trace_ = trace; }
  bool traces() const { return trace_ != nullptr; }
  // For the trace only: the collective is done, even if its rank does not wait for it.
  void arrived(uint64_t number);

 private:
  struct Pages;
  explicit FlightWriter(std::unique_ptr<Pages> pages);
  void write_record(uint64_t number, const Collective& collective);

  std::unique_ptr<Pages> pages_;
  StepTrace* trace_ = nullptr;
};

}  // namespace convoy::telemetry
