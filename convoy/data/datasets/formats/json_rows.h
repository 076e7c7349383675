// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "convoy/data/datasets/formats/row_formats.h"

namespace convoy::data {

RowFormat json_lines_format();
// A JSON list, {"data": [...]}, or JSON lines in a file whose suffix is that of a list.
RowFormat json_format();

std::unique_ptr<RowSource> open_json_lines(ByteReader file);

}  // namespace convoy::data
