// SPDX-License-Identifier: Apache-2.0
//
// Compares the hand-written backward of LoRA, and of DoRA with its constant norm, with numerical
// Jacobians of a plain reference in double, which has the same dropout mask and the same constant
// norm.
#include "convoy/model/adapters/lora_linear.h"

#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string_view>

#include "convoy/core/base/hash.h"
#include "convoy/model/adapters/optimizer_step_test.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/kernels/dropout/dropout.h"
#include "convoy/model/nn/linear.h"
#include "convoy/model/nn/recompute_in_backward.h"
#include "kernel_checks/op_check.h"

namespace convoy::adapters {
namespace {

using convoy::testing::relative_error;
using convoy::testing::sample;
using convoy::testing::Tensors;
using convoy::testing::tolerance;

constexpr int64_t kIn = 5;
constexpr int64_t kOut = 4;
constexpr uint64_t kDrawKey = 7;
constexpr uint64_t kModuleKey = 12;

struct Case {
  std::string name;
  int64_t rank = 2;
  double alpha = 3;
  bool rslora = false;
  double dropout = 0;
  bool dora = false;
  bool bias = false;
  at::ScalarType dtype = at::kFloat;

  double scaling() const {
    const auto ranks = static_cast<double>(rank);
    return alpha / (rslora ? std::sqrt(ranks) : ranks);
  }
};

// An adapted linear and its inputs: x, A, B and, for DoRA, the magnitude.
struct Adapted {
  explicit Adapted(const Case& wanted)
      : what(wanted),
        linear("l", sample({kOut, kIn}, wanted.dtype, 1),
               wanted.bias ? sample({kOut}, wanted.dtype, 2) : at::Tensor()) {
    inputs = {sample({2, 3, kIn}, wanted.dtype, 3), leaf({wanted.rank, kIn}, 4),
              leaf({kOut, wanted.rank}, 5)};
    if (wanted.dora) inputs.push_back(leaf({kOut}, 6).abs() + 0.5);
    for (at::Tensor& input : inputs) input = input.detach().requires_grad_();
    lora =
        std::make_shared<LoraLinear>(inputs[1], inputs[2], wanted.dora ? inputs[3] : at::Tensor(),
                                     wanted.scaling(), Dropout{wanted.dropout, kModuleKey});
    linear.set_adapter(lora);
  }

  // Returns fp32 values that bf16 can hold, because the map rounds A and B to the dtype of x.
  at::Tensor leaf(at::IntArrayRef sizes, uint64_t seed) const {
    return sample(sizes, what.dtype, seed).to(at::kFloat);
  }

  at::Tensor forward() const { return linear.forward(inputs[0], kDrawKey); }

  Case what;
  nn::Linear linear;
  Tensors inputs;
  std::shared_ptr<LoraLinear> lora;
};

// PEFT's computation in double precision, step by step.
class Reference {
 public:
  explicit Reference(const Adapted& adapted, double scaling_error = 1)
      : scaling_(adapted.what.scaling() * scaling_error),
        weight_OI_(adapted.linear.weight().to(at::kDouble)),
        bias_O_(adapted.what.bias ? adapted.linear.bias().to(at::kDouble)
                                  : at::zeros({kOut}, at::kDouble)) {
    const at::Tensor ones = at::ones(adapted.inputs[0].sizes());
    const uint64_t words[] = {kDrawKey, kModuleKey};
    noise_ = kernels::drop(ones, adapted.what.dropout, mix_seed(words)).to(at::kDouble);
    norm_O_ = norm(adapted.inputs[1].detach().to(at::kDouble),
                   adapted.inputs[2].detach().to(at::kDouble));
  }

  at::Tensor operator()(const Tensors& inputs) const {
    const at::Tensor base = at::matmul(inputs[0], weight_OI_.t()) + bias_O_;
    const at::Tensor dropped = inputs[0] * noise_;
    const at::Tensor low_rank =
        at::matmul(at::matmul(dropped, inputs[1].t()), inputs[2].t()) * scaling_;
    if (inputs.size() == 3) return base + low_rank;
    const at::Tensor share_O = inputs[3] / (moves_norm ? norm(inputs[1], inputs[2]) : norm_O_);
    return base + (share_O - 1) * at::matmul(dropped, weight_OI_.t()) + share_O * low_rank;
  }

  // Returns one matrix per input: [outputs, elements of the input].
  Tensors jacobians(const Adapted& adapted) const {
    constexpr double kStep = 1e-4;
    Tensors inputs;
    for (const at::Tensor& input : adapted.inputs)
      inputs.push_back(input.detach().to(at::kDouble).clone());
    Tensors all;
    for (const at::Tensor& input : inputs) {
      Tensors columns;
      double* values = input.mutable_data_ptr<double>();
      for (int64_t element = 0; element < input.numel(); ++element) {
        const double value = values[element];
        values[element] = value + kStep;
        const at::Tensor above = (*this)(inputs);
        values[element] = value - kStep;
        columns.push_back((above - (*this)(inputs)).flatten() / (2 * kStep));
        values[element] = value;
      }
      all.push_back(at::stack(columns, 1));
    }
    return all;
  }

