// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy::simulated {

// Loads the stand-in of tests/fake_nccl, from where this program lies, as this process's
// libnccl.so.2: its collectives run on streams of the device, and use the device's memory. Called
// after install().
void load_fake_nccl();

}  // namespace convoy::simulated
