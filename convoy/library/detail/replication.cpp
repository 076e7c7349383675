// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/detail/replication.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/library/ddp.h"
#include "convoy/library/fsdp.h"
#include "convoy/library/internal/coalesced.h"
#include "convoy/library/internal/group_internal.h"
#include "convoy/library/internal/module_tree.h"
#include "convoy/library/internal/option_checks.h"
#include "convoy/library/internal/told_in_backward.h"
#include "convoy/train/parallel/ddp/grad_reducer.h"
#include "convoy/train/parallel/gradient_hooks.h"
#include "convoy/train/parallel/same_parameters.h"

namespace convoy::detail {
namespace {

constexpr const char* kDdpOptions = "DistributedDataParallelOptions";

// Collective.
const DistributedDataParallelOptions& checked_options(const DistributedDataParallelOptions& options,
                                                      ProcessGroup& group) {
  require_same_options(
      kDdpOptions,
      fmt::format("bucket_cap_mb {}, broadcast_buffers {}, find_unused_parameters {}, "
                  "gradient_as_bucket_view {}, gradient_dtype {}",
                  options.bucket_cap_mb, options.broadcast_buffers, options.find_unused_parameters,
                  options.gradient_as_bucket_view, gradient_dtype_text(options.gradient_dtype)),
      group);
  require_gradient_dtype(kDdpOptions, options.gradient_dtype);
  return options;
}

int64_t bucket_bytes_of(const DistributedDataParallelOptions& options) {
  if (options.bucket_cap_mb <= 0)
    throw ConfigError(
        fmt::format("DistributedDataParallelOptions::bucket_cap_mb must be above 0, found {}",
                    options.bucket_cap_mb),
        {.hint = "such as 25"});
  return static_cast<int64_t>(std::ceil(options.bucket_cap_mb * (1 << 20)));
}

}  // namespace

// During a backward pass each gradient that arrives is divided by the number of ranks and written
// into a bucket; full buckets are sent. At its end the remaining buckets are sent, and .grad of
// each parameter gets the mean. The first synchronised pass determines the order of the buckets, so
// it sends everything at its end (train/parallel/ddp/ddp.h says why the layout stays).
struct Replication::State {
  State(std::shared_ptr<torch::nn::Module> wrapped, std::shared_ptr<ProcessGroup> process_group,
        const DistributedDataParallelOptions& ddp_options)
      : module(std::move(wrapped)),
        group(required(std::move(process_group))),
        options(checked_options(ddp_options, *group)),
        bucket_bytes(bucket_bytes_of(options)),
        parameters(parameters_of(*module)),
        buffers(tree_of(*module).buffers) {
    make_equal();
    std::erase_if(parameters,
                  [](const nn::NamedTensor& each) { return !each.value.requires_grad(); });
    if (parameters.empty())
      throw ConfigError("no parameter of the module requires grad: there is nothing to reduce",
                        {.hint = "use the module itself"});
    if (options.gradient_dtype)
      for (const nn::NamedTensor& parameter : parameters) require_real(kDdpOptions, parameter);
    world = at::full({}, static_cast<double>(group->size()), at::kDouble);
    arrived.assign(parameters.size(), false);
    used.assign(parameters.size(), false);
    std::vector<at::Tensor> values;
    for (const nn::NamedTensor& parameter : parameters) {
      values.push_back(parameter.value);
      averages.push_back(
          at::empty(parameter.value.sizes(), parameter.value.options().requires_grad(false)));
    }
    hooks = std::make_unique<parallel::GradientHooks>(
        values, [this](size_t index, at::Tensor gradient) { receive(index, std::move(gradient)); });
  }

  comm::Group& ranks() { return ranks_of(*group); }

  void make_equal() {
    std::vector<nn::NamedTensor> all = parameters;
    all.insert(all.end(), buffers.begin(), buffers.end());
    check_usable(all, group->device());
    parallel::check_same_parameters(ranks(), all);
    parallel::broadcast_values(ranks(), all);
  }

  void broadcast_buffers() {
    std::vector<at::Tensor> values;
    for (const nn::NamedTensor& buffer : buffers) values.push_back(buffer.value);
    broadcast_coalesced(ranks(), values, 0);
  }

  void before_forward() {
    if (!at::GradMode::is_enabled()) return;
    check_all_taken(*module);
    if (options.broadcast_buffers && buffers_due && module->is_training()) broadcast_buffers();
    buffers_due = synchronised;
    synchronises = synchronised;
  }

  // Runs on the thread of the backward pass. Autograd holds no other reference to the gradient.
  void receive(size_t index, at::Tensor gradient) {
    const nn::NamedTensor& parameter = parameters[index];
    if (gradient.layout() != at::kStrided)
      throw ConfigError(fmt::format("the gradient of {} is sparse", parameter.name),
                        {.hint = "use an embedding with sparse(false)"});
    if (gradient.requires_grad())
      throw ConfigError(
          fmt::format(
              "the gradient of {} cannot be averaged and differentiated again (backward with "
              "create_graph)",
              parameter.name),
          {.hint = "take torch::autograd::grad of inputs or activations"});
    parameter.value.mutable_grad() = std::move(gradient);
    used[index] = true;
    if (!synchronises) return;
    if (pass != backward_pass()) begin_pass();
    arrived[index] = true;
    if (reducer)
      send(index);
    else
      arrivals.push_back(index);
  }

  void begin_pass() {
    CONVOY_CHECK(pass == -1, StateError,
                 "the last backward pass has failed midway: the ranks cannot go on together");
    pass = backward_pass();
    at_end_of_backward([this] { finish_pass(); });
  }

