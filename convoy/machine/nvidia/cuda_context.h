// SPDX-License-Identifier: Apache-2.0
//
// One GPU's primary context: the one that every user of CUDA in this process shares, LibTorch too.
#pragma once

#include <memory>

#include "convoy/machine/nvidia/driver.h"

namespace convoy::nvidia {

class Context {
 public:
  // `number`: index among the GPUs that this process may use. Throws what Driver::check does, and
  // ConfigError for a driver with a problem or a GPU that is not there.
  Context(std::shared_ptr<const Driver> driver, int number);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Makes the context current in this thread. Cheap if it is current already. Throws what
  // Driver::check does.
  void make_current() const;

  const Driver& driver() const { return *driver_; }
  const DriverFunctions& call() const { return driver_->call(); }
  std::string gpu_name() const;  // "NVIDIA H100"
  int multiprocessors() const { return multiprocessors_; }
  int compute_capability() const { return compute_capability_; }  // 90 for 9.0; 0 = unknown
  double clock_hertz() const { return clock_hertz_; }

 private:
  std::shared_ptr<const Driver> driver_;
  int device_ = 0;
  void* context_ = nullptr;
  int multiprocessors_ = 1;
  int compute_capability_ = 0;
  double clock_hertz_ = 1e9;
};

}  // namespace convoy::nvidia
