// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convoy/data/datasets/formats/row_formats.h"

namespace convoy::data {

// CSV by RFC 4180, with a header line.
RowFormat csv_format();
// Like csv_format(), with tabs as separators.
RowFormat tsv_format();

}  // namespace convoy::data
