// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <gtest/gtest.h>

#include <functional>

#include "convoy/core/base/error.h"
#include "convoy/machine/counting/counting_device.h"
#include "convoy/machine/counting/predicted_time.h"

namespace convoy::counting {
namespace {

at::TensorOptions counted(at::ScalarType dtype) {
  install();
  return at::TensorOptions().dtype(dtype).device(device());
}

// Returns the recorded work of the device. Views and allocations are left out.
template <class Run>
std::vector<Work> work_of_device(const Run& run) {
  Recording recording;
  run();
  std::vector<Work> work = recording.take();
  std::erase_if(work,
                [](const Work& each) { return each.kind == WorkKind::Host && !each.host_waits; });
  return work;
}

TEST(Counting, ProductReadsAndWritesEachMatrixOnce) {
  const at::Tensor x = at::empty({16, 3584}, counted(at::kBFloat16));
  const at::Tensor w = at::empty({4096, 3584}, counted(at::kBFloat16));
  at::Tensor y;
  const auto work = work_of_device([&] { y = at::linear(x, w); });
  ASSERT_EQ(work.size(), 1U);
  EXPECT_EQ(y.sizes(), (std::vector<int64_t>{16, 4096}));
  EXPECT_EQ(work[0].launches, 1);
  EXPECT_EQ(work[0].total_bytes(), 2.0 * (16 * 3584 + 4096 * 3584 + 16 * 4096));
  EXPECT_EQ(work[0].flops, 2.0 * 16 * 3584 * 4096);
  EXPECT_TRUE(work[0].product.on_tensor_cores);
  EXPECT_EQ(work[0].product.columns, 4096);
}

TEST(Counting, ViewsAndMemoryCostTheDeviceNothing) {
  const at::Tensor x = at::empty({4, 8}, counted(at::kFloat));
  Recording recording;
  x.view({8, 4}).transpose(0, 1).narrow(0, 1, 2).unsqueeze(0);
  const std::vector<Work> work = recording.take();
  EXPECT_GE(work.size(), 3U);
  for (const Work& each : work) EXPECT_EQ(each.launches, 0) << each.name;
}

TEST(Counting, BroadcastElementsCountOnce) {
  const at::Tensor x = at::empty({64, 32}, counted(at::kFloat));
  const at::Tensor row = at::empty({1, 32}, counted(at::kFloat)).expand({64, 32});
  const auto work = work_of_device([&] { x.add_(row); });
  ASSERT_EQ(work.size(), 1U);
  EXPECT_EQ(work[0].total_bytes(), 4.0 * (2 * 64 * 32 + 32));
}

TEST(Counting, GatheringReadsWhatItTakesAndStoringWritesWhatItPuts) {
  const at::Tensor table = at::empty({1000, 32}, counted(at::kFloat));
  const at::Tensor places = at::empty({3}, counted(at::kLong));
  const auto gathered = work_of_device([&] { table.index_select(0, places); });
  ASSERT_EQ(gathered.size(), 1U);
  EXPECT_EQ(gathered[0].total_bytes(), 2 * 3 * 32 * 4.0 + 3 * 8);
  const at::Tensor rows = at::empty({3, 32}, counted(at::kFloat));
  const auto stored = work_of_device([&] { table.index_copy_(0, places, rows); });
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].total_bytes(), 2 * 3 * 32 * 4.0 + 3 * 8);
}

TEST(Counting, CopiesFromPinnedMemoryDoNotHoldTheHost) {
  const auto pinned = at::TensorOptions().dtype(at::kLong).pinned_memory(true);
  counted(at::kLong);
  const at::Tensor host = at::empty({4}, pinned);
  const auto early = work_of_device([&] { host.to(device(), /*non_blocking=*/true); });
  ASSERT_EQ(early.size(), 1U);
  EXPECT_EQ(early[0].kind, WorkKind::Upload);
  EXPECT_FALSE(early[0].host_waits);
  const auto late = work_of_device([&] { at::zeros({4}, at::kLong).to(device(), true); });
  ASSERT_EQ(late.size(), 1U);
  EXPECT_TRUE(late[0].host_waits);
}

