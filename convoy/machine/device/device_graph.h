// SPDX-License-Identifier: Apache-2.0
//
// Work of a device that is recorded once and then started as a whole. The host asks a GPU for each
// launch by itself, which takes it longer than a small model's step takes the GPU.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>

namespace convoy::device {

// A CUDA graph. Elsewhere the work itself runs again at each start. One thread.
class DeviceGraph {
 public:
  // Empty: `device` can record. Else the reason why not.
  static std::string problem(at::Device device);

  // Memory of tensors that the work makes stays with the graph: their values come from the last
  // start. Graphs that share memory run one after another. Memory of a tensor that is still held is
  // never shared.
  explicit DeviceGraph(at::Device device, DeviceGraph* shares_memory_with = nullptr);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  // Once. On CUDA it calls `work` with the current stream, which must not be the default one, but
  // nothing runs on the device until start(). Addresses, shapes and numbers that the host passes to
  // kernels stay as they were in this call. `work` has run in this way before (so that kernels are
  // loaded) and waits for nothing; where it throws, the graph cannot be used.
  void record(std::function<void()> work);
  // Async, on the current stream.
  void start();

  class Recording;

 private:
  std::unique_ptr<Recording> recording_;
};

}  // namespace convoy::device
