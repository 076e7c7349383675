// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/weight_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/train/comm/exchange.h"

namespace convoy::train {
namespace {

// Values of a device come to the host in pieces, so that the largest parameter need not fit twice.
constexpr int64_t kPieceElements = 16 << 20;

uint32_t checksum_of(const at::Tensor& value, uint32_t checksum) {
  const at::Tensor flat = value.detach().reshape({-1});
  for (int64_t begin = 0; begin < flat.numel(); begin += kPieceElements) {
    const at::Tensor piece =
        flat.narrow(0, begin, std::min(kPieceElements, flat.numel() - begin)).cpu();
    checksum = crc32c({static_cast<const char*>(piece.const_data_ptr()), piece.nbytes()}, checksum);
  }
  return checksum;
}

// A hash of the parts of parameters that a rank holds, so that only ranks with the same parts are
// compared.
uint32_t layout_of(const std::vector<parallel::ParameterShard>& shards) {
  uint32_t checksum = 0;
  for (const parallel::ParameterShard& shard : shards)
    checksum =
        crc32c(fmt::format("{} {} {}\n", shard.name, shard.begin, shard.value.numel()), checksum);
  return checksum;
}

struct RankWord {
  uint32_t layout = 0;
  uint32_t weights = 0;
  bool operator==(const RankWord&) const = default;
  bool operator<(const RankWord& other) const {
    return std::pair(layout, weights) < std::pair(other.layout, other.weights);
  }
};
static_assert(sizeof(RankWord) == sizeof(int64_t));

// For each rank, the lowest rank of the largest group that agrees: its weights count as right.
std::vector<size_t> right_ranks(const std::vector<RankWord>& words) {
  std::map<RankWord, size_t> votes;
  for (const RankWord& word : words) ++votes[word];
  std::map<uint32_t, size_t> right;  // by layout
  for (size_t rank = 0; rank < words.size(); ++rank) {
    const auto [found, first] = right.try_emplace(words[rank].layout, rank);
    if (!first && votes[words[rank]] > votes[words[found->second]]) found->second = rank;
  }
  std::vector<size_t> ranks;
  for (const RankWord& word : words) ranks.push_back(right[word.layout]);
  return ranks;
}

// The checksum of each of this rank's parameters, four bytes each.
std::string parameter_checksums(const std::vector<parallel::ParameterShard>& shards) {
  std::string bytes;
  for (const parallel::ParameterShard& shard : shards) {
    const uint32_t checksum = checksum_of(shard.value, 0);
    bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  }
  return bytes;
}

size_t first_difference(const std::string& left, const std::string& right) {
  const auto at = std::mismatch(left.begin(), left.end(), right.begin()).first - left.begin();
  return static_cast<size_t>(at) / sizeof(uint32_t);
}

}  // namespace

void check_weights(parallel::Strategy& strategy, int64_t step) {
  const std::vector<parallel::ParameterShard>& shards = strategy.shards();
  RankWord own{.layout = layout_of(shards)};
  for (const parallel::ParameterShard& shard : shards)
    own.weights = checksum_of(shard.value, own.weights);
  const std::vector<RankWord> words = comm::exchange(strategy.group(), own);
  const std::vector<size_t> right = right_ranks(words);
  std::vector<size_t> drifted;
  for (size_t rank = 0; rank < words.size(); ++rank)
    if (!(words[rank] == words[right[rank]])) drifted.push_back(rank);
  if (drifted.empty()) return;
  const std::vector<std::string> checksums =
      strategy.group().all_gather_bytes(parameter_checksums(shards));
  // Only a rank with the same parts of parameters as the drifted rank knows the parameters' names.
  const auto self = static_cast<size_t>(strategy.rank());
  std::string name;
  if (!(words[self] == words[right[self]]))
    name = shards.at(first_difference(checksums[self], checksums[right[self]])).name;
  name = strategy.group().all_gather_bytes(name)[drifted[0]];
  throw NumericError(
      fmt::format("the weights of rank{} {} are not those of rank {} after step {}: the first "
                  "parameter that differs is {}",
                  drifted.size() > 1 ? "s" : "", fmt::join(drifted, ", "), right[drifted[0]], step,
                  name),
      {.hint = "its memory or its device computes wrongly: keep that host out, and go on from the "
               "last checkpoint (--resume auto)",
       .rank = static_cast<int>(drifted[0]),
       .step = step});
}

void check_weights_when_due(parallel::Strategy& strategy, int64_t interval, int64_t step) {
  if (interval > 0 && step % interval == 0 && strategy.num_owners() > 1)
    check_weights(strategy, step);
}

}  // namespace convoy::train
