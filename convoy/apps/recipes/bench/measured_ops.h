// SPDX-License-Identifier: Apache-2.0
//
// The time of each op of LibTorch and each kernel of Convoy in a piece of work.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <map>
#include <string>

namespace convoy::recipes {

// Seconds of all calls by name: "mm", "rms_norm_bf16". The host waits for the device around every
// call, so an op that calls others takes their time as well. The time of a wait and of asking for a
// kernel is measured with the smallest op, and taken off: times of a few microseconds are rough.
// One at a time in a process.
std::map<std::string, double> measure_ops(at::Device device, const std::function<void()>& work);

}  // namespace convoy::recipes
