// SPDX-License-Identifier: Apache-2.0
//
// The stages of one rank in one collective: written to the flight record, and named by errors.
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

// The same text, kept until the program ends: records and errors point at names of groups.
std::string_view constant_text(std::string text);
// A constant text: the name of the `number`th group of the same ranks, from 0 on.
std::string_view numbered_group(std::string_view name, int number);

class CollectiveScope {
 public:
  // Enters the collective. The texts of `collective` are constants. `flight` and `waited_seconds`,
  // to which the time in finish() is added, outlive this.
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

  // The same as run(), with a call that blocks until the collective is done.
  template <class Call>
  void finish(Call call) const {
    flight_->wait(number_);
    const auto start = std::chrono::steady_clock::now();
    run(call);
    *waited_seconds_ += seconds_since(start);
    flight_->done(number_);
  }

  // In place of finish() for a device, which waits while the host goes on: `call` makes the device
  // wait. The thread that watches the device reports the wait's begin and end.
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

  // is_traced(): is there a trace? arrived(): reports to it that the collective is done. From any
  // thread.
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
