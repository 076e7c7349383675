// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/sharded/sharded_units.h"

#include <algorithm>
#include <map>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/transfer.h"
#include "convoy/model/nn/linear.h"

namespace convoy::parallel {

// Running collectives still use the memory, so they are awaited; after an error of the group none
// runs.
ShardedUnits::~ShardedUnits() {
  try {
    for (comm::Exchange<int64_t>& comparison : comparisons_) comparison.wait();
    finish_gathers();
  } catch (const CommError&) {
    return;
  }
}

ShardedUnits::State& ShardedUnits::state(size_t unit) {
  if (unit >= states_.size()) states_.resize(unit + 1);
  return states_[unit];
}

std::vector<std::shared_ptr<FlatUnit>> ShardedUnits::add(
    size_t unit, const std::vector<nn::NamedTensor>& parameters, bool may_travel,
    int64_t smallest_elements, const nn::DeferredValues* values) {
  std::map<at::ScalarType, std::vector<nn::NamedTensor>> by_type;
  for (const nn::NamedTensor& parameter : parameters)
    by_type[parameter.value.scalar_type()].push_back(parameter);
  std::vector<std::shared_ptr<FlatUnit>> flats;
  for (auto& [type, of_type] : by_type) {
    auto flat = std::make_shared<FlatUnit>(FlatUnit{
        .unit = unit, .parameters = FlatParameters(std::move(of_type), group_.size(), values)});
    FlatParameters& laid_out = flat->parameters;
    if (prefetch_ == 0) prefetch_ = laid_out.whole().flat().is_cpu() ? 1 : 2;
    flat->travels = may_travel && laid_out.numel() >= smallest_elements;
    if (flat->travels) {
      flat->own = laid_out.filled_piece(group_.rank());
      if (config_.on_host) flat->own = device::pinned_copy(flat->own);
      state(unit).travelling.push_back(flat);
    } else {
      laid_out.fill_whole();
      flat->own = laid_out.piece_of_whole(group_.rank());
      state(unit).staying.push_back(flat);
    }
    laid_out.forget_values();
    flats.push_back(std::move(flat));
  }
  return flats;
}

void ShardedUnits::set_linears(size_t unit, std::vector<nn::Linear*> linears) {
  for (nn::Linear* linear : linears) linear->weight_changed();
  state(unit).linears = std::move(linears);
}

void ShardedUnits::start_gather(size_t unit) {
  State& state = this->state(unit);
  if (state.whole) return;
  for (const std::shared_ptr<FlatUnit>& flat : state.travelling) {
    flat->parameters.take_memory();
    const at::Tensor& whole = flat->parameters.whole().flat();
    state.sent.push_back(flat->own.to(whole.device(), /*non_blocking=*/true));
    state.gathers.push_back(group_.start_all_gather(state.sent.back(), whole));
  }
  state.whole = true;
}

void ShardedUnits::compare(size_t unit) {
  if (config_.when_units_differ && group_.size() > 1)
    comparisons_.emplace_back(group_, static_cast<int64_t>(unit));
}

// Gathers of different ranks are matched by their order alone. If ranks used different units, they
// would go on with wrong values where the sizes are equal, and Gloo would end the process where the
// sizes differ. The comparison of a unit that is gathered ahead runs meanwhile; only a gather that
// is awaited at once waits for its comparison.
void ShardedUnits::settle_comparisons() {
  for (comm::Exchange<int64_t>& comparison : std::exchange(comparisons_, {})) {
    const std::vector<int64_t> units = comparison.wait();
    if (std::any_of(units.begin(), units.end(), [&](int64_t each) { return each != units[0]; }))
      config_.when_units_differ(units);
  }
}

void ShardedUnits::acquire(size_t unit) {
  State& wanted = state(unit);
  ++wanted.uses;
  if (!wanted.travelling.empty()) {
    if (!wanted.whole) compare(unit);
    settle_comparisons();
    start_gather(unit);
    order_.note(unit);
    for (const size_t next : order_.next(prefetch_)) {
      if (!state(next).whole) compare(next);
      start_gather(next);
    }
  }
  finish_gathers(wanted);
  show(wanted, true);
}

// Shows or hides the unit's parameters that stay in memory. Between uses they are withheld like the
// others, whose memory is freed.
void ShardedUnits::show(State& state, bool shown) {
  if (state.shown == shown) return;
  for (const std::shared_ptr<FlatUnit>& flat : state.staying)
    shown ? flat->parameters.show() : flat->parameters.hide();
  state.shown = shown;
}

void ShardedUnits::start_update(FlatUnit& flat) {
  state(flat.unit).gathers.push_back(
      group_.start_all_gather(flat.own, flat.parameters.whole().flat()));
}

void ShardedUnits::finish_gathers() {
  for (State& state : states_) finish_gathers(state);
}

void ShardedUnits::finish_gathers(State& state) {
  for (const std::unique_ptr<comm::Work>& gather : state.gathers) gather->wait();
  state.gathers.clear();
  state.sent.clear();
}

void ShardedUnits::release(size_t unit) {
  State& used = state(unit);
  if (--used.uses > 0 || config_.keeps_gathered) return;
  show(used, false);
  if (used.travelling.empty()) return;
  const std::vector<size_t> next = order_.next(prefetch_);
  if (std::find(next.begin(), next.end(), unit) == next.end()) drop(used);
}

void ShardedUnits::drop(State& state) {
  finish_gathers(state);
  for (nn::Linear* linear : state.linears) linear->release_packed();
  for (const std::shared_ptr<FlatUnit>& flat : state.travelling) flat->parameters.release_memory();
  state.whole = false;
}

void ShardedUnits::end_pass() {
  for (State& state : states_) {
    state.uses = 0;
    show(state, false);
    if (state.whole) drop(state);
  }
}

}  // namespace convoy::parallel
