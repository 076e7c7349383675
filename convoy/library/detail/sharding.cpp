// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/detail/sharding.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/library/fsdp.h"
#include "convoy/library/internal/group_internal.h"
#include "convoy/library/internal/module_tree.h"
#include "convoy/library/internal/option_checks.h"
#include "convoy/library/internal/pass_units.h"
#include "convoy/library/internal/piece_tensor.h"
#include "convoy/library/internal/sharding_options.h"
#include "convoy/library/internal/told_in_backward.h"
#include "convoy/machine/device/refillable_tensor.h"
#include "convoy/machine/device/transfer.h"
#include "convoy/train/comm/exchange.h"
#include "convoy/train/parallel/same_parameters.h"
#include "convoy/train/parallel/sharded/sharded_gradients.h"
#include "convoy/train/parallel/sharded/sharded_units.h"

namespace convoy::detail {
namespace {

using Flats = std::vector<std::shared_ptr<parallel::FlatUnit>>;

// The part of a parameter that is in this rank's piece of the flat unit number `flat`.
struct OwnShard {
  ShardView view;
  size_t flat;
  parallel::PieceOfParameter part;
};

// A placeholder gradient in .grad of a parameter of the module. The real gradient is in the pieces.
struct WithheldGradient {
  at::Tensor parameter;
  at::Tensor gradient;
};

std::string withheld_error(const std::string& name) {
  return fmt::format(
      "{}{} is sharded: outside of forward, backward and with_whole_parameters() of its "
      "FullyShardedDataParallel it has neither values nor a gradient. Make the optimizer of the "
      "wrapper's parameters(), call the wrapper, clip by its clip_grad_norm(), and save within "
      "its with_whole_parameters() or by CheckpointFolder",
      kOwnErrorMark, name);
}

at::Tensor withheld_gradient(const parallel::FlatRange& range) {
  const at::Tensor& parameter = range.parameter.value;
  at::Tensor gradient =
      device::tensor_without_memory(range.shape, parameter.options().requires_grad(false));
  gradient.unsafeGetTensorImpl()->set_storage_keep_dtype(
      device::withheld_storage(gradient, withheld_error(range.parameter.name)));
  return gradient;
}

}  // namespace

struct Sharding::State {
  State(std::shared_ptr<torch::nn::Module> wrapped, std::shared_ptr<ProcessGroup> process_group,
        const FullyShardedOptions& given)
      : module(std::move(wrapped)),
        group(required(std::move(process_group))),
        options(checked_sharding(given, *group)),
        own_row(row_of(*group, options)),
        replicas(own_row ? ranks().split(ranks().rank() % options.ranks_that_share, "replica")
                         : nullptr),
        tree(tree_of(*module)),
        units(row(), {.keeps_gathered = !options.reshard_after_forward,
                      .on_host = options.offload == Offload::Parameters,
                      .prefetch = static_cast<size_t>(options.prefetch_units),
                      .when_units_differ =
                          [this](const std::vector<int64_t>& used) { throw_different(used); }}),
        passes(units, tree) {
    tree.units[0].core = &rest;
    make_equal();
    for (size_t unit = 0; unit < tree.units.size(); ++unit) share(unit);
    if (trained.empty())
      throw ConfigError(
          "no parameter of the module requires grad: there is nothing to shard for training",
          {.hint = "use the module itself"});
    if (options.gradient_dtype) require_all_real();
    gradients = std::make_unique<parallel::ShardedGradients>(
        parallel::GradientRanks{.sharing = row(), .replicas = replicas.get()}, trained,
        options.gradient_dtype, nullptr,
        [this](const at::Tensor& gradient) { require_plain(gradient); });
    for (const auto& flat : trained) stepped.push_back(stepped_of(*flat));
    shards = shards_of(trained, stepped);
    for (OwnShard& shard : shards) {
      shard.view.value = as_piece(shard.view.value);
      shard.view.value.requires_grad_();
    }
    for (const auto& flat : trained)
      for (const parallel::FlatRange& range : flat->parameters.ranges())
        withheld_gradients.push_back({range.parameter.value, withheld_gradient(range)});
  }
  ~State() {
    hide_gradients();
    for (const TreeUnit& unit : tree.units) unit.core->attach(nullptr, 0);
  }

  comm::Group& ranks() { return ranks_of(*group); }
  comm::Group& row() { return own_row ? *own_row : ranks(); }  // ranks that share the pieces

