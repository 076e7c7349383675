// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy::simulated {

// Registers the current device, streams and events for LibTorch's guards and its autograd engine.
void register_guard();

}  // namespace convoy::simulated
