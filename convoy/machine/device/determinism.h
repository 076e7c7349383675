// SPDX-License-Identifier: Apache-2.0
//
// Bits that repeat on devices that add up in no fixed order by themselves.
#pragma once

namespace convoy::device {

// Makes LibTorch choose algorithms that repeat to the bit. For the whole process; call it before
// the first work on a device. An op without such an algorithm throws c10::Error. CPUs repeat
// without this call.
void take_deterministic_algorithms();

}  // namespace convoy::device
