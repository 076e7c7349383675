// SPDX-License-Identifier: Apache-2.0
//
// Each rank has a simulated device. NcclGroup and the stand-in for NCCL sum gradients on the given
// stream. Planted faults end ranks in time, with a message that names the collective.
#include "ranks/ranks.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "convoy/core/telemetry/ranks/step_trace.h"
#include "convoy/launch/supervisor/launcher.h"
#include "convoy/machine/device/device_clock.h"
#include "convoy/machine/processes/error_file.h"
#include "convoy/machine/profile/rank_trace.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/comm/nccl/nccl_group.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/parallel/strategy.h"
#include "simulated_device/fake_nccl_hooks.h"
#include "simulated_device/simulated_device.h"

namespace convoy {
namespace {

using namespace std::chrono_literals;

// The group of the same ranks on CPUs, which uses Gloo.
comm::Group* wire = nullptr;

class OneRank {
 public:
  explicit OneRank(std::chrono::seconds timeout = 60s) {
    simulated::install(environment_.world);
    simulated::load_fake_nccl();
    auto host = comm::join_group(environment_, 60s, &flight_);
    wire = host.get();
    group_ = std::make_unique<comm::NcclGroup>(std::move(host), flight_, comm::open_nccl(),
                                               device(), timeout);
  }

  at::Device device() const { return simulated::device(environment_.rank); }
  comm::Group& group() { return *group_; }
  telemetry::FlightWriter& flight() { return flight_; }
  int rank() const { return environment_.rank; }

