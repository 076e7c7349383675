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
  // Writes the checkpoint and returns its folder. Throws, to end early, once `save` is cancelled.
  using Write = std::function<std::filesystem::path(PendingSave& save)>;

  explicit PendingSave(Write write);
  // Cancels the save, so that it waits for no other rank, and waits for the thread.
  ~PendingSave();
  PendingSave(const PendingSave&) = delete;
  PendingSave& operator=(const PendingSave&) = delete;

  bool is_done() const;  // true: wait() will not block
  // Blocks until the saved tensors have been read, or the save has ended without reading them.
  void await_read() const { is_read_.wait(false); }
  // Returns the folder of the checkpoint. Call it once. Blocks. Throws what writing threw.
  std::filesystem::path wait() { return folder_.get(); }

  // For the function `write` alone.
  bool is_cancelled() const { return cancelled_; }
  void tensors_are_read();

 private:
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> is_read_ = false;
  std::future<std::filesystem::path> folder_;
  std::thread thread_;
};

}  // namespace convoy::checkpoint
