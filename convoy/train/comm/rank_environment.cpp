// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/rank_environment.h"

#include <charconv>
#include <limits>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"

namespace convoy::comm {
namespace {

std::string text_of(const char* name, const std::string& otherwise = {}) {
  const std::string value = environment_text(name);
  return value.empty() ? otherwise : value;
}

int number_of(const char* name, int otherwise, int least, int most) {
  const std::string text = text_of(name);
  if (text.empty()) return otherwise;
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < least || number > most)
    throw ConfigError(
        fmt::format("environment variable {} must be a number from {} to {}, found `{}`", name,
                    least, most, text),
        {.hint = fmt::format("correct or unset {}; `convoy launch` sets it", name)});
  return number;
}

}  // namespace

RankEnvironment read_rank_environment() {
  constexpr int kMost = std::numeric_limits<int>::max();
  RankEnvironment environment;
  const bool has_rank = !text_of("RANK").empty();
  const bool has_world = !text_of("WORLD_SIZE").empty();
  if (has_rank != has_world)
    throw ConfigError(
        fmt::format("RANK and WORLD_SIZE must both be set or both be absent; only {} is set",
                    has_rank ? "RANK" : "WORLD_SIZE"),
        {.hint = "set both or neither; `convoy launch` sets both"});
  environment.world = number_of("WORLD_SIZE", 1, 1, kMost);
  environment.rank = number_of("RANK", 0, 0, environment.world - 1);
  environment.local_world = number_of("LOCAL_WORLD_SIZE", environment.world, 1, environment.world);
  environment.full_world = number_of("CONVOY_FULL_WORLD_SIZE", environment.world, 1, kMost);
  environment.local_rank = number_of("LOCAL_RANK", environment.rank % environment.local_world, 0,
                                     environment.local_world - 1);
  environment.master_address = text_of("MASTER_ADDR", environment.master_address);
  environment.master_port = number_of("MASTER_PORT", environment.master_port, 1, 65535);
  environment.store_file = text_of("CONVOY_STORE_FILE");
  environment.store_address = text_of("CONVOY_STORE_ADDRESS");
  environment.own_address = text_of("CONVOY_OWN_ADDRESS");
  environment.gloo_interface = text_of("GLOO_SOCKET_IFNAME");
  environment.run_id = text_of("TORCHELASTIC_RUN_ID", "none");
  environment.restart_count = number_of("TORCHELASTIC_RESTART_COUNT", 0, 0, kMost);
  environment.error_file = text_of("TORCHELASTIC_ERROR_FILE");
  environment.agent_hosts_store = text_of("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return environment;
}

}  // namespace convoy::comm
