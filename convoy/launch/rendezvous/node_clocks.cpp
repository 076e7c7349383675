// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/node_clocks.h"

#include <fmt/format.h>

namespace convoy::launch {
namespace {

constexpr size_t kSamples = 3;
constexpr std::chrono::minutes kPause{1};

}  // namespace

bool NodeClocks::asks(uint64_t node, Clock::time_point now, int64_t wall_ns) {
  Asked& asked = nodes_[node];
  if (asked.told || asked.sent_ns || now < asked.next) return false;
  asked.sent_ns = wall_ns;
  if (++asked.num_asked >= static_cast<int>(kSamples)) asked.next = now + kPause;
  return true;
}

std::optional<std::string> NodeClocks::answered(uint64_t node, const std::string& name,
                                                int64_t peer_ns, int64_t wall_ns) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.sent_ns) return std::nullopt;
  Asked& asked = found->second;
  if (asked.samples.size() == kSamples) asked.samples.erase(asked.samples.begin());
  asked.samples.push_back({name, *asked.sent_ns, peer_ns, wall_ns});
  asked.sent_ns.reset();
  // The name grows when the node gets its rank; it is one host all the same.
  for (ClockSample& sample : asked.samples) sample.host = name;
  const std::vector<Finding> findings = judge_clock_skew(asked.samples);
  if (worst(findings) == Severity::Ok) return std::nullopt;
  asked.told = true;
  return fmt::format("{}: {}", findings.front().found, findings.front().to_do);
}

void NodeClocks::forget(uint64_t node) { nodes_.erase(node); }

}  // namespace convoy::launch
