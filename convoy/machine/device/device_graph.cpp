// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/device_graph.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::device {
namespace {

// c10::MempoolId_t of LibTorch 2.11.
using MemoryPool = std::pair<unsigned long long, unsigned long long>;

// at::cuda::CUDAGraph of LibTorch 2.11 (ATen/cuda/CUDAGraph.h). Its header needs CUDA's headers, so
// its functions are looked up by their mangled names.
struct GraphFunctions {
  void (*construct)(void* graph, bool keeps_graph) = nullptr;
  void (*destroy)(void* graph) = nullptr;
  void (*begin)(void* graph, MemoryPool pool, int mode) = nullptr;
  void (*end)(void* graph) = nullptr;
  void (*replay)(void* graph) = nullptr;
  MemoryPool (*pool)(void* graph) = nullptr;

  bool are_there() const { return construct && destroy && begin && end && replay && pool; }
};

const GraphFunctions& graph_functions() {
  static const GraphFunctions found = [] {
    GraphFunctions functions;
    const auto find = [](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(RTLD_DEFAULT, name));
    };
    find(functions.construct, "_ZN2at4cuda9CUDAGraphC1Eb");
    find(functions.destroy, "_ZN2at4cuda9CUDAGraphD1Ev");
    find(functions.begin,
         "_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode");
    find(functions.end, "_ZN2at4cuda9CUDAGraph11capture_endEv");
    find(functions.replay, "_ZN2at4cuda9CUDAGraph6replayEv");
    find(functions.pool, "_ZN2at4cuda9CUDAGraph4poolEv");
    return functions;
  }();
  return found;
}

}  // namespace

class DeviceGraph::Recording {
 public:
  virtual ~Recording() = default;
  virtual void record(std::function<void()> work) = 0;
  virtual void start() = 0;
  virtual MemoryPool pool() const { return {0, 0}; }
};

namespace {

class RepeatedCall : public DeviceGraph::Recording {
 public:
  void record(std::function<void()> work) override { work_ = std::move(work); }
  void start() override { work_(); }

 private:
  std::function<void()> work_;
};

class CudaGraph : public DeviceGraph::Recording {
 public:
  explicit CudaGraph(MemoryPool pool) : shared_(pool) { call_.construct(graph_.data(), false); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() override { call_.destroy(graph_.data()); }

  void record(std::function<void()> work) override {
    constexpr int kThreadLocal = 1;  // cudaStreamCaptureModeThreadLocal: other threads may allocate
    call_.begin(graph_.data(), shared_, kThreadLocal);
    try {
      work();
    } catch (...) {
      try {
        call_.end(graph_.data());
      } catch (const std::exception&) {  // the first error is the cause
      }
      throw;
    }
    call_.end(graph_.data());
  }
  void start() override { call_.replay(graph_.data()); }
  MemoryPool pool() const override { return call_.pool(graph_.data()); }

 private:
  const GraphFunctions& call_ = graph_functions();
  MemoryPool shared_;
  // The object takes about 200 bytes.
  alignas(std::max_align_t) mutable std::array<std::byte, 1024> graph_{};
};

}  // namespace

std::string DeviceGraph::problem(at::Device device) {
  if (!device.is_cuda() || graph_functions().are_there()) return {};
  return "this LibTorch's CUDA graphs are not those of 2.11";
}

DeviceGraph::DeviceGraph(at::Device device, DeviceGraph* shares_memory_with) {
  if (!device.is_cuda()) {
    recording_ = std::make_unique<RepeatedCall>();
    return;
  }
  const std::string reason = problem(device);
  if (!reason.empty())
    throw DeviceError(fmt::format("{}", reason), {.hint = "use --cuda-graphs off"});
  recording_ = std::make_unique<CudaGraph>(
      shares_memory_with == nullptr ? MemoryPool{0, 0} : shares_memory_with->recording_->pool());
}

DeviceGraph::~DeviceGraph() = default;

void DeviceGraph::record(std::function<void()> work) { recording_->record(std::move(work)); }
void DeviceGraph::start() { recording_->start(); }

}  // namespace convoy::device