// `before` stands for a read that the host asked for earlier. The wait for it is not a wait for the
// new work.
TEST(Counting, AWaitForWhatCameBeforeIsNoWaitForThisWork) {
  counted(at::kLong);
  c10::Event before(c10::kPrivateUse1), now(c10::kPrivateUse1);
  const c10::Stream stream(c10::Stream::DEFAULT, device());
  before.record(stream);
  const auto all = [&] {
    Recording recording;
    now.record(stream);
    before.synchronize();
    now.synchronize();
    return recording.take();
  }();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all[0].host_reads_earlier);
  EXPECT_FALSE(all[0].host_waits);
  EXPECT_TRUE(all[1].host_waits);
}

TEST(Counting, WhatTheHostReadsIsZeroAndAWait) {
  const at::Tensor x = at::empty({4}, counted(at::kLong));
  at::Tensor host;
  const auto whole = work_of_device([&] { host = x.cpu(); });
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_EQ(whole[0].kind, WorkKind::Download);
  EXPECT_TRUE(whole[0].host_waits);
  EXPECT_TRUE(host.equal(at::zeros({4}, at::kLong)));
  const auto one = work_of_device([&] { x[0].item<int64_t>(); });
  ASSERT_EQ(one.size(), 1U);
  EXPECT_TRUE(one[0].host_waits);
  const auto places = work_of_device([&] { x.nonzero(); });
  ASSERT_EQ(places.size(), 1U);
  EXPECT_TRUE(places[0].host_waits) << "its size depends on the values";
}

TEST(Counting, SizesOfOpsThatLibTorchHasNoKernelWithoutValuesFor) {
  const at::Tensor x = at::empty({2, 10}, counted(at::kDouble));
  const auto [sorted, order] = x.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
  EXPECT_EQ(sorted.sizes(), x.sizes());
  EXPECT_EQ(order.scalar_type(), at::kLong);
  EXPECT_EQ(x.cumsum(1).sizes(), x.sizes());
  EXPECT_EQ(x.index_select(1, at::empty({3}, counted(at::kLong))).size(1), 3);
}

TEST(Counting, BytesAreOfWhatTheMemoryHolds) {
  const at::Tensor weight = at::empty({8, 8}, counted(at::kFloat));
  label_memory(Content::Weights);
  EXPECT_GE(labelled_bytes(Content::Weights), 256U);
  const at::Tensor x = at::empty({8, 8}, counted(at::kFloat));
  const auto work = work_of_device([&] { at::mm(x, weight); });
  EXPECT_EQ(work[0].bytes_of(Content::Weights), 256);
  EXPECT_EQ(work[0].bytes_of(Content::Other), 512);
}

TEST(Counting, ProductIntoATensorIsOneOfItsSizes) {
  const at::Tensor a = at::empty({16, 64}, counted(at::kBFloat16));
  const at::Tensor b = at::empty({64, 32}, counted(at::kBFloat16));
  at::Tensor out = at::empty({16, 32}, counted(at::kBFloat16));
  at::Tensor wide = at::empty({16, 32}, counted(at::kFloat));
  for (const auto& [run, element_bytes] : std::vector<std::pair<std::function<void()>, double>>{
           {[&] { at::mm_out(out, a, b); }, 2.0},
           {[&] { at::mm(a, b, at::kFloat); }, 4.0},
           {[&] { at::addmm_out(wide, wide, a, b, at::kFloat, 0, 0.5); }, 4.0}}) {
    const auto work = work_of_device(run);
    ASSERT_EQ(work.size(), 1U);
    EXPECT_EQ(work[0].name, "mm");
    EXPECT_EQ(work[0].flops, 2.0 * 16 * 64 * 32);
    EXPECT_EQ(work[0].product.inner, 64);
    EXPECT_GE(work[0].total_bytes(), 2.0 * 64 * (16 + 32) + element_bytes * 16 * 32);
  }
  const auto sum = work_of_device([&] { at::addmm_out(wide, wide, a, b, at::kFloat); });
  ASSERT_EQ(sum.size(), 1U);
  EXPECT_EQ(sum[0].flops, 2.0 * 16 * 64 * 32);
  EXPECT_EQ(sum[0].total_bytes(), 2.0 * 64 * (16 + 32) + 2 * 4.0 * 16 * 32) << "read and written";
}

