// SPDX-License-Identifier: Apache-2.0
//
// Work of a device that is recorded once and then started as a whole. Without a graph the host
// requests each launch separately, which takes longer than the GPU needs for a step of a small
// model.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>

namespace convoy::device {

// A CUDA graph. On other devices each start runs the work itself again. One thread.
class DeviceGraph {
 public:
  // The reason why `device` cannot record; empty = it can.
  static std::string problem(at::Device device);

  // The graph keeps the memory of the tensors that `work` makes; they hold the values of the last
  // start. Graphs that share memory run one after another. Memory of a tensor that is still held is
  // never shared.
  explicit DeviceGraph(at::Device device, DeviceGraph* shares_memory_with = nullptr);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  // Call it once. On CUDA it calls `work` with the current stream, which must not be the default
  // stream, and nothing runs on the device until start(). Addresses, shapes and numbers that the
  // host passes to kernels stay as they were in this call. `work` must have run before in the same
  // way (so that kernels are loaded) and must not wait for the device. If it throws, the graph
  // cannot be used.
  void record(std::function<void()> work);
  // Async, on the current stream.
  void start();

  class Recording;

 private:
  std::unique_ptr<Recording> recording_;
};

}  // namespace convoy::device
