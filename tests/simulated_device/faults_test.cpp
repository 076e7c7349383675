// SPDX-License-Identifier: Apache-2.0
//
// Plants faults that the device must find: memory that the host accesses, tensors of the wrong
// device, host buffers that are used during a copy.
#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>

#include "simulated_device/simulated_device.h"

namespace convoy::simulated {
namespace {

using ::testing::KilledBySignal;

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

void expect_error(const std::function<void()>& work, const std::vector<std::string>& parts) {
  const std::string error = error_of(work);
  EXPECT_FALSE(error.empty()) << "nothing was found";
  for (const std::string& part : parts)
    EXPECT_NE(error.find(part), std::string::npos) << "no `" << part << "` in: " << error;
}

void wait_for(int index) {
  c10::impl::VirtualGuardImpl(device().type()).synchronizeDevice(device(index).index());
}

at::Tensor pinned(at::IntArrayRef sizes) {
  return at::empty(sizes, at::TensorOptions().pinned_memory(true));
}

TEST(FaultsDeathTest, AHostReadOfDeviceMemory) {
  const at::Tensor tensor = at::ones({4}, device(1));
  EXPECT_EXIT(
      {
        const volatile float* data = tensor.const_data_ptr<float>();
        std::printf("%f", static_cast<double>(*data));
      },
      KilledBySignal(SIGSEGV),
      "host read of simulated device memory \\(a block of 16 bytes of sim:1, allocated by "
      "aten::empty.* in aten::ones on stream 0 of sim:1\\)");
}

TEST(FaultsDeathTest, AHostWriteOfDeviceMemory) {
  const at::Tensor tensor = at::ones({4}, device(0));
  EXPECT_EXIT(*static_cast<volatile float*>(tensor.data_ptr()) = 1, KilledBySignal(SIGSEGV),
              "host write of simulated device memory");
}

TEST(FaultsDeathTest, DeviceMemoryTakenForHostMemory) {
  const at::Tensor tensor = at::ones({4}, device(0));
  EXPECT_EXIT(at::from_blob(tensor.data_ptr(), {4}).add(1), KilledBySignal(SIGSEGV),
              "host read of simulated device memory");
}

TEST(FaultsDeathTest, AnyOtherFaultGoesItsWay) {
  volatile uintptr_t nowhere = 8;
  EXPECT_EXIT(*reinterpret_cast<volatile int*>(nowhere) = 1, KilledBySignal(SIGSEGV), "^$");
  EXPECT_EXIT(std::raise(SIGSEGV), KilledBySignal(SIGSEGV), "^$");
}

TEST(Faults, ATensorOfTheWrongDevice) {
  const at::Tensor here = at::ones({3, 3});
  const at::Tensor first = at::ones({3, 3}, device(0));
  const at::Tensor second = at::ones({3, 3}, device(1));
  expect_error([&] { first + here; }, {"sim:0", "cpu"});
  expect_error([&] { at::mm(first, second); }, {"sim:0", "sim:1"});
  expect_error([&] { at::embedding(first, at::zeros({2}, at::kLong)); },
               {"aten::index_select in aten::embedding", "sim:0", "`index`", "cpu"});
  expect_error([&] { first.index_add_(0, at::zeros({3}, at::kLong), first + 1); },
               {"sim:0", "cpu"});
  expect_error([&] { at::cat({first, here}); }, {"sim:0", "cpu"});
  expect_error([&] { at::mm_out(const_cast<at::Tensor&>(here), first, first); }, {"sim:0", "cpu"});
  expect_error([&] { first.set_data(here); }, {"incompatible tensor type"});
  expect_error(
      [&] { at::randn({2}, device(0)).normal_(0, 1, at::detail::getDefaultCPUGenerator()); },
      {"sim:0", "cpu"});
}

TEST(Faults, NumbersOfTheHostAreTaken) {
  const at::Tensor tensor = at::ones({3}, device(0));
  const at::Tensor two = at::scalar_tensor(2);
  reset_host_waits();
  at::Tensor result = tensor * two + 1;
  result.masked_fill_(result > two, two);
  EXPECT_TRUE(host_waits().empty());
  EXPECT_EQ(result.sum().item<float>(), 6);
}

TEST(FaultsDeathTest, APinnedBufferOverwrittenTooEarly) {
  const at::Tensor buffer = pinned({1000}).fill_(1);
  const at::Tensor target = at::empty({1000}, device(0));
  target.copy_(buffer, /*non_blocking=*/true);
  const at::Tensor sum = target.sum();
  EXPECT_EQ(buffer[3].item<float>(), 1) << "reading beside the copy is allowed";
  EXPECT_EXIT(buffer.fill_(2), KilledBySignal(SIGSEGV),
              "host write of pinned memory that aten::_copy_from in aten::copy_ reads .* while "
              "nothing has waited for it");
  wait_for(0);
  buffer.fill_(2);
  EXPECT_EQ(sum.item<float>(), 1000);
}

TEST(FaultsDeathTest, AnAsynchronousResultReadBeforeAWait) {
  const at::Tensor source = at::full({3}, 4.0F, device(0));
  const at::Tensor result = source.to(at::kCPU, /*non_blocking=*/true);
  EXPECT_TRUE(result.is_pinned());
  EXPECT_EXIT(result.add(1), KilledBySignal(SIGSEGV), "host read of pinned memory that .* writes");
  c10::Event done(device().type());
  done.record(c10::impl::VirtualGuardImpl(device().type()).getStream(device(0)));
  EXPECT_EXIT(result.add(1), KilledBySignal(SIGSEGV), "host read of pinned memory that .* writes");
  while (!done.query()) continue;
  EXPECT_TRUE(at::equal(result, at::full({3}, 4.0F)));
}

TEST(Faults, APinnedBufferFreedUnderACopyIsKeptUntilItIsDone) {
  at::Tensor buffer = pinned({1000}).fill_(1);
  const void* address = buffer.data_ptr();
  at::Tensor target = at::empty({1000}, device(0));
  target.copy_(buffer, true);
  buffer.reset();
  buffer = pinned({1000});
  EXPECT_NE(buffer.data_ptr(), address);
  wait_for(0);
  buffer = pinned({1000}).fill_(1);
  EXPECT_EQ(buffer.data_ptr(), address);
}

TEST(Faults, WhatWasNeverWrittenIsNoNumber) {
  EXPECT_TRUE(at::isnan(at::empty({8}, device(0))).all().item<bool>());
  EXPECT_EQ(at::empty({1}, at::TensorOptions(device(0)).dtype(at::kLong)).item<int64_t>(), -1);
}

TEST(Faults, OpsThatCudaDoesNotHave) {
  const at::Tensor numbers = at::ones({4, 4}, device());
  expect_error([&] { at::histogram(numbers, 3); }, {"aten::histogram has no CUDA kernel"});
  const at::Tensor integers = numbers.to(at::kLong);
  expect_error([&] { integers.mm(integers); }, {"aten::mm has no CUDA kernel for Long"});
  expect_error([&] { at::gelu(numbers.to(at::kLong)); },
               {"aten::gelu has no CUDA kernel for Long"});
  EXPECT_EQ(error_of([&] { integers.cumsum(0).add_(1).sort(); }), "");
}

}  // namespace
}  // namespace convoy::simulated
