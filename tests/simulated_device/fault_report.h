// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy::simulated {

// From now on, a SIGSEGV from an access to a device's memory, or to pinned memory during a copy,
// first writes a report to stderr: which block, and where the host was. The previous handler gets
// every other SIGSEGV.
void report_faults();

}  // namespace convoy::simulated