  bool moves_norm = false;  // true: derives DoRA's norm too, which PEFT takes as constant

 private:
  at::Tensor norm(const at::Tensor& a_RI, const at::Tensor& b_OR) const {
    return at::linalg_vector_norm(weight_OI_ + scaling_ * at::mm(b_OR, a_RI), 2, {1});
  }

  double scaling_;
  at::Tensor weight_OI_;
  at::Tensor bias_O_;
  at::Tensor noise_;
  at::Tensor norm_O_;
};

Tensors jacobians_of_backward(const Adapted& adapted) {
  const at::Tensor output = adapted.forward().flatten();
  std::vector<Tensors> rows(adapted.inputs.size());
  for (int64_t index = 0; index < output.numel(); ++index) {
    const auto gradients =
        torch::autograd::grad({output[index]}, adapted.inputs, {}, /*retain_graph=*/true);
    for (size_t input = 0; input < rows.size(); ++input)
      rows[input].push_back(gradients[input].flatten());
  }
  Tensors all;
  for (const Tensors& input_rows : rows) all.push_back(at::stack(input_rows));
  return all;
}

// Returns the largest relative error over all inputs.
double worst_error(const Adapted& adapted, const Reference& reference) {
  const Tensors found = jacobians_of_backward(adapted);
  const Tensors wanted = reference.jacobians(adapted);
  double worst = 0;
  for (size_t input = 0; input < found.size(); ++input)
    worst = std::max(worst, relative_error(found[input], wanted[input]));
  return worst;
}

class Jacobian : public ::testing::TestWithParam<Case> {
 protected:
  double allowed() const { return tolerance(GetParam().dtype, kIn + GetParam().rank); }
};

TEST_P(Jacobian, OfEveryInputIsTheReferences) {
  const Adapted adapted(GetParam());
  const Reference reference(adapted);
  Tensors inputs;
  for (const at::Tensor& input : adapted.inputs) inputs.push_back(input.detach().to(at::kDouble));
  EXPECT_LE(relative_error(adapted.forward().detach(), reference(inputs)), allowed());
  EXPECT_LE(worst_error(adapted, reference), allowed());
}

TEST_P(Jacobian, APlantedErrorIsSeen) {
  const Adapted adapted(GetParam());
  const double error = GetParam().dtype == at::kBFloat16 ? 1.1 : 1.001;
  EXPECT_GT(worst_error(adapted, Reference(adapted, error)), allowed());
}

// Nothing below the lowest adapted linear of a model is trained, so its input needs no gradient.
TEST_P(Jacobian, OfTheAdapterIsTheSameWhereTheInputIsFrozen) {
  const Adapted adapted(GetParam());
  const auto gradients = [&](const at::Tensor& x) {
    for (const at::Tensor& input : adapted.inputs) input.mutable_grad() = at::Tensor();
    adapted.linear.forward(x, kDrawKey).square().sum().backward();
    Tensors all;
    for (size_t input = 1; input < adapted.inputs.size(); ++input)
      all.push_back(adapted.inputs[input].grad());
    return all;
  };
  const Tensors wanted = gradients(adapted.inputs[0]);
  const Tensors found = gradients(adapted.inputs[0].detach());
  EXPECT_FALSE(adapted.inputs[0].grad().defined());
  for (size_t input = 0; input < wanted.size(); ++input)
    EXPECT_TRUE(found[input].equal(wanted[input])) << input;
}

TEST_P(Jacobian, IsTheSameToTheBitWhenTheMapIsRecomputed) {
  const Adapted adapted(GetParam());
  const auto gradients = [&](bool recompute) {
    for (const at::Tensor& input : adapted.inputs) input.mutable_grad() = at::Tensor();
    const auto map = [&](const Tensors& inputs) {
      return Tensors{adapted.linear.forward(inputs[0], kDrawKey).tanh()};
    };
    const Tensors x{adapted.inputs[0]};
    const at::Tensor output = (recompute ? nn::recompute_in_backward(x, map) : map(x))[0];
    output.square().sum().backward();
    Tensors all;
    for (const at::Tensor& input : adapted.inputs) all.push_back(input.grad());
    return all;
  };
  const Tensors wanted = gradients(false);
  const Tensors found = gradients(true);
  for (size_t input = 0; input < wanted.size(); ++input)
    EXPECT_TRUE(found[input].equal(wanted[input])) << input;
}

INSTANTIATE_TEST_SUITE_P(
    All, Jacobian,
    ::testing::Values(Case{.name = "lora"}, Case{.name = "bias", .bias = true},
                      Case{.name = "rank_1", .rank = 1, .alpha = 0.5},
                      Case{.name = "rank_above_both_sides", .rank = 7, .alpha = 14},
                      Case{.name = "rslora", .rank = 3, .rslora = true},
                      Case{.name = "dropout", .dropout = 0.4, .bias = true},
                      Case{.name = "bf16", .dropout = 0.4, .bias = true, .dtype = at::kBFloat16},
                      Case{.name = "dora", .dora = true, .bias = true},
                      Case{.name = "dora_rslora", .rank = 3, .rslora = true, .dora = true},
                      Case{.name = "dora_dropout", .dropout = 0.4, .dora = true, .bias = true}),
    [](const auto& tested) { return tested.param.name; });

TEST(Dora, GradientsHoldTheNormStillAsPeftDoes) {
  const Adapted adapted({.name = "dora", .dora = true});
  Reference through_the_norm(adapted);
  through_the_norm.moves_norm = true;
  EXPECT_GT(worst_error(adapted, through_the_norm), 1e-2);
}

// Counts the norms that this thread computes during the object's lifetime.
class NormsCounted {
 public:
  NormsCounted()
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(count).scopes({at::RecordScope::FUNCTION}))) {
    seen_ = 0;
  }
  ~NormsCounted() { at::removeCallback(handle_); }
  int number() const { return seen_; }

