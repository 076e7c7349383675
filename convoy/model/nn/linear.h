// SPDX-License-Identifier: Apache-2.0
//
// A linear map with a name, and the slot for an adapter that changes the map. The model does not
// depend on adapters.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/model/nn/named_tensor.h"

namespace convoy::kernels {
class FrozenLinear;
struct BitsandbytesWeight;
struct IntegerFormat;
}  // namespace convoy::kernels

namespace convoy::nn {

class Linear;

// A forward pass draws its random numbers from this key. Without a key nothing is random.
using DrawKey = std::optional<uint64_t>;

// An adapter (LoRA, DoRA) of a Linear. Differentiable in x and its own parameters.
class LinearAdapter {
 public:
  virtual ~LinearAdapter() = default;
  virtual at::Tensor forward(const Linear& base, const at::Tensor& x, DrawKey draw_key) const = 0;
  // The outputs of several adapted maps at one x, with fewer products and one sum as the gradient
  // of x. This adapter belongs to the first map. Empty where these maps cannot be computed
  // together.
  virtual std::vector<at::Tensor> forward_together(const std::vector<const Linear*>& bases,
                                                   const at::Tensor& x, DrawKey draw_key) const;
  // Is the adapted map the base map plus a term that depends on x alone? Then add_to() adds this
  // term for x_TI [T, I] to y_TO, the output of the base map; nothing is recorded for backward.
  virtual bool adds() const { return false; }
  virtual void add_to(const at::Tensor& y_TO, const at::Tensor& x_TI) const;
  // Does a parameter of the adapter require grad? False lets recomputation skip blocks below the
  // lowest one that trains.
  virtual bool trains() const { return true; }
};

class Linear {
 public:
  // `name`: the module name in Hugging Face's layout ("model.layers.0.self_attn.q_proj"). `bias_O`
  // may be undefined.
  Linear(std::string name, at::Tensor weight_OI, at::Tensor bias_O);
  ~Linear();
  Linear(Linear&&) noexcept;

  // x [..., I] -> [..., O], through the adapter when there is one.
  at::Tensor forward(const at::Tensor& x, DrawKey draw_key = {}) const;
  // The map without the adapter. A weight that does not require grad runs packed
  // (kernels::FrozenLinear).
  at::Tensor base_forward(const at::Tensor& x) const;

  // The packed map, for adapters that fuse its backward. The weight must not require grad. Throws
  // StateError.
  const kernels::FrozenLinear& frozen() const;

  // From now on keeps the weight in few bits only and frees the original: weight() then has a shape
  // and no values. For inference.
  void quantize(const kernels::IntegerFormat& format);
  bool is_integer() const { return is_integer_; }
  // Frees the values, which a joined map holds in few bits: from now on this map has a shape and
  // computes no product.
  void leave_values_to_joined();

  // Takes codes for the weight, which must not train: weight() holds its shape and type alone.
  void set_bitsandbytes(kernels::BitsandbytesWeight weight);
  // Replaces the codes by the weight that they stand for.
  void decode();
  bool is_bitsandbytes() const { return coded_ != nullptr; }
  const kernels::BitsandbytesWeight& coded() const {
    return *coded_;
  }  // only when is_bitsandbytes()

  // The matrix that the map multiplies by, in the type of weight(): the weight, or its decoded
  // codes. Not for a quantised map.
  at::Tensor values() const;
  // The stored tensors: the weight (or the parts of its quantised form) and the bias. Together they
  // are this layer's memory.
  std::vector<NamedTensor> parts() const;

  // Null removes the adapter. `leaves`: the parameters of the adapter.
  void set_adapter(std::shared_ptr<const LinearAdapter> adapter,
                   std::vector<NamedTensor> leaves = {});
  const LinearAdapter* adapter() const { return adapter_.get(); }  // null: none
  const std::vector<NamedTensor>& adapter_leaves() const { return adapter_leaves_; }
  // Must be called after the weight's values or requires_grad changed: drops the packed copy.
  void weight_changed();
  // Frees the packed copy, also for graphs that still refer to it; the next use packs the current
  // weight again.
  void release_packed();
  bool trains() const;  // weight, bias or adapter requires grad

  const std::string& name() const { return name_; }
  at::Tensor& weight() { return weight_OI_; }
  const at::Tensor& weight() const { return weight_OI_; }
  at::Tensor& bias() { return bias_O_; }
  const at::Tensor& bias() const { return bias_O_; }
  int64_t in_features() const { return weight_OI_.size(1); }
  int64_t out_features() const { return weight_OI_.size(0); }

 private:
  std::string name_;
  at::Tensor weight_OI_;
  at::Tensor bias_O_;
  std::shared_ptr<const LinearAdapter> adapter_;
  std::vector<NamedTensor> adapter_leaves_;
  std::unique_ptr<kernels::BitsandbytesWeight> coded_;
  mutable std::unique_ptr<kernels::FrozenLinear> packed_;
  bool is_integer_ = false;
};

}  // namespace convoy::nn
