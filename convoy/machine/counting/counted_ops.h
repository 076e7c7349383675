// SPDX-License-Identifier: Apache-2.0
//
// What the counting device does with each op of LibTorch: sizes of its results, an entry of the work.
#pragma once

namespace convoy::counting {

void register_counted_ops();

}  // namespace convoy::counting