  // `used`: number of the unit that each rank of the row uses.
  [[noreturn]] void throw_different(const std::vector<int64_t>& used) {
    const auto other =
        std::find_if(used.begin(), used.end(), [&](int64_t unit) { return unit != used[0]; });
    const auto name = [&](int64_t unit) { return tree.units[static_cast<size_t>(unit)].name; };
    const auto first_rank = group->rank() - row().rank();
    throw CommError(
        fmt::format("ranks use different units of a sharded module: rank {} uses {} where rank {} "
                    "uses {}",
                    first_rank, name(used[0]), first_rank + (other - used.begin()), name(*other)),
        {.hint = "call the same units in the same order on every rank, or take "
                 "DistributedDataParallel with find_unused_parameters"});
  }

  void make_equal() {
    std::vector<nn::NamedTensor> all = parameters_of(*module);
    all.insert(all.end(), tree.buffers.begin(), tree.buffers.end());
    check_usable(all, group->device());
    parallel::check_same_parameters(ranks(), all);
    parallel::broadcast_values(ranks(), all);
  }

  // Frozen parameters get flat units of their own, because they have no gradients.
  void share(size_t index) {
    TreeUnit& unit = tree.units[index];
    const auto first_frozen = std::stable_partition(
        unit.parameters.begin(), unit.parameters.end(),
        [](const nn::NamedTensor& each) { return each.value.requires_grad(); });
    add(index, {first_frozen, unit.parameters.end()}, frozen);
    add(index, {unit.parameters.begin(), first_frozen}, trained);
    unit.core->attach(&passes, index);
  }

  void add(size_t unit, const std::vector<nn::NamedTensor>& parameters, Flats& flats) {
    for (auto& flat : units.add(unit, parameters, /*may_travel=*/true, options.keep_whole_below,
                                /*values=*/nullptr)) {
      flat->parameters.withhold(withheld_error);
      flats.push_back(std::move(flat));
    }
  }

  void require_all_real() const {
    for (const auto& flat : trained)
      for (const parallel::FlatRange& range : flat->parameters.ranges())
        require_real("FullyShardedOptions", range.parameter);
  }

  // The tensor that the optimizer steps: this rank's piece, or with offload a copy in the host's
  // memory.
  at::Tensor stepped_of(const parallel::FlatUnit& flat) const {
    return options.offload == Offload::None || flat.own.is_cpu() ? flat.own
                                                                 : device::pinned_copy(flat.own);
  }

  // The shards of this rank. `values`: by flat unit, the values of this rank's piece.
  std::vector<OwnShard> shards_of(const Flats& flats, const std::vector<at::Tensor>& values) {
    std::vector<OwnShard> own;
    for (size_t index = 0; index < flats.size(); ++index) {
      const parallel::FlatUnit& flat = *flats[index];
      for (const parallel::PieceOfParameter& part : flat.parameters.parts_of_piece(row().rank())) {
        const parallel::FlatRange& range = flat.parameters.ranges()[part.range];
        own.push_back({{range.parameter.name, range.shape, part.begin_in_parameter,
                        values[index].narrow(0, part.begin_in_piece, part.numel).detach()},
                       index,
                       part});
      }
    }
    return own;
  }

  void begin_forward() {
    take_stepped_values();
    if (!at::GradMode::is_enabled()) return;
    check_all_taken(*module);
    require_none_frozen();
    synchronises = synchronised;
  }

  // Ends the pass before this one. The optimizer may have changed the pieces since, so gathered
  // values are out of date.
  void take_stepped_values() {
    const at::NoGradGuard no_grad;
    units.end_pass();
    units.finish_gathers();
    for (size_t index = 0; index < trained.size(); ++index) {
      if (!stepped[index].is_same(trained[index]->own)) trained[index]->own.copy_(stepped[index]);
      if (!trained[index]->travels) units.start_update(*trained[index]);
    }
    passes.end_pass();
  }

  // Frozen parameters change only by loading a checkpoint.
  void after_load() {
    for (const auto& flat : frozen)
      if (!flat->travels) units.start_update(*flat);
  }

  // Throws ConfigError for a parameter that was frozen after sharding. The optimizer would still
  // move it, by weight decay and momentum.
  void require_none_frozen() const {
    for (const auto& flat : trained)
      for (const parallel::FlatRange& range : flat->parameters.ranges())
        if (!range.parameter.value.requires_grad())
          throw ConfigError(
              fmt::format("{} was frozen after the module was sharded", range.parameter.name),
              {.hint = "freeze it before"});
  }