 private:
  static std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& function) {
    if (std::string_view(function.name()) == "aten::linalg_vector_norm") ++seen_;
    return nullptr;
  }

  static thread_local int seen_;
  at::CallbackHandle handle_;
};
thread_local int NormsCounted::seen_ = 0;

TEST(Dora, ItsNormIsComputedOnceUntilWhatItIsOfChanges) {
  const Adapted adapted({.name = "dora", .dora = true, .bias = true});
  const NormsCounted norms;
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch)
    nn::recompute_in_backward({adapted.inputs[0]},
                              [&](const Tensors& inputs) {
                                return Tensors{adapted.linear.forward(inputs[0], kDrawKey)};
                              })[0]
        .sum()
        .backward();
  EXPECT_EQ(norms.number(), 1);
  {
    const at::NoGradGuard evaluation;
    adapted.linear.forward(adapted.inputs[0]);
    at::Tensor magnitude = adapted.inputs[3];
    magnitude.add_(0.25);  // the norm does not depend on the magnitude
    adapted.linear.forward(adapted.inputs[0]);
  }
  EXPECT_EQ(norms.number(), 1);
  take_optimizer_step(adapted.inputs[2]);
  for (int again = 0; again < 2; ++again) adapted.forward();
  EXPECT_EQ(norms.number(), 2);
}

// Changes the norm's tensors in every way: by an optimizer's step, by loading values, and by using
// the adapter on another weight.
TEST(Dora, EveryChangeReachesTheNorm) {
  Adapted adapted({.name = "dora", .dora = true, .bias = true});
  const auto expect_fresh = [&](const char* change) {
    const LoraLinear fresh(adapted.inputs[1], adapted.inputs[2], adapted.inputs[3],
                           adapted.what.scaling(), Dropout{});
    EXPECT_TRUE(adapted.forward().equal(fresh.forward(adapted.linear, adapted.inputs[0], kDrawKey)))
        << change;
  };
  adapted.forward();
  const at::NoGradGuard no_grad;
  for (const size_t index : {1, 2}) {
    at::Tensor changed = adapted.inputs[index];
    changed.copy_(at::randn(changed.sizes()));
    expect_fresh("loaded");
    take_optimizer_step(changed);
    expect_fresh("step");
  }
  at::Tensor weight = adapted.linear.weight();
  weight.mul_(1.5);
  adapted.linear.weight_changed();
  expect_fresh("weight");
  const nn::Linear other("m", at::randn(weight.sizes()), at::Tensor());
  const LoraLinear fresh(adapted.inputs[1], adapted.inputs[2], adapted.inputs[3],
                         adapted.what.scaling(), Dropout{});
  EXPECT_TRUE(adapted.lora->forward(other, adapted.inputs[0], kDrawKey)
                  .equal(fresh.forward(other, adapted.inputs[0], kDrawKey)));
}

