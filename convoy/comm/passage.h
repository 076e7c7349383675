// SPDX-License-Identifier: Apache-2.0
//
// One rank's way through one collective: written to the flight record as it goes, and named by the
// errors on the way.
#pragma once

#include <c10/util/Exception.h>

#include <chrono>
#include <exception>
#include <string>

#include "convoy/base/error.h"
#include "convoy/telemetry/flight_record_writer.h"

namespace convoy::comm {

class Passage {
 public:
  // Enters. The texts of `collective` are constants. `flight` and `waited_seconds`, to which the time
  // in finish() is added, outlive this.
  Passage(telemetry::FlightWriter& flight, double& waited_seconds, int rank, int size,
          telemetry::Collective collective);

  // Runs `call`, turning c10d's and Gloo's exceptions into one CommError that says who was where.
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

  // As run(), with a call that blocks until the collective is done.
  template <class Call>
  void finish(Call call) const {
    flight_->wait(number_);
    const auto start = std::chrono::steady_clock::now();
    run(call);
    *waited_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    flight_->done(number_);
  }

 private:
  CommError failure(const std::string& reason) const;

  telemetry::FlightWriter* flight_;
  double* waited_seconds_;
  int rank_;
  int size_;
  telemetry::Collective collective_;
  uint64_t number_;
};

}  // namespace convoy::comm
