// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace convoy::simulated {

// Loads the fake NCCL of tests/fake_nccl from the folder of this program, as libnccl.so.2 of this
// process. Its collectives run on streams of the device and use the device's memory. Call it after
// install().
void load_fake_nccl();

}  // namespace convoy::simulated
