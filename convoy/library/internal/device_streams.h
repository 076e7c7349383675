// SPDX-License-Identifier: Apache-2.0
//
// The streams on which a thread works on several devices. CPUs have none.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <vector>

namespace convoy::detail {

// This thread's current one of each device, each once.
std::vector<c10::Stream> current_streams(const std::vector<c10::Device>& devices);

// Work that this thread queues from now on, on its current streams of the same devices, runs after
// all that is in `streams`.
void continue_after(const std::vector<c10::Stream>& streams);

}  // namespace convoy::detail
