// SPDX-License-Identifier: Apache-2.0
//
// The processes of one job, and who this one is among them.
//
//   int main() {
//     return convoy::run_rank([] {
//       auto group = convoy::init();
//       ...
//     });
//   }
//
// Whatever is wrong is thrown as a std::runtime_error whose what() says what was wanted, what was
// found and what to do.
#pragma once

#include <c10/core/Device.h>
#include <torch/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace convoy {

enum class Reduce { Sum, Mean };

// Driven by one thread. Collective functions are called by all ranks in the same order; they block.
// A failed one throws and leaves the group unusable: let the error end the rank. Tensors lie on the
// CPU or on device(); any strides. Of type float, double, half, bfloat16, int or long; what is not
// summed may be of any type.
class ProcessGroup {
 public:
  ~ProcessGroup();  // leaves the group; while an exception unwinds it, as abort()
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const;
  int size() const;
  int local_rank() const;        // among the ranks of this host
  torch::Device device() const;  // the CPU, or this rank's GPU
  bool is_leader() const { return rank() == 0; }

  // Collective. `tensor` of every rank becomes the sum or the mean over ranks. A mean needs a
  // floating type.
  void all_reduce(torch::Tensor tensor, Reduce reduce = Reduce::Sum);
  // Collective. `tensor`, of one shape and type everywhere, becomes that of rank `root`.
  void broadcast(torch::Tensor tensor, int root = 0);
  // Collective. [size(), ...] from `tensor` of one shape and type everywhere.
  torch::Tensor all_gather(const torch::Tensor& tensor);
  // Collective. Each rank's bytes, by rank; lengths may differ.
  std::vector<std::string> all_gather_bytes(std::string_view bytes);
  // Collective. Returns when every rank is here.
  void barrier();
  // This rank gives up: the others fail at once instead of by timeout.
  void abort();

  struct Internal;
  explicit ProcessGroup(std::unique_ptr<Internal> internal);
  Internal& internal() { return *internal_; }

 private:
  std::unique_ptr<Internal> internal_;
};

struct InitOptions {
  // For joining, and for every collective.
  std::chrono::seconds timeout = std::chrono::minutes(30);
  // kCPU: Gloo. kCUDA: GPU number local_rank, NCCL.
  torch::DeviceType device = torch::kCPU;
};

// Collective. Joins the ranks that the environment names: RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as `convoy launch` and torchrun set them. Without
// RANK and WORLD_SIZE this process is the only rank. Several ranks on a host share its CPUs: each
// computes with as many threads as fall to it, or with OMP_NUM_THREADS. Freed memory up to 512 MiB
// stays with the process for the next step, unless MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_ or
// GLIBC_TUNABLES is set. Throws when only one of RANK
// and WORLD_SIZE is set, a value is no number, or not all ranks come in time.
std::shared_ptr<ProcessGroup> init(const InitOptions& options = {});

// Runs `body` and returns the exit code for main(): 0, or after an exception the code that
// docs/reference/exit-codes.md tells (1 for those that are not Convoy's own). The error goes to the
// launcher's error file (TORCHELASTIC_ERROR_FILE), or else to standard error. No other rank waits
// for this one after it.
int run_rank(const std::function<void()>& body);

}  // namespace convoy
