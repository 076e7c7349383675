// SPDX-License-Identifier: Apache-2.0
//
// Tests the order between streams: a missing order is detected, an existing order is accepted, and
// waits of the host are counted.
#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "simulated_device/simulated_device.h"

namespace convoy::simulated {
namespace {

c10::impl::VirtualGuardImpl backend() { return c10::impl::VirtualGuardImpl(device().type()); }

c10::Stream side_stream(int index = 0) { return backend().getNewStream(device(index)); }

c10::Stream main_stream(int index = 0) { return backend().getDefaultStream(device(index)); }

void order(c10::Stream earlier, c10::Stream later) {
  c10::Event event(device().type());
  event.record(earlier);
  event.block(later);
}

void expect_race(const std::function<void()>& work) {
  try {
    work();
    ADD_FAILURE() << "nothing was found";
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    EXPECT_NE(text.find("no event or wait orders the two"), std::string::npos) << text;
  }
}

class Streams : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(take_findings(), std::vector<std::string>()); }
};

TEST_F(Streams, AReadWithoutWaitIsFound) {
  const at::Tensor tensor = at::ones({4}, device(0));
  const c10::StreamGuard guard(side_stream());
  expect_race([&] { tensor.sum(); });
}

TEST_F(Streams, TheErrorNamesBothSides) {
  const at::Tensor tensor = at::ones({4}, device(0));
  const c10::Stream side = side_stream();
  const c10::StreamGuard guard(side);
  try {
    at::sum(tensor);
    FAIL();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    for (const std::string& part :
         {c10::str("aten::sum on stream ", side.id(), " of sim:0 reads what aten::"),
          std::string("in aten::ones on stream 0 of sim:0 writes"),
          std::string("a block of 16 bytes of sim:0, allocated by")})
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in " << text;
  }
}

TEST_F(Streams, AnEventOrders) {
  const at::Tensor tensor = at::ones({4}, device(0));
  const c10::Stream side = side_stream();
  order(main_stream(), side);
  at::Tensor sum;
  {
    const c10::StreamGuard guard(side);
    sum = tensor.sum();
  }
  expect_race([&] { sum + 1; });
  order(side, main_stream());
  EXPECT_EQ((sum + 1).item<float>(), 5);
}

TEST_F(Streams, AnEventOrdersOnlyWhatWasBeforeIt) {
  const at::Tensor tensor = at::ones({4}, device(0));
  const c10::Stream side = side_stream();
  order(main_stream(), side);
  tensor.add_(1);
  const c10::StreamGuard guard(side);
  expect_race([&] { tensor.sum(); });
}

TEST_F(Streams, AWriteUnderAReadIsFound) {
  const at::Tensor tensor = at::ones({4}, device(0));
  const c10::Stream side = side_stream();
  order(main_stream(), side);
  at::Tensor sum;
  {
    const c10::StreamGuard guard(side);
    sum = tensor.sum();
  }
  EXPECT_EQ(tensor.mean().dim(), 0) << "two streams may read";
  expect_race([&] { tensor.add_(1); });
  tensor.record_stream(side);
}

TEST_F(Streams, OrderIsHandedOn) {
  const at::Tensor tensor = at::ones({4}, device(0));
  const c10::Stream second = side_stream();
  const c10::Stream third = side_stream();
  order(main_stream(), second);
  order(second, third);
  const c10::StreamGuard guard(third);
  EXPECT_EQ(tensor.sum().item<float>(), 4);
}

TEST_F(Streams, AWaitOfTheHostOrders) {
  const c10::Stream side = side_stream();
  const at::Tensor tensor = at::ones({4}, device(0));
  backend().synchronizeStream(main_stream());
  const c10::StreamGuard guard(side);
  EXPECT_EQ(tensor.sum().item<float>(), 4);
}

TEST_F(Streams, PartsOfABlockAreApart) {
  const at::Tensor whole = at::zeros({8}, device(0));
  const c10::Stream side = side_stream();
  order(main_stream(), side);
  whole.slice(0, 0, 4).fill_(1);
  {
    const c10::StreamGuard guard(side);
    whole.slice(0, 4, 8).fill_(2);
    expect_race([&] { whole.slice(0, 3, 5).fill_(3); });
  }
  expect_race([&] { whole.sum(); });
  order(side, main_stream());
  EXPECT_EQ(whole.sum().item<float>(), 12);
}

