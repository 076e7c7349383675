// SPDX-License-Identifier: Apache-2.0
//
// The time of each op of LibTorch and each kernel of Convoy in a piece of work.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <map>
#include <string>

namespace convoy::recipes {

// Returns the seconds of all calls in `work`, by op: "mm", "rms_norm_bf16". The time of an op
// includes the ops that it calls, because the host waits for the device before and after every
// call. The cost of these waits and of a launch is measured with the smallest op and subtracted, so
// times of a few microseconds are imprecise. Only one call at a time in a process.
std::map<std::string, double> measure_ops(at::Device device, const std::function<void()>& work);

}  // namespace convoy::recipes
