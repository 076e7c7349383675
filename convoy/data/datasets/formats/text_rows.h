// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convoy/data/datasets/formats/row_formats.h"

namespace convoy::data {

// A plain text as rows {"text": ...}; read-only.
RowFormat text_format();

}  // namespace convoy::data