TEST_F(Streams, DevicesAreOrderedByCopies) {
  const at::Tensor first = at::ones({4}, device(0));
  const at::Tensor second = first.to(device(1), /*non_blocking=*/true);
  first.zero_();
  {
    const c10::StreamGuard guard(side_stream(1));
    expect_race([&] { second.sum(); });
  }
  EXPECT_EQ((second + 1).sum().item<float>(), 8);
}

// Uses a tensor of the main stream on a side stream, runs `before_free`, and frees the tensor.
// Returns the faults.
std::vector<std::string> findings_of_free(
    const std::function<void(const at::Tensor&, c10::Stream)>& before_free) {
  at::Tensor tensor = at::ones({4}, device(0));
  const c10::Stream side = side_stream();
  order(main_stream(), side);
  at::Tensor sum;
  {
    const c10::StreamGuard guard(side);
    sum = tensor.sum();
  }
  before_free(tensor, side);
  tensor.reset();
  std::vector<std::string> findings = take_findings();
  backend().synchronizeDevice(0);
  return findings;
}

TEST_F(Streams, ABlockFreedUnderAnotherStreamIsFound) {
  const auto findings = findings_of_free([](const at::Tensor&, c10::Stream) {});
  ASSERT_EQ(findings.size(), 1);
  EXPECT_NE(findings[0].find("freed without record_stream or a wait"), std::string::npos);
  EXPECT_TRUE(findings_of_free([](const at::Tensor& tensor, c10::Stream side) {
                tensor.record_stream(side);
              }).empty());
  EXPECT_TRUE(findings_of_free([](const at::Tensor&, c10::Stream side) {
                order(side, main_stream());
              }).empty());
  EXPECT_TRUE(findings_of_free([](const at::Tensor&, c10::Stream side) {
                backend().synchronizeStream(side);
              }).empty());
}

TEST_F(Streams, ABlockFreedTooEarlyEndsTheNextWork) {
  at::Tensor tensor = at::ones({4}, device(0));
  const at::Tensor other = at::ones({4}, device(0));
  const c10::Stream side = side_stream();
  order(main_stream(), side);
  {
    const c10::StreamGuard guard(side);
    tensor.add_(1);
  }
  tensor.reset();
  EXPECT_THROW(other.add_(1), c10::Error);
  EXPECT_NO_THROW(other.add_(1));
}

TEST(StreamsDeathTest, ABlockFreedTooEarlyEndsTheProcessAtTheLatest) {
  EXPECT_EXIT(
      {
        const c10::StreamGuard guard(side_stream());
        at::Tensor tensor = at::ones({4}, device(0));
        const c10::StreamGuard inner(side_stream());
        order(guard.current_stream(), inner.current_stream());
        tensor.add_(1);
        tensor.reset();
        std::exit(0);
      },
      ::testing::ExitedWithCode(1), "freed without record_stream or a wait");
}

TEST_F(Streams, BackwardRunsOnTheStreamsOfForward) {
  const at::Tensor weight = at::ones({3, 3}, device(0)).requires_grad_();
  const c10::Stream side = side_stream();
  order(main_stream(), side);
  at::Tensor hidden;
  {
    const c10::StreamGuard guard(side);
    hidden = at::mm(weight, weight);
  }
  order(side, main_stream());
  at::mm(hidden, weight).sum().backward();
  EXPECT_EQ(weight.grad().sum().item<float>(), 243);
}

TEST_F(Streams, CurrentStreamsAndDevicesAreThoseOfAThread) {
  const c10::Stream side = side_stream();
  const c10::StreamGuard guard(side);
  std::thread([&] {
    EXPECT_EQ(backend().getStream(device(0)), main_stream());
    backend().setDevice(device(1));
  }).join();
  EXPECT_EQ(backend().getStream(device(0)), side);
  EXPECT_EQ(backend().getDevice(), device(0));
}

TEST_F(Streams, QueriesSayNoBeforeTheySayYes) {
  c10::Event event(device().type());
  EXPECT_TRUE(event.query()) << "never recorded";
  const at::Tensor tensor = at::ones({4}, device(0));
  event.record(main_stream());
  EXPECT_FALSE(event.query()) << "work is late";
  EXPECT_TRUE(event.query());
  EXPECT_TRUE(main_stream().query());
}

std::string waits_of(const std::function<void()>& work) {
  reset_host_waits();
  work();
  std::string kinds;
  for (const HostWait& wait : host_waits()) kinds += wait.kind + ";";
  return kinds;
}

