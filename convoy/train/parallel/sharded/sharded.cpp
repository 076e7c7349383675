// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/sharded/sharded.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/transfer.h"
#include "convoy/train/parallel/same_parameters.h"
#include "convoy/train/parallel/trained_parameters.h"

namespace convoy::parallel {

namespace {

// Nodes must have the same number of ranks: else each rank would see other groups.
void require_equal_nodes(const ShardedConfig& config, comm::Group& group) {
  const std::string own = std::to_string(config.ranks_that_share);
  for (const std::string& other : group.all_gather_bytes(own))
    if (other != own || group.size() % config.ranks_that_share != 0)
      throw ConfigError(
          fmt::format("{} ranks do not lie on nodes of as many each ({} here)", group.size(), own),
          {.key = "parallel.shard_over",
           .hint = "start as many ranks on every node, or shard over all"});
}

// Collective. Returns the group of the ranks that share one training state; null: all ranks share.
std::unique_ptr<comm::Group> sharing_ranks(const ShardedConfig& config, comm::Group& group) {
  if (config.ranks_that_share == 0) return nullptr;
  require_equal_nodes(config, group);
  if (config.ranks_that_share == group.size()) return nullptr;
  return group.split(group.rank() / config.ranks_that_share, "shard");
}

}  // namespace

Sharded::Sharded(comm::Group& group, const ShardedConfig& config)
    : group_(group),
      config_(config),
      owned_sharing_(sharing_ranks(config, group)),
      replicas_(owned_sharing_ ? group.split(group.rank() % config.ranks_that_share, "replica")
                               : nullptr),
      sharing_(owned_sharing_ ? *owned_sharing_ : group),
      units_(sharing_, {.values_travel = config.level == ShardLevel::Parameters,
                        .keeps_gathered = !config.reshard_after_forward,
                        .on_host = config.offload == Offload::Parameters,
                        .prefetch = config.prefetch}),
      buffers_(group) {}

void Sharded::check_offload(const std::vector<nn::Unit>& units) const {
  if (config_.offload == Offload::None) return;
  for (const nn::NamedTensor& parameter : trained_of(units))
    if (parameter.value.device().is_cpu())
      throw ConfigError("parallel.offload: the model is in the host's memory already",
                        {.key = "parallel.offload", .hint = "offload is for GPUs: leave it out"});
  if (config_.offload == Offload::Parameters && !shards_values())
    throw ConfigError("parameters can be offloaded where they are sharded, by zero3",
                      {.key = "parallel.offload", .hint = "optimizer, or strategy zero3"});
}

void Sharded::take_over(std::vector<nn::Unit> units, const nn::DeferredValues* values) {
  CONVOY_INVARIANT(gradients_ == nullptr, "prepare() called twice");
  check_offload(units);
  std::vector<nn::NamedTensor> trained = trained_of(units);
  check_same_parameters(group_, trained);
  if (values != nullptr)
    std::erase_if(trained, [&](const nn::NamedTensor& parameter) {
      return values->contains(parameter.value);
    });
  broadcast_values(group_, trained);
  buffers_.add(units);
  for (size_t index = 0; index < units.size(); ++index) {
    if (shards_values())
      units_.add(index, units[index].frozen, /*may_travel=*/true, config_.smallest_elements,
                 values);
    // A unit with frozen weights trains only an adapter. Gathering so few values costs more time
    // than their memory is worth, so they stay whole on every rank.
    const bool trained_travel = shards_values() && units[index].frozen.empty();
    has_adapters_ = has_adapters_ || !(units[index].frozen.empty() || units[index].trained.empty());
    for (auto& flat :
         units_.add(index, units[index].trained, trained_travel, config_.smallest_elements, values))
      trained_.push_back(std::move(flat));
    units_.set_linears(index, std::move(units[index].linears));
  }
  std::function<void(size_t)> when_summed;
  if (config_.offload != Offload::None) when_summed = [this](size_t flat) { bring_to_host(flat); };
  gradients_ = std::make_unique<ShardedGradients>(
      GradientRanks{.sharing = sharing_, .replicas = replicas_.get()}, trained_, config_.wire,
      std::move(when_summed));
  list_shards();
}

void Sharded::list_shards() {
  for (size_t index = 0; index < trained_.size(); ++index) {
    const FlatUnit& flat = *trained_[index];
    const bool offloads = config_.offload != Offload::None;
    values_.push_back(offloads ? device::pinned_copy(flat.own) : flat.own);
    stepped_gradients_.push_back(offloads ? device::pinned_copy(gradients_->own(index))
                                          : gradients_->own(index));
    for (const PieceOfParameter& part : flat.parameters.parts_of_piece(sharing_.rank())) {
      const FlatRange& range = flat.parameters.ranges()[part.range];
      shards_.push_back(
          {.name = range.parameter.name,
           .shape = range.shape,
           .begin = part.begin_in_parameter,
           .value = values_[index].narrow(0, part.begin_in_piece, part.numel),
           .gradient = stepped_gradients_[index].narrow(0, part.begin_in_piece, part.numel)});
    }
  }
}

bool Sharded::values_are_whole() const {
  return std::none_of(trained_.begin(), trained_.end(),
                      [](const std::shared_ptr<FlatUnit>& flat) { return flat->travels; });
}

void Sharded::begin_micro_batch(MicroBatch which) {
  gradients_->end_pass();
  units_.end_pass();
  last_ = which == MicroBatch::Last;
  gradients_->begin_pass(last_                                    ? GradientSums::All
                         : config_.level != ShardLevel::Optimizer ? GradientSums::Shared
                                                                  : GradientSums::None);
}

void Sharded::finish_gradients() {
  CONVOY_INVARIANT(last_, "finish_gradients() without a last micro-batch");
  gradients_->end_pass();
  units_.end_pass();
  // Gathers of units that no pass has used are still running, and the optimizer writes the pieces
  // that they read.
  units_.finish_gathers();
  last_ = false;
  if (to_host_) to_host_->synchronize();
}

void Sharded::bring_to_host(size_t flat) {
  const at::Tensor& own = gradients_->own(flat);
  const c10::impl::VirtualGuardImpl impl(own.device().type());
  if (!to_host_) to_host_ = impl.getStreamFromGlobalPool(own.device());
  c10::Event summed(own.device().type());
  summed.record(impl.getStream(own.device()));
  summed.block(*to_host_);
  const c10::StreamGuard guard(*to_host_);
  stepped_gradients_[flat].copy_(own, /*non_blocking=*/true);
}

// The next pass gathers units that travel, and waits for the other units where it uses them.
void Sharded::finish_step() {
  for (size_t index = 0; index < trained_.size(); ++index)
    if (!values_[index].is_same(trained_[index]->own))
      trained_[index]->own.copy_(values_[index], /*non_blocking=*/true);
  for (const std::shared_ptr<FlatUnit>& flat : trained_)
    if (!flat->travels) units_.start_update(*flat);
  // The factors of all adapters are rounded by one call before the first unit is used.
  if (has_adapters_) settle();
  // The optimizer wrote the parameters' pieces: caches of values derived from them check the
  // version.
  for (const std::shared_ptr<FlatUnit>& flat : trained_)
    for (const FlatRange& range : flat->parameters.ranges())
      range.parameter.value.unsafeGetTensorImpl()->bump_version();
  gradients_->reset();
  buffers_.take_those_of_rank_zero();
}

}  // namespace convoy::parallel
