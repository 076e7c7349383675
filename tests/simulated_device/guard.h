// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy::simulated {

// Current device, streams and events, as LibTorch's guards and its autograd engine reach them.
void register_guard();

}  // namespace convoy::simulated
