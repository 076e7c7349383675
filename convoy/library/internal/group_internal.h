// SPDX-License-Identifier: Apache-2.0
//
// The inside of convoy::ProcessGroup, for the sources of this layer.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "convoy/core/telemetry/flight_record_writer.h"
#include "convoy/library/process_group.h"
#include "convoy/train/comm/group.h"

namespace convoy {

struct ProcessGroup::Internal {
  // Under `convoy launch`: seen from outside, as a rank that trains is.
  telemetry::FlightWriter flight = telemetry::FlightWriter::attach();
  std::unique_ptr<comm::Group> group;  // writes to `flight`
  int local_rank = 0;
  at::Device device = at::kCPU;
};

namespace detail {

// Begins what() of a c10::Error that LibTorch throws with Convoy's words: a ConfigError.
inline constexpr std::string_view kOwnErrorMark = "convoy: ";

struct GroupAccess {
  using Internal = ProcessGroup::Internal;
  static Internal& internal(ProcessGroup& group) { return *group.internal_; }
  static std::shared_ptr<ProcessGroup> make(std::unique_ptr<Internal> internal) {
    return std::shared_ptr<ProcessGroup>(new ProcessGroup(std::move(internal)));
  }
};

inline comm::Group& ranks_of(ProcessGroup& group) { return *GroupAccess::internal(group).group; }

// `group`, unless it is null: throws ConfigError.
std::shared_ptr<ProcessGroup> required(std::shared_ptr<ProcessGroup> group);

}  // namespace detail
}  // namespace convoy
