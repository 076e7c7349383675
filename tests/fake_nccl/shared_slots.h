// SPDX-License-Identifier: Apache-2.0
//
// The memory that the ranks of a communicator share: a slot for each rank, and a barrier for all
// ranks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace fake_nccl {

constexpr int kMaxRanks = 8;
constexpr size_t kSlotBytes = 64 << 10;

class SharedSlots {
 public:
  // Creates the shared memory and returns its name.
  static std::string create();

  // Throws std::runtime_error if no memory has this name.
  SharedSlots(const std::string& name, int rank, int size);
  ~SharedSlots();
  SharedSlots(const SharedSlots&) = delete;
  SharedSlots& operator=(const SharedSlots&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  char* slot(int rank) const { return layout_->slots[static_cast<size_t>(rank)].data(); }
  char* own_slot() const { return slot(rank_); }
  // Waits until all ranks have called meet() as often as this rank. Returns false if `is_over`
  // becomes true first.
  bool meet(const std::function<bool()>& is_over) const;
  // Whether every rank has opened the memory. The first rank that leaves removes its name.
  bool is_opened_by_all() const { return layout_->num_opened == size_; }

 private:
  struct Layout {
    std::atomic<int> num_opened;
    std::array<std::atomic<uint64_t>, kMaxRanks> came;  // arrivals of each rank
    std::array<std::array<char, kSlotBytes>, kMaxRanks> slots;
  };
  std::string name_;
  int rank_;
  int size_;
  Layout* layout_;
};

}  // namespace fake_nccl
