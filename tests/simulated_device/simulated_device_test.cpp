// SPDX-License-Identifier: Apache-2.0
//
// Compares results on the CPU with results on simulated devices, which must be equal.
#include "simulated_device/simulated_device.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

namespace convoy::simulated {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors on(c10::Device device, const Tensors& tensors) {
  Tensors moved;
  for (const at::Tensor& tensor : tensors)
    moved.push_back(tensor.detach().to(device).requires_grad_(tensor.requires_grad()));
  return moved;
}

// Expects the function of leaves to have the same bits on the CPU and on the last device, forward
// and backward.
void expect_equal(const Tensors& inputs,
                  const std::function<at::Tensor(const Tensors&)>& function) {
  const Tensors here = on(at::kCPU, inputs);
  const Tensors there = on(device(1), inputs);
  at::manual_seed(7);
  const at::Tensor expected = function(here);
  const at::Tensor found = function(there);
  ASSERT_EQ(found.device(), device(1));
  EXPECT_TRUE(at::equal(found.detach().cpu(), expected.detach()));
  if (!expected.requires_grad()) return;
  expected.sum().backward();
  found.sum().backward();
  for (size_t i = 0; i < here.size(); ++i) {
    ASSERT_EQ(here[i].grad().defined(), there[i].grad().defined()) << "input " << i;
    if (!here[i].grad().defined()) continue;
    EXPECT_EQ(there[i].grad().device(), device(1));
    EXPECT_TRUE(at::equal(there[i].grad().cpu(), here[i].grad())) << "gradient of input " << i;
  }
}

at::Tensor leaf(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
  return at::randn(sizes).to(dtype).requires_grad_();
}

TEST(SimulatedDevice, TrainsAPerceptronLikeTheCpu) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble})
    expect_equal({at::randn({5, 8}).to(dtype), leaf({16, 8}, dtype), leaf({16}, dtype),
                  leaf({3, 16}, dtype)},
                 [](const Tensors& in) {
                   const at::Tensor hidden = at::gelu(at::linear(in[0], in[1], in[2]));
                   return at::log_softmax(at::linear(hidden, in[3]), -1);
                 });
}

// Sizes: rows, tokens, width, heads, inner width, vocabulary.
constexpr int64_t B = 3, T = 9, E = 64, H = 4, F = 48, V = 101;

at::Tensor normed(const at::Tensor& x, const at::Tensor& weight) {
  return x * at::rsqrt(x.square().mean(-1, true) + 1e-6) * (weight + 1);
}

at::Tensor attended(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& output) {
  const Tensors qkv =
      at::linear(x, weight).view({B, T, 3, H, E / H}).permute({2, 0, 3, 1, 4}).unbind(0);
  const at::Tensor mask = at::ones({T, T}, x.options().dtype(at::kBool)).tril().logical_not();
  const at::Tensor scores =
      at::matmul(qkv[0], qkv[1].transpose(-1, -2)).masked_fill(mask, -INFINITY);
  const at::Tensor mixed = at::matmul(at::softmax(scores, -1), qkv[2]);
  return at::linear(mixed.transpose(1, 2).reshape({B, T, E}), output);
}

// Returns the loss of a decoder layer with a tied head.
at::Tensor decoder_loss(const Tensors& in) {
  const at::Tensor& tokens = in[0];
  const at::Tensor& embedding = in[1];
  at::Tensor x = at::embedding(embedding, tokens);
  x = x + attended(normed(x, in[2]), in[3], in[4]);
  const at::Tensor y = at::layer_norm(x, {E}, in[5]);
  x = x + at::linear(at::silu(at::linear(y, in[6])) * at::linear(y, in[7]), in[8]);
  const at::Tensor logits = at::linear(x, embedding).view({B * T, V}).to(at::kFloat);
  return at::cross_entropy_loss(logits, tokens.view({B * T}));
}

TEST(SimulatedDevice, TrainsADecoderLayerLikeTheCpu) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    expect_equal({at::randint(0, V, {B, T}, at::kLong), leaf({V, E}, dtype), leaf({E}, dtype),
                  leaf({3 * E, E}, dtype), leaf({E, E}, dtype), leaf({E}, dtype),
                  leaf({F, E}, dtype), leaf({F, E}, dtype), leaf({E, F}, dtype)},
                 decoder_loss);
}

