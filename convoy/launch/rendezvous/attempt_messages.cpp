// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/attempt_messages.h"

#include <fmt/format.h>

namespace convoy::rendezvous {

std::string FailureCause::text() const {
  std::string who;
  if (rank >= 0) who = fmt::format("rank {}", rank);
  if (node_rank >= 0) who += fmt::format("{}node {}", rank >= 0 ? " on " : "", node_rank);
  if (!host.empty()) who += fmt::format("{}{}", who.empty() ? "" : " ", host);
  const std::string ended = fmt::format("exit code {}", exit_code);
  if (sentence.empty()) return who.empty() ? ended : fmt::format("{}: {}", who, ended);
  return fmt::format("{}{}{} ({})", who, who.empty() ? "" : ": ", sentence, ended);
}

}  // namespace convoy::rendezvous
