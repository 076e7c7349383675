// SPDX-License-Identifier: Apache-2.0
//
// Bits that repeat on devices that add up in no fixed order by themselves.
#pragma once

namespace convoy::device {

// For the whole process, before its first work on a device: of LibTorch's algorithms those that
// repeat to the bit. An op that has none throws c10::Error. CPUs repeat without it.
void take_deterministic_algorithms();

}  // namespace convoy::device
