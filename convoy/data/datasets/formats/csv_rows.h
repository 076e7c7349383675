// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convoy/data/datasets/formats/row_formats.h"

namespace convoy::data {

// RFC 4180 with a header.
RowFormat csv_format();
// The same with tabs as separators.
RowFormat tsv_format();

}  // namespace convoy::data