TEST(HostWaits, AreThoseOfAGpu) {
  const at::Tensor tensor = at::arange(4, at::TensorOptions(device(0)).dtype(at::kFloat));
  const at::Tensor mask = tensor > 1;
  const at::Tensor host = at::ones({4});
  const at::Tensor buffer = host.pin_memory();
  EXPECT_EQ(waits_of([&] { (tensor * 2).softmax(0).masked_fill_(mask, 0.0).sum(); }), "");
  EXPECT_EQ(waits_of([&] { at::full({4}, 2.0, tensor.options()).add_(tensor); }), "");
  EXPECT_EQ(waits_of([&] { tensor[0].item<float>(); }), "value on host;");
  EXPECT_EQ(waits_of([&] { at::equal(tensor, tensor); }), "value on host;");
  EXPECT_EQ(waits_of([&] { tensor.masked_select(mask); }), "shape on host;");
  EXPECT_EQ(waits_of([&] { tensor.index({mask}); }), "shape on host;");
  EXPECT_EQ(waits_of([&] { tensor.index({mask.to(at::kLong)}); }), "");
  EXPECT_EQ(waits_of([&] { tensor.clone().index_put_({mask}, tensor[0]); }), "shape on host;");
  EXPECT_EQ(waits_of([&] { tensor.repeat_interleave(tensor.to(at::kLong)); }), "shape on host;");
  EXPECT_EQ(waits_of([&] { tensor.repeat_interleave(tensor.to(at::kLong), 0, 6); }), "");
  EXPECT_EQ(waits_of([&] { tensor.cpu(); }), "copy to host;");
  EXPECT_EQ(waits_of([&] { host.to(device(0)); }), "copy to device;");
  EXPECT_EQ(waits_of([&] { host.to(device(0), /*non_blocking=*/true); }), "copy to device;")
      << "not pinned";
  EXPECT_EQ(waits_of([&] { buffer.to(device(0)); }), "copy to device;");
  EXPECT_EQ(waits_of([&] { buffer.to(device(0), /*non_blocking=*/true); }), "");
  EXPECT_EQ(waits_of([&] { tensor.to(at::kCPU, /*non_blocking=*/true); }), "");
  EXPECT_EQ(waits_of([&] { backend().synchronizeDevice(0); }), "device;");
  EXPECT_EQ(waits_of([&] { backend().synchronizeDevice(0); }), "") << "nothing to wait for";
}

TEST(HostWaits, SayWhichOpWaited) {
  const at::Tensor tensor = at::ones({}, device(0));
  reset_host_waits();
  tensor.item();
  ASSERT_EQ(host_waits().size(), 1);
  EXPECT_EQ(host_waits()[0].origin, "aten::_local_scalar_dense in aten::item");
}

TEST(Memory, IsCountedPerDevice) {
  const size_t before = memory(0).live_bytes;
  const size_t other = memory(1).live_bytes;
  reset_peak(0);
  {
    const at::Tensor tensor = at::ones({1000}, device(0));
    const at::Tensor sum = (tensor + 1).sum();
    EXPECT_EQ(memory(0).live_bytes, before + 4004);
    EXPECT_GE(memory(0).peak_bytes, before + 8004);
    EXPECT_EQ(at::accelerator::getDeviceStats(0).allocated_bytes[0].current,
              static_cast<int64_t>(before + 4004));
  }
  EXPECT_EQ(memory(0).live_bytes, before);
  EXPECT_EQ(memory(1).live_bytes, other);
  reset_peak(0);
  EXPECT_EQ(memory(0).peak_bytes, before);
}

TEST(Memory, OfABackwardIsGivenBack) {
  const size_t before = memory(0).live_bytes;
  for (int i = 0; i < 3; ++i) {
    const at::Tensor weight = at::ones({30, 30}, device(0)).requires_grad_();
    at::gelu(at::mm(weight, weight)).sum().backward();
  }
  EXPECT_EQ(memory(0).live_bytes, before);
}

TEST(Memory, RunsOutAtItsCapacity) {
  const size_t live = memory(1).live_bytes;
  set_capacity(1, live + 1000);
  EXPECT_NO_THROW(at::empty({200}, device(1)));
  EXPECT_THROW(at::empty({300}, device(1)), c10::OutOfMemoryError);
  EXPECT_EQ(at::accelerator::getMemoryInfo(1), std::pair(size_t{1000}, live + 1000));
  set_capacity(1, 0);
  EXPECT_NO_THROW(at::empty({300}, device(1)));
}

}  // namespace
}  // namespace convoy::simulated