// A and B are kept in the dtype of x. An optimizer's step and loaded values change the kept copies
// too.
TEST(LoraLinear, EveryChangeReachesItsProducts) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const Adapted adapted({.name = "lora", .dtype = dtype});
    const auto expect_fresh = [&](const char* change) {
      const LoraLinear fresh(adapted.inputs[1], adapted.inputs[2], at::Tensor(),
                             adapted.what.scaling(), Dropout{});
      const at::Tensor wanted = fresh.forward(adapted.linear, adapted.inputs[0], kDrawKey);
      EXPECT_TRUE(adapted.forward().equal(wanted)) << change << dtype;
    };
    at::Tensor before = adapted.forward();
    const at::NoGradGuard no_grad;
    for (const size_t index : {1, 2}) {
      at::Tensor changed = adapted.inputs[index];
      changed.copy_(at::randn(changed.sizes()));
      expect_fresh("loaded");
      take_optimizer_step(changed);
      expect_fresh("step");
      EXPECT_FALSE(adapted.forward().equal(before));
      before = adapted.forward();
    }
    const at::Tensor other_type =
        adapted.inputs[0].to(dtype == at::kFloat ? at::kBFloat16 : at::kFloat);
    const nn::Linear other("m", adapted.linear.weight().to(other_type.scalar_type()), at::Tensor());
    EXPECT_EQ(adapted.lora->forward(other, other_type, kDrawKey).scalar_type(),
              other_type.scalar_type());
    expect_fresh("another type in between");
  }
}

TEST(LoraLinear, DropsNothingWithoutADrawKey) {
  const Adapted adapted({.name = "dropout", .dropout = 0.4});
  const Adapted plain({.name = "lora"});
  EXPECT_TRUE(adapted.linear.forward(adapted.inputs[0]).equal(plain.forward()));
  EXPECT_FALSE(adapted.forward().equal(plain.forward()));
}

TEST(LoraLinear, EveryDrawAndEveryModuleDropsElementsOfItsOwn) {
  const Adapted adapted({.name = "dropout", .dropout = 0.4});
  const at::Tensor first = adapted.forward();
  EXPECT_TRUE(adapted.forward().equal(first));
  EXPECT_FALSE(adapted.linear.forward(adapted.inputs[0], kDrawKey + 1).equal(first));
  nn::Linear other("m", adapted.linear.weight(), at::Tensor());
  other.set_adapter(std::make_shared<LoraLinear>(adapted.inputs[1], adapted.inputs[2], at::Tensor(),
                                                 adapted.what.scaling(),
                                                 Dropout{0.4, kModuleKey + 1}));
  EXPECT_FALSE(other.forward(adapted.inputs[0], kDrawKey).equal(first));
}

TEST(LoraLinear, MergedWeightIsTheMap) {
  for (const bool dora : {false, true}) {
    const Adapted adapted({.name = "merged", .dora = dora, .bias = true});
    const at::NoGradGuard no_grad;
    const at::Tensor merged = adapted.lora->merged_weight(adapted.linear.weight());
    const at::Tensor wanted = adapted.forward();
    const at::Tensor found = at::linear(adapted.inputs[0], merged, adapted.linear.bias());
    EXPECT_LE(relative_error(found, wanted), 1e-6) << "dora " << dora;
  }
}

// Over codes, LoRA and DoRA have the same gradients as over the decoded values.
TEST(OverCodes, AdaptersAreThoseOverTheValues) {
  for (const bool dora : {false, true}) {
    const kernels::BitsandbytesWeight codes =
        kernels::encode_weight(sample({40, 64}, at::kFloat, 1), {kernels::CodeType::Nf4, 64, true});
    nn::Linear coded("l", at::empty({40, 64}, at::kMeta), at::Tensor());
    coded.set_bitsandbytes(codes);
    nn::Linear whole("l", coded.values(), at::Tensor());
    const at::Tensor a = sample({3, 64}, at::kFloat, 2);
    const at::Tensor b = sample({40, 3}, at::kFloat, 3);
    const at::Tensor magnitude = sample({40}, at::kFloat, 4).abs() + 0.5;
    std::vector<Tensors> gradients;
    for (nn::Linear* linear : {&coded, &whole}) {
      Tensors leaves{a.clone().requires_grad_(), b.clone().requires_grad_(),
                     sample({7, 64}, at::kFloat, 5).requires_grad_()};
      if (dora) leaves.push_back(magnitude.clone().requires_grad_());
      linear->set_adapter(std::make_shared<LoraLinear>(
          leaves[0], leaves[1], dora ? leaves[3] : at::Tensor(), 1.5, Dropout{}));
      linear->forward(leaves[2]).backward(sample({7, 40}, at::kFloat, 6));
      gradients.emplace_back();
      for (const at::Tensor& leaf : leaves) gradients.back().push_back(leaf.grad());
    }
    for (size_t leaf = 0; leaf < gradients[0].size(); ++leaf)
      EXPECT_LT(relative_error(gradients[0][leaf], gradients[1][leaf]), tolerance(at::kFloat, 64))
          << leaf << (dora ? " of DoRA" : " of LoRA");
  }
}

}  // namespace
}  // namespace convoy::adapters