TEST(SimulatedDevice, IndexesScattersAndSortsLikeTheCpu) {
  const at::Tensor rows = at::tensor({3, 0, 3}, at::kLong);
  expect_equal({leaf({5, 4}), rows, leaf({3, 4})}, [](const Tensors& in) {
    const at::Tensor picked = at::index_select(in[0], 0, in[1]) + in[0].index({in[1]});
    at::Tensor sums = at::zeros({5, 4}, in[0].options());
    sums.index_add_(0, in[1], in[2]);
    sums = sums.scatter_add(0, in[1].unsqueeze(1).expand({3, 4}), in[2]);
    sums = sums.index_put({in[1]}, in[2], /*accumulate=*/true);
    const at::Tensor positive = at::where(sums > 0, sums, at::zeros({}, in[0].options()));
    const at::Tensor sorted = std::get<0>(at::sort(positive, 1, true));
    return at::cat({sorted, picked, std::get<0>(at::topk(in[0], 4, 1))}, 0);
  });
}

TEST(SimulatedDevice, ViewsShareMemory) {
  const at::Tensor whole = at::zeros({4, 6}, device(0));
  whole.narrow(1, 2, 3).transpose(0, 1).select(0, 1).fill_(5);
  whole.view({24}).slice(0, 0, 2).add_(1);
  whole.view(at::kInt).select(0, 3).zero_();
  at::Tensor expected = at::zeros({4, 6});
  expected.select(1, 3).fill_(5);
  expected[0].slice(0, 0, 2).add_(1);
  expected[3].zero_();
  EXPECT_TRUE(at::equal(whole.cpu(), expected));
  EXPECT_TRUE(whole.narrow(1, 2, 3).is_alias_of(whole));
  EXPECT_TRUE(at::split(whole, 2)[1].is_alias_of(whole));
}

TEST(SimulatedDevice, FactoriesMakeTensorsOfTheDevice) {
  const at::TensorOptions there = at::TensorOptions().device(device(1)).dtype(at::kFloat);
  EXPECT_TRUE(at::equal(at::full({3}, 2.5, there).cpu(), at::full({3}, 2.5)));
  EXPECT_TRUE(at::equal(at::arange(7, there).cpu(), at::arange(7, at::kFloat)));
  EXPECT_TRUE(at::equal(at::tensor({1.0F, 2.0F}, there).cpu(), at::tensor({1.0F, 2.0F})));
  EXPECT_TRUE(at::equal(at::eye(3, there).cpu(), at::eye(3)));
  EXPECT_TRUE(
      at::equal(at::tril_indices(3, 3, 0, there.dtype(at::kLong)).cpu(), at::tril_indices(3, 3)));
  EXPECT_EQ(at::zeros_like(at::empty({2}, there)).device(), device(1));
  EXPECT_EQ(at::scalar_tensor(3, there).item<float>(), 3);
  EXPECT_EQ(at::empty({2}, at::Device("sim:1")).device(), device(1));
}

TEST(SimulatedDevice, OutputsAndResizesKeepTheirTensor) {
  at::Tensor out = at::empty({0}, device(0));
  at::add_out(out, at::ones({3}, device(0)), at::ones({3}, device(0)));
  EXPECT_TRUE(at::equal(out.cpu(), at::full({3}, 2)));
  out.resize_({2, 4}).fill_(1);
  EXPECT_TRUE(at::equal(out.cpu(), at::ones({2, 4})));
  at::Tensor other = at::zeros({2}, device(0));
  other.set_(out);
  EXPECT_TRUE(other.is_alias_of(out));
  other.set_data(at::full({5}, 3.0F, device(0)));
  EXPECT_EQ(other.sum().item<float>(), 15);
}

TEST(SimulatedDevice, ListsOfTensorsAreChangedInPlace) {
  const Tensors weights = {at::ones({2}, device(0)), at::ones({3}, device(0))};
  at::_foreach_mul_(weights, 3.0);
  EXPECT_TRUE(at::equal(weights[1].cpu(), at::full({3}, 3.0F)));
  EXPECT_TRUE(at::equal(at::_foreach_norm(weights)[0].cpu(), at::full({}, std::sqrt(18.0F))));
}