 private:
  comm::RankEnvironment environment_ = comm::read_rank_environment();
  telemetry::FlightWriter flight_ = telemetry::FlightWriter::attach();
  std::unique_ptr<comm::Group> group_;
};

RANK_BODY(Collectives) {
  OneRank one;
  const at::Tensor sum = at::full({3}, 1.0 + one.rank(), one.device());
  one.group().all_reduce_sum(sum);
  EXPECT_TRUE(at::equal(sum.cpu(), at::full({3}, 3.0)));
  const at::Tensor most = at::full({3}, 1.0 + one.rank(), one.device());
  const at::Tensor least = most.clone();
  one.group().start_all_reduce(most, comm::Reduction::Max)->wait();
  EXPECT_TRUE(at::equal(most.cpu(), at::full({3}, 2.0)));
  one.group().start_all_reduce(least, comm::Reduction::Min)->wait();
  EXPECT_TRUE(at::equal(least.cpu(), at::full({3}, 1.0)));
  const at::Tensor sent = at::full({2}, 7.0 + one.rank(), one.device());
  one.group().broadcast(sent, 1);
  EXPECT_TRUE(at::equal(sent.cpu(), at::full({2}, 8.0)));
  const at::Tensor whole = at::arange(6, at::kFloat).mul_(1 + one.rank()).to(one.device());
  at::Tensor own = at::empty({3}, whole.options());
  one.group().start_reduce_scatter_sum(whole, own)->wait();
  EXPECT_TRUE(at::equal(own.cpu(), at::arange(6, at::kFloat).mul_(3).narrow(0, 3 * one.rank(), 3)));
  at::Tensor largest = at::empty({3}, whole.options());
  one.group().start_reduce_scatter(whole, largest, comm::Reduction::Max)->wait();
  EXPECT_TRUE(
      at::equal(largest.cpu(), at::arange(6, at::kFloat).mul_(2).narrow(0, 3 * one.rank(), 3)));
  at::Tensor gathered = at::empty({6}, whole.options());
  one.group().all_gather(own, gathered);
  EXPECT_TRUE(at::equal(gathered.cpu(), at::arange(6, at::kFloat).mul_(3)));
  at::Tensor on_host = at::full({1}, one.rank(), at::kLong);
  one.group().all_reduce_sum(on_host);
  EXPECT_EQ(on_host.item<int64_t>(), 1);
  EXPECT_EQ(one.group().all_gather_bytes(one.rank() == 0 ? "a" : "bcd")[1], "bcd");
}

// The device gives the times of a trace: a collective is done when its stream has computed it,
// before its rank waits for it.
RANK_BODY(TracedByTheDevice) {
  OneRank one;
  const std::unique_ptr<TraceClock> clock = device::make_device_clock(one.device());
  telemetry::StepTrace trace(1, 1, clock.get());
  one.flight().trace_to(&trace);
  one.flight().set_step(0);
  one.flight().set_phase("backward");
  const at::Tensor sum = at::full({3}, 1.0, one.device());
  const auto work = one.group().start_all_reduce_sum(sum);
  std::this_thread::sleep_for(30ms);
  one.flight().set_phase("reduce");
  work->wait();
  one.flight().set_phase("optimize");
  sum.mul_(2.0);
  one.flight().set_step(1);
  const profile::RankTrace found =
      profile::parse_rank_trace(trace.chrome_json({.rank = one.rank(), .world_size = 2}), "trace");
  one.flight().trace_to(nullptr);
  EXPECT_TRUE(found.has_device_clock);
  ASSERT_EQ(found.steps.size(), 1U);
  ASSERT_EQ(found.phases.size(), 3U);
  ASSERT_EQ(found.collectives.size(), 1U);
  const profile::TracedCollective& collective = found.collectives[0];
  EXPECT_EQ(collective.name, "devices all_reduce");
  EXPECT_GT(collective.flight.begin_ns, found.phases[0].span.begin_ns);
  EXPECT_LT(collective.flight.end_ns, collective.wait.begin_ns);
  EXPECT_GE(collective.wait.begin_ns, found.phases[1].span.begin_ns);
  EXPECT_LE(collective.wait.end_ns, found.phases[1].span.end_ns);
  EXPECT_GE(found.phases[0].span.length_ns(), 30'000'000);
  EXPECT_EQ(found.phases[2].span.end_ns, found.steps[0].span.end_ns);
  EXPECT_TRUE(simulated::take_findings().empty());
}

// A collective that nobody waits for is in no order with later uses of its tensor.
RANK_BODY(ForgottenWait) {
  OneRank one;
  const at::Tensor sum = at::full({3}, 1.0, one.device());
  const auto work = one.group().start_all_reduce_sum(sum);
  EXPECT_THROW(sum.mul_(2.0), c10::Error);
  work->wait();
  EXPECT_NO_THROW(sum.mul_(2.0));
}

// Compares sums of every dtype with Gloo, in pieces that fill the fake library's memory several
// times.
RANK_BODY(Types) {
  OneRank one;
  const int64_t ranks = one.group().size();
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kByte,
                                    at::kChar, at::kInt, at::kLong, at::kBool}) {
    for (const int64_t count : {int64_t{1}, int64_t{7}, int64_t{100'000}}) {
      SCOPED_TRACE(fmt::format("{} x {}", count, c10::toString(type)));
      const at::Tensor base =
          at::arange(ranks * count, at::kLong).remainder(type == at::kBool ? 2 : 13).to(type);
      const at::Tensor own = base.narrow(0, one.rank() * count, count);
      at::Tensor sent = own.to(one.device());
      one.group().broadcast(sent, 1);
      EXPECT_TRUE(sent.cpu().equal(base.narrow(0, count, count)));
      at::Tensor whole = at::zeros_like(base).to(one.device());
      one.group().all_gather(own.to(one.device()), whole);
      EXPECT_TRUE(whole.cpu().equal(base));
      if (type == at::kBool) continue;
      at::Tensor sum = own.to(one.device());
      one.group().all_reduce_sum(sum);
      at::Tensor wanted = own.clone();
      wire->all_reduce_sum(wanted);
      EXPECT_TRUE(sum.cpu().equal(wanted));
      at::Tensor piece = at::empty({count}, sum.options());
      const at::Tensor brought = base * (one.rank() + 1);
      one.group().start_reduce_scatter_sum(brought.to(one.device()), piece)->wait();
      EXPECT_TRUE(piece.cpu().equal(own * (ranks * (ranks + 1) / 2)));
    }
  }
  EXPECT_TRUE(simulated::take_findings().empty());
}

// A sum of bf16 numbers is rounded once, to nearest, ties to even.
RANK_BODY(Rounding) {
  OneRank one;
  const at::Tensor brought = at::tensor({256.0, 1.0, 256.0}).to(at::kBFloat16)[one.rank()];
  const at::Tensor sum = brought.reshape({1}).to(one.device());
  one.group().all_reduce_sum(sum);
  EXPECT_EQ(sum.item<float>(), 512);  // the exact sum is 513
}

// Many collectives of the whole group and of its parts run at once.
RANK_BODY(InFlight) {
  OneRank one;
  const auto part = one.group().split(one.rank() / 2, "pairs");
  std::vector<at::Tensor> tensors;
  std::vector<std::unique_ptr<comm::Work>> works;
  for (int64_t index = 0; index < 20; ++index) {
    comm::Group& group = index % 2 == 0 ? one.group() : *part;
    tensors.push_back(at::full({1 + 5000 * index}, 1.0 + one.rank(), one.device()));
    works.push_back(group.start_all_reduce_sum(tensors.back()));
  }
  for (size_t index = 0; index < works.size(); ++index) {
    works[index]->wait();
    const int of_part = one.rank() < 2 ? 3 : 7;
    EXPECT_EQ(tensors[index].mean().item<float>(), index % 2 == 0 ? 10 : of_part) << index;
  }
  EXPECT_TRUE(simulated::take_findings().empty());
}

// The body ends by itself only if no fault is planted. Two sums are complete before the third one,
// whose call may fail before the devices reach it.
RANK_BODY(FourSums) {
  OneRank one(2s);
  const at::Tensor tensor = at::ones({3}, one.device());
  for (int sum = 0; sum < 4; ++sum) {
    if (sum == 2) one.group().await_device();
    one.group().all_reduce_sum(tensor);
  }
  one.group().await_device();
}

RANK_BODY(FourSumsOfALauncher) {
  try {
    rank_body_FourSums();
  } catch (const Error& error) {
    processes::write_error_file(std::getenv("TORCHELASTIC_ERROR_FILE"), error);
    throw;
  }
}

// A collective of a device delays later work of its stream, and does not block the host.
RANK_BODY(HostsGoOn) {
  OneRank one(2s);
  const at::Tensor sum = at::ones({3}, one.device());
  if (one.rank() == 1) one.group().barrier();
  const auto work = one.group().start_all_reduce_sum(sum);
  simulated::reset_host_waits();
  work->wait();
  EXPECT_TRUE(simulated::host_waits().empty());
  if (one.rank() == 0) one.group().barrier();
  EXPECT_TRUE(at::equal(sum.cpu(), at::full({3}, 2.0)));
  one.group().await_device();
  EXPECT_TRUE(simulated::take_findings().empty());
}

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const CommError& error) {
    return error.sentence();
  }
  return "no error";
}

