// SPDX-License-Identifier: Apache-2.0
//
// A group over a c10d backend that the program has made, for CPU tensors.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include "convoy/train/comm/backend/backend_group.h"

namespace convoy::comm {

class BorrowedGroup : public BackendGroup {
 public:
  BorrowedGroup(c10::intrusive_ptr<c10d::Backend> backend, telemetry::FlightWriter& flight);
  ~BorrowedGroup() override;

  // Aborts the backend, if it can be aborted. A Gloo backend cannot: then the other ranks notice
  // the failure only when this process ends.
  void abort() override;
  // Always throws ConfigError: a part needs the store at which the backend's ranks met.
  std::unique_ptr<Group> split(int color, std::string_view name) override;
  c10::intrusive_ptr<c10d::Backend> c10d_backend() override;

 private:
  c10d::Backend& backend() override;
  void await(c10d::Work& work) override;

  c10::intrusive_ptr<c10d::Backend> backend_;
};

}  // namespace convoy::comm
