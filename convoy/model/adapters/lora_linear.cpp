// SPDX-License-Identifier: Apache-2.0
//
// Numerics: A and B are fp32 leaves; products run in the dtype of x with sums in fp32. On the CPU B
// A x is added before W x is rounded, devices round B A x first. The gradients of A and B are not
// rounded on CPUs and by cuBLAS; other devices round them to the dtype of x. A and B are rounded
// without the scaling, which multiplies A x and grad B within their products.
#include "convoy/model/adapters/lora_linear.h"

#include <numeric>
#include <utility>

#include "convoy/core/base/hash.h"
#include "convoy/model/kernels/dropout/dropout.h"
#include "convoy/model/kernels/frozen_linear/frozen_linear.h"
#include "convoy/model/kernels/matrix_product/matrix_product.h"
#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::adapters {
namespace {

// The adapted maps of one input. Dropout is allowed only for a single map.
struct LoraTerms {
  std::vector<kernels::FrozenLinear> bases;
  std::vector<int64_t> ranks;
  double scaling;
  double dropout;
  uint64_t drop_key;
};

at::Tensor two_dimensional(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

at::Tensor shaped_like(const at::Tensor& rows, at::IntArrayRef sizes) {
  std::vector<int64_t> shape = sizes.vec();
  shape.back() = rows.size(1);
  return rows.reshape(shape);
}

// The columns of each map in the joined matrix.
std::vector<at::Tensor> parts_of(const at::Tensor& joined_TS, const std::vector<int64_t>& ranks) {
  return joined_TS.split_with_sizes(ranks, 1);
}

// The gradients as matrices, with zeros for an output that got no gradient.
std::vector<at::Tensor> in_rows(const std::vector<at::Tensor>& grads,
                                const std::vector<at::Tensor>& b_OR, int64_t tokens) {
  std::vector<at::Tensor> rows;
  for (size_t map = 0; map < grads.size(); ++map)
    rows.push_back(grads[map].defined()
                       ? two_dimensional(grads[map]).contiguous()
                       : at::zeros({tokens, b_OR[map].size(0)}, b_OR[map].options()));
  return rows;
}

// scaling * grad B, side by side.
at::Tensor middle_gradient(const LoraTerms& terms, const std::vector<at::Tensor>& grads_TO,
                           const std::vector<at::Tensor>& b_OR) {
  if (grads_TO.size() == 1)
    return kernels::matrix_product({{grads_TO[0], b_OR[0]}}, {.factor = terms.scaling});
  const int64_t width = std::accumulate(terms.ranks.begin(), terms.ranks.end(), int64_t{0});
  const at::Tensor joined_TS = at::empty({grads_TO[0].size(0), width}, grads_TO[0].options());
  const std::vector<at::Tensor> parts = parts_of(joined_TS, terms.ranks);
  for (size_t map = 0; map < parts.size(); ++map)
    kernels::matrix_product({{grads_TO[map], b_OR[map]}},
                            {.factor = terms.scaling, .into = parts[map]});
  return joined_TS;
}

// Gradients of x, then A and B of each map. `saved`: x, scaling * A x, all A and each B in the type
// of x.
std::vector<at::Tensor> lora_gradients(const LoraTerms& terms, const std::vector<at::Tensor>& grads,
                                       const std::vector<at::Tensor>& saved, bool wants_x,
                                       const std::vector<int64_t>& x_sizes) {
  const at::Tensor& x_TI = saved[0];
  const at::Tensor& u_TS = saved[1];
  const at::Tensor& a_SI = saved[2];
  const std::vector<at::Tensor> b_OR(saved.begin() + 3, saved.end());
  const std::vector<at::Tensor> grads_TO = in_rows(grads, b_OR, x_TI.size(0));
  const auto drop = [&](const at::Tensor& values) {
    return kernels::drop(values, terms.dropout, terms.drop_key);
  };
  const at::Tensor grad_u_TS = middle_gradient(terms, grads_TO, b_OR);
  const std::vector<at::Tensor> grads_a =
      kernels::matrix_product({{grad_u_TS.t(), drop(x_TI)}}, {.wide = true})
          .split_with_sizes(terms.ranks);
  const std::vector<at::Tensor> u_TR = parts_of(u_TS, terms.ranks);
  std::vector<at::Tensor> gradients(1);
  for (size_t map = 0; map < grads_TO.size(); ++map) {
    gradients.push_back(grads_a[map]);
    gradients.push_back(kernels::matrix_product({{grads_TO[map].t(), u_TR[map]}}, {.wide = true}));
  }
  if (!wants_x) return gradients;
  at::Tensor grad_x = terms.dropout > 0
                          ? terms.bases[0]
                                .input_gradient(grads_TO[0])
                                .add_(drop(kernels::matrix_product({{grad_u_TS, a_SI}})))
                          : terms.bases[0].input_gradient(grads_TO[0], {grad_u_TS, a_SI});
  for (size_t map = 1; map < grads_TO.size(); ++map)
    grad_x = terms.bases[map].input_gradient(grads_TO[map], {}, grad_x);
  gradients[0] = grad_x.view(x_sizes);
  return gradients;
}

// `leaves`: A and B of each map. `a_SI`, `b_OR`: all A and each B in the type of x.
std::vector<at::Tensor> lora(const at::Tensor& x, const std::vector<at::Tensor>& leaves,
                             const at::Tensor& a_SI, const std::vector<at::Tensor>& b_OR,
                             LoraTerms terms) {
  std::vector<at::Tensor> inputs = {x};
  inputs.insert(inputs.end(), leaves.begin(), leaves.end());
  const bool records = std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& input) {
    return kernels::records_gradient({input});
  });
  const at::NoGradGuard no_grad;
  const at::Tensor x_TI = two_dimensional(x).contiguous();
  const at::Tensor u_TS = kernels::matrix_product(
      {{kernels::drop(x_TI, terms.dropout, terms.drop_key), a_SI.t()}}, {.factor = terms.scaling});
  const std::vector<at::Tensor> u_TR = parts_of(u_TS, terms.ranks);
  std::vector<at::Tensor> outputs, saved = {x_TI, u_TS, a_SI};
  for (size_t map = 0; map < b_OR.size(); ++map) {
    outputs.push_back(
        shaped_like(terms.bases[map].product(x_TI, {u_TR[map], b_OR[map].t()}), x.sizes()));
    saved.push_back(b_OR[map]);
  }
  if (!records) return outputs;
  return kernels::with_backward(
      outputs,
      {.op = "lora",
       .inputs = std::move(inputs),
       .saved = std::move(saved),
       .gradients = [terms = std::move(terms), sizes = x.sizes().vec()](
                        const std::vector<at::Tensor>& grads, const std::vector<at::Tensor>& kept,
                        const std::vector<bool>& wanted) {
         return lora_gradients(terms, grads, kept, wanted[0], sizes);
       }});
}

}  // namespace

