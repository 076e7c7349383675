// SPDX-License-Identifier: Apache-2.0
//
// Stores counted work.
#pragma once

#include "convoy/machine/counting/counted_work.h"

namespace convoy::counting {

// Stores `work` in the Recording, if one exists. Thread-safe.
void record(Work work);

}  // namespace convoy::counting
