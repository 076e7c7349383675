// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/simd/panel_memory.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels {
namespace {

TEST(PanelMemory, SmallTensorsShareABlockAndKeepApart) {
  std::vector<at::Tensor> taken;
  for (const auto dtype : {at::kInt, at::kBFloat16, at::kFloat}) {
    for (const int64_t count : {5, 1000, 33}) taken.push_back(empty_panels({3, count}, dtype));
  }
  for (size_t at = 0; at < taken.size(); ++at) taken[at].fill_(static_cast<double>(at));
  for (size_t at = 0; at < taken.size(); ++at) {
    EXPECT_TRUE(taken[at].eq(static_cast<double>(at)).all().item<bool>()) << at;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(taken[at].data_ptr()) % 64, 0) << at;
  }
  EXPECT_TRUE(taken[7].is_alias_of(taken[8]));
}

TEST(PanelMemory, OutlivesTheBlockThatTookIt) {
  const at::Tensor first = empty_panels({1 << 20}, at::kByte).fill_(3);
  for (int i = 0; i < 40; ++i) empty_panels({1 << 20}, at::kByte).fill_(4);
  EXPECT_TRUE(first.eq(3).all().item<bool>());
}

TEST(PanelMemory, LargeTensorsHaveTheirOwn) {
  EXPECT_EQ(empty_panels({(8 << 20) + 1}, at::kByte).storage().nbytes(), (8u << 20) + 1);
}

TEST(NeighbouringTasks, EachRunsOnce) {
  for (const int64_t tasks : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> runs(tasks);
    for_neighbouring_tasks(tasks, 2 * kSerialWork,
                           [&]() -> TaskBody { return [&](int64_t task) { ++runs[task]; }; });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
}

// The first task blocks one thread, so the other thread takes the remaining tasks of both shares.
TEST(NeighbouringTasks, AFreeThreadHelpsTheOthers) {
  if (at::get_num_threads() < 2) GTEST_SKIP() << "one thread has nobody to help";
  constexpr int64_t kTasks = 64;
  std::atomic<int64_t> done{0};
  for_neighbouring_tasks(kTasks, 2 * kSerialWork, [&]() -> TaskBody {
    return [&](int64_t task) {
      while (task == 0 && done < kTasks - 1) std::this_thread::yield();
      ++done;
    };
  });
  EXPECT_EQ(done, kTasks);
}

TEST(Tasks, WorkTooSmallToBeSplitStaysOnItsThread) {
  const auto threads_of = [](int64_t work) {
    std::mutex lock;
    std::set<std::thread::id> threads;
    const auto body = [&]() -> TaskBody {
      return [&](int64_t) {
        const std::lock_guard<std::mutex> held(lock);
        threads.insert(std::this_thread::get_id());
      };
    };
    for_tasks(64, work, body);
    for_neighbouring_tasks(64, work, body);
    return threads;
  };
  EXPECT_EQ(threads_of(kSerialWork), std::set<std::thread::id>{std::this_thread::get_id()});
  for (const int64_t work : {int64_t{0}, kSerialWork}) {
    std::vector<int> runs(7);
    for_tasks(7, work, [&]() -> TaskBody { return [&](int64_t task) { ++runs[task]; }; });
    EXPECT_EQ(runs, std::vector<int>(7, 1)) << "all tasks run";
  }
}

}  // namespace
}  // namespace convoy::kernels
