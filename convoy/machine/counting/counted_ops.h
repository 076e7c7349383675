// SPDX-License-Identifier: Apache-2.0
//
// The counting device's form of each op of LibTorch: sizes of results and an entry of the work.
#pragma once

namespace convoy::counting {

void register_counted_ops();

}  // namespace convoy::counting
