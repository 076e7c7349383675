// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/detail/replicas.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/library/internal/device_streams.h"
#include "convoy/library/internal/module_tree.h"
#include "convoy/library/internal/permanent_threads.h"

namespace convoy::detail {
namespace {

namespace autograd = torch::autograd;

using TensorLists = std::vector<std::vector<at::Tensor>>;

std::vector<at::Tensor> values_of(const std::vector<nn::NamedTensor>& named) {
  std::vector<at::Tensor> values;
  for (const nn::NamedTensor& each : named) values.push_back(each.value);
  return values;
}

at::Tensor as_rows(const at::Tensor& output) {
  return output.dim() == 0 ? output.unsqueeze(0) : output;
}

// Cuts the gradient of a joined output into pieces with the shapes of `outputs`.
std::vector<at::Tensor> cut_as(const at::Tensor& gradient, const std::vector<at::Tensor>& outputs) {
  std::vector<at::Tensor> pieces;
  int64_t begin = 0;
  for (const at::Tensor& output : outputs) {
    const int64_t rows = as_rows(output).size(0);
    pieces.push_back(gradient.narrow(0, begin, rows).reshape(output.sizes()).to(output.device()));
    begin += rows;
  }
  return pieces;
}

// The module itself for the first device, and a clone for each further device.
std::vector<std::shared_ptr<torch::nn::Module>> clones_on(
    const std::shared_ptr<torch::nn::Module>& module, const std::vector<at::Device>& devices) {
  if (devices.empty())
    throw ConfigError("DataParallel was given no device", {.hint = "name one device or more"});
  std::vector<std::shared_ptr<torch::nn::Module>> replicas = {module};
  for (size_t replica = 1; replica < devices.size(); ++replica)
    replicas.push_back(module->clone(devices[replica]));
  return replicas;
}

}  // namespace

struct Replicas::State {
  State(std::vector<std::shared_ptr<torch::nn::Module>> clones, std::vector<at::Device> places)
      : modules(std::move(clones)), devices(std::move(places)), threads(devices) {
    for (const auto& module : modules) {
      parameters.push_back(values_of(parameters_of(*module)));
      buffers.push_back(values_of(tree_of(*module).buffers));
    }
    check_usable(parameters_of(*modules[0]), devices[0]);
    for (size_t replica = 1; replica < modules.size(); ++replica)
      if (devices[replica] == devices[0]) share_values(replica);
    copied_versions.assign(parameters[0].size(), -1);
  }

  // Replicas on one device share their values. Each has its own gradients, because backward passes
  // add to them at the same time.
  void share_values(size_t replica) {
    for (size_t index = 0; index < parameters[0].size(); ++index)
      parameters[replica][index].set_data(parameters[0][index].variable_data());
  }

  void refresh() {
    const at::NoGradGuard no_grad;
    for (size_t index = 0; index < parameters[0].size(); ++index) {
      const auto version = static_cast<int64_t>(parameters[0][index]._version());
      if (version == copied_versions[index]) continue;
      copied_versions[index] = version;
      for (size_t replica = 1; replica < modules.size(); ++replica)
        if (devices[replica] != devices[0])
          parameters[replica][index].copy_(parameters[0][index], /*non_blocking=*/true);
    }
    for (size_t replica = 1; replica < modules.size(); ++replica) {
      for (size_t index = 0; index < buffers[0].size(); ++index)
        buffers[replica][index].variable_data().copy_(buffers[0][index]);
      if (modules[replica]->is_training() != modules[0]->is_training())
        modules[replica]->train(modules[0]->is_training());
    }
  }

  // Runs the backward passes of all replicas at once, then adds up their gradients, pairwise.
  void backward(const TensorLists& outputs, const TensorLists& gradients) {
    threads.run(outputs.size(), [&](size_t replica) {
      std::vector<at::Tensor> roots, seeds;
      for (size_t index = 0; index < outputs[replica].size(); ++index) {
        if (!gradients[replica][index].defined() || !outputs[replica][index].requires_grad())
          continue;
        roots.push_back(outputs[replica][index]);
        seeds.push_back(gradients[replica][index]);
      }
      if (!roots.empty()) autograd::backward(roots, seeds);
    });
    const size_t count = outputs.size();
    threads.run(count, [&](size_t thread) {
      for (size_t index = thread; index < parameters[0].size(); index += count) add_up(index);
    });
  }

