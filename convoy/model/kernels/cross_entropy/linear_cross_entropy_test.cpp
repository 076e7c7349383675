// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/registry/op_table.h"
#include "kernel_checks/op_check.h"
#include "kernel_checks/reference_ops.h"
#include "kernel_checks/tables.h"

namespace convoy::kernels {
namespace {

using testing::Tensors;

at::Tensor labels_of(int64_t tokens, int64_t vocab) {
  at::Tensor labels = (at::arange(tokens, at::kLong) * 31 + 5).remainder(vocab);
  labels.masked_fill_(at::arange(tokens, at::kLong).remainder(3).eq(1), kIgnoredLabel);
  return labels;
}

LabelledTokens labelled(const at::Tensor& labels, const at::Tensor& weights = {}) {
  const auto count = static_cast<size_t>(labels.numel());
  if (!weights.defined()) return LabelledTokens({labels.const_data_ptr<int64_t>(), count});
  return LabelledTokens({labels.const_data_ptr<int64_t>(), count}, at::kCPU,
                        {weights.const_data_ptr<float>(), count});
}

testing::OpErrors loss_errors_of(int64_t tokens, int64_t features, int64_t vocab,
                                 at::ScalarType dtype, int64_t planted_shift = 0) {
  const at::Tensor labels = labels_of(tokens, vocab);
  at::Tensor expected = labels;
  if (planted_shift != 0)
    expected = at::where(labels.ge(0), (labels + planted_shift).remainder(vocab), labels);
  const auto op = [&](const Tensors& in) {
    return linear_cross_entropy(in[0], in[1], labelled(labels));
  };
  const auto reference = [&](const Tensors& in) {
    return reference::linear_cross_entropy(in[0], in[1], expected);
  };
  return testing::compare(op, reference,
                          {testing::sample({tokens, features}, dtype, 1),
                           testing::sample({vocab, features}, dtype, 2)});
}

TEST(LinearCrossEntropy, EqualsReferenceWithIgnoredLabels) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (int64_t tokens : {1, 5, 40, 700}) {
      for (int64_t vocab : {2, 33, 300}) {
        EXPECT_LT(loss_errors_of(tokens, 19, vocab, dtype).worst(), testing::tolerance(dtype, 700))
            << tokens << " " << vocab << " " << dtype;
      }
    }
  }
}

TEST(LinearCrossEntropy, SeveralBlocksOfEveryDimension) {
  for (auto dtype : {at::kFloat, at::kBFloat16})
    EXPECT_LT(loss_errors_of(460, 150, 1300, dtype).worst(), testing::tolerance(dtype, 1300))
        << dtype;
}

// Any loss of the logits: here -log softmax, whose values and gradients are known.
TEST(LinearLogitLoss, OfCrossEntropyIsLinearCrossEntropyInChunksAndUnderACap) {
  for (auto dtype : {at::kFloat, at::kBFloat16})
    for (const double cap : {0.0, 3.0})
      for (const int64_t tokens : {4, 2600}) {
        constexpr int64_t kIds = 33;
        const LabelledTokens labels = labelled(labels_of(tokens, kIds));
        std::vector<int64_t> firsts;
        const LogitLossFunction loss = [&](int64_t first, const at::Tensor& logits_CV, bool wants) {
          firsts.push_back(first);
          const at::Tensor labels_C1 =
              labels.labels_N().narrow(0, first, logits_CV.size(0)).unsqueeze(1);
          const at::Tensor log_CV = logits_CV.log_softmax(1);
          LogitLoss found{.sum = -log_CV.gather(1, labels_C1).sum(at::kDouble), .gradient_CV = {}};
          if (wants)
            found.gradient_CV = log_CV.exp().scatter_add(
                1, labels_C1, at::full(labels_C1.sizes(), -1.0, at::kFloat));
          return found;
        };
        const auto op = [&](const Tensors& in) {
          return linear_logit_loss(in[0], in[1], labels.tokens_N(), cap, loss);
        };
        const auto wanted = [&](const Tensors& in) {
          return linear_cross_entropy(in[0], in[1], labels, {.cap = cap});
        };
        const Tensors inputs = {testing::sample({tokens, 19}, dtype, 1),
                                testing::sample({kIds, 19}, dtype, 2)};
        const auto gradients_of = [&](const auto& function) {
          Tensors leaves;
          for (const at::Tensor& input : inputs)
            leaves.push_back(input.detach().clone().requires_grad_(true));
          const at::Tensor sum = function(leaves);
          sum.backward();
          return Tensors{sum.detach(), leaves[0].grad(), leaves[1].grad()};
        };
        const Tensors found = gradients_of(op);
        const Tensors known = gradients_of(wanted);
        EXPECT_EQ(firsts.size(), tokens > rows_of_logit_loss(kIds) ? 2u : 1u);
        for (size_t part = 0; part < found.size(); ++part)
          EXPECT_TRUE(at::allclose(found[part].to(at::kDouble), known[part].to(at::kDouble),
                                   testing::tolerance(dtype, 700), testing::tolerance(dtype, 700)))
              << dtype << " cap " << cap << " " << tokens << " part " << part;
      }
}

