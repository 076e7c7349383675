// SPDX-License-Identifier: Apache-2.0
//
// `convoy data fetch`: a data set of the hub into the local hub cache.
#pragma once

#include <string>
#include <vector>

#include "convoy/apps/front/command.h"

namespace convoy::apps {

Action data_fetch_action();
int data_fetch(Context& context, const std::vector<std::string>& arguments);

}  // namespace convoy::apps
