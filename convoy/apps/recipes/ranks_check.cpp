// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/ranks_check.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/machine/device/threads.h"
#include "convoy/train/comm/gloo/sockets.h"
#include "convoy/train/comm/group.h"

namespace convoy::recipes {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kShortRounds = 20;  // rounds between two looks at the time
constexpr int kMostShortRounds = 200;
constexpr double kEnoughSeconds = 0.2;
constexpr int kLongRounds = 3;
constexpr int64_t kFirstNumbers = 64 << 10;
constexpr int64_t kMostNumbers = 16 << 20;  // numbers in fp32: 64 MiB
constexpr double kLongEnoughSeconds = 0.1;

// Seconds of one collective, from the call until the host has the value.
double timed_all_reduce(comm::Group& group, at::Tensor& numbers) {
  numbers.fill_(static_cast<float>(group.rank() + 1));
  group.barrier();
  const Clock::time_point begin = Clock::now();
  group.all_reduce_sum(numbers);
  const float last = numbers[-1].item<float>();
  const double seconds = seconds_since(begin);
  const int ranks = group.size();
  const auto wanted = static_cast<float>(ranks * (ranks + 1) / 2);
  const bool wrong = group.any(last != wanted || numbers[0].item<float>() != wanted);
  if (wrong)
    throw CommError(
        fmt::format("an all-reduce of {} numbers over {} ranks gave a wrong sum", numbers.numel(),
                    ranks),
        {.hint = "run it on fewer hosts to find the one whose network or devices compute wrongly"});
  return seconds;
}

double latency_seconds(comm::Group& group, at::Device device) {
  at::Tensor number = at::full({1}, 0.0F, at::TensorOptions().device(device));
  std::vector<double> rounds;
  double passed = 0;
  // All ranks stop after the same round. A slow network does fewer rounds in the time.
  while (rounds.size() < kMostShortRounds && !group.any(passed > kEnoughSeconds))
    for (int round = 0; round < kShortRounds; ++round) {
      rounds.push_back(timed_all_reduce(group, number));
      passed += rounds.back();
    }
  const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  std::nth_element(rounds.begin(), middle, rounds.end());
  return *middle;
}

// Bytes per second that each rank sends in a ring all-reduce.
double bytes_per_second(comm::Group& group, at::Device device) {
  for (int64_t count = kFirstNumbers;; count *= 4) {
    at::Tensor numbers = at::full({count}, 0.0F, at::TensorOptions().device(device));
    double best = timed_all_reduce(group, numbers);
    // All ranks decide the same.
    if (count < kMostNumbers && !group.any(best > kLongEnoughSeconds)) continue;
    for (int round = 1; round < kLongRounds; ++round)
      best = std::min(best, timed_all_reduce(group, numbers));
    const double share = 2.0 * (group.size() - 1) / group.size();
    return share * static_cast<double>(numbers.nbytes()) / best;
  }
}

}  // namespace

void check_ranks(const RanksCheckFlags& flags) {
  const comm::RankEnvironment environment = comm::read_rank_environment();
  telemetry::FlightWriter flight = telemetry::FlightWriter::attach();
  const device::RankDevice rank_device =
      device::take_rank_device(flags.devices, environment.local_rank);
  device::share_cpu_threads(environment.local_world);
  const std::chrono::seconds limit(static_cast<int64_t>(flags.limit));
  const auto store_barrier = std::make_shared<comm::StoreBarrier>(environment, limit, &flight);
  store_barrier->wait_for_all();
  const comm::SocketSet before = comm::connected_sockets();
  const auto group = comm::join_group_at(store_barrier, limit, rank_device.device);
  const std::string address =
      comm::local_address(comm::new_sockets(before, comm::connected_sockets()));
  group->barrier();
  const nlohmann::json own = {{"host", telemetry::host_name()},
                              {"address", address},
                              {"gpus", flags.gpus},
                              {"clock_s", wall_clock_seconds()}};
  nlohmann::json ranks = nlohmann::json::array();
  for (const std::string& one : group->all_gather_bytes(own.dump()))
    ranks.push_back(nlohmann::json::parse(one));
  const double latency = latency_seconds(*group, rank_device.device);
  const double speed = bytes_per_second(*group, rank_device.device);
  const nlohmann::json found = {{"ranks", ranks}, {"latency_s", latency}, {"bytes_per_s", speed}};
  write_file_atomic(
      std::filesystem::path(flags.output_folder) / fmt::format("rank-{}.json", environment.rank),
      found.dump() + "\n");
  group->barrier();
}

}  // namespace convoy::recipes
