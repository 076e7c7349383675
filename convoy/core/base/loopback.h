// SPDX-License-Identifier: Apache-2.0
//
// Addresses that no other machine can reach.
#pragma once

#include <string>

namespace convoy {

bool is_loopback_address(const std::string& numeric_address);  // 127.x.x.x or ::1
bool is_loopback_host(const std::string& host);                // the same, or localhost

}  // namespace convoy