  // Called for every gradient: the last pass of several may enter the graph midway, for example
  // with a gradient penalty.
  void require_plain(const at::Tensor& gradient) {
    if (gradient.requires_grad() || makes_graph)
      throw ConfigError(
          "gradients of sharded parameters cannot be differentiated again (backward with "
          "create_graph)",
          {.hint = "take torch::autograd::grad of inputs or activations"});
    if (pass != backward_pass()) begin_backward(/*create_graph=*/false);
  }

  void begin_backward(bool create_graph) {
    passes.keep_rest();
    if (pass == backward_pass()) return;
    CONVOY_CHECK(pass == -1, StateError,
                 "the last backward pass has failed midway: the ranks cannot go on together");
    pass = backward_pass();
    makes_graph = create_graph;
    sums = synchronises && !makes_graph;
    hide_gradients();
    gradients->begin_pass(sums ? parallel::GradientSums::All : parallel::GradientSums::None);
    at_end_of_backward([this] { finish_backward(); });
  }

  // After a pass with create_graph the units stay whole, because the pass that follows may use
  // parameters without passing the ends of their unit.
  void finish_backward() {
    const at::NoGradGuard no_grad;
    gradients->end_pass();
    passes.hold_for_backward(makes_graph);
    passes.end_pass();
    if (sums) hand_out();
    makes_graph = false;
    pass = -1;
  }

  // If the program has cleared the gradients of the module's own parameters (module->zero_grad()),
  // the gradients of the pieces are cleared too.
  void hide_gradients() {
    if (!gradients_withheld) return;
    gradients_withheld = false;
    std::set<const void*> cleared;
    for (const WithheldGradient& each : withheld_gradients) {
      if (!each.parameter.grad().is_same(each.gradient))
        cleared.insert(each.parameter.unsafeGetTensorImpl());
      each.parameter.mutable_grad() = at::Tensor();
    }
    for (OwnShard& shard : shards)
      if (cleared.count(parameter_of(shard).unsafeGetTensorImpl()) > 0)
        shard.view.value.mutable_grad() = at::Tensor();
  }

  const at::Tensor& parameter_of(const OwnShard& shard) const {
    return trained[shard.flat]->parameters.ranges()[shard.part.range].parameter.value;
  }

  void hand_out() {
    for (OwnShard& shard : shards) {
      const at::Tensor sum =
          gradients->own(shard.flat).narrow(0, shard.part.begin_in_piece, shard.part.numel);
      const at::Tensor mean = sum.div(group->size()).to(shard.view.value.options());
      at::Tensor& gradient = shard.view.value.mutable_grad();
      gradient = as_piece(gradient.defined() ? gradient.add_(mean) : mean);
    }
    for (const WithheldGradient& each : withheld_gradients)
      each.parameter.mutable_grad() = each.gradient;
    gradients_withheld = true;
    gradients->reset();
  }

  void with_whole_parameters(const std::function<void()>& body) {
    passes.hold_for_body(true);
    take_stepped_values();
    std::vector<at::Tensor> before;
    for (const Flats* flats : {&trained, &frozen})
      for (const auto& flat : *flats) before.push_back(lost_if_written(*flat));
    body();
    size_t index = 0;
    for (const Flats* flats : {&trained, &frozen})
      for (const auto& flat : *flats) require_unwritten(*flat, before[index++]);
    passes.hold_for_body(false);
    passes.end_pass();
  }

  // The values of a flat unit that are lost if `body` changes them. In a gathered unit these are
  // the values of this rank's part, which is a copy. In a unit that stays whole they are the parts
  // of the other ranks.
  at::Tensor lost_if_written(parallel::FlatUnit& flat) {
    if (flat.travels) return flat.parameters.piece_of_whole(row().rank()).clone();
    at::Tensor others = flat.parameters.whole().flat().clone();
    const int64_t numel = flat.parameters.piece_numel();
    others.narrow(0, row().rank() * numel, numel).zero_();
    return others;
  }

  void require_unwritten(parallel::FlatUnit& flat, const at::Tensor& before) {
    if (!at::equal(lost_if_written(flat).view(at::kByte), before.view(at::kByte)))
      throw ConfigError(
          fmt::format("values of {} or its neighbours were written within with_whole_parameters(), "
                      "where they are lost",
                      flat.parameters.ranges().front().parameter.name),
          {.hint = "write them before the module is sharded, or into shards()"});
  }