LoraLinear::LoraLinear(at::Tensor a_RI, at::Tensor b_OR, at::Tensor magnitude_O, double scaling,
                       Dropout dropout, std::shared_ptr<RoundedFactors> factors)
    : a_RI_(std::move(a_RI)),
      b_OR_(std::move(b_OR)),
      magnitude_O_(std::move(magnitude_O)),
      scaling_(scaling),
      dropout_(dropout),
      factors_(factors ? std::move(factors) : std::make_shared<RoundedFactors>()),
      number_(factors_->add(a_RI_, b_OR_)) {}

at::Tensor LoraLinear::forward(const nn::Linear& base, const at::Tensor& x,
                               nn::DrawKey draw_key) const {
  const uint64_t words[] = {draw_key.value_or(0), dropout_.key};
  const double share = draw_key ? dropout_.share : 0.0;
  const uint64_t key = share > 0 ? mix_seed(words) : 0;
  if (magnitude_O_.defined()) return dora_forward(base, x, share, key);
  const RoundedFactors::Pair& factors = factors_of(x.scalar_type());
  return lora(x, {a_RI_, b_OR_}, factors.a_RI, {factors.b_OR},
              {.bases = {base.frozen()},
               .ranks = {a_RI_.size(0)},
               .scaling = scaling_,
               .dropout = share,
               .drop_key = key})[0];
}