// After its collective was ended, the device continues, with a wrong value. The group exists for a
// while after the error, with another collective in progress.
RANK_BODY(OutlivesItsError) {
  OneRank one(2s);
  const at::Tensor first = at::ones({3}, one.device());
  const at::Tensor second = at::ones({3}, one.device());
  const auto lost = one.group().start_all_reduce_sum(first);
  std::unique_ptr<comm::Work> behind;
  const std::string found = error_of([&] {
    behind = one.group().start_all_reduce_sum(second);  // fails if the fault is seen already
    lost->wait();
    first.cpu();
    one.group().all_gather_bytes("a figure");
  });
  EXPECT_NE(found.find("all_reduce #1 on group devices (3 x float32) failed: "), std::string::npos)
      << found;
  if (behind) {
    EXPECT_EQ(error_of([&] { behind->wait(); }), found);
  }
  EXPECT_EQ(error_of([&] { one.group().all_reduce_sum(second); }), found);
  EXPECT_EQ(error_of([&] { one.group().await_device(); }), found);
  // No work remains on the device.
  c10::impl::VirtualGuardImpl(one.device().type()).synchronizeDevice(one.device().index());
}

// Returns the gradients of two ranks' rows under DDP, whose buckets are sent during backward.
std::vector<at::Tensor> reduced_gradients(comm::Group& group, at::Device device) {
  const int rank = group.rank();
  std::vector<at::Tensor> weights;
  std::vector<nn::NamedTensor> trained;
  for (int layer = 0; layer < 6; ++layer) {
    weights.push_back(at::sin(at::arange(64, at::kFloat).mul(layer + rank + 1))
                          .mul(0.3)
                          .reshape({8, 8})
                          .to(device)
                          .requires_grad_(true));
    trained.push_back({fmt::format("layer{}", layer), weights.back()});
  }
  const auto strategy = parallel::make_strategy({}, group);
  // All ranks get the values of rank 0.
  strategy->prepare({{.name = "toy", .frozen = {}, .trained = std::move(trained)}});
  for (int step = 0; step < 3; ++step) {
    strategy->finish_step();
    for (const auto which : {parallel::MicroBatch::More, parallel::MicroBatch::Last}) {
      strategy->begin_micro_batch(which);
      at::Tensor x = at::full({4, 8}, 0.1 * (rank + 1) * (step + 1)).to(device);
      for (const at::Tensor& weight : weights) x = at::tanh(x.mm(weight));
      x.sum().backward();
    }
    strategy->finish_gradients();
  }
  std::vector<at::Tensor> gradients;
  for (const parallel::ParameterShard& shard : strategy->shards())
    gradients.push_back(shard.gradient.cpu());
  return gradients;
}

