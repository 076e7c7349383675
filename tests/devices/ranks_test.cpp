// SPDX-License-Identifier: Apache-2.0
//
// Two ranks, each on a simulated device of its own: gradients meet through NcclGroup, behind a
// library that sums as NCCL would, on the stream that it is given.
#include "ranks/ranks.h"

#include <gtest/gtest.h>

#include <thread>

#include "convoy/comm/group.h"
#include "convoy/comm/nccl/nccl_group.h"
#include "convoy/device/device_clock.h"
#include "convoy/optim/adamw.h"
#include "convoy/parallel/strategy.h"
#include "convoy/profile/rank_trace.h"
#include "convoy/telemetry/step_trace.h"
#include "simulated_device/machine.h"
#include "simulated_device/simulated_device.h"

namespace convoy {
namespace {

using namespace std::chrono_literals;

// Carries what the devices hold from rank to rank.
comm::Group* wire = nullptr;
int next_result = 0;  // of the collectives; a peer that is lost ends in 6, ncclRemoteError

const char* text_of(int result) { return result == 6 ? "remote process exited" : "unknown"; }

struct Floats {
  const void* begin;
  size_t count;
  bool writes;
};

template <class Call>
int on_stream(std::vector<Floats> ranges, int dtype, void* stream, Call call) {
  if (next_result != 0) return next_result;
  constexpr int kFloat32 = 7;
  EXPECT_EQ(dtype, kFloat32);
  std::vector<simulated::Use> accesses;
  std::vector<at::Tensor> views;
  for (const Floats& range : ranges) {
    auto* const begin = const_cast<char*>(static_cast<const char*>(range.begin));
    accesses.push_back(
        {.begin = begin, .end = begin + range.count * sizeof(float), .writes = range.writes});
  }
  simulated::machine().submit(simulated::machine().stream_of(stream), accesses);
  for (const Floats& range : ranges)
    views.push_back(at::from_blob(simulated::machine().device_view(const_cast<void*>(range.begin)),
                                  {static_cast<int64_t>(range.count)}));
  call(views);
  return 0;
}

size_t num_ranks() { return static_cast<size_t>(wire->size()); }

comm::NcclLibrary library() {
  return {.get_unique_id =
              [](comm::NcclId* id) {
                id->bytes[0] = 'x';
                return 0;
              },
          .init_rank =
              [](comm::NcclCommunicator* made, int, comm::NcclId id, int) {
                EXPECT_EQ(id.bytes[0], 'x');
                *made = reinterpret_cast<comm::NcclCommunicator>(&next_result);
                return 0;
              },
          .all_reduce =
              [](const void* from, void* to, size_t count, int dtype, int operation,
                 comm::NcclCommunicator, void* stream) {
                EXPECT_EQ(from, to);
                EXPECT_EQ(operation, 0);
                return on_stream({{to, count, true}}, dtype, stream,
                                 [](const auto& values) { wire->all_reduce_sum(values[0]); });
              },
          .reduce_scatter =
              [](const void* whole, void* own, size_t count, int dtype, int operation,
                 comm::NcclCommunicator, void* stream) {
                EXPECT_EQ(operation, 0);
                return on_stream(
                    {{whole, num_ranks() * count, false}, {own, count, true}}, dtype, stream,
                    [](const auto& values) { wire->reduce_scatter_sum(values[0], values[1]); });
              },
          .all_gather =
              [](const void* own, void* whole, size_t count, int dtype, comm::NcclCommunicator,
                 void* stream) {
                return on_stream(
                    {{own, count, false}, {whole, num_ranks() * count, true}}, dtype, stream,
                    [](const auto& values) { wire->all_gather(values[0], values[1]); });
              },
          .broadcast =
              [](const void*, void* to, size_t count, int dtype, int root, comm::NcclCommunicator,
                 void* stream) {
                return on_stream({{to, count, true}}, dtype, stream,
                                 [root](const auto& values) { wire->broadcast(values[0], root); });
              },
          .async_error =
              [](comm::NcclCommunicator, int* result) {
                *result = 0;
                return 0;
              },
          .abort = [](comm::NcclCommunicator) { return 0; },
          .destroy = [](comm::NcclCommunicator) { return 0; },
          .error_text = text_of,
          .last_error = [](comm::NcclCommunicator) { return "Last error:\nsocket 5 is closed\n"; }};
}

class OneRank {
 public:
  OneRank() {
    simulated::install(2);
    auto host = comm::join_group(environment_, 60s, &flight_);
    wire = host.get();
    group_ = std::make_unique<comm::NcclGroup>(std::move(host), flight_, library(), device(), 5s);
  }