std::vector<at::Tensor> LoraLinear::forward_together(const std::vector<const nn::Linear*>& bases,
                                                     const at::Tensor& x,
                                                     nn::DrawKey draw_key) const {
  LoraTerms terms{.bases = {}, .ranks = {}, .scaling = scaling_, .dropout = 0, .drop_key = 0};
  std::vector<at::Tensor> leaves, a_RI, b_OR;
  for (const nn::Linear* base : bases) {
    const auto* const part = dynamic_cast<const LoraLinear*>(base->adapter());
    if (part == nullptr || !part->adds() || part->scaling_ != scaling_ ||
        (draw_key && part->dropout_.share > 0))
      return {};
    const RoundedFactors::Pair& factors = part->factors_of(x.scalar_type());
    terms.bases.push_back(base->frozen());
    terms.ranks.push_back(part->a_RI_.size(0));
    leaves.insert(leaves.end(), {part->a_RI_, part->b_OR_});
    a_RI.push_back(factors.a_RI);
    b_OR.push_back(factors.b_OR);
  }
  return lora(x, leaves, stacked_rows(a_RI), b_OR, std::move(terms));
}

void LoraLinear::add_to(const at::Tensor& y_TO, const at::Tensor& x_TI) const {
  const at::NoGradGuard no_grad;
  const RoundedFactors::Pair& factors = factors_of(x_TI.scalar_type());
  const at::Tensor u_TR = kernels::matrix_product({{x_TI, factors.a_RI.t()}}, {.factor = scaling_});
  y_TO.addmm_(u_TR, factors.b_OR.t());
}

at::Tensor LoraLinear::dora_forward(const nn::Linear& base, const at::Tensor& x, double share,
                                    uint64_t key) const {
  const at::ScalarType dtype = x.scalar_type();
  const at::Tensor result = base.base_forward(x);
  const at::Tensor dropped = share > 0 ? kernels::dropout(x, share, key) : x;
  at::Tensor plain = share > 0 ? base.base_forward(dropped) : result;
  if (base.bias().defined()) plain = plain - base.bias();
  const at::Tensor share_O = (magnitude_O_ / norm(base)).to(dtype);
  const at::Tensor low_rank = kernels::trained_linear(
      kernels::trained_linear(dropped, a_RI_.to(dtype), {}), b_OR_.to(dtype), {});
  return result + (share_O - 1) * plain + share_O * low_rank * scaling_;
}

const at::Tensor& LoraLinear::norm(const nn::Linear& base) const {
  const at::Tensor& weight_OI = base.weight();
  const std::array<int64_t, 3> versions = {weight_OI._version(), a_RI_._version(),
                                           b_OR_._version()};
  if (norm_.value_O.defined() && norm_.weight_OI.is_same(weight_OI) && norm_.versions == versions)
    return norm_.value_O;
  const at::NoGradGuard no_grad;
  const at::Tensor sum_OI = at::addmm(base.values().to(at::kFloat), b_OR_, a_RI_, 1.0, scaling_);
  norm_ = {at::linalg_vector_norm(sum_OI, 2, {1}), weight_OI, versions};
  return norm_.value_O;
}

at::Tensor LoraLinear::merged_weight(const at::Tensor& weight_OI) const {
  const at::NoGradGuard no_grad;
  const at::Tensor sum_OI = at::addmm(weight_OI.to(at::kFloat), b_OR_, a_RI_, 1.0, scaling_);
  if (!magnitude_O_.defined()) return sum_OI;
  const at::Tensor norm_O = at::linalg_vector_norm(sum_OI, 2, {1});
  return sum_OI * (magnitude_O_ / norm_O).unsqueeze(1);
}

}  // namespace convoy::adapters