// Counts one batch of 12 tokens, and then two rows of 8 and 4 tokens. That query heads share key
// heads costs no further kernel.
TEST(Counting, AttentionOfCudnnIsFourKernelsForABatch) {
  const auto bf16 = counted(at::kBFloat16);
  const at::Tensor q = at::empty({1, 12, 4, 16}, bf16).transpose(1, 2);
  const at::Tensor k = at::empty({1, 12, 2, 16}, bf16).transpose(1, 2);
  const auto step = [](const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& starts,
                       int64_t longest) {
    const auto given = starts.defined() ? std::optional(starts) : std::nullopt;
    const auto out = at::_cudnn_attention_forward(queries, keys, keys, {}, given, given, longest,
                                                  longest, true, 0.0, true, false, 0.25);
    const auto [grad_q, grad_k, grad_v] = at::_cudnn_attention_backward(
        std::get<0>(out), queries, keys, keys, std::get<0>(out), std::get<1>(out), std::get<6>(out),
        std::get<7>(out), at::Tensor(), starts, starts, longest, longest, 0.0, true, 0.25);
    EXPECT_EQ(grad_q.sizes(), queries.sizes());
    EXPECT_EQ(grad_k.strides(), keys.strides());
  };
  const auto batch = work_of_device([&] { step(q, k, {}, 12); });
  ASSERT_EQ(batch.size(), 2U);
  EXPECT_EQ(batch[0].launches, 1);
  EXPECT_EQ(batch[1].launches, 3);
  EXPECT_EQ(batch[0].flops, 4.0 * (12 * 13 / 2) * 4 * 16);
  EXPECT_EQ(batch[1].flops, 2.5 * batch[0].flops);
  const at::Tensor starts = at::empty({3}, bf16.dtype(at::kInt));
  const auto packed = work_of_device([&] {
    step(at::empty({12, 4, 16}, bf16), at::empty({12, 2, 16}, bf16), starts, 8);
  });
  ASSERT_EQ(packed.size(), 2U);
  EXPECT_GT(packed[0].launches, 1) << "lengths and offsets";
  EXPECT_EQ(packed[0].flops, 4.0 * 2 * (8 * 9 / 2) * 4 * 16);
}

TEST(Counting, CopiesOfAListAreAFewLaunches) {
  std::vector<at::Tensor> from, to;
  for (int64_t each = 0; each < 130; ++each) {
    from.push_back(at::empty({100}, counted(at::kFloat)));
    to.push_back(at::empty({100}, counted(at::kBFloat16)));
  }
  const auto work = work_of_device([&] { at::_foreach_copy_(to, from); });
  ASSERT_EQ(work.size(), 1U);
  EXPECT_EQ(work[0].launches, 3);
  EXPECT_EQ(work[0].total_bytes(), 130.0 * 100 * (4 + 2));
}

