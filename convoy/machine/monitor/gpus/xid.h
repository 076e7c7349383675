// SPDX-License-Identifier: Apache-2.0
//
// The meaning of the numbered faults that NVIDIA's driver reports.
#pragma once

#include <cstdint>
#include <string>

namespace convoy::monitor {

enum class XidSeverity {
  Fatal,        // the GPU, or its link to others, is unusable until a reset
  Application,  // a program's own mistake or lost work: the program will notice
  Warning,      // work goes on
};

struct XidFacts {
  XidSeverity severity = XidSeverity::Warning;
  std::string meaning = {};
  std::string to_do = {};
};

// The facts of a fault. A number that is not in the list gives a warning that the fault is unknown.
XidFacts xid_facts(uint64_t xid);

}  // namespace convoy::monitor