TEST(LinearLogitLoss, WithoutTokensIsZeroWithZeroGradients) {
  at::Tensor hidden_TD = testing::sample({3, 5}, at::kFloat, 1).requires_grad_(true);
  at::Tensor weight_VD = testing::sample({7, 5}, at::kFloat, 2).requires_grad_(true);
  const at::Tensor sum = linear_logit_loss(
      hidden_TD, weight_VD, at::empty({0}, at::kLong), 0,
      [](int64_t, const at::Tensor&, bool) -> LogitLoss { throw StateError("no tokens"); });
  sum.backward();
  EXPECT_EQ(sum.item<double>(), 0);
  EXPECT_EQ(hidden_TD.grad().abs().max().item<double>(), 0);
  EXPECT_EQ(weight_VD.grad().abs().max().item<double>(), 0);
}

// A loss of 150 rows over a million ids. The reference in double takes seconds, so it is computed
// once, a few rows at a time.
class LinearCrossEntropyOfAMillionIds : public ::testing::Test {
 protected:
  static constexpr int64_t kIds = 1 << 20;
  static constexpr int64_t kRows = 150;
  static constexpr int64_t kRowsTogether = 25;

  struct Gradients {
    double loss = 0;
    at::Tensor hidden = at::empty({kRows, 3}, at::kDouble);
    at::Tensor weight = at::zeros({kIds, 3}, at::kDouble);
  };

  const Gradients& wanted() const {
    static const Gradients kWanted = [this] {
      Gradients all;
      for (int64_t row = 0; row < kRows; row += kRowsTogether) {
        const auto few = [row](const at::Tensor& of) { return of.narrow(0, row, kRowsTogether); };
        const at::Tensor rows = few(hidden_).to(at::kDouble).requires_grad_(true);
        const at::Tensor weight = weight_.to(at::kDouble).requires_grad_(true);
        const at::Tensor loss = reference::linear_cross_entropy(rows, weight, few(labels_));
        const Tensors gradients = torch::autograd::grad({loss}, {rows, weight});
        all.loss += loss.item<double>();
        few(all.hidden).copy_(gradients[0]);
        all.weight.add_(gradients[1]);
      }
      return all;
    }();
    return kWanted;
  }

  struct Errors {
    double loss = 0;
    double grad_hidden = 0;
    double grad_weight = 0;
  };
  Errors errors() const {
    const at::Tensor hidden = hidden_.clone().requires_grad_(true);
    const at::Tensor weight = weight_.clone().requires_grad_(true);
    const at::Tensor loss = linear_cross_entropy(hidden, weight, labelled(labels_));
    const Tensors found = torch::autograd::grad({loss}, {hidden, weight});
    return {std::abs(loss.item<double>() / wanted().loss - 1),
            testing::relative_error(found[0], wanted().hidden),
            testing::relative_error(found[1], wanted().weight)};
  }