  void add_up(size_t index) {
    const at::NoGradGuard no_grad;
    const size_t count = parameters.size();
    for (size_t stride = 1; stride < count; stride *= 2) {
      for (size_t left = 0; left + stride < count; left += 2 * stride) {
        at::Tensor& sum = parameters[left][index].mutable_grad();
        at::Tensor& other = parameters[left + stride][index].mutable_grad();
        if (!other.defined()) continue;
        if (sum.defined())
          sum.add_(other.to(sum.device()));
        else
          sum = other.to(parameters[left][index].device());
        other = at::Tensor();
      }
    }
  }

  std::vector<std::shared_ptr<torch::nn::Module>> modules;
  std::vector<at::Device> devices;
  TensorLists parameters, buffers;  // by replica
  // Versions of the module's parameters when they were copied to the other devices.
  std::vector<int64_t> copied_versions;
  ReplicaThreads threads;
};

namespace {

// The gradients of the joined outputs, which JoinedOutputs passes to JoinedGraphs.
using HandedGradients = std::shared_ptr<autograd::variable_list>;

// The graphs of all replicas as one node. The outer graph does not see the inner graphs, so their
// backward passes need not share the one thread that autograd has for a CPU. The node waits for
// these passes. So it must not run on the one thread that autograd has for a GPU, because the
// passes need that thread. Its input is a number on the CPU: such a node runs on the thread that
// called backward().
template <class Backward>
class JoinedGraphs : public autograd::Node {
 public:
  JoinedGraphs(Backward backward, HandedGradients handed, TensorLists leaves, TensorLists outputs,
               const std::vector<at::Tensor*>& inputs, std::vector<c10::Stream> streams)
      : backward_(std::move(backward)),
        handed_(std::move(handed)),
        leaves_(std::move(leaves)),
        outputs_(std::move(outputs)),
        streams_(std::move(streams)) {
    add_input_metadata(at::zeros({}));
    for (const at::Tensor* input : inputs)
      add_next_edge(input->defined() && input->requires_grad()
                        ? autograd::impl::gradient_edge(*input)
                        : autograd::Edge());
  }

  autograd::variable_list apply(autograd::variable_list&&) override {
    const autograd::variable_list joined = std::exchange(*handed_, {});
    if (outputs_.empty())
      throw ConfigError("backward ran through this DataParallel before: its graph is freed",
                        {.hint = "run forward again"});
    autograd::variable_list gradients;
    {
      const c10::MultiStreamGuard of_forward(streams_);
      run_backward(joined);
      gradients = input_gradients();
    }
    continue_after(streams_);
    return gradients;
  }

  void release_variables() override { outputs_.clear(); }

 private:
  void run_backward(const autograd::variable_list& joined) {
    TensorLists gradients(outputs_.size(), std::vector<at::Tensor>(outputs_[0].size()));
    for (size_t at = 0; at < joined.size(); ++at) {
      if (!joined[at].defined()) continue;
      std::vector<at::Tensor> outputs;
      for (const auto& of_replica : outputs_) outputs.push_back(of_replica[at]);
      const std::vector<at::Tensor> pieces = cut_as(joined[at], outputs);
      for (size_t replica = 0; replica < pieces.size(); ++replica)
        gradients[replica][at] = pieces[replica];
    }
    backward_(outputs_, gradients);
  }

  autograd::variable_list input_gradients() const {
    autograd::variable_list gradients(num_outputs());
    for (size_t input = 0; input < num_outputs(); ++input) {
      if (!task_should_compute_output(input)) continue;
      std::vector<at::Tensor> pieces;
      for (const auto& of_replica : leaves_) {
        const at::Tensor& leaf = of_replica[input];
        pieces.push_back(leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf));
        pieces.back() = pieces.back().to(leaves_[0][input].device());
      }
      gradients[input] = at::cat(pieces);
    }
    return gradients;
  }

