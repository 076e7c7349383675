// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/worker_environment.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "convoy/base/error.h"
#include "convoy/launch/descriptor.h"

namespace convoy::launch {

std::map<std::string, std::string> worker_environment(const WorkerPlace& place) {
  const std::string rank = std::to_string(place.rank);
  const std::string size = std::to_string(place.num_ranks);
  return {
      {"RANK", rank},
      {"LOCAL_RANK", rank},
      {"WORLD_SIZE", size},
      {"LOCAL_WORLD_SIZE", size},
      {"GROUP_RANK", "0"},
      {"GROUP_WORLD_SIZE", "1"},
      {"ROLE_NAME", "default"},
      {"ROLE_RANK", rank},
      {"ROLE_WORLD_SIZE", size},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(place.master_port)},
      {"TORCHELASTIC_RESTART_COUNT", "0"},
      {"TORCHELASTIC_MAX_RESTARTS", "0"},
      {"TORCHELASTIC_RUN_ID", place.run_id},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"TORCHELASTIC_ERROR_FILE", place.error_file},
      {"CONVOY_STORE_FILE", place.store_file},
  };
}

int free_port() {
  const Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  const bool found = probe.open() && ::bind(probe.get(), generic, length) == 0 &&
                     ::getsockname(probe.get(), generic, &length) == 0;
  CONVOY_CHECK(found, IoError, "no free port on loopback: {}", std::strerror(errno));
  return ntohs(address.sin_port);
}

std::string new_run_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace convoy::launch
