// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cuda/launch.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <mutex>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/cuda/block_shape.h"

namespace convoy::kernels {
namespace {

// The kernels of one GPU. Thread-safe.
class Gpu {
 public:
  Gpu(std::shared_ptr<const nvidia::Driver> driver, int number)
      : context_(std::move(driver), number),
        kernels_(context_, kernel_texts(), gpu::kBlockThreads) {}

  void launch(std::string_view kernel, uint64_t blocks, void* stream, const void* parameters) {
    const std::lock_guard lock(mutex_);
    context_.make_current();
    kernels_.launch(kernels_.find(kernel), blocks, stream, parameters);
  }

 private:
  nvidia::Context context_;
  nvidia::Kernels kernels_;
  std::mutex mutex_;
};

// For as long as the process: at its end the driver may be gone before us.
class Gpus {
 public:
  // The driver is the one that LibTorch has open.
  explicit Gpus(const std::filesystem::path& driver_library = "libcuda.so.1")
      : driver_(std::make_shared<const nvidia::Driver>(driver_library)) {}

  void launch(int number, std::string_view kernel, uint64_t blocks, void* stream,
              const void* parameters) {
    try {
      of(number).launch(kernel, blocks, stream, parameters);
    } catch (const ConfigError& error) {
      throw DeviceError(
          fmt::format("kernel {} on GPU {} (driver of {}): {}", kernel, number, driver_->version(),
                      error.what()),
          {.hint = "CONVOY_CUDA_KERNELS=aten uses LibTorch's kernels instead of Convoy's"});
    }
  }

 private:
  Gpu& of(int number) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Gpu>& gpu = gpus_[number];
    if (!gpu) gpu = std::make_unique<Gpu>(driver_, number);
    return *gpu;
  }

  std::shared_ptr<const nvidia::Driver> driver_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Gpu>> gpus_;
};

std::unique_ptr<Gpus> host_gpus;

void launch_on_gpu(const at::Tensor& on, std::string_view kernel, uint64_t blocks,
                   const void* parameters) {
  static Gpus& gpus = *new Gpus;
  // A thread's context is its current device to LibTorch too.
  const c10::DeviceGuard guard(on.device());
  const c10::Stream stream = c10::impl::VirtualGuardImpl(on.device().type()).getStream(on.device());
  gpus.launch(on.device().index(), kernel, blocks, stream.native_handle(), parameters);
}

bool begins_with_vector(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kVectorBytes == 0;
}

}  // namespace

std::string kernel_name(std::string_view name, at::ScalarType type) {
  CONVOY_INVARIANT(type == at::kFloat || type == at::kBFloat16, "{} needs fp32 or bf16, found {}",
                   name, c10::toString(type));
  return std::string(name) + (type == at::kFloat ? "_fp32" : "_bf16");
}

bool fits_vectors(std::initializer_list<at::Tensor> tensors, int64_t width) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
    return begins_with_vector(tensor) && width % elements_per_vector(tensor) == 0;
  });
}

int64_t elements_per_vector(const at::Tensor& tensor) {
  return kVectorBytes / static_cast<int64_t>(tensor.element_size());
}

uint64_t vectors_of(std::initializer_list<at::Tensor> tensors) {
  if (!std::all_of(tensors.begin(), tensors.end(), begins_with_vector)) return 0;
  const at::Tensor& any = *tensors.begin();
  return static_cast<uint64_t>(any.numel() / elements_per_vector(any));
}

uint64_t blocks_for_elements(int64_t count, int64_t together) {
  const int64_t per_block = together * gpu::kBlockThreads;
  return static_cast<uint64_t>((count + per_block - 1) / per_block);
}

void launch_bytes(const at::Tensor& on, std::string_view kernel, uint64_t blocks,
                  const void* parameters) {
  if (!on.is_cpu()) return launch_on_gpu(on, kernel, blocks, parameters);
  CONVOY_INVARIANT(host_gpus != nullptr, "kernel {} can not run on a CPU", kernel);
  host_gpus->launch(0, kernel, blocks, nullptr, parameters);
}

HostKernels::HostKernels(const std::filesystem::path& driver_library) {
  host_gpus = std::make_unique<Gpus>(driver_library);
}
HostKernels::~HostKernels() { host_gpus.reset(); }

}  // namespace convoy::kernels
