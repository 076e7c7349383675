// SPDX-License-Identifier: Apache-2.0
//
// The rank's side of its flight record. A thread of its own beats every 250 ms, so that a rank
// which is stopped, or cut off from its processor, falls silent even while it waits in a
// collective. Thread-safe. Never throws, never blocks: watching a rank must not be able to end it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "convoy/core/telemetry/flight_record.h"

namespace convoy::telemetry {

class StepTrace;

class FlightWriter {
 public:
  // Writes nothing.
  FlightWriter();
  // Takes over the pages whose descriptor CONVOY_FLIGHT_FD names. Without it, or when it names
  // anything but such pages, or those of a living other process: writes nothing.
  static FlightWriter attach();
  ~FlightWriter();  // says goodbye: the silence that follows is none
  FlightWriter(FlightWriter&&) noexcept;
  FlightWriter& operator=(FlightWriter&&) noexcept;

  bool attached() const { return pages_ != nullptr; }

  void set_step(int64_t completed_steps);
  void set_checkpoint_step(int64_t step);
  void set_phase(std::string_view word);  // at most 8 characters: "data", "backward"

  // The number to name the collective by below. 0.1 us.
  uint64_t enter(const Collective& collective);
  void wait(uint64_t number);  // the caller blocks from here on
  void done(uint64_t number);
  void failed(uint64_t number);

  // What is written from here on goes to `trace`, too, which outlives this. Before any collective.
  void trace_to(StepTrace* trace) { trace_ = trace; }
  bool traces() const { return trace_ != nullptr; }
  // For the trace alone: the collective is done, whether or not its rank waits for it.
  void arrived(uint64_t number);

 private:
  struct Pages;
  explicit FlightWriter(std::unique_ptr<Pages> pages);
  void write_record(uint64_t number, const Collective& collective);

  std::unique_ptr<Pages> pages_;
  StepTrace* trace_ = nullptr;
};

}  // namespace convoy::telemetry
