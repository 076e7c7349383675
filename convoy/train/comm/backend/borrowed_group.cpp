// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/backend/borrowed_group.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "convoy/core/base/error.h"

namespace convoy::comm {

BorrowedGroup::BorrowedGroup(c10::intrusive_ptr<c10d::Backend> backend,
                             telemetry::FlightWriter& flight)
    : BackendGroup(flight, backend->getRank(), backend->getSize(), "c10d"),
      backend_(std::move(backend)) {}
BorrowedGroup::~BorrowedGroup() = default;

c10d::Backend& BorrowedGroup::backend() { return *backend_; }
c10::intrusive_ptr<c10d::Backend> BorrowedGroup::c10d_backend() { return backend_; }
void BorrowedGroup::await(c10d::Work& work) { work.wait(); }
void BorrowedGroup::abort() { backend_->abort(); }

std::unique_ptr<Group> BorrowedGroup::split(int, std::string_view) {
  throw ConfigError("a group over a c10d::ProcessGroup cannot be split",
                    {.hint = "make the part's c10d::ProcessGroup, and hand it to "
                             "convoy::ProcessGroup::over()"});
}

}  // namespace convoy::comm