RANK_BODY(Gradients) {
  OneRank one;
  const std::vector<at::Tensor> found = reduced_gradients(one.group(), one.device());
  const std::vector<at::Tensor> wanted = reduced_gradients(*wire, at::kCPU);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t index = 0; index < found.size(); ++index) {
    EXPECT_TRUE(at::equal(found[index], wanted[index])) << index;
    EXPECT_GT(wanted[index].abs().max().item<float>(), 0) << index;
  }
  EXPECT_TRUE(simulated::take_findings().empty());
}

// Expects that the host waits for no device in this scope. With state on the host, it may wait for
// the stream that copies gradients.
class HostsWaits {
 public:
  explicit HostsWaits(const std::string& offload)
      : allowed_(offload == "none" ? "nothing" : "stream") {
    simulated::reset_host_waits();
  }
  ~HostsWaits() {
    for (const simulated::HostWait& wait : simulated::host_waits())
      EXPECT_EQ(wait.kind, allowed_) << wait.origin;
  }

 private:
  std::string allowed_;
};

// Trains six units, one of them frozen, for three steps under a sharded strategy. Returns their
// values.
std::vector<at::Tensor> sharded_values(comm::Group& group, at::Device device,
                                       const settings::ParallelSettings& settings) {
  std::vector<nn::Unit> units;
  for (int layer = 0; layer < 6; ++layer) {
    const at::Tensor weight =
        at::sin(at::arange(64, at::kFloat).mul(layer + 1)).mul(0.3).reshape({8, 8}).to(device);
    nn::Unit unit{.name = fmt::format("layer{}", layer)};
    if (layer == 2)
      unit.frozen.push_back({unit.name, weight});
    else
      unit.trained.push_back({unit.name, at::Tensor(weight).requires_grad_(true)});
    units.push_back(std::move(unit));
  }
  const auto weight_of = [&](size_t index) {
    const nn::Unit& unit = units[index];
    return (unit.trained.empty() ? unit.frozen : unit.trained).front().value;
  };
  const auto strategy = parallel::make_strategy(settings, group);
  strategy->prepare(units);
  std::vector<optim::OptimizedParameter> optimized;
  for (const parallel::ParameterShard& shard : strategy->shards())
    optimized.push_back({.name = shard.name, .value = shard.value, .gradient = shard.gradient});
  optim::AdamW optimizer({.epsilon = 1e-3}, optimized);
  for (int step = 0; step < 3; ++step) {
    for (const auto which : {parallel::MicroBatch::More, parallel::MicroBatch::Last}) {
      at::Tensor x = at::full({4, 8}, 0.1 * (group.rank() + 1) * (step + 1)).to(device);
      const HostsWaits waits(settings.offload);
      strategy->begin_micro_batch(which);
      for (size_t index = 0; index < units.size(); ++index) {
        const nn::UnitUse use(strategy->residency(), index);
        x = use.leave(at::tanh(use.enter(x).mm(weight_of(index))));
      }
      x.sum().backward();
    }
    const HostsWaits waits(settings.offload);
    strategy->finish_gradients();
    optimizer.step(0.01);
    strategy->finish_step();
  }
  group.await_device();
  std::vector<at::Tensor> values;
  const at::NoGradGuard no_grad;
  for (size_t index = 0; index < units.size(); ++index) {
    const nn::UnitUse use(strategy->residency(), index);
    values.push_back(weight_of(index).detach().cpu().clone());
  }
  return values;
}

