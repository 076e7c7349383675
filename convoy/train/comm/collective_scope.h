// SPDX-License-Identifier: Apache-2.0
//
// The stages that one rank goes through in one collective. They are written to the flight record,
// and errors name them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <string>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/core/telemetry/ranks/flight_record_writer.h"

namespace convoy::comm {

// Returns the same text, kept until the program ends, because records and errors point at the names
// of groups.
std::string_view constant_text(std::string text);
// Returns a constant text: the name of group `number` (0-based) among the groups of the same ranks.
std::string_view numbered_group(std::string_view name, int number);

class CollectiveScope {
 public:
  // Enters the collective. The texts of `collective` are constants. `flight` and `waited_seconds`
  // outlive this. finish() adds its time to `waited_seconds`.
  CollectiveScope(telemetry::FlightWriter& flight, std::atomic<double>& waited_seconds, int rank,
                  int size, telemetry::Collective collective);

  // Runs `call`, turning c10d's and Gloo's exceptions into one CommError that names the rank and
  // the collective.
  template <class Call>
  auto run(Call call) const {
    try {
      return call();
    } catch (const Error&) {
      flight_->failed(number_);
      throw;
    } catch (const c10::Error& error) {
      throw failure(error.what_without_backtrace());
    } catch (const std::exception& error) {
      throw failure(error.what());
    }
  }

  // Like run(), for a `call` that blocks until the collective is done.
  template <class Call>
  void finish(Call call) const {
    flight_->wait(number_);
    const auto start = std::chrono::steady_clock::now();
    run(call);
    *waited_seconds_ += seconds_since(start);
    flight_->done(number_);
  }

  // Replaces finish() for tensors on a device: `call` makes the device wait for the collective,
  // while the host goes on. The thread that watches the device reports the begin and the end of
  // that wait.
  template <class Call>
  void let_device_wait(Call call) const {
    flight_->trace_wait(number_);
    run(call);
    flight_->trace_done(number_);
  }
  void device_waits() const { flight_->record_wait(number_); }
  void device_is_done(double waited_seconds) const {
    *waited_seconds_ += waited_seconds;
    flight_->record_done(number_);
  }

  // is_traced(): true when the flight writer writes a trace. arrived() reports to the trace that
  // the collective is done. Both may be called from any thread.
  bool is_traced() const { return flight_->traces(); }
  void arrived() const { flight_->arrived(number_); }

 private:
  CommError failure(const std::string& reason) const;

  telemetry::FlightWriter* flight_;
  std::atomic<double>* waited_seconds_;
  int rank_;
  int size_;
  telemetry::Collective collective_;
  uint64_t number_;
};

// The collectives of one group, counted, and the time that this rank waits in them.
class GroupCollectives {
 public:
  // `group` is a constant text. `flight` outlives this and the collectives.
  GroupCollectives(telemetry::FlightWriter& flight, int rank, int size, std::string_view group)
      : flight_(flight), rank_(rank), size_(size), group_(group) {}
  GroupCollectives(const GroupCollectives&) = delete;
  GroupCollectives& operator=(const GroupCollectives&) = delete;

  CollectiveScope enter(std::string_view operation);
  // `tensor` must be contiguous.
  CollectiveScope enter(std::string_view operation, const at::Tensor& tensor);
  double waited_seconds() const { return waited_seconds_; }

 private:
  telemetry::FlightWriter& flight_;
  int rank_;
  int size_;
  std::string_view group_;
  int64_t sequence_ = 0;  // collectives entered
  std::atomic<double> waited_seconds_ = 0;
};

}  // namespace convoy::comm
