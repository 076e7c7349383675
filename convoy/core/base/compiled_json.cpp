// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/compiled_json.h"

CONVOY_JSON_TEXT_CLASSES(template, nlohmann::json);
CONVOY_JSON_TEXT_CLASSES(template, nlohmann::ordered_json);
template class nlohmann::basic_json<>;
