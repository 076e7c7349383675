// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/checkpoint/pending_save.h"

#include <chrono>
#include <memory>
#include <utility>

#include "convoy/core/base/quiet_thread.h"

namespace convoy::checkpoint {

PendingSave::PendingSave(Write write) {
  auto task = std::make_shared<std::packaged_task<std::filesystem::path()>>(
      [this, write = std::move(write)] { return write(*this); });
  folder_ = task->get_future();
  thread_ = quiet_thread([this, task] {
    (*task)();
    tensors_are_read();
  });
}

void PendingSave::tensors_are_read() {
  is_read_ = true;
  is_read_.notify_all();
}

PendingSave::~PendingSave() {
  cancelled_ = true;
  thread_.join();
}

bool PendingSave::is_done() const {
  return !folder_.valid() || folder_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace convoy::checkpoint
