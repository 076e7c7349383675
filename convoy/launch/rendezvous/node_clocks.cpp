// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/node_clocks.h"

namespace convoy::rendezvous {
namespace {

constexpr size_t kSamples = 3;
constexpr std::chrono::minutes kClockPause{1};

}  // namespace

bool NodeClocks::asks(uint64_t node, Clock::time_point now, int64_t wall_ns) {
  Asked& asked = nodes_[node];
  if (asked.told || asked.sent_ns || now < asked.next) return false;
  asked.sent_ns = wall_ns;
  if (++asked.num_asked >= static_cast<int>(kSamples)) asked.next = now + kClockPause;
  return true;
}

std::optional<std::string> NodeClocks::answered(uint64_t node, const std::string& name,
                                                int64_t peer_ns, int64_t wall_ns) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.sent_ns) return std::nullopt;
  Asked& asked = found->second;
  if (asked.samples.size() == kSamples) asked.samples.erase(asked.samples.begin());
  asked.samples.push_back({*asked.sent_ns, peer_ns, wall_ns});
  asked.sent_ns.reset();
  std::optional<std::string> warning = clock_skew_warning(name, asked.samples);
  asked.told = warning.has_value();
  return warning;
}

void NodeClocks::forget(uint64_t node) { nodes_.erase(node); }

}  // namespace convoy::rendezvous
