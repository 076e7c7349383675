// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cuda/launch.h"

#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <atomic>
#include <functional>
#include <mutex>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/cuda/block_shape.h"

namespace convoy::kernels {
namespace {

// Kernels by name. No kernel is ever taken out, so finding one takes no lock.
class KnownKernels {
 public:
  KnownKernels() = default;
  KnownKernels(const KnownKernels&) = delete;
  KnownKernels& operator=(const KnownKernels&) = delete;
  ~KnownKernels() {
    for (std::atomic<const Entry*>& place : places_) delete place.load();
  }

  // Null: the kernel was not added.
  const nvidia::Kernel* find(std::string_view name) const {
    for (size_t place = first_place(name);; place = (place + 1) % kPlaces) {
      const Entry* const entry = places_[place].load(std::memory_order_acquire);
      if (entry == nullptr) return nullptr;
      if (entry->name == name) return &entry->kernel;
    }
  }

  // Called by one thread at a time, with a name that was not added before.
  const nvidia::Kernel& add(std::string_view name, const nvidia::Kernel& kernel) {
    CONVOY_INVARIANT(++count_ < kPlaces, "more than {} kernels", kPlaces - 1);
    size_t place = first_place(name);
    while (places_[place].load(std::memory_order_relaxed) != nullptr) place = (place + 1) % kPlaces;
    const auto* const entry = new Entry{std::string(name), kernel};
    places_[place].store(entry, std::memory_order_release);
    return entry->kernel;
  }

 private:
  static constexpr size_t kPlaces = 1024;  // many more than there are kernels
  struct Entry {
    std::string name;
    nvidia::Kernel kernel;
  };
  static size_t first_place(std::string_view name) {
    return std::hash<std::string_view>{}(name) % kPlaces;
  }

  std::array<std::atomic<const Entry*>, kPlaces> places_ = {};
  size_t count_ = 0;
};

// The kernels of one GPU. Thread-safe.
class Gpu {
 public:
  Gpu(std::shared_ptr<const nvidia::Driver> driver, int number)
      : context_(std::move(driver), number),
        kernels_(context_, kernel_texts(), gpu::kBlockThreads) {}

  void launch(std::string_view kernel, uint64_t blocks, void* stream, const void* parameters) {
    context_.make_current();
    kernels_.launch(find(kernel), blocks, stream, parameters);
  }

  uint64_t blocks_at_once(std::string_view kernel) {
    context_.make_current();
    return find(kernel).resident_blocks;
  }

 private:
  const nvidia::Kernel& find(std::string_view name) {
    const nvidia::Kernel* const known = known_.find(name);
    return known == nullptr ? compiled(name) : *known;
  }

  const nvidia::Kernel& compiled(std::string_view name) {
    const std::lock_guard lock(compiling_);
    if (const nvidia::Kernel* known = known_.find(name)) return *known;  // loaded by another thread
    return known_.add(name, kernels_.find(name));
  }

  nvidia::Context context_;
  nvidia::Kernels kernels_;
  KnownKernels known_;
  std::mutex compiling_;
};

// The GPUs of one driver. Thread-safe.
class Gpus {
 public:
  // The driver is the one that LibTorch has open.
  explicit Gpus(const std::filesystem::path& driver_library = "libcuda.so.1")
      : driver_(std::make_shared<const nvidia::Driver>(driver_library)) {}
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;
  ~Gpus() {
    for (std::atomic<Gpu*>& gpu : gpus_) delete gpu.load();
  }

  // Returns use(gpu) for GPU `number`.
  template <class Use>
  auto with(int number, std::string_view kernel, const Use& use) {
    try {
      return use(of(number));
    } catch (const ConfigError& error) {
      throw DeviceError(
          fmt::format("kernel {} on GPU {} (driver of {}): {}", kernel, number, driver_->version(),
                      error.what()),
          {.hint = "CONVOY_CUDA_KERNELS=aten uses LibTorch's kernels instead of Convoy's"});
    }
  }

