// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/detail/sharding.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/library/fsdp.h"
#include "convoy/library/internal/group_internal.h"
#include "convoy/library/internal/module_tree.h"
#include "convoy/library/internal/told_in_backward.h"
#include "convoy/train/parallel/agreement.h"
#include "convoy/train/parallel/sharded/sharded_gradients.h"
#include "convoy/train/parallel/sharded/sharded_units.h"

namespace convoy::detail {
namespace {

using Flats = std::vector<std::shared_ptr<parallel::FlatUnit>>;

// A parameter's part of the piece of `flat` that this rank holds.
struct OwnShard {
  ShardView view;
  size_t flat;
  parallel::PieceOfParameter part;
};

}  // namespace

struct Sharding::State {
  State(std::shared_ptr<torch::nn::Module> wrapped, std::shared_ptr<ProcessGroup> process_group)
      : module(std::move(wrapped)),
        group(required(std::move(process_group))),
        tree(tree_of(*module)),
        units(ranks(), {}) {
    tree.units[0].core = &rest;
    make_equal();
    for (size_t unit = 0; unit < tree.units.size(); ++unit) share(unit);
    CONVOY_CHECK(
        !trained.empty(), ConfigError,
        "no parameter of the module requires grad: there is nothing to shard for training");
    gradients = std::make_unique<parallel::ShardedGradients>(
        parallel::GradientRanks{.sharing = ranks()}, trained, std::nullopt);
    shards = shards_of(trained);
    for (OwnShard& shard : shards) shard.view.value.requires_grad_();
  }
  ~State() {
    for (const TreeUnit& unit : tree.units) unit.core->attach(nullptr, 0);
  }

  comm::Group& ranks() { return ranks_of(*group); }

  void make_equal() {
    std::vector<nn::NamedTensor> all = parameters_of(*module);
    all.insert(all.end(), tree.buffers.begin(), tree.buffers.end());
    check_usable(all, group->device());
    parallel::check_same_parameters(ranks(), all);
    parallel::broadcast_values(ranks(), all);
  }

  // Frozen parameters apart, for they have no gradients.
  void share(size_t index) {
    TreeUnit& unit = tree.units[index];
    const auto first_frozen = std::stable_partition(
        unit.parameters.begin(), unit.parameters.end(),
        [](const nn::NamedTensor& each) { return each.value.requires_grad(); });
    add(index, {first_frozen, unit.parameters.end()}, frozen);
    add(index, {unit.parameters.begin(), first_frozen}, trained);
    unit.core->attach(&units, index);
  }

  void add(size_t unit, const std::vector<nn::NamedTensor>& parameters, Flats& flats) {
    for (auto& flat : units.add(unit, parameters, /*may_travel=*/true, /*smallest_elements=*/0,
                                /*values=*/nullptr))
      flats.push_back(std::move(flat));
  }

  std::vector<OwnShard> shards_of(const Flats& flats) {
    std::vector<OwnShard> own;
    for (size_t index = 0; index < flats.size(); ++index) {
      const parallel::FlatUnit& flat = *flats[index];
      for (const parallel::PieceOfParameter& part : flat.parameters.parts_of_piece(group->rank())) {
        const parallel::FlatRange& range = flat.parameters.ranges()[part.range];
        own.push_back({{range.parameter.name, range.shape, part.begin_in_parameter,
                        flat.own.narrow(0, part.begin_in_piece, part.numel).detach()},
                       index,
                       part});
      }
    }
    return own;
  }

  void begin_forward() {
    units.end_pass();  // values gathered ahead may have been optimized since
    if (at::GradMode::is_enabled()) synchronises = synchronised;
  }

  void begin_backward() {
    units.acquire(0);
    if (pass == backward_pass()) return;
    CONVOY_CHECK(pass == -1, StateError,
                 "the last backward pass has failed midway: the ranks cannot go on together");
    pass = backward_pass();
    gradients->begin_pass(synchronises ? parallel::GradientSums::Shared
                                       : parallel::GradientSums::None);
    at_end_of_backward([this] { finish_backward(); });
  }

