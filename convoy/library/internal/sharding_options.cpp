// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/sharding_options.h"

#include <fmt/format.h>

#include "convoy/core/base/error.h"
#include "convoy/library/internal/group_internal.h"
#include "convoy/library/internal/option_checks.h"

namespace convoy::detail {
namespace {

constexpr const char* kFsdpOptions = "FullyShardedOptions";

std::string words_of(const FullyShardedOptions& options) {
  constexpr const char* kOffloads[] = {"None", "Optimizer", "Parameters"};
  return fmt::format(
      "reshard_after_forward {}, prefetch_units {}, offload {}, ranks_that_share {}, "
      "keep_whole_below {}, gradient_dtype {}",
      options.reshard_after_forward, options.prefetch_units,
      kOffloads[static_cast<size_t>(options.offload)], options.ranks_that_share,
      options.keep_whole_below, gradient_dtype_text(options.gradient_dtype));
}

}  // namespace

FullyShardedOptions checked_sharding(const FullyShardedOptions& options, ProcessGroup& group) {
  require_same_options(kFsdpOptions, words_of(options), group);
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
  require_gradient_dtype(kFsdpOptions, options.gradient_dtype);
  return options;
}

std::unique_ptr<comm::Group> row_of(ProcessGroup& group, const FullyShardedOptions& options) {
  const int row = options.ranks_that_share;
  if (row == 0 || row == group.size()) return nullptr;
  return ranks_of(group).split(group.rank() / row, "shard");
}

}  // namespace convoy::detail
