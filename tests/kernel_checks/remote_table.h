// SPDX-License-Identifier: Apache-2.0
//
// A device's table of ops for CPU tensors: each call copies its tensors to the device, runs there,
// and copies results and changed tensors back. The conformance tests of ops, which make CPU
// tensors, thus run on any device.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "convoy/model/kernels/registry/op_table.h"

namespace convoy::testing {

// The device on which the remote table of this process computes.
inline at::Device remote_device = at::kCPU;

// Copies the tensors of one call to the device and back.
class Journey {
 public:
  at::Tensor there(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_cpu()) return tensor;
    moved_.emplace_back(tensor, tensor.detach().to(remote_device));
    return moved_.back().second;
  }
  std::vector<at::Tensor> there(const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> moved;
    for (const at::Tensor& tensor : tensors) moved.push_back(there(tensor));
    return moved;
  }
  std::vector<kernels::AdamWTensors> there(std::vector<kernels::AdamWTensors> parameters) {
    for (kernels::AdamWTensors& of : parameters)
      for (at::Tensor* const tensor : {&of.value, &of.gradient, &of.exp_avg, &of.exp_avg_sq,
                                       &of.exp_avg_scale, &of.exp_avg_sq_scale, &of.rounded})
        *tensor = there(*tensor);
    return parameters;
  }
  kernels::AttentionOutput there(const kernels::AttentionOutput& output) {
    return {there(output.out_THE), there(output.for_backward)};
  }
  kernels::DeltaRuleTensors there(const kernels::DeltaRuleTensors& of) {
    return {there(of.q_TKE), there(of.k_TKE), there(of.v_THF), there(of.log_decay_TH),
            there(of.beta_TH)};
  }
  kernels::ProductTerm there(const kernels::ProductTerm& term) {
    return {there(term.a_MK), there(term.b_KN)};
  }
  std::vector<kernels::ProductTerm> there(std::vector<kernels::ProductTerm> terms) {
    for (kernels::ProductTerm& term : terms)
      term = there(static_cast<const kernels::ProductTerm&>(term));
    return terms;
  }
  kernels::ProductOptions there(kernels::ProductOptions options) {
    options.bias_N = there(options.bias_N);
    options.into = there(options.into);
    return options;
  }
  kernels::OutputHead there(const kernels::OutputHead& head) {
    return {there(head.weight_VD), head.form};
  }
  kernels::HeadTargets there(const kernels::HeadTargets& targets) {
    return {there(targets.labels_N), there(targets.weights_N)};
  }
  kernels::RotatedHeads there(const kernels::RotatedHeads& heads) {
    return {there(heads.q_THE), there(heads.k_TKE)};
  }
  static kernels::RowIndex there(const kernels::RowIndex& rows) {
    return kernels::RowIndex(rows.starts(), remote_device);
  }
  static kernels::PagedRows there(const kernels::PagedRows& rows) {
    return kernels::PagedRows(rows.rows(), rows.block_tokens(), remote_device);
  }
  kernels::PagedCache there(kernels::PagedCache cache) {
    for (at::Tensor* const part :
         {&cache.keys, &cache.values, &cache.key_scales, &cache.value_scales})
      *part = there(*part);
    return cache;
  }
  kernels::HeadTransform there(kernels::HeadTransform transform) {
    for (at::Tensor* const part : {&transform.query_norm_E, &transform.key_norm_E,
                                   &transform.cos_PE, &transform.sin_PE, &transform.positions_T})
      *part = there(*part);
    return transform;
  }
  kernels::IntegerWeight there(kernels::IntegerWeight weight) {
    for (at::Tensor* const part : {&weight.codes_OI, &weight.scales_OG, &weight.offsets_OG})
      *part = there(*part);
    return weight;
  }
  kernels::BitsandbytesWeight there(kernels::BitsandbytesWeight weight) {
    for (at::Tensor* const part : {&weight.codes, &weight.absmax, &weight.nested_absmax,
                                   &weight.nested_offset, &weight.nested_table})
      *part = there(*part);
    return weight;
  }
  kernels::SamplingTables there(kernels::SamplingTables tables) {
    for (at::Tensor* const part :
         {&tables.rules, &tables.seen_places_N, &tables.penalties_N, &tables.unread_places_U,
          &tables.added_places_M, &tables.addends_M, &tables.unread_added_W2,
          &tables.unread_addends_W2, &tables.asking_rows_A, &tables.num_likeliest_A1})
      *part = there(*part);
    return tables;
  }
  static at::TensorOptions there(const at::TensorOptions& options) {
    return options.device(remote_device);
  }
  template <class Plain>
  static const Plain& there(const Plain& plain) {
    return plain;
  }