// Counts rows of 8 and 4 tokens. Each row is charged with the pairs of the longest row; four query
// heads share two key heads.
TEST(Counting, BackwardOfAttentionIsFiveProductsForTwo) {
  const auto bf16 = counted(at::kBFloat16);
  const at::Tensor q = at::empty({12, 4, 16}, bf16);
  const at::Tensor k = at::empty({12, 2, 16}, bf16);
  const at::Tensor starts = at::empty({3}, bf16.dtype(at::kInt));
  at::Tensor out, sums, state, unused, mask;
  const auto forward = work_of_device([&] {
    std::tie(out, sums, state, unused, mask) = at::_flash_attention_forward(
        q, k, k, starts, starts, 8, 8, 0.0, true, false, 0.25, std::nullopt);
  });
  const auto backward = work_of_device([&] {
    const auto [grad_q, grad_k, grad_v] =
        at::_flash_attention_backward(out, q, k, k, out, sums, starts, starts, 8, 8, 0.0, true,
                                      state, unused, 0.25, std::nullopt);
    EXPECT_EQ(grad_q.sizes(), q.sizes());
    EXPECT_EQ(grad_k.sizes(), k.sizes());
    EXPECT_EQ(grad_v.sizes(), k.sizes());
  });
  ASSERT_EQ(backward.size(), 1U);
  EXPECT_EQ(backward[0].flops, 2.5 * forward[0].flops);
  EXPECT_EQ(backward[0].launches, 5);
  EXPECT_EQ(backward[0].product.kind, ProductKind::AttentionBackward);
}

// Counts the pairs one by one: a query sees itself and at most `before` keys before it.
TEST(Counting, AttentionOfAWindowSeesTheKeysInIt) {
  const auto bf16 = counted(at::kBFloat16);
  const at::Tensor starts = at::empty({2}, bf16.dtype(at::kInt));
  for (const int64_t tokens : {3, 8, 9, 20})
    for (const int64_t before : {0, 3, 7, 30}) {
      const at::Tensor q = at::empty({tokens, 4, 16}, bf16);
      const auto work = work_of_device([&] {
        at::_flash_attention_forward(q, q, q, starts, starts, tokens, tokens, 0.0, true, false,
                                     0.25, before, 0);
      });
      int64_t pairs = 0;
      for (int64_t query = 0; query < tokens; ++query) pairs += std::min(query, before) + 1;
      EXPECT_EQ(work.at(0).flops, 4.0 * static_cast<double>(pairs * 4 * 16))
          << tokens << " tokens, " << before << " before each";
    }
}

TEST(Counting, NormsOfManyTensorsTakeFewLaunches) {
  const std::vector<at::Tensor> tensors(200, at::empty({100}, counted(at::kFloat)));
  const auto work = work_of_device([&] { at::stack(at::_foreach_norm(tensors)); });
  ASSERT_EQ(work.size(), 3U) << "zeros, norms, cat";
  EXPECT_EQ(work[1].launches, 2 + 1);
  EXPECT_EQ(work[1].total_bytes(), 200 * (400 + 8 + 4));
  EXPECT_EQ(work[2].launches, 2);
}

TEST(Counting, MemoryHasAPeak) {
  const at::Tensor kept = at::empty({1024}, counted(at::kFloat));
  reset_peak_memory();
  const int64_t before = peak_memory_bytes();
  { const at::Tensor gone = at::empty({1000}, counted(at::kFloat)); }
  at::empty({1}, counted(at::kFloat));
  EXPECT_EQ(peak_memory_bytes() - before, 4096) << "in steps of 512 bytes";
  reset_peak_memory();
  EXPECT_EQ(peak_memory_bytes(), before);
}

TEST(Counting, OwnKernelMovesWhatItsParametersPointInto) {
  const at::Tensor x = at::empty({16}, counted(at::kFloat));
  struct Parameters {
    const void* first;
    const void* second;
    int64_t count;
    const void* out;
  };
  const at::Tensor out = at::empty({16}, counted(at::kFloat));
  const Parameters parameters{x.const_data_ptr(), x.narrow(0, 4, 2).const_data_ptr(), 16,
                              out.const_data_ptr()};
  const auto work =
      work_of_device([&] { count_launch("one", std::as_bytes(std::span(&parameters, 1))); });
  ASSERT_EQ(work.size(), 1U);
  EXPECT_EQ(work[0].launches, 1);
  EXPECT_EQ(work[0].total_bytes(), 128) << "each block once";
  const auto partly = work_of_device([&] {
    count_launch("one", std::as_bytes(std::span(&parameters, 1)), {{out.const_data_ptr(), 12}});
  });
  EXPECT_EQ(partly[0].total_bytes(), 64 + 12);
}