RANK_BODY(Sharded) {
  OneRank one;
  for (const char* strategy : {"zero1", "zero2", "zero3"})
    for (const char* offload : {"none", "optimizer", "parameters"}) {
      if (std::string_view(offload) == "parameters" && std::string_view(strategy) != "zero3")
        continue;
      settings::ParallelSettings settings;
      settings.strategy = strategy;
      settings.keep_whole_below = 0;
      const std::vector<at::Tensor> wanted = sharded_values(*wire, at::kCPU, settings);
      settings.offload = offload;
      const std::vector<at::Tensor> found = sharded_values(one.group(), one.device(), settings);
      for (size_t index = 0; index < wanted.size(); ++index)
        EXPECT_TRUE(at::allclose(found[index], wanted[index], 1e-5, 1e-6))
            << strategy << ", offload " << offload << ", unit " << index;
    }
  EXPECT_TRUE(simulated::take_findings().empty());
}

TEST(RanksOnDevices, ShareWhatTheDevicesHoldAndOffloadIt) {
  testing::expect_all_well(testing::start_ranks(2, "Sharded"));
}
TEST(RanksOnDevices, SumAndSendWhatTheDevicesHold) {
  testing::expect_all_well(testing::start_ranks(2, "Collectives"));
}
TEST(RanksOnDevices, HoldUpNoHost) {
  testing::expect_all_well(testing::start_ranks(2, "HostsGoOn"));
}
TEST(RanksOnDevices, AForgottenWaitIsFound) {
  testing::expect_all_well(testing::start_ranks(2, "ForgottenWait"));
}
TEST(RanksOnDevices, AreTracedByTheClockOfTheDevice) {
  testing::expect_all_well(testing::start_ranks(2, "TracedByTheDevice"));
}

TEST(RanksOnDevices, EveryTypeHasGloosValues) {
  testing::expect_all_well(testing::start_ranks(3, "Types"));
}
TEST(RanksOnDevices, SumsOfBf16AreRoundedOnce) {
  testing::expect_all_well(testing::start_ranks(3, "Rounding"));
}
TEST(RanksOnDevices, CollectivesOfAGroupAndItsPartsOverlap) {
  testing::expect_all_well(testing::start_ranks(4, "InFlight"));
}

