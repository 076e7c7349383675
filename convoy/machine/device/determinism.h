// SPDX-License-Identifier: Apache-2.0
//
// Results that repeat to the bit on devices that otherwise add numbers in varying order.
#pragma once

namespace convoy::device {

// Makes LibTorch choose algorithms that repeat to the bit. For the whole process; call it before
// the first work on a device. An op without such an algorithm throws c10::Error. CPUs repeat
// without this call.
void take_deterministic_algorithms();

}  // namespace convoy::device
