// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint that is being written on a thread of its own.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <thread>

namespace convoy::checkpoint {

class PendingSave {
 public:
  // Returns the checkpoint's folder; ends early, by an exception, once `cancelled` is true.
  using Write = std::function<std::filesystem::path(const std::atomic<bool>& cancelled)>;

  explicit PendingSave(Write write);
  // Cancels what waits for other ranks, and waits for the thread.
  ~PendingSave();
  PendingSave(const PendingSave&) = delete;
  PendingSave& operator=(const PendingSave&) = delete;

  bool is_done() const;  // wait() will not block
  // Once. Blocks. Throws what writing threw.
  std::filesystem::path wait() { return folder_.get(); }

 private:
  std::atomic<bool> cancelled_ = false;
  std::future<std::filesystem::path> folder_;
  std::thread thread_;
};

}  // namespace convoy::checkpoint