  Backward backward_;
  HandedGradients handed_;
  TensorLists leaves_;                // the replicas' inputs
  TensorLists outputs_;               // by replica; only replicas that had rows
  std::vector<c10::Stream> streams_;  // streams that the forward pass ran on
};

// The node in the graph after JoinedGraphs. It is on the device of the joined outputs, and waits
// for nothing.
class JoinedOutputs : public autograd::Node {
 public:
  JoinedOutputs(HandedGradients handed, const std::shared_ptr<autograd::Node>& graphs)
      : handed_(std::move(handed)) {
    add_next_edge({graphs, 0});
  }

  autograd::variable_list apply(autograd::variable_list&& joined) override {
    *handed_ = std::move(joined);
    return {at::zeros({})};
  }

 private:
  HandedGradients handed_;
};

}  // namespace

Replicas::Replicas(const std::shared_ptr<torch::nn::Module>& module,
                   const std::vector<at::Device>& devices)
    : state_(std::make_shared<State>(clones_on(module, devices), devices)) {}
Replicas::~Replicas() = default;

torch::nn::Module& Replicas::module(size_t replica) { return *state_->modules[replica]; }

TensorLists Replicas::deal(const std::vector<at::Tensor*>& inputs) {
  state_->refresh();
  std::optional<int64_t> rows;
  for (const at::Tensor* input : inputs) {
    if (!input->defined() || input->dim() == 0) continue;
    if (rows && *rows != input->size(0))
      throw ConfigError(
          fmt::format(
              "DataParallel deals rows: all tensors must have the same number, found {} and {}",
              *rows, input->size(0)),
          {.hint = "give tensors with the same number of rows"});
    rows = input->size(0);
  }
  if (!rows || *rows <= 0)
    throw ConfigError("DataParallel deals the rows of its arguments, but there are none",
                      {.hint = "give a tensor with rows as the first argument"});
  const auto count =
      static_cast<size_t>(std::min(*rows, static_cast<int64_t>(state_->devices.size())));
  TensorLists dealt(count);
  for (const at::Tensor* input : inputs) {
    const bool is_cut = input->defined() && input->dim() > 0;
    const std::vector<at::Tensor> pieces =
        is_cut ? input->detach().tensor_split(static_cast<int64_t>(count), 0)
               : std::vector<at::Tensor>(count, input->defined() ? input->detach() : *input);
    for (size_t replica = 0; replica < count; ++replica) {
      at::Tensor piece = pieces[replica];
      if (piece.defined()) piece = piece.to(state_->devices[replica]);
      if (at::GradMode::is_enabled() && is_cut && input->requires_grad()) piece.requires_grad_();
      dealt[replica].push_back(piece);
    }
  }
  return dealt;
}

void Replicas::run(size_t count, const std::function<void(size_t)>& body) {
  state_->threads.run(count, body);
}

void Replicas::join(const std::vector<at::Tensor*>& inputs, const TensorLists& dealt,
                    const TensorLists& outputs, const std::vector<at::Tensor*>& joined) {
  bool records = false;
  {
    const at::NoGradGuard no_grad;
    for (size_t at = 0; at < joined.size(); ++at) {
      std::vector<at::Tensor> pieces;
      for (const auto& of_replica : outputs) {
        if (of_replica.size() != joined.size())
          throw ConfigError(
              fmt::format("the replicas return {} and {} tensors: they cannot be joined",
                          joined.size(), of_replica.size()),
              {.hint = "return as many tensors from each forward"});
        records = records || of_replica[at].requires_grad();
        pieces.push_back(as_rows(of_replica[at].detach()).to(state_->devices[0]));
      }
      *joined[at] = at::cat(pieces);
    }
  }
  if (!records || !at::GradMode::is_enabled()) return;
  const auto backward = [state = state_](const TensorLists& roots, const TensorLists& gradients) {
    state->backward(roots, gradients);
  };
  const auto handed = std::make_shared<autograd::variable_list>();
  const std::shared_ptr<autograd::Node> graphs(
      new JoinedGraphs<decltype(backward)>(backward, handed, dealt, outputs, inputs,
                                           current_streams(state_->devices)),
      autograd::deleteNode);
  const std::shared_ptr<autograd::Node> node(new JoinedOutputs(handed, graphs),
                                             autograd::deleteNode);
  for (at::Tensor* tensor : joined) autograd::set_history(*tensor, node);
}

void Replicas::train(bool on) {
  for (const auto& module : state_->modules) module->train(on);
}

}  // namespace convoy::detail
