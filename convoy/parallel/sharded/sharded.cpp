// SPDX-License-Identifier: Apache-2.0
#include "convoy/parallel/sharded/sharded.h"

#include <algorithm>

#include "convoy/base/error.h"
#include "convoy/parallel/agreement.h"
#include "convoy/parallel/trained_parameters.h"

namespace convoy::parallel {

Sharded::Sharded(comm::Group& group, ShardLevel level, int64_t smallest_elements)
    : group_(group), level_(level), smallest_elements_(smallest_elements), units_(group), buffers_(group) {}

void Sharded::take_over(std::vector<nn::Unit> units, const nn::DeferredValues* values) {
  CONVOY_INVARIANT(gradients_ == nullptr, "prepare() called twice");
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
      units_.add(index, units[index].frozen, /*may_travel=*/true, smallest_elements_, values);
    // Where something is frozen, what trains is a small part of the unit (an adapter): gathering it
    // would cost more than its memory.
    const bool trained_travel = shards_values() && units[index].frozen.empty();
    for (auto& flat :
         units_.add(index, units[index].trained, trained_travel, smallest_elements_, values))
      trained_.push_back(std::move(flat));
    units_.set_linears(index, std::move(units[index].linears));
  }
  gradients_ = std::make_unique<ShardedGradients>(group_, trained_);
  list_shards();
}

void Sharded::list_shards() {
  for (size_t index = 0; index < trained_.size(); ++index) {
    const FlatUnit& flat = *trained_[index];
    for (const PieceOfParameter& part : flat.parameters.parts_of_piece(group_.rank())) {
      const FlatPlace& place = flat.parameters.places()[part.place];
      shards_.push_back(
          {.name = place.parameter.name,
           .shape = place.shape,
           .begin = part.begin_in_parameter,
           .value = flat.own.narrow(0, part.begin_in_piece, part.numel),
           .gradient = gradients_->own(index).narrow(0, part.begin_in_piece, part.numel)});
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
  gradients_->begin_pass(last_ || level_ != ShardLevel::Optimizer);
}

void Sharded::finish_gradients() {
  CONVOY_INVARIANT(last_, "finish_gradients() without a last micro-batch");
  gradients_->end_pass();
  units_.end_pass();
  last_ = false;
}

// Those that travel are gathered by the next pass.
void Sharded::finish_step() {
  std::vector<std::unique_ptr<comm::Work>> gathers;
  for (const std::shared_ptr<FlatUnit>& flat : trained_)
    if (!flat->travels)
      gathers.push_back(group_.start_all_gather(flat->own, flat->parameters.whole().flat()));
  for (const std::unique_ptr<comm::Work>& gather : gathers) gather->wait();
  // They were written through their pieces: who keeps what follows from them asks for the version.
  for (const std::shared_ptr<FlatUnit>& flat : trained_)
    for (const FlatPlace& place : flat->parameters.places())
      place.parameter.value.unsafeGetTensorImpl()->bump_version();
  gradients_->reset();
  buffers_.take_those_of_rank_zero();
}

}  // namespace convoy::parallel