TEST(SimulatedDevice, StepsAnOptimizerLikeTheCpu) {
  const Tensors start = {at::randn({33}), at::randn({33}), at::rand({33}), at::rand({33}),
                         at::ones({})};
  const auto step = [&](c10::Device where) {
    const Tensors moved = on(where, start);
    std::vector<Tensors> lists;
    for (const at::Tensor& tensor : moved) lists.push_back({tensor.clone()});
    at::_fused_adamw_(lists[0], lists[1], lists[2], lists[3], {}, lists[4], at::scalar_tensor(0.1),
                      0.9, 0.99, 0.01, 1e-8, false, false);
    at::_foreach_mul_(lists[1], at::scalar_tensor(2));
    at::_foreach_copy_(lists[4], {at::full({}, 9.0F, where)});
    Tensors results;
    for (const Tensors& list : lists) results.push_back(list[0].cpu());
    return results;
  };
  const Tensors expected = step(at::kCPU);
  const Tensors found = step(device(1));
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::equal(found[i], expected[i])) << i;
}

TEST(SimulatedDevice, CountsInIntegersLikeTheCpu) {
  const auto counted = [](c10::Device where) {
    at::Tensor bits = at::arange(50, at::TensorOptions(where).dtype(at::kLong)).mul_(0x9E3779B9);
    bits.bitwise_xor_(bits.bitwise_right_shift(7)).bitwise_and_(0xFFFF);
    const at::Tensor sums = bits.cumsum(0);
    return at::stack({sums, std::get<1>(bits.sort()), bits.eq(3).to(at::kLong),
                      bits.argmax().expand({50}), at::bincount(bits.remainder(7), {}, 50)})
        .cpu();
  };
  EXPECT_TRUE(at::equal(counted(device(0)), counted(at::kCPU)));
}

// Each of two threads uses a device and a stream of its own, as ranks in one process do.
TEST(SimulatedDevice, ThreadsTrainOnDevicesOfTheirOwn) {
  std::vector<double> losses(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&losses, i] {
      const at::Tensor weight = at::full({17, 17}, 0.01F, device(i % 2)).requires_grad_();
      for (int step = 0; step < 5; ++step) {
        const at::Tensor loss = at::silu(at::mm(weight, weight)).sum();
        loss.backward();
        weight.detach().sub_(weight.grad(), 0.1);
        weight.mutable_grad().reset();
        losses[static_cast<size_t>(i)] = loss.item<double>();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const double loss : losses) EXPECT_EQ(loss, losses[0]);
}

TEST(SimulatedDevice, RandomNumbersComeFromItsGenerator) {
  at::manual_seed(3);
  const at::Tensor first = at::randn({4}, device(0));
  at::manual_seed(3);
  EXPECT_TRUE(at::equal(first.cpu(), at::randn({4})));
  EXPECT_TRUE(at::equal(at::randn({4}, device(0)).cpu(), first.cpu()));
}

TEST(SimulatedDevice, DropsTheSameAsTheCpu) {
  expect_equal({leaf({64})}, [](const Tensors& in) {
    return std::get<0>(at::native_dropout(in[0], 0.25, true)) + at::dropout(in[0], 0.5, true);
  });
}

TEST(SimulatedDevice, DevicesTrainSideBySide) {
  const at::Tensor w0 = at::ones({3, 3}, device(0)).requires_grad_();
  const at::Tensor w1 = at::full({3, 3}, 2.0F, device(1)).requires_grad_();
  const at::Tensor hidden = at::mm(w0, w0).to(device(1));
  const at::Tensor loss = at::mm(hidden, w1).sum();
  loss.backward();
  EXPECT_EQ(w0.grad().device(), device(0));
  EXPECT_EQ(w1.grad().device(), device(1));
  const at::Tensor c0 = at::ones({3, 3}).requires_grad_();
  const at::Tensor c1 = at::full({3, 3}, 2.0F).requires_grad_();
  at::mm(at::mm(c0, c0), c1).sum().backward();
  EXPECT_TRUE(at::equal(w0.grad().cpu(), c0.grad()));
  EXPECT_TRUE(at::equal(w1.grad().cpu(), c1.grad()));
}

}  // namespace
}  // namespace convoy::simulated

int main(int argc, char** argv) {
  convoy::simulated::install(2);
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  return RUN_ALL_TESTS();
}