  // The error of LibTorch's product of the probabilities and the weight.
  double error_of_product() const {
    const at::Tensor weight = weight_.to(at::kDouble);
    const at::Tensor hidden = hidden_.narrow(0, 0, kRowsTogether).to(at::kDouble);
    const at::Tensor p = at::mm(hidden, weight.t()).softmax(1).to(at::kFloat);
    return testing::relative_error(at::mm(p, weight_), at::mm(p.to(at::kDouble), weight));
  }

  const at::Tensor hidden_ = testing::sample({kRows, 3}, at::kFloat, 1);
  const at::Tensor weight_ = testing::sample({kIds, 3}, at::kFloat, 2);
  const at::Tensor labels_ = labels_of(kRows, kIds);
};

TEST_F(LinearCrossEntropyOfAMillionIds, LoseNoSmallTermsInOurLoops) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "LibTorch's products may lose some";
  const Errors found = errors();
  EXPECT_LT(found.loss, 1e-6);
  EXPECT_LT(found.grad_hidden, 1e-5);
  EXPECT_LT(found.grad_weight, 1e-5);
}

// The table for devices takes 64 rows at a time, so the weight's gradient is the sum of three
// products. A lost chunk would be an error of a third. On CPUs with AVX2 alone, LibTorch's product
// of a narrow matrix has an error of 4e-3, because it adds a million terms to one number.
TEST_F(LinearCrossEntropyOfAMillionIds, ChunksOfTheTableForDevicesAddUp) {
  const CpuTableOverride devices(aten_op_table());
  const Errors found = errors();
  EXPECT_LT(found.grad_hidden, 4 * error_of_product() + 1e-3);
  EXPECT_LT(found.grad_weight, 1e-3);
}

constexpr double kCap = 2.5;  // the logits below are up to about 15

testing::OpErrors capped_errors_of(int64_t tokens, int64_t vocab, at::ScalarType dtype,
                                   const at::Tensor& weights, double expected_cap) {
  const at::Tensor labels = labels_of(tokens, vocab);
  const auto op = [&](const Tensors& in) {
    return linear_cross_entropy(in[0], in[1], labelled(labels, weights), {.cap = kCap});
  };
  const auto reference = [&](const Tensors& in) {
    const at::Tensor losses =
        reference::linear_cross_entropy(in[0], in[1], labels, expected_cap, at::Reduction::None);
    return (weights.defined() ? losses * weights.to(at::kDouble) : losses).sum();
  };
  return testing::compare(
      op, reference,
      {testing::sample({tokens, 19}, dtype, 1), testing::sample({vocab, 19}, dtype, 2)});
}

TEST(LinearCrossEntropy, EqualsReferenceUnderASoftCap) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (int64_t tokens : {1, 5, 700}) {
      const at::Tensor weights = testing::sample({tokens}, at::kFloat, 3).abs().add_(0.1);
      for (int64_t vocab : {2, 33, 300}) {
        for (const at::Tensor& of_tokens : {at::Tensor(), weights})
          EXPECT_LT(capped_errors_of(tokens, vocab, dtype, of_tokens, kCap).worst(),
                    testing::tolerance(dtype, 700))
              << tokens << " " << vocab << " " << dtype << " weighed " << of_tokens.defined();
      }
    }
    for (const double planted : {0.0, 2.6})
      EXPECT_GT(capped_errors_of(40, 33, dtype, {}, planted).worst(), testing::tolerance(dtype, 40))
          << planted;
  }
}

