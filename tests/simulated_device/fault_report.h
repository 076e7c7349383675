// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy::simulated {

// From now on a SIGSEGV by touching memory of a device, or pinned memory under a copy, is preceded
// by a report on stderr: which block, and where the host was. Every other one goes to the handler
// that was there before.
void report_faults();

}  // namespace convoy::simulated