TEST(PredictedTime, HostAndDeviceOverlapUntilTheHostWaits) {
  const GpuSpeed& gpu = gpu_speed("h200");
  const Assumptions& assumed = assumptions();
  Work large{.name = "large", .kind = WorkKind::Op, .launches = 1};
  large.bytes_of(Content::Weights) =  // so that it takes a millisecond
      (1e-3 - assumed.kernel_seconds) * gpu.bytes * assumed.bytes_share;
  const Work read{.name = "download", .kind = WorkKind::Download, .host_waits = true};
  const Work small{.name = "small", .kind = WorkKind::Op, .launches = 1};
  const Prediction one = predict(std::vector<Work>{large, small}, gpu);
  EXPECT_NEAR(one.seconds, 1e-3 + assumed.op_seconds + assumed.kernel_seconds, 1e-9);
  const Prediction waits = predict(std::vector<Work>{large, read, small}, gpu);
  EXPECT_NEAR(waits.seconds,
              1e-3 + 2 * assumed.op_seconds + 2 * assumed.kernel_seconds + assumed.wait_seconds,
              1e-9)
      << "the last op is asked for when the device is idle";
  EXPECT_EQ(waits.host_waits, 1);
  EXPECT_EQ(waits.downloads, 1);
  EXPECT_EQ(waits.launches, 2);
  ASSERT_EQ(waits.totals.size(), 3U);
  EXPECT_EQ(waits.totals[0].name, "large");
  const Prediction many = predict(std::vector<Work>(100, small), gpu);
  EXPECT_NEAR(many.seconds, 100 * assumed.op_seconds + assumed.kernel_seconds, 1e-9)
      << "the host is slower than the device";
  const Prediction graph = predict(std::vector<Work>(100, small), gpu, Launching::AsAGraph);
  EXPECT_NEAR(graph.seconds, 100 * assumed.kernel_seconds, 1e-9);
}

TEST(PredictedTime, CollectivesRunBesideTheDeviceUntilItWaits) {
  const GpuSpeed& gpu = gpu_speed("h200");
  const Assumptions& assumed = assumptions();
  const auto milliseconds = [&](double count) {
    Work work{.name = "large", .kind = WorkKind::Op, .launches = 1};
    work.bytes_of(Content::Weights) =
        (count * 1e-3 - assumed.kernel_seconds) * gpu.bytes * assumed.bytes_share;
    return work;
  };
  const Work sum{.name = "all_reduce",
                 .kind = WorkKind::Collective,
                 .collective = 1,
                 .link_bytes = (1e-3 - assumed.link_seconds) * gpu.link_bytes * assumed.link_share};
  const Work wait{.name = "wait", .kind = WorkKind::CollectiveWait, .collective = 1};
  const Prediction hidden =
      predict(std::vector<Work>{milliseconds(2), sum, milliseconds(5), wait}, gpu);
  EXPECT_NEAR(hidden.seconds, 7e-3 + assumed.op_seconds, 1e-9);
  EXPECT_NEAR(hidden.exposed_seconds, 0, 1e-9);
  EXPECT_NEAR(hidden.link_seconds, 1e-3, 1e-9);
  const Prediction exposed =
      predict(std::vector<Work>{milliseconds(2), sum, wait, milliseconds(5)}, gpu);
  EXPECT_NEAR(exposed.exposed_seconds, 1e-3, 1e-9);
  ASSERT_EQ(exposed.collectives.size(), 1U);
  EXPECT_EQ(exposed.collectives[0].link_bytes, sum.link_bytes);
  EXPECT_EQ(exposed.totals.size(), 1U) << "collectives are no work of the device";
}