// Plants a fault at rank 0 of two ranks. Both ranks must end in time, with the right message.
void expect_both_end(const std::string& fault, const std::string& said_by_rank_0,
                     const std::string& said_by_rank_1) {
  SCOPED_TRACE(fault);
  const auto results =
      testing::start_ranks(2, "FourSums", {.environment = {{"FAKE_NCCL_FAULT", fault}}});
  for (const size_t rank : {0, 1}) {
    const std::string& words = rank == 0 ? said_by_rank_0 : said_by_rank_1;
    EXPECT_EQ(results[rank].exit_code, 13) << results[rank].output;
    EXPECT_NE(results[rank].output.find(words), std::string::npos)
        << "wanted: " << words << "\nfound: " << results[rank].output;
  }
}

constexpr const char* kThird = "all_reduce #3 on group devices (3 x float32) failed: ";

TEST(RanksOnDevices, ACollectiveThatHangsIsNamedAfterItsTimeLimit) {
  const std::string words = std::string(kThird) + "timed out after 2000 ms";
  expect_both_end("hang:3", words, words);
}
TEST(RanksOnDevices, ACallThatHangsEndsByTheSameLimit) {
  const std::string words = std::string(kThird) + "timed out after 2000 ms";
  expect_both_end("launch_hang:3", words, words);
}
TEST(RanksOnDevices, ACallThatFailsIsNamed) {
  expect_both_end("call_fail:3",
                  std::string(kThird) +
                      "NCCL: unhandled system error (run with NCCL_DEBUG=INFO "
                      "for details); Last error:; socket 5 is closed",
                  kThird);
}
TEST(RanksOnDevices, ALostPeerIsNamedWithTheCollective) {
  expect_both_end("lost_peer:3",
                  std::string(kThird) +
                      "NCCL: remote process exited or there was a network error; "
                      "Last error:; socket 5 is closed",
                  kThird);
}
TEST(RanksOnDevices, AnAbortThatHangsKeepsNoRank) {
  const std::string words = std::string(kThird) + "timed out after 2000 ms";
  expect_both_end("abort_hang:3", words, words);
}
TEST(RanksOnDevices, JoiningHasALimit) {
  const std::string words = "join #0 on group devices failed: timed out after 2000 ms";
  expect_both_end("join_hang", words, words);
}
TEST(RanksOnDevices, ARankThatCanNotJoinEndsThose) {
  expect_both_end("join_fail", "join #0 on group devices failed: NCCL: unhandled system error",
                  "join #0 on group devices failed: timed out after 2000 ms");
}
TEST(RanksOnDevices, AGroupThatFailedEndsWithoutWaiting) {
  for (const char* const fault : {"hang", "lost_peer"})
    testing::expect_all_well(
        testing::start_ranks(2, "OutlivesItsError", {.environment = {{"FAKE_NCCL_FAULT", fault}}}));
}

// The launcher's report names the waiting rank and the collective.
TEST(RanksOnDevices, TheLauncherNamesTheCollectiveThatHangs) {
  const testing::TemporaryFolder folder;
  launch::LaunchSpec spec;
  spec.program = {"/proc/self/exe", "--gtest_filter=RankBody.DISABLED_FourSumsOfALauncher",
                  "--gtest_also_run_disabled_tests"};
  spec.job.num_local_ranks = spec.job.world_size = 2;
  spec.environment = {{"OMP_NUM_THREADS", "1"}, {"FAKE_NCCL_FAULT", "hang:3"}};
  spec.logs.console = launch::Console::Silent;
  spec.flight_folder = folder.path();
  const launch::LaunchReport report = launch::run_ranks(spec);
  const std::string text = launch::failure_text(report);
  EXPECT_EQ(report.exit_code, 13) << text;
  EXPECT_NE(text.find(std::string(kThird) + "timed out after 2000 ms"), std::string::npos) << text;
}

TEST(RanksOnDevices, HaveTheGradientsOfRanksOnCpus) {
  testing::expect_all_well(testing::start_ranks(2, "Gradients"));
}

}  // namespace
}  // namespace convoy
