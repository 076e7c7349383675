// SPDX-License-Identifier: Apache-2.0
//
// The inside of convoy::ProcessGroup, for the sources of this layer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "convoy/core/telemetry/ranks/flight_record_writer.h"
#include "convoy/library/process_group.h"
#include "convoy/train/comm/group.h"

namespace convoy {

struct ProcessGroup::Internal {
  std::shared_ptr<Internal> whole = nullptr;  // group that split() divided; nullptr: not a part
  telemetry::FlightWriter flight = {};        // unused in a part; use flight_record()
  std::unique_ptr<comm::Group> group;         // writes to the flight record
  int local_rank = 0;
  int local_size = 1;
  at::Device device = at::kCPU;
  std::string name;  // group number, from 2 on, or the splits of a part
  int num_splits = 0;
  c10::intrusive_ptr<c10d::ProcessGroup> c10d = {};  // from over(), or made by c10d_group()

  telemetry::FlightWriter& flight_record() { return whole ? whole->flight_record() : flight; }
};

namespace detail {

// Prefix of what() of a c10::Error that reports one of Convoy's own errors, a ConfigError.
inline constexpr std::string_view kOwnErrorMark = "convoy: ";

struct GroupAccess {
  using Internal = ProcessGroup::Internal;
  static Internal& internal(ProcessGroup& group) { return *group.internal_; }
  static std::shared_ptr<ProcessGroup> make(std::shared_ptr<Internal> internal) {
    return std::shared_ptr<ProcessGroup>(new ProcessGroup(std::move(internal)));
  }
};

inline comm::Group& ranks_of(ProcessGroup& group) { return *GroupAccess::internal(group).group; }

// Returns `group`. Throws ConfigError when it is null.
std::shared_ptr<ProcessGroup> required(std::shared_ptr<ProcessGroup> group);

}  // namespace detail
}  // namespace convoy
