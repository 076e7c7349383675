// SPDX-License-Identifier: Apache-2.0
//
// Moments, given in seconds since 1970, as text in a format of strftime. The text has at most 255
// bytes.
#pragma once

#include <ctime>
#include <string>

namespace convoy {

std::string utc_time_text(std::time_t seconds, const char* format = "%Y-%m-%dT%H:%M:%SZ");
std::string local_time_text(std::time_t seconds, const char* format = "%Y-%m-%d %H:%M:%S");

}  // namespace convoy