TEST(PredictedTime, AStepThatReadsTheOneBeforeHidesTheHostBehindTheDevice) {
  const GpuSpeed& gpu = gpu_speed("h200");
  const Assumptions& assumed = assumptions();
  Work large{.name = "large", .kind = WorkKind::Op, .launches = 1};
  large.bytes_of(Content::Weights) =  // so that it takes a millisecond
      (1e-3 - assumed.kernel_seconds) * gpu.bytes * assumed.bytes_share;
  const Work small{.name = "small", .kind = WorkKind::Op, .launches = 1};
  const Work read{.name = "wait", .host_reads_earlier = true};
  const Prediction by_device = predict(std::vector<Work>{small, large, read}, gpu);
  EXPECT_NEAR(by_device.seconds, 1e-3 + assumed.kernel_seconds, 1e-9);
  EXPECT_EQ(by_device.host_waits, 0);
  EXPECT_EQ(by_device.host_ops, 0);
  std::vector<Work> many(100, small);
  many.push_back(read);
  EXPECT_NEAR(predict(many, gpu).seconds, 100 * assumed.op_seconds + assumed.wait_seconds, 1e-9)
      << "the host is slower";
}

TEST(PredictedTime, ProductTakesTheLongerOfItsBytesAndItsSums) {
  const GpuSpeed& gpu = gpu_speed("a100");
  Work product{.name = "mm", .kind = WorkKind::Op, .launches = 1};
  product.bytes_of(Content::Other) = 2.0 * 3 * 8192 * 8192;
  product.flops = 2.0 * 8192 * 8192 * 8192;
  product.product = {.batch = 1, .rows = 8192, .columns = 8192, .on_tensor_cores = true};
  const double sums = product.flops / (gpu.tensor_flops * assumptions().product_share);
  EXPECT_GE(device_seconds(product, gpu), sums);
  EXPECT_LE(device_seconds(product, gpu), 1.1 * sums) << "4,096 tiles in 38 waves of 108";
  product.product.on_tensor_cores = false;
  EXPECT_GT(device_seconds(product, gpu), 10 * sums);
}

// The papers measured FlashAttention-2 on an H100 (arXiv:2407.08608) and on an A100
// (arXiv:2307.08691).
TEST(PredictedTime, AttentionReachesTheShareOfThePeakThatItsPapersName) {
  Work attention{.name = "_flash_attention_forward", .kind = WorkKind::Op, .launches = 1};
  attention.flops = 1e12;
  attention.product = {.batch = 1 << 16,
                       .rows = 128,
                       .columns = 1,
                       .on_tensor_cores = true,
                       .kind = ProductKind::Attention};
  for (const auto& [name, share] : {std::pair{"h100", 0.35}, {"h200", 0.35}, {"a100", 0.6}}) {
    const GpuSpeed& gpu = gpu_speed(name);
    EXPECT_NEAR(device_seconds(attention, gpu) * gpu.tensor_flops / attention.flops, 1 / share,
                0.01)
        << name;
  }
  attention.product.kind = ProductKind::AttentionBackward;
  EXPECT_NEAR(device_seconds(attention, gpu_speed("h200")) * 989.4e12 / 1e12, 1 / 0.31, 0.02);
  attention.product.kind = ProductKind::Attention;
  // One processor computes a block of 128 queries of one head, so a quarter of the blocks leaves
  // three quarters of the processors idle.
  const GpuSpeed& gpu = gpu_speed("a100");
  const double whole = device_seconds(attention, gpu);
  attention.product.batch = gpu.processors / 4;
  EXPECT_NEAR(device_seconds(attention, gpu), 4 * whole, 0.01 * whole);
}

TEST(PredictedTime, UnknownGpuNamesThoseThereAre) {
  try {
    gpu_speed("h20");
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("h200"), std::string::npos) << error.sentence();
  }
}

}  // namespace
}  // namespace convoy::counting
