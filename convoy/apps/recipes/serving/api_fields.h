// SPDX-License-Identifier: Apache-2.0
//
// The readers of requests by the names of this layer.
#pragma once

#include "convoy/apps/serving/field_reader.h"

namespace convoy::recipes {

using serving::ApiError;
using serving::dumped;
using serving::event;
using serving::FieldReader;
using serving::Json;
using serving::json_headers;
using serving::now_seconds;
using serving::parse_object;

}  // namespace convoy::recipes
