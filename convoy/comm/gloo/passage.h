// SPDX-License-Identifier: Apache-2.0
//
// One rank's way through one collective: written to the flight record as it goes, and named by the
// errors on the way.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

#include "convoy/base/error.h"
#include "convoy/telemetry/flight_record_writer.h"

namespace convoy::comm {

class Passage {
 public:
  // Enters. The texts of `collective` are constants; `flight` outlives this.
  Passage(telemetry::FlightWriter& flight, int rank, int size, telemetry::Collective collective);

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
    run(call);
    flight_->done(number_);
  }

 private:
  CommError failure(const std::string& reason) const;

  telemetry::FlightWriter* flight_;
  int rank_;
  int size_;
  telemetry::Collective collective_;
  uint64_t number_;
};

}  // namespace convoy::comm
