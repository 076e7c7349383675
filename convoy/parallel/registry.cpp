// SPDX-License-Identifier: Apache-2.0
#include "convoy/base/error.h"
#include "convoy/device/dtype.h"
#include "convoy/parallel/ddp/ddp.h"
#include "convoy/parallel/replicate/replicate.h"
#include "convoy/parallel/sharded/sharded.h"
#include "convoy/parallel/strategy.h"

namespace convoy::parallel {

void Strategy::prepare_deferred(std::vector<nn::Unit> /*units*/,
                                const nn::DeferredValues& /*values*/) {
  CONVOY_INVARIANT(false, "this strategy wants the model's values in memory");
}

std::vector<at::Tensor> gradients_of(const std::vector<ParameterShard>& shards) {
  std::vector<at::Tensor> gradients;
  for (const ParameterShard& shard : shards) gradients.push_back(shard.gradient);
  return gradients;
}

namespace {

void refuse(bool asked, const char* key, const char* who, const std::string& strategy) {
  if (asked)
    throw ConfigError(fmt::format("this is for {}, and the strategy is {}", who, strategy),
                      {.key = std::string("parallel.") + key,
                       .hint = "leave it out, or choose another parallel.strategy"});
}

Offload offload_of(const std::string& name) {
  return name == "optimizer"    ? Offload::Optimizer
         : name == "parameters" ? Offload::Parameters
                                : Offload::None;
}

}  // namespace

std::string strategy_name(const std::string& name) { return name == "fsdp" ? "zero3" : name; }

bool shards_values(const settings::ParallelSettings& settings) {
  return strategy_name(settings.strategy) == "zero3";
}

std::unique_ptr<Strategy> make_strategy(const settings::ParallelSettings& settings,
                                        comm::Group& group, int ranks_of_node) {
  std::string name = strategy_name(settings.strategy);
  if (name == "auto") name = group.size() > 1 ? "ddp" : "none";
  if (name == "none" || name == "ddp" || name == "dp") {
    refuse(settings.offload != "none", "offload", "zero1 to zero3", name);
    refuse(settings.shard_over != "all", "shard_over", "zero1 to zero3", name);
  }
  refuse(settings.replicas > 0 && name != "dp", "replicas", "dp", name);
  if (name == "none") return std::make_unique<Replicate>(group);
  // dp is ddp whose ranks are threads: parallel/dp/replicas.h.
  if (name == "ddp" || name == "dp")
    return std::make_unique<Ddp>(group, settings.bucket_mb << 20,
                                 device::parse_dtype(settings.gradient_dtype));
  const std::map<std::string, ShardLevel> levels = {{"zero1", ShardLevel::Optimizer},
                                                    {"zero2", ShardLevel::Gradients},
                                                    {"zero3", ShardLevel::Parameters}};
  if (const auto level = levels.find(name); level != levels.end()) {
    refuse(settings.gradient_dtype != "fp32", "gradient_dtype", "dp and ddp", name);
    return std::make_unique<Sharded>(
        group,
        ShardedConfig{.level = level->second,
                      .smallest_elements = settings.keep_whole_below,
                      .reshard_after_forward = settings.reshard_after_forward,
                      .offload = offload_of(settings.offload),
                      .ranks_that_share = settings.shard_over == "node" ? ranks_of_node : 0});
  }
  throw ConfigError(fmt::format(
      "parallel.strategy must be auto, none, dp, ddp, zero1, zero2, zero3 or fsdp, found `{}`",
      name));
}

}  // namespace convoy::parallel