// The reference divides logits by a temperature in fp64.
testing::OpErrors errors_at_temperature(const LogitForm& form, at::ScalarType dtype,
                                        const at::Tensor& weights, double expected_temperature) {
  constexpr int64_t kTokens = 300;
  const at::Tensor labels = labels_of(kTokens, 77);
  const auto op = [&](const Tensors& in) {
    return linear_cross_entropy(in[0], in[1], labelled(labels, weights), form);
  };
  const auto reference = [&](const Tensors& in) {
    const at::Tensor logits =
        reference::soft_cap(at::matmul(in[0], in[1].t()), form.cap) / expected_temperature;
    const at::Tensor losses =
        at::cross_entropy_loss(logits, labels, {}, at::Reduction::None, kIgnoredLabel);
    return (weights.defined() ? losses * weights.to(at::kDouble) : losses).sum();
  };
  return testing::compare(
      op, reference,
      {testing::sample({kTokens, 19}, dtype, 1), testing::sample({77, 19}, dtype, 2)});
}

TEST(LinearCrossEntropy, EqualsReferenceAtATemperature) {
  const at::Tensor weights = testing::sample({300}, at::kFloat, 3).abs().add_(0.1);
  for (auto dtype : {at::kFloat, at::kBFloat16})
    for (const double cap : {0.0, kCap})
      for (const double temperature : {0.3, 0.7, 1.3, 4.0})
        for (const at::Tensor& of_tokens : {at::Tensor(), weights}) {
          const LogitForm form{.cap = cap, .temperature = temperature};
          SCOPED_TRACE(::testing::Message() << dtype << " cap " << cap << " at " << temperature
                                            << " weighed " << of_tokens.defined());
          EXPECT_LT(errors_at_temperature(form, dtype, of_tokens, temperature).worst(),
                    testing::tolerance(dtype, 300));
          EXPECT_GT(errors_at_temperature(form, dtype, of_tokens, 1.0).worst(),
                    testing::tolerance(dtype, 300));
        }
}

TEST(LinearCrossEntropy, FactorsOfTemperaturesAreFinite) {
  EXPECT_EQ(logit_factor(1), 1.0f);
  EXPECT_EQ(logit_factor(4), 0.25f);
  EXPECT_TRUE(std::isfinite(logit_factor(1e-300)));
  EXPECT_GT(logit_factor(1e300), 0.0f);
}

// A cap of 2 makes logits of 400 and -400 equal to 2 and -2, with a gradient of 0.
TEST(LinearCrossEntropy, ACapBoundsLogitsAndStopsTheirGradients) {
  const at::Tensor hidden = at::full({1, 4}, 10.0).requires_grad_(true);
  const at::Tensor weight =
      at::cat({at::full({1, 4}, 10.0), at::full({1, 4}, -10.0)}).requires_grad_(true);
  const at::Tensor label = at::tensor({int64_t{1}}, at::kLong);
  const at::Tensor loss = linear_cross_entropy(hidden, weight, labelled(label), {.cap = 2.0});
  EXPECT_NEAR(loss.item<double>(), std::log1p(std::exp(4.0)), 1e-5);
  loss.backward();
  EXPECT_LT(hidden.grad().abs().max().item<double>(), 1e-4);
  EXPECT_LT(weight.grad().abs().max().item<double>(), 1e-4);
}

TEST(LinearCrossEntropy, CappedLogitsAreWideAndKeepTheirOrder) {
  const at::Tensor logits = at::linspace(-90, 90, 4002).view({3, -1}).to(at::kBFloat16);
  const at::Tensor wanted = reference::soft_cap(logits.to(at::kDouble), 30.0);
  const at::Tensor found = capped_logits(logits.clone(), 30.0);
  EXPECT_EQ(found.scalar_type(), at::kFloat);
  EXPECT_LT(testing::relative_error(found, wanted), 1e-6);
  EXPECT_TRUE(at::equal(found.diff().gt(0), logits.to(at::kFloat).diff().gt(0)));
  EXPECT_TRUE(at::equal(capped_logits(logits.to(at::kFloat), 30.0), found));
  EXPECT_TRUE(capped_logits(logits, 0.0).is_same(logits));
}