  at::Device device() const { return simulated::device(environment_.rank); }
  comm::Group& group() { return *group_; }
  telemetry::FlightWriter& flight() { return flight_; }
  int rank() const { return environment_.rank; }

 private:
  comm::RankEnvironment environment_ = comm::read_rank_environment();
  telemetry::FlightWriter flight_;
  std::unique_ptr<comm::Group> group_;
};

RANK_BODY(Collectives) {
  OneRank one;
  const at::Tensor sum = at::full({3}, 1.0 + one.rank(), one.device());
  one.group().all_reduce_sum(sum);
  EXPECT_TRUE(at::equal(sum.cpu(), at::full({3}, 3.0)));
  const at::Tensor sent = at::full({2}, 7.0 + one.rank(), one.device());
  one.group().broadcast(sent, 1);
  EXPECT_TRUE(at::equal(sent.cpu(), at::full({2}, 8.0)));
  const at::Tensor whole = at::arange(6, at::kFloat).mul_(1 + one.rank()).to(one.device());
  at::Tensor own = at::empty({3}, whole.options());
  one.group().reduce_scatter_sum(whole, own);
  EXPECT_TRUE(at::equal(own.cpu(), at::arange(6, at::kFloat).mul_(3).narrow(0, 3 * one.rank(), 3)));
  at::Tensor gathered = at::empty({6}, whole.options());
  one.group().all_gather(own, gathered);
  EXPECT_TRUE(at::equal(gathered.cpu(), at::arange(6, at::kFloat).mul_(3)));
  at::Tensor on_host = at::full({1}, one.rank(), at::kLong);
  one.group().all_reduce_sum(on_host);
  EXPECT_EQ(on_host.item<int64_t>(), 1);
  EXPECT_EQ(one.group().all_gather_bytes(one.rank() == 0 ? "a" : "bcd")[1], "bcd");
}

// Moments of a trace are those of the device: a collective is done when its stream has got there, before its rank waits for it.
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
  ASSERT_EQ(found.collectives.size(), 2U);  // the stand-in for NCCL sends by a group of the host
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

// A collective that is not waited for has no order against what uses its tensor next.
RANK_BODY(ForgottenWait) {
  OneRank one;
  const at::Tensor sum = at::full({3}, 1.0, one.device());
  const auto work = one.group().start_all_reduce_sum(sum);
  EXPECT_THROW(sum.mul_(2.0), c10::Error);
  work->wait();
  EXPECT_NO_THROW(sum.mul_(2.0));
}

RANK_BODY(LostPeer) {
  OneRank one;
  next_result = 6;
  try {
    one.group().all_reduce_sum(at::ones({3}, one.device()));
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_NE(error.sentence().find("all_reduce #1 on group devices (3 x float32) failed: NCCL: "
                                    "remote process exited; Last error:; socket 5 is closed"),
              std::string::npos)
        << error.sentence();
  }
}

// Gradients of two ranks' rows under DDP, in buckets that leave while backward goes on.
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
  strategy->prepare(
      {{.name = "toy", .frozen = {}, .trained = std::move(trained)}});  // rank 0's values
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

// Six units, one of them frozen, trained for three steps under a sharded strategy.
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
      strategy->begin_micro_batch(which);
      at::Tensor x = at::full({4, 8}, 0.1 * (group.rank() + 1) * (step + 1)).to(device);
      for (size_t index = 0; index < units.size(); ++index) {
        const nn::UnitUse use(strategy->residency(), index);
        x = use.leave(at::tanh(use.enter(x).mm(weight_of(index))));
      }
      x.sum().backward();
    }
    strategy->finish_gradients();
    optimizer.step(0.01);
    strategy->finish_step();
  }
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
TEST(RanksOnDevices, AForgottenWaitIsFound) {
  testing::expect_all_well(testing::start_ranks(2, "ForgottenWait"));
}
TEST(RanksOnDevices, AreTracedByTheClockOfTheDevice) {
  testing::expect_all_well(testing::start_ranks(2, "TracedByTheDevice"));
}

TEST(RanksOnDevices, ALostPeerIsNamedWithTheCollective) {
  testing::expect_all_well(testing::start_ranks(2, "LostPeer"));
}
TEST(RanksOnDevices, HaveTheGradientsOfRanksOnCpus) {
  testing::expect_all_well(testing::start_ranks(2, "Gradients"));
}

}  // namespace
}  // namespace convoy