  // Called after an op: copies back the tensors that the op wrote in place.
  void end() const {
    const at::NoGradGuard no_grad;
    for (const auto& [host, device] : moved_)
      if (const at::Tensor now = device.cpu(); !at::equal(now, host))
        host.variable_data().copy_(now);
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> moved_;
};

inline at::Tensor back(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.cpu() : tensor;
}
inline kernels::AttentionOutput back(kernels::AttentionOutput output) {
  for (at::Tensor& tensor : output.for_backward) tensor = back(tensor);
  return {back(output.out_THE), std::move(output.for_backward)};
}
inline kernels::AttentionGradients back(const kernels::AttentionGradients& of) {
  return {back(of.q_THE), back(of.k_TKE), back(of.v_TKE)};
}
inline kernels::DeltaRuleTensors back(const kernels::DeltaRuleTensors& of) {
  return {back(of.q_TKE), back(of.k_TKE), back(of.v_THF), back(of.log_decay_TH), back(of.beta_TH)};
}
inline kernels::ShortConvolutionGradients back(const kernels::ShortConvolutionGradients& of) {
  return {back(of.x_TC), back(of.weight_CW)};
}
inline kernels::DeltaGates back(const kernels::DeltaGates& of) {
  return {back(of.log_decay_TH), back(of.beta_TH)};
}
inline kernels::HeadLoss back(const kernels::HeadLoss& of) {
  return {back(of.loss), back(of.hidden_ND), back(of.weight_VD)};
}
inline kernels::LabelLosses back(const kernels::LabelLosses& of) {
  return {back(of.nll_N), back(of.correct_N)};
}
inline kernels::GatedActivationGradients back(const kernels::GatedActivationGradients& of) {
  return {back(of.gate_TF), back(of.up_TF)};
}
inline kernels::NormGradients back(const kernels::NormGradients& of) {
  return {back(of.x), back(of.weight_D)};
}
inline kernels::RotatedHeads back(const kernels::RotatedHeads& heads) {
  return {back(heads.q_THE), back(heads.k_TKE)};
}
inline kernels::AddedNorm back(const kernels::AddedNorm& of) {
  return {back(of.sum), back(of.norm)};
}
inline kernels::PickedTokens back(kernels::PickedTokens picked) {
  picked.next_ids_R = back(picked.next_ids_R);
  picked.sampled_RS = back(picked.sampled_RS);
  return picked;
}
inline kernels::PagedCache back(kernels::PagedCache cache) {
  for (at::Tensor* const part :
       {&cache.keys, &cache.values, &cache.key_scales, &cache.value_scales})
    *part = back(*part);
  return cache;
}
inline std::shared_ptr<kernels::PackedLinear> back(std::shared_ptr<kernels::PackedLinear> packed) {
  class Remote : public kernels::PackedLinear {
   public:
    explicit Remote(std::shared_ptr<kernels::PackedLinear> of) : of_(std::move(of)) {}
    at::Tensor forward(const at::Tensor& x_TI, const kernels::ProductTerm& added) override {
      Journey journey;
      return back(of_->forward(journey.there(x_TI), journey.there(added)));
    }
    at::Tensor input_gradient(const at::Tensor& grad_TO, const kernels::ProductTerm& added,
                              const at::Tensor& sum_TI) override {
      Journey journey;
      return back(
          of_->input_gradient(journey.there(grad_TO), journey.there(added), journey.there(sum_TI)));
    }

   private:
    std::shared_ptr<kernels::PackedLinear> of_;
  };
  return std::make_shared<Remote>(std::move(packed));
}

// Makes an op that runs on the device. `find` returns the op of a table, as a function pointer.
template <auto find, class Result, class... Arguments>
auto remote(Result (*)(Arguments...)) -> Result (*)(Arguments...) {
  return [](Arguments... arguments) -> Result {
    static const kernels::OpTable& table = kernels::op_table(at::empty({0}, remote_device));
    Journey journey;
    if constexpr (std::is_void_v<Result>) {
      find(table)(journey.there(arguments)...);
      journey.end();
    } else {
      Result result = back(find(table)(journey.there(arguments)...));
      journey.end();
      return result;
    }
  };
}

// Call this once in a process. LibTorch must know `device`.
inline const kernels::OpTable& remote_op_table(at::Device device) {
  remote_device = device;
  static kernels::OpTable table = kernels::op_table(at::empty({0}, device));
#define CONVOY_REMOTE(op) \
  table.op = remote<[](const kernels::OpTable& of) { return of.op; }>(table.op)
  CONVOY_REMOTE(rms_norm.forward);
  CONVOY_REMOTE(rms_norm.add_forward);
  CONVOY_REMOTE(rms_norm.backward);
  CONVOY_REMOTE(rope.rotate);
  CONVOY_REMOTE(rope.rotate_both);
  CONVOY_REMOTE(gated_activation.forward);
  CONVOY_REMOTE(gated_activation.backward);
  CONVOY_REMOTE(gated_delta_rule.forward);
  CONVOY_REMOTE(gated_delta_rule.backward);
  CONVOY_REMOTE(gated_delta_rule.advance);
  CONVOY_REMOTE(short_convolution.forward);
  CONVOY_REMOTE(short_convolution.backward);
  CONVOY_REMOTE(short_convolution.advance);
  CONVOY_REMOTE(delta_gates.forward);
  CONVOY_REMOTE(attention.forward);
  CONVOY_REMOTE(attention.backward);
  CONVOY_REMOTE(paged_attention.make_cache);
  CONVOY_REMOTE(paged_attention.store);
  CONVOY_REMOTE(paged_attention.transform_and_store);
  CONVOY_REMOTE(paged_attention.attend);
  CONVOY_REMOTE(cross_entropy.loss);
  CONVOY_REMOTE(cross_entropy.scaled);
  CONVOY_REMOTE(cross_entropy.label_losses);
  CONVOY_REMOTE(cross_entropy.capped_logits);
  CONVOY_REMOTE(matrix_product.product);
  CONVOY_REMOTE(frozen_linear.pack);
  CONVOY_REMOTE(frozen_linear.pack_integer);
  CONVOY_REMOTE(frozen_linear.pack_bitsandbytes);
  CONVOY_REMOTE(bitsandbytes_weight.decode);
  CONVOY_REMOTE(dropout.drop);
  CONVOY_REMOTE(sampler.pick);  // copies the sampler's tables too
  CONVOY_REMOTE(sum_of_squares.sum);
  CONVOY_REMOTE(adamw.update);
  CONVOY_REMOTE(adamw.update_narrow);
#undef CONVOY_REMOTE
  return table;
}

}  // namespace convoy::testing
