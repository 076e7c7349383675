// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/memory_block_pool.h"

#include <gtest/gtest.h>

#include <new>
#include <random>
#include <thread>
#include <vector>

#include "convoy/machine/device/tensor_memory.h"

namespace convoy::device {
namespace {

// The source of the pool's blocks. It counts the bytes that they have in memory, of which there are
// at most `limit_bytes`. A test says with use() how far it writes a block that it took again.
std::unordered_map<void*, size_t> alive;
size_t alive_bytes = 0;
size_t most_bytes = 0;
size_t limit_bytes = SIZE_MAX;

void set_bytes(void* block, size_t bytes) {
  alive_bytes += bytes - alive[block];
  alive[block] = bytes;
  most_bytes = std::max(most_bytes, alive_bytes);
}
void* use(void* block, size_t bytes) {
  set_bytes(block, std::max(alive.at(block), bytes));
  return block;
}

void* counted_allocate(size_t bytes, size_t room) {
  if (alive_bytes + bytes > limit_bytes) throw std::bad_alloc();
  void* block = ::operator new(room);
  set_bytes(block, bytes);
  return block;
}
void counted_release(void* block, size_t room) {
  EXPECT_GE(room, alive.at(block));
  alive_bytes -= alive.at(block);
  alive.erase(block);
  ::operator delete(block);
}
void counted_shrink(void* block, size_t bytes, size_t old_bytes) {
  EXPECT_EQ(alive.at(block), old_bytes);
  set_bytes(block, bytes);
}

class BlockPoolTest : public ::testing::Test {
 protected:
  BlockPoolTest() {
    most_bytes = alive_bytes;
    limit_bytes = SIZE_MAX;
  }
  MemoryBlockPool pool_{{&counted_allocate, &counted_release, &counted_shrink}};
};

TEST_F(BlockPoolTest, TheSameStepAgainTakesTheSameBlocks) {
  for (int step = 0; step < 3; ++step) {
    std::vector<void*> blocks;
    for (const size_t bytes : {1000, 4000, 1000, 70000}) blocks.push_back(pool_.take(bytes));
    for (void* block : blocks) EXPECT_TRUE(pool_.give_back(block));
  }
  EXPECT_EQ(pool_.figures().reused_blocks, 8);
  EXPECT_EQ(alive_bytes, 76000u);
  pool_.release_kept();
  EXPECT_EQ(alive_bytes, 0u);
}

TEST_F(BlockPoolTest, ABlockIsAtMostAnEighthTooLarge) {
  void* block = pool_.take(9000);
  pool_.give_back(block);
  EXPECT_EQ(pool_.take(8200), block);
  EXPECT_EQ(pool_.figures().in_use_bytes, 9000u);
  pool_.give_back(block);
  void* smaller = pool_.take(7000);  // its room would be smaller
  EXPECT_EQ(pool_.figures().in_use_bytes, 7000u);
  EXPECT_EQ(alive.at(smaller), 7000u);
  pool_.give_back(smaller);
  EXPECT_EQ(pool_.take(5000), smaller);
  EXPECT_EQ(pool_.figures().in_use_bytes, 5000u);
  EXPECT_EQ(alive.at(smaller), 5000u);
  pool_.give_back(smaller);
}

// Steps whose batches differ in size take each other's memory.
TEST_F(BlockPoolTest, TheNearestBlockGrows) {
  void* small = pool_.take(70'000);
  void* large = pool_.take(100'000);
  pool_.give_back(small);
  pool_.give_back(large);
  EXPECT_EQ(use(pool_.take(80'000), 80'000), small);
  EXPECT_EQ(pool_.figures().in_use_bytes, 80'000u);
  EXPECT_EQ(pool_.figures().added_bytes, 180'000u);
  pool_.give_back(small);
  EXPECT_LE(alive_bytes, pool_.figures().most_in_use_bytes);
}

TEST_F(BlockPoolTest, KeepingCostsNoPeakWhateverTheSizes) {
  std::mt19937_64 random(1);
  std::vector<void*> blocks;
  for (int round = 0; round < 5000; ++round) {
    if (blocks.size() < 2 || (random() % 2 == 0 && blocks.size() < 20)) {
      const size_t bytes = 1 + random() % 100000;
      blocks.push_back(use(pool_.take(bytes), bytes));
    } else {
      const size_t at = random() % blocks.size();
      pool_.give_back(blocks[at]);
      blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(at));
    }
    const MemoryBlockPool::Figures figures = pool_.figures();
    ASSERT_EQ(figures.in_use_bytes + figures.kept_bytes, alive_bytes);
    ASSERT_LE(alive_bytes, figures.most_in_use_bytes);
  }
  EXPECT_GT(pool_.figures().reused_blocks, 0);
  EXPECT_EQ(most_bytes, pool_.figures().most_in_use_bytes);
  for (void* block : blocks) pool_.give_back(block);
}

TEST_F(BlockPoolTest, WhatIsKeptIsNotMissedWhenMemoryEnds) {
  pool_.give_back(pool_.take(90000));  // raises the peak, so later blocks are kept
  void* used = pool_.take(30000);
  pool_.give_back(pool_.take(20000));
  limit_bytes = 70000;
  void* large = pool_.take(35000);  // fits only after the kept block is freed
  EXPECT_EQ(alive_bytes, 65000u);
  EXPECT_THROW(pool_.take(80000), std::bad_alloc);
  EXPECT_EQ(pool_.figures().in_use_bytes, 65000u);
  pool_.give_back(used);
  pool_.give_back(large);
}

TEST_F(BlockPoolTest, RefusesBlocksOfOthers) {
  int other = 0;
  EXPECT_FALSE(pool_.give_back(&other));
}

TEST(TensorMemory, LargeTensorsTakeTheirMemoryAgain) {
  keep_tensor_memory();
  keep_tensor_memory();
  const int64_t before = tensor_memory().reused_blocks;
  for (int step = 0; step < 4; ++step) {
    const at::Tensor large = at::full({1 << 20}, step);
    const at::Tensor small = at::full({10}, step);
    EXPECT_EQ(large.sum().item<double>(), step * (1 << 20));
    EXPECT_EQ(small.sum().item<double>(), step * 10);
  }
  EXPECT_GE(tensor_memory().reused_blocks, before + 3);
}

TEST(TensorMemory, ThreadsShareIt) {
  keep_tensor_memory();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      for (int64_t step = 1; step < 200; ++step) {
        const at::Tensor x = at::full({20000 + 1000 * (step % 7)}, thread);
        EXPECT_EQ(x[step].item<int>(), thread);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace convoy::device