  void finish_backward() {
    const at::NoGradGuard no_grad;
    gradients->end_pass();
    units.end_pass();
    if (synchronises) hand_out();
    pass = -1;
  }

  void hand_out() {
    for (OwnShard& shard : shards) {
      const at::Tensor sum =
          gradients->own(shard.flat).narrow(0, shard.part.begin_in_piece, shard.part.numel);
      const at::Tensor mean = sum.div(group->size()).to(shard.view.value.scalar_type());
      at::Tensor& gradient = shard.view.value.mutable_grad();
      if (gradient.defined())
        gradient.add_(mean);
      else
        gradient = mean;
    }
    gradients->reset();
  }

  void with_whole_parameters(const std::function<void()>& body) {
    units.end_pass();
    for (size_t unit = 0; unit < tree.units.size(); ++unit) units.acquire(unit);
    body();
    units.end_pass();
  }

  double clip_grad_norm(double max_norm) {
    const at::NoGradGuard no_grad;
    at::Tensor square = at::zeros({}, at::kDouble);
    for (const OwnShard& shard : shards)
      if (shard.view.value.grad().defined())
        square += shard.view.value.grad().to(at::kDouble).square().sum().cpu();
    const double norm = std::sqrt(sum_over_ranks(square.item<double>()));
    const double scale = max_norm / (norm + 1e-6);
    if (scale < 1)
      for (const OwnShard& shard : shards)
        if (shard.view.value.grad().defined()) shard.view.value.mutable_grad().mul_(scale);
    return norm;
  }

  // In the order of ranks, so that all of them get the same bits.
  double sum_over_ranks(double own) {
    double sum = 0;
    for (const std::string& bytes : ranks().all_gather_bytes(fmt::format("{:a}", own)))
      sum += std::strtod(bytes.c_str(), nullptr);
    return sum;
  }

  std::shared_ptr<torch::nn::Module> module;
  std::shared_ptr<ProcessGroup> group;
  UnitCore rest;
  ModuleTree tree;
  parallel::ShardedUnits units;
  Flats trained, frozen;
  std::unique_ptr<parallel::ShardedGradients> gradients;
  std::vector<OwnShard> shards;  // that train
  bool synchronised = true;      // outside of NoSync
  bool synchronises = true;      // the same at the last forward pass: holds for its backward
  int pass = -1;                 // the backward pass that is under way
};

Sharding::Sharding(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group)
    : state_(std::make_unique<State>(std::move(module), std::move(group))) {}
Sharding::~Sharding() = default;

const UnitCore& Sharding::rest() { return state_->rest; }
void Sharding::begin_forward() { state_->begin_forward(); }

void Sharding::watch_backward(const std::vector<at::Tensor*>& outputs) {
  tell_in_backward(outputs, [state = state_.get()] { state->begin_backward(); });
}

void Sharding::with_whole_parameters(const std::function<void()>& body) {
  state_->with_whole_parameters(body);
}
double Sharding::clip_grad_norm(double max_norm) { return state_->clip_grad_norm(max_norm); }
void Sharding::set_synchronised(bool synchronised) { state_->synchronised = synchronised; }
bool Sharding::synchronised() const { return state_->synchronised; }
ProcessGroup& Sharding::group() { return *state_->group; }

std::vector<ShardView> Sharding::shards() {
  std::vector<ShardView> views;
  for (const OwnShard& shard : state_->shards) views.push_back(shard.view);
  return views;
}

std::vector<ShardView> Sharding::stored_shards() {
  std::vector<ShardView> views = shards();
  for (const OwnShard& shard : state_->shards_of(state_->frozen)) views.push_back(shard.view);
  return views;
}

torch::OrderedDict<std::string, at::Tensor> Sharding::buffers() {
  torch::OrderedDict<std::string, at::Tensor> buffers;
  for (const nn::NamedTensor& buffer : state_->tree.buffers)
    buffers.insert(buffer.name, buffer.value);
  return buffers;
}

}  // namespace convoy::detail