 private:
  static constexpr size_t kMostGpus = 128;  // LibTorch's device index is a signed byte

  Gpu& of(int number) {
    std::atomic<Gpu*>& gpu = gpus_.at(static_cast<size_t>(number));
    if (Gpu* made = gpu.load(std::memory_order_acquire)) return *made;
    const std::lock_guard lock(making_);
    if (gpu.load(std::memory_order_relaxed) == nullptr)
      gpu.store(new Gpu(driver_, number), std::memory_order_release);
    return *gpu.load(std::memory_order_relaxed);
  }

  std::shared_ptr<const nvidia::Driver> driver_;
  std::mutex making_;
  std::array<std::atomic<Gpu*>, kMostGpus> gpus_ = {};
};

std::unique_ptr<Gpus> host_gpus;
std::atomic<LaunchTaker> launch_taker{nullptr};

Gpus& gpus_of_libtorch() {
  // Never destroyed: when the process ends, the driver may be gone first.
  static Gpus& gpus = *new Gpus;
  return gpus;
}

void launch_on_gpu(const at::Tensor& on, std::string_view kernel, uint64_t blocks,
                   const void* parameters) {
  // The current context of a thread is also its current device in LibTorch.
  const c10::DeviceGuard guard(on.device());
  const c10::Stream stream = c10::impl::VirtualGuardImpl(on.device().type()).getStream(on.device());
  gpus_of_libtorch().with(on.device().index(), kernel, [&](Gpu& gpu) {
    gpu.launch(kernel, blocks, stream.native_handle(), parameters);
  });
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

void add_moved_once(std::initializer_list<at::Tensor> tensors, PartlyMoved& moved) {
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined())
      moved.emplace_back(tensor.const_data_ptr(), static_cast<int64_t>(tensor.nbytes()));
}

void add_moved_twice(std::initializer_list<at::Tensor> tensors, PartlyMoved& moved) {
  add_moved_once(tensors, moved);
  add_moved_once(tensors, moved);
}

void take_launches(LaunchTaker taker) { launch_taker = taker; }

void launch_bytes(const at::Tensor& on, std::string_view kernel, uint64_t blocks,
                  std::span<const std::byte> bytes, const PartlyMoved& partly_moved) {
  const void* const parameters = bytes.data();
  at::RecordFunction recorded(at::RecordScope::FUNCTION);  // LibTorch's profilers see it as an op
  if (recorded.isActive()) recorded.before(kernel);
  if (on.is_privateuseone()) {
    const LaunchTaker taker = launch_taker.load(std::memory_order_relaxed);
    CONVOY_INVARIANT(taker != nullptr, "kernel {} cannot run on {}", kernel, on.device().str());
    return taker(kernel, bytes, partly_moved);
  }
  if (!on.is_cpu()) return launch_on_gpu(on, kernel, blocks, parameters);
  CONVOY_INVARIANT(host_gpus != nullptr, "kernel {} cannot run on a CPU", kernel);
  host_gpus->with(0, kernel, [&](Gpu& gpu) { gpu.launch(kernel, blocks, nullptr, parameters); });
}

int64_t blocks_at_once(const at::Tensor& on, std::string_view kernel) {
  constexpr int64_t kOfH200 = 264;  // two on each of 132 multiprocessors, as for most kernels
  if (on.is_privateuseone()) return kOfH200;
  const auto ask = [&](Gpu& gpu) { return static_cast<int64_t>(gpu.blocks_at_once(kernel)); };
  if (on.is_cpu()) return host_gpus->with(0, kernel, ask);
  const c10::DeviceGuard guard(on.device());
  return gpus_of_libtorch().with(on.device().index(), kernel, ask);
}

HostKernels::HostKernels(const std::filesystem::path& driver_library) {
  host_gpus = std::make_unique<Gpus>(driver_library);
}
HostKernels::~HostKernels() { host_gpus.reset(); }

}  // namespace convoy::kernels