  void send(size_t index) {
    const at::Tensor& gradient = parameters[index].value.grad();
    if (gradient.defined())
      at::div_out(averages[index], gradient, world);
    else
      averages[index].zero_();
    reducer->mark_ready(index);
  }

  void finish_pass() {
    const at::NoGradGuard no_grad;
    require_all_arrived();
    if (!reducer) lay_out_buckets();
    for (size_t index = 0; index < parameters.size(); ++index)
      if (!reducer->is_ready(index)) send(index);
    reducer->finish_step();
    const std::vector<bool> wanted = options.find_unused_parameters ? used_anywhere() : used;
    for (size_t index = 0; index < parameters.size(); ++index)
      if (wanted[index]) hand_out(index);
    arrived.assign(parameters.size(), false);
    used.assign(parameters.size(), false);
    pass = -1;
  }

  void require_all_arrived() const {
    if (options.find_unused_parameters) return;
    std::vector<std::string> names;
    for (size_t index = 0; index < parameters.size(); ++index)
      if (!arrived[index]) names.push_back(parameters[index].name);
    if (names.empty()) return;
    const size_t count = names.size();
    if (count > 5) names.resize(5);
    throw ConfigError(
        fmt::format("backward has left {} of {} parameters out: {}{}", count, parameters.size(),
                    fmt::join(names, ", "), count > 5 ? ", ..." : ""),
        {.hint = "set DistributedDataParallelOptions::find_unused_parameters, or let every output "
                 "of the module count in the loss",
         .rank = group->rank()});
  }

  // Collective. Parameters that the first pass left out come last.
  void lay_out_buckets() {
    for (size_t index = parameters.size(); index-- > 0;)
      if (!arrived[index]) arrivals.push_back(index);
    at::Tensor order = at::empty({static_cast<int64_t>(arrivals.size())}, at::kLong);
    std::copy(arrivals.begin(), arrivals.end(), order.mutable_data_ptr<int64_t>());
    ranks().broadcast(order, 0);
    const int64_t* agreed = order.const_data_ptr<int64_t>();
    reducer = std::make_unique<parallel::GradReducer>(
        ranks(), averages, std::vector<size_t>(agreed, agreed + order.numel()), bucket_bytes,
        options.gradient_dtype);
    arrivals.clear();
  }

  // Collective. For each parameter, true when some rank has used it.
  std::vector<bool> used_anywhere() {
    at::Tensor counts = at::zeros({static_cast<int64_t>(used.size())}, at::kLong);
    std::copy(used.begin(), used.end(), counts.mutable_data_ptr<int64_t>());
    ranks().all_reduce_sum(counts);
    std::vector<bool> anywhere(used.size());
    for (size_t index = 0; index < used.size(); ++index)
      anywhere[index] = counts.const_data_ptr<int64_t>()[index] > 0;
    return anywhere;
  }

  void hand_out(size_t index) {
    at::Tensor& gradient = parameters[index].value.mutable_grad();
    if (options.gradient_as_bucket_view)
      gradient = averages[index];
    else if (gradient.defined())
      gradient.copy_(averages[index]);
    else
      gradient = averages[index].clone();
  }

  std::shared_ptr<torch::nn::Module> module;
  std::shared_ptr<ProcessGroup> group;
  DistributedDataParallelOptions options;
  int64_t bucket_bytes;
  std::vector<nn::NamedTensor> parameters;  // parameters that require grad
  std::vector<nn::NamedTensor> buffers;
  at::Tensor world;                  // the number of ranks
  std::vector<at::Tensor> averages;  // by parameter; later views of the buckets
  std::vector<size_t> arrivals;      // parameters in the order of the first synchronised pass
  std::vector<bool> arrived;         // by parameter: arrived in this pass
  std::vector<bool> used;            // by parameter: used since the last synchronised pass
  std::unique_ptr<parallel::GradReducer> reducer;  // from the end of the first synchronised pass on
  bool synchronised = true;                        // false within a NoSync
  bool synchronises = true;  // value of `synchronised` at the last forward pass
  bool buffers_due = true;
  int pass = -1;  // number of the current backward pass; -1: none
  std::unique_ptr<parallel::GradientHooks> hooks;
};

Replication::Replication(std::shared_ptr<torch::nn::Module> module,
                         std::shared_ptr<ProcessGroup> group,
                         const DistributedDataParallelOptions& options)
    : state_(std::make_unique<State>(std::move(module), std::move(group), options)) {}
Replication::~Replication() = default;

void Replication::before_forward() { state_->before_forward(); }
void Replication::set_synchronised(bool synchronised) { state_->synchronised = synchronised; }
bool Replication::synchronised() const { return state_->synchronised; }
void Replication::broadcast_buffers() { state_->broadcast_buffers(); }
ProcessGroup& Replication::group() { return *state_->group; }

std::vector<ShardView> Replication::stored_shards() {
  std::vector<ShardView> shards;
  for (const nn::NamedTensor& parameter : parameters_of(*state_->module))
    shards.push_back({parameter.name, parameter.value.sizes().vec(), 0, parameter.value});
  return shards;
}

torch::OrderedDict<std::string, at::Tensor> Replication::buffers() {
  torch::OrderedDict<std::string, at::Tensor> buffers;
  for (const nn::NamedTensor& buffer : state_->buffers) buffers.insert(buffer.name, buffer.value);
  return buffers;
}

}  // namespace convoy::detail