  double clip_grad_norm(double max_norm) {
    const at::NoGradGuard no_grad;
    at::Tensor square = at::zeros({}, at::kDouble);
    for (const OwnShard& shard : shards) {
      const at::Tensor& gradient = shard.view.value.grad();
      if (!gradient.defined()) continue;
      const at::Tensor reals = gradient.is_complex() ? at::view_as_real(gradient) : gradient;
      square += reals.to(at::kDouble).square().sum().cpu();
    }
    const double norm = std::sqrt(sum_over_ranks(square.item<double>()));
    const double scale = max_norm / (norm + 1e-6);
    if (scale < 1)
      for (const OwnShard& shard : shards)
        if (shard.view.value.grad().defined()) shard.view.value.mutable_grad().mul_(scale);
    return norm;
  }

  // Collective. Adds up in the order of the ranks of a row, so that all ranks get the same bits.
  double sum_over_ranks(double own) {
    double sum = 0;
    for (const double each : comm::exchange(row(), own)) sum += each;
    return sum;
  }

  std::shared_ptr<torch::nn::Module> module;
  std::shared_ptr<ProcessGroup> group;
  const FullyShardedOptions options;
  std::unique_ptr<comm::Group> own_row;   // nullptr: all ranks share
  std::unique_ptr<comm::Group> replicas;  // ranks with the same pieces; nullptr: none
  UnitCore rest;
  ModuleTree tree;
  parallel::ShardedUnits units;
  PassUnits passes;
  Flats trained, frozen;
  std::vector<at::Tensor> stepped;  // by trained flat unit: the tensor that the optimizer steps
  std::unique_ptr<parallel::ShardedGradients> gradients;
  std::vector<OwnShard> shards;  // the shards that train
  std::vector<WithheldGradient> withheld_gradients;
  bool gradients_withheld = false;  // true: `withheld_gradients` are in .grad
  bool synchronised = true;         // false within a NoSync
  bool synchronises = true;         // value of `synchronised` at the last forward pass
  int pass = -1;                    // number of the current backward pass; -1: none
  bool makes_graph = false;         // the current pass has create_graph; another one follows
  bool sums = false;                // the current pass gives the pieces their gradients
};

Sharding::Sharding(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group,
                   const FullyShardedOptions& options)
    : state_(std::make_unique<State>(std::move(module), std::move(group), options)) {}
Sharding::~Sharding() = default;

const UnitCore& Sharding::rest() { return state_->rest; }
void Sharding::begin_forward() { state_->begin_forward(); }

void Sharding::watch_backward(const std::vector<at::Tensor*>& outputs) {
  tell_in_backward(
      outputs, [state = state_.get()](bool makes_graph) { state->begin_backward(makes_graph); });
}

void Sharding::with_whole_parameters(const std::function<void()>& body) {
  state_->with_whole_parameters(body);
}
double Sharding::clip_grad_norm(double max_norm) { return state_->clip_grad_norm(max_norm); }
void Sharding::set_synchronised(bool synchronised) { state_->synchronised = synchronised; }
bool Sharding::synchronised() const { return state_->synchronised; }
ProcessGroup& Sharding::group() { return *state_->group; }
bool Sharding::writes_shards() const { return !state_->replicas || state_->replicas->rank() == 0; }
void Sharding::after_load() { state_->after_load(); }

std::vector<ShardView> Sharding::shards() {
  std::vector<ShardView> views;
  for (const OwnShard& shard : state_->shards) views.push_back(shard.view);
  return views;
}

std::vector<ShardView> Sharding::stored_shards() {
  std::vector<ShardView> views = shards();
  std::vector<at::Tensor> frozen;
  for (const auto& flat : state_->frozen) frozen.push_back(flat->own);
  for (const OwnShard& shard : state_->shards_of(state_->frozen, frozen))
    views.push_back(shard.view);
  return views;
}

torch::OrderedDict<std::string, at::Tensor> Sharding::buffers() {
  torch::OrderedDict<std::string, at::Tensor> buffers;
  for (const nn::NamedTensor& buffer : state_->tree.buffers)
    buffers.insert(buffer.name, buffer.value);
  return buffers;
}

}  // namespace convoy::detail