// The reference is LibTorch's loss of each token, multiplied by the token's weight.
TEST(LinearCrossEntropy, WeightsMultiplyTheLossOfTheirToken) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    for (int64_t tokens : {1, 5, 700}) {
      for (int64_t vocab : {2, 33, 300}) {
        const at::Tensor labels = labels_of(tokens, vocab);
        const at::Tensor weights = testing::sample({tokens}, at::kFloat, 3).abs().add_(0.1);
        const auto op = [&](const Tensors& in) {
          return linear_cross_entropy(in[0], in[1], labelled(labels, weights));
        };
        const auto reference = [&](const Tensors& in) {
          return at::cross_entropy_loss(at::matmul(in[0], in[1].t()), labels, {},
                                        at::Reduction::None, kIgnoredLabel)
              .mul(weights.to(at::kDouble))
              .sum();
        };
        const testing::OpErrors errors = testing::compare(
            op, reference,
            {testing::sample({tokens, 19}, dtype, 1), testing::sample({vocab, 19}, dtype, 2)});
        EXPECT_LT(errors.worst(), testing::tolerance(dtype, 700))
            << tokens << " " << vocab << " " << dtype;
      }
    }
  }
}

TEST(LinearCrossEntropy, AWeightOfOneChangesNothing) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor hidden = testing::sample({40, 19}, dtype, 1).requires_grad_(true);
    const at::Tensor weight = testing::sample({33, 19}, dtype, 2).requires_grad_(true);
    const at::Tensor labels = labels_of(40, 33);
    const at::Tensor plain = linear_cross_entropy(hidden, weight, labelled(labels));
    const at::Tensor ones = linear_cross_entropy(hidden, weight, labelled(labels, at::ones({40})));
    EXPECT_TRUE(at::equal(plain, ones));
    const Tensors wanted = torch::autograd::grad({plain}, {hidden, weight});
    const Tensors found = torch::autograd::grad({ones}, {hidden, weight});
    for (const size_t input : {0, 1})
      EXPECT_LT(testing::relative_error(found[input], wanted[input].to(at::kDouble)),
                testing::tolerance(dtype, 1));
  }
}

TEST(LinearCrossEntropy, BitsDoNotDependOnThreads) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "LibTorch's products may depend on them";
  const int before = at::get_num_threads();
  for (const auto& [dtype, cap] : std::vector<std::pair<at::ScalarType, double>>{
           {at::kFloat, 0.0}, {at::kBFloat16, 0.0}, {at::kBFloat16, kCap}}) {
    Tensors first;
    for (const int threads : {1, 2, 5}) {
      at::set_num_threads(threads);
      const at::Tensor hidden = testing::sample({100, 70}, dtype, 1).requires_grad_(true);
      const at::Tensor weight = testing::sample({600, 70}, dtype, 2).requires_grad_(true);
      const at::Tensor loss =
          linear_cross_entropy(hidden, weight, labelled(labels_of(100, 600)), {.cap = cap});
      const Tensors found = torch::autograd::grad({loss}, {hidden, weight});
      if (first.empty()) first = found;
      EXPECT_TRUE(at::equal(found[0], first[0]) && at::equal(found[1], first[1])) << threads;
    }
    at::set_num_threads(before);
  }
}

TEST(LinearCrossEntropy, PlantedErrorIsSeen) {
  for (auto dtype : {at::kFloat, at::kBFloat16}) {
    EXPECT_GT(loss_errors_of(40, 19, 33, dtype, 1).worst(), testing::tolerance(dtype, 40));
  }
}

TEST(LinearCrossEntropy, NothingSupervised) {
  const at::Tensor hidden = testing::sample({4, 8}, at::kFloat, 1).requires_grad_(true);
  const at::Tensor weight = testing::sample({10, 8}, at::kFloat, 2).requires_grad_(true);
  const at::Tensor loss =
      linear_cross_entropy(hidden, weight, labelled(at::full({4}, kIgnoredLabel, at::kLong)));
  EXPECT_EQ(loss.item<float>(), 0.0f);
  loss.backward();
  EXPECT_EQ(hidden.grad().abs().max().item<float>(), 0.0f);
  EXPECT_EQ(weight.grad().abs().max().item<float>(), 0.0f);
  const at::Tensor none = at::empty({0}, at::kLong);
  EXPECT_EQ(linear_cross_entropy(at::empty({0, 8}), weight.detach(), labelled(none)).item<float>(),
            0.0f);
}

