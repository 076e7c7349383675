// SPDX-License-Identifier: Apache-2.0
#include "fake_nccl/shared_slots.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace fake_nccl {

std::string SharedSlots::create() {
  static std::atomic<int> made = 0;
  const std::string name = "/fake-nccl-" + std::to_string(getpid()) + "-" + std::to_string(made++);
  const int file = shm_open(name.c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
  if (file < 0 || ftruncate(file, sizeof(Layout)) != 0)
    throw std::runtime_error("no shared memory: " + name);
  close(file);
  return name;
}

SharedSlots::SharedSlots(const std::string& name, int rank, int size)
    : name_(name), rank_(rank), size_(size) {
  const int file = shm_open(name.c_str(), O_RDWR, 0600);
  void* const memory =
      file < 0 ? MAP_FAILED
               : mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) throw std::runtime_error("no shared memory: " + name);
  layout_ = static_cast<Layout*>(memory);  // new shared memory is all zeros
  ++layout_->num_opened;
}

SharedSlots::~SharedSlots() {
  munmap(layout_, sizeof(Layout));
  shm_unlink(name_.c_str());  // the first rank to leave; the others keep their mappings
}

bool SharedSlots::meet(const std::function<bool()>& is_over) const {
  const uint64_t times = ++layout_->came[static_cast<size_t>(rank_)];
  for (int other = 0; other < size_; ++other)
    while (layout_->came[static_cast<size_t>(other)] < times) {
      if (is_over()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  return true;
}

}  // namespace fake_nccl
