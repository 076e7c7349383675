// SPDX-License-Identifier: Apache-2.0
//
// --rdzv-conf as torchrun spells it: "join_timeout=600,last_call_timeout=30".
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::launch {

struct RendezvousConf {
  std::chrono::milliseconds join_timeout{600'000};
  std::chrono::milliseconds last_call_timeout{30'000};
  std::chrono::milliseconds heartbeat{1'000};
  std::chrono::milliseconds silence_limit{8'000};
  std::optional<bool> is_host;     // this node hosts the endpoint; nothing = decided by its address
  std::vector<std::string> notes;  // keys that have no effect here
};

// Throws ConfigError for an unknown key or an invalid value.
RendezvousConf parse_rendezvous_conf(std::string_view text);

}  // namespace convoy::launch