TEST(LinearCrossEntropy, UpstreamFactorScalesExactly) {
  const at::Tensor hidden = testing::sample({9, 8}, at::kBFloat16, 1).requires_grad_(true);
  const at::Tensor weight = testing::sample({50, 8}, at::kBFloat16, 2);
  const at::Tensor labels = labels_of(9, 50);
  const at::Tensor plain =
      torch::autograd::grad({linear_cross_entropy(hidden, weight, labelled(labels))}, {hidden})[0];
  const at::Tensor scaled = torch::autograd::grad(
      {linear_cross_entropy(hidden, weight, labelled(labels)) / 3.0}, {hidden})[0];
  EXPECT_LT(testing::relative_error(scaled, plain.to(at::kDouble) / 3.0), std::ldexp(1.0, -8));
}

TEST(LinearCrossEntropy, ALabelBeyondTheVocabularyIsRefused) {
  for (const int64_t wrong : {5, -1})
    EXPECT_THROW(linear_cross_entropy(at::ones({2, 4}), at::ones({5, 4}),
                                      labelled(at::tensor({int64_t{1}, wrong}, at::kLong))),
                 StateError);
}

// All logits of this batch would take 1 GiB; a chunk of them takes 128 MiB.
TEST(LinearCrossEntropy, NeverHoldsAllLogits) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "a chunk of the table for devices is larger";
  constexpr int64_t kTokens = 1024;
  constexpr int64_t kVocab = 262144;
  const at::Tensor hidden = testing::sample({kTokens, 8}, at::kFloat, 1).requires_grad_(true);
  const at::Tensor weight = testing::sample({kVocab, 8}, at::kFloat, 2);
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  linear_cross_entropy(hidden, weight, labelled(at::arange(kTokens, at::kLong))).backward();
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT((after.ru_maxrss - before.ru_maxrss) / 1024, 200);
}

TEST(LinearTokenLosses, EqualReference) {
  for (const auto& [dtype, cap] : std::vector<std::pair<at::ScalarType, double>>{
           {at::kFloat, 0.0}, {at::kBFloat16, 0.0}, {at::kFloat, kCap}, {at::kBFloat16, kCap}}) {
    const at::Tensor hidden = testing::sample({600, 19}, dtype, 1);
    const at::Tensor weight = testing::sample({77, 19}, dtype, 2);
    const at::Tensor labels = labels_of(600, 77);
    const TokenLosses found = linear_token_losses(hidden, weight, labelled(labels), {.cap = cap});
    const at::Tensor logits =
        reference::soft_cap(at::matmul(hidden.to(at::kDouble), weight.to(at::kDouble).t()), cap);
    const at::Tensor wanted =
        at::cross_entropy_loss(logits, labels, {}, at::Reduction::None, kIgnoredLabel);
    EXPECT_LT(testing::relative_error(found.nll_T, wanted), testing::tolerance(at::kFloat, 77));
    EXPECT_TRUE(at::equal(found.correct_T, logits.argmax(-1).eq(labels)));
    EXPECT_EQ(found.nll_T.masked_select(labels.lt(0)).abs().max().item<float>(), 0.0f);
    const TokenLosses hot =
        linear_token_losses(hidden, weight, labelled(labels), {.cap = cap, .temperature = 1.3});
    EXPECT_LT(testing::relative_error(
                  hot.nll_T, at::cross_entropy_loss(logits / 1.3, labels, {}, at::Reduction::None,
                                                    kIgnoredLabel)),
              testing::tolerance(at::kFloat, 77));
    EXPECT_TRUE(at::equal(hot.correct_T, found.correct_T));
  }
}

}  // namespace
}  // namespace convoy::kernels
