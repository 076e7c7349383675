// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/sharding_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/library/internal/group_internal.h"

namespace convoy::detail {
namespace {

std::string words_of(const FullyShardedOptions& options) {
  constexpr const char* kOffloads[] = {"None", "Optimizer", "Parameters"};
  return fmt::format(
      "reshard_after_forward {}, prefetch_units {}, offload {}, ranks_that_share {}, "
      "keep_whole_below {}, gradient_dtype {}",
      options.reshard_after_forward, options.prefetch_units,
      kOffloads[static_cast<size_t>(options.offload)], options.ranks_that_share,
      options.keep_whole_below,
      options.gradient_dtype ? c10::toString(*options.gradient_dtype) : "as it is");
}

void require_same_on_all_ranks(const FullyShardedOptions& options, ProcessGroup& group) {
  const std::vector<std::string> all = ranks_of(group).all_gather_bytes(words_of(options));
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw ConfigError(fmt::format("FullyShardedOptions differ: rank 0 has {}; rank {} has {}",
                                    all[0], rank, all[rank]),
                        {.hint = "give all ranks the same options"});
}

}  // namespace

FullyShardedOptions checked_sharding(const FullyShardedOptions& options, ProcessGroup& group) {
  require_same_on_all_ranks(options, group);
  if (options.prefetch_units < 0 || options.keep_whole_below < 0)
    throw ConfigError(
        fmt::format("FullyShardedOptions::prefetch_units and keep_whole_below must not be "
                    "negative, found {} and {}",
                    options.prefetch_units, options.keep_whole_below),
        {.hint = "0 is the default of both"});
  const int row = options.ranks_that_share;
  if (row < 0 || (row > 0 && group.size() % row != 0))
    throw ConfigError(
        fmt::format("FullyShardedOptions::ranks_that_share must divide the {} ranks, found {}",
                    group.size(), row),
        {.hint = "such as group->local_size() with as many ranks on every host, or 0 for all"});
  if (options.offload != Offload::None && group.device().is_cpu())
    throw ConfigError("FullyShardedOptions::offload: the module is in the host's memory already",
                      {.hint = "offload is for GPUs: leave it out"});
  if (options.gradient_dtype && *options.gradient_dtype != at::kFloat &&
      *options.gradient_dtype != at::kBFloat16)
    throw ConfigError(
        fmt::format("FullyShardedOptions::gradient_dtype is kFloat or kBFloat16, found {}",
                    c10::toString(*options.gradient_dtype)),
        {.hint = "give one of these, or leave it out"});
  return options;
}

std::unique_ptr<comm::Group> row_of(ProcessGroup& group, const FullyShardedOptions& options) {
  const int row = options.ranks_that_share;
  if (row == 0 || row == group.size()) return nullptr;
  return ranks_of(group).split(group.rank() / row, "shard");
}

}  // namespace convoy::detail
