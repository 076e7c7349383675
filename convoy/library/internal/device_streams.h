// SPDX-License-Identifier: Apache-2.0
//
// The streams on which a thread works on several devices. CPUs have none.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <vector>

namespace convoy::detail {

// This thread's current stream of each device, without duplicates.
std::vector<c10::Stream> current_streams(const std::vector<c10::Device>& devices);

// The current streams of this thread wait for all work in `streams`, each for the stream of its
// device. Work that this thread queues later runs after that work.
void continue_after(const std::vector<c10::Stream>& streams);

}  // namespace convoy::detail
