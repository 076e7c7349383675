// SPDX-License-Identifier: Apache-2.0
//
// Replicas as threads, ranks as processes, and a single process train to the same values.
#include "convoy/train/parallel/dp/replica_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/parallel/strategy.h"
#include "ranks/ranks.h"

namespace convoy::parallel {
namespace {

constexpr std::chrono::seconds kReplicaTimeout{300};

struct ReplicaNetwork {
  explicit ReplicaNetwork(int64_t seed) {
    at::manual_seed(0);
    for (const char* name : {"first", "second", "unused"})
      parameters.push_back(
          {name, (at::randn({12, 12}) / 3 + 0.01 * static_cast<double>(seed)).requires_grad_()});
  }
  at::Tensor loss(const at::Tensor& rows) const {
    return at::tanh(at::tanh(rows.mm(parameters[0].value)).mm(parameters[1].value)).square().sum();
  }
  std::vector<nn::NamedTensor> parameters;
};

// The batches are made before the threads, because threads share LibTorch's default generator.
std::vector<at::Tensor> batches() {
  at::manual_seed(5);
  std::vector<at::Tensor> steps;
  for (const int64_t rows : {12, 2, 9, 12}) steps.push_back(at::randn({rows, 12}));
  return steps;
}

std::vector<at::Tensor> train_replicas(comm::Group& group, const std::string& name,
                                       ReplicaNetwork& network,
                                       const std::vector<at::Tensor>& steps) {
  settings::ParallelSettings settings;
  settings.strategy = name;
  const std::unique_ptr<Strategy> strategy = make_strategy(settings, group);
  strategy->prepare({{.name = "network", .trained = network.parameters}});
  std::vector<optim::OptimizedParameter> optimized;
  for (const ParameterShard& shard : strategy->shards())
    optimized.push_back({.name = shard.name, .value = shard.value, .gradient = shard.gradient});
  optim::AdamW optimizer({.epsilon = 1e-2, .weight_decay = 0.1}, optimized);
  for (const at::Tensor& rows : steps) {
    const std::vector<at::Tensor> parts = rows.tensor_split(2 * group.size());
    for (int micro = 0; micro < 2; ++micro) {
      strategy->begin_micro_batch(micro == 1 ? MicroBatch::Last : MicroBatch::More);
      const at::Tensor& part = parts[static_cast<size_t>(micro * group.size() + group.rank())];
      if (part.size(0) > 0) network.loss(part).backward();
    }
    strategy->finish_gradients();
    optimizer.step(0.05);
    strategy->finish_step();
  }
  std::vector<at::Tensor> values;
  for (const nn::NamedTensor& parameter : network.parameters)
    values.push_back(parameter.value.detach().clone());
  return values;
}

std::vector<std::vector<at::Tensor>> train_in_threads(int replicas) {
  const std::vector<at::Tensor> steps = batches();
  std::vector<ReplicaNetwork> networks;
  for (int rank = 0; rank < replicas; ++rank) networks.emplace_back(rank);
  std::vector<std::vector<at::Tensor>> values(networks.size());
  telemetry::FlightWriter flight;
  run_replicas({}, replicas, flight, [&](const std::shared_ptr<comm::StoreBarrier>& store_barrier) {
    const auto rank = static_cast<size_t>(store_barrier->rank());
    const auto group = comm::join_group_at(store_barrier, kReplicaTimeout);
    values[rank] = train_replicas(*group, "dp", networks[rank], steps);
  });
  return values;
}

std::vector<at::Tensor> train_alone() {
  const auto group = comm::join_group({}, kReplicaTimeout);
  ReplicaNetwork network(0);
  return train_replicas(*group, "none", network, batches());
}

TEST(Replicas, TrainWhatOneProcessDoes) {
  const std::vector<at::Tensor> alone = train_alone();
  for (const int replicas : {1, 2, 3, 4}) {
    const auto values = train_in_threads(replicas);
    for (const std::vector<at::Tensor>& of_replica : values)
      for (size_t index = 0; index < alone.size(); ++index) {
        EXPECT_TRUE(of_replica[index].equal(values[0][index])) << "replicas differ";
        EXPECT_TRUE(at::allclose(of_replica[index], alone[index], 1e-4, 1e-5)) << replicas;
      }
  }
}

TEST(Replicas, RepeatBitForBit) {
  const auto first = train_in_threads(3), again = train_in_threads(3);
  for (size_t index = 0; index < first[0].size(); ++index)
    EXPECT_TRUE(first[0][index].equal(again[0][index]));
}

// The sum of two numbers does not depend on their order.
RANK_BODY(TwoProcesses) {
  const auto group = comm::join_group(comm::read_rank_environment(), kReplicaTimeout);
  ReplicaNetwork network(group->rank());
  const std::vector<at::Tensor> steps = batches();
  const std::vector<at::Tensor> processes = train_replicas(*group, "ddp", network, steps);
  const auto threads = train_in_threads(2);
  for (size_t index = 0; index < processes.size(); ++index)
    EXPECT_TRUE(processes[index].equal(threads[0][index])) << index;
}
TEST(Replicas, TwoAreEqualToTwoProcessesBitForBit) {
  testing::expect_all_well(testing::start_ranks(2, "TwoProcesses"));
}

TEST(Replicas, StayTheSameThreadsAndTensorsFromStepToStep) {
  const std::vector<at::Tensor> steps = batches();
  std::vector<ReplicaNetwork> networks = {ReplicaNetwork(0), ReplicaNetwork(1)};
  std::mutex mutex;
  std::set<std::thread::id> threads;
  telemetry::FlightWriter flight;
  run_replicas({}, 2, flight, [&](const std::shared_ptr<comm::StoreBarrier>& store_barrier) {
    ReplicaNetwork& network = networks[static_cast<size_t>(store_barrier->rank())];
    std::vector<const void*> before;
    for (const nn::NamedTensor& parameter : network.parameters) {
      before.push_back(parameter.value.const_data_ptr());
      parameter.value.register_hook([&](const at::Tensor&) {
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      });
    }
    const auto group = comm::join_group_at(store_barrier, kReplicaTimeout);
    train_replicas(*group, "dp", network, steps);
    for (size_t index = 0; index < before.size(); ++index)
      EXPECT_EQ(network.parameters[index].value.const_data_ptr(), before[index]) << "a clone";
  });
  EXPECT_EQ(threads.size(), 2U);
}

TEST(Replicas, TheFirstErrorCountsNotWhatFollowsFromIt) {
  telemetry::FlightWriter flight;
  try {
    run_replicas({}, 3, flight, [](const std::shared_ptr<comm::StoreBarrier>& store_barrier) {
      const auto group = comm::join_group_at(store_barrier, kReplicaTimeout);
      try {
        group->barrier();
        if (store_barrier->rank() == 2) throw NumericError("planted");
        group->barrier();
      } catch (const Error&) {
        group->abort();
        throw;
      }
    });
    FAIL() << "no error";
  } catch (const NumericError& error) {
    EXPECT_STREQ(error.what(), "planted");
  }
}

}  // namespace
}  // namespace convoy::parallel
