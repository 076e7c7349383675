// SPDX-License-Identifier: Apache-2.0
//
// The processes of one job, and the place of this one among them.
//
//   int main() {
//     return convoy::run_rank([] {
//       auto group = convoy::init();
//       ...
//     });
//   }
#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/library/work.h"

namespace c10d {
class ProcessGroup;
}

namespace convoy {
namespace detail {
struct GroupAccess;
}

// How the numbers of the ranks become one. Max and Min keep or lose a NaN, as the backend does.
enum class Reduce { Sum, Mean, Max, Min };

// Drive it by one thread. All ranks call its collective functions, in the same order, with tensors
// of one shape and type. Tensors lie on the CPU or on device(), with any strides. Functions that
// reduce take float, double, half, bfloat16, int and long, and sums and means also complex numbers;
// all other functions take any type.
//
// First the ranks compare what they call: if functions, types, shapes, roots or reductions differ,
// all ranks throw CommError. So a call waits until every rank has made it. A collective of CPU
// tensors then blocks until it is done. A collective of GPU tensors returns while the GPU works,
// and the current stream waits for it; its error is thrown by a later call. After an error the
// group is unusable: let the error end the rank.
class ProcessGroup {
 public:
  ~ProcessGroup();  // leaves the group; while an exception unwinds it, as abort()
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Collective; blocks. The ranks of a group that the program has made by c10d, for tensors on the
  // CPU; it may go on using that group, on every rank in the same order. split() throws
  // ConfigError. abort() can no more than the backend: with Gloo the others fail when this process
  // ends. CPU threads are not shared out as init() does. Throws ConfigError for null and without a
  // backend for CPU tensors.
  static std::shared_ptr<ProcessGroup> over(c10::intrusive_ptr<c10d::ProcessGroup> group);
  // These ranks for code that takes a c10d::ProcessGroup, for tensors on the CPU: what over() was
  // given, or Gloo. Its calls are neither compared nor recorded. Mix them with calls of this group
  // in the same order on every rank. After abort() it is unusable.
  c10::intrusive_ptr<c10d::ProcessGroup> c10d_group();

  int rank() const;
  int size() const;
  int local_rank() const;        // among the job's ranks on this host, also in a part
  int local_size() const;        // the number of these
  torch::Device device() const;  // the CPU, or this rank's GPU
  bool is_leader() const { return rank() == 0; }

  // Collective. `tensor` of every rank becomes the reduction over ranks. Throws ConfigError for a
  // type that cannot be reduced, a mean of int and long, and a largest complex number.
  void all_reduce(torch::Tensor tensor, Reduce reduce = Reduce::Sum);
  // Collective. `tensor` gets the values of rank `root`. Throws ConfigError for a root that is no
  // rank.
  void broadcast(torch::Tensor tensor, int root = 0);
  // Collective. Returns [size(), ...], the `tensor` of every rank by rank.
  torch::Tensor all_gather(const torch::Tensor& tensor);
  // Collective. `tensor` is [size(), ...], one row for each rank. Returns the reduction over ranks
  // of the row for this rank: [...]. Throws as all_reduce(), and ConfigError for another number of
  // rows.
  torch::Tensor reduce_scatter(const torch::Tensor& tensor, Reduce reduce = Reduce::Sum);
  // Collective. The same, under way while this rank goes on: see Work. They return at once.
  [[nodiscard]] Work start_all_reduce(torch::Tensor tensor, Reduce reduce = Reduce::Sum);
  [[nodiscard]] Work start_all_gather(const torch::Tensor& tensor);
  [[nodiscard]] Work start_reduce_scatter(const torch::Tensor& tensor, Reduce reduce = Reduce::Sum);
  // Collective. Each rank's bytes, by rank; lengths may differ.
  std::vector<std::string> all_gather_bytes(std::string_view bytes);
  // Collective. Returns when every rank is here.
  void barrier();
  // Collective over this group. Ranks that give one `color`, any number, become a group of their
  // own, which lives as long as somebody holds it. rank() counts its ranks from 0 in the order of
  // this group's. Errors name it by its split and color: "group part 1.7" is what the first split
  // of a group made of the ranks of color 7, "part 1.7/2.0" a part of that. It has the time limit
  // of this group. Throws CommError.
  std::shared_ptr<ProcessGroup> split(int color);
  // This rank gives up, with all parts of this group: the others fail at once instead of by
  // timeout.
  void abort();

 private:
  friend struct detail::GroupAccess;
  struct Internal;
  explicit ProcessGroup(std::shared_ptr<Internal> internal);

  std::shared_ptr<Internal> internal_;  // parts of this group keep it
};

struct InitOptions {
  // For joining, and for every collective.
  std::chrono::seconds timeout = std::chrono::minutes(30);
  // kCPU: Gloo. kCUDA: GPU number local_rank, NCCL.
  torch::DeviceType device = torch::kCPU;
};

// Collective. Joins the ranks that the environment names, each call as another group: RANK,
// WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as `convoy launch` and
// torchrun set them. Without RANK and WORLD_SIZE this process is the only rank. Several ranks on a
// host share its CPUs: each computes with an equal share of threads, or with OMP_NUM_THREADS. Freed
// memory up to 512 MiB stays with the process for the next step, unless MALLOC_TRIM_THRESHOLD_,
// MALLOC_MMAP_THRESHOLD_ or GLIBC_TUNABLES is set. Throws ConfigError when only one of RANK and
// WORLD_SIZE is set or a value is no number, DeviceError without the GPU, and CommError when not
// all ranks come in time.
std::shared_ptr<ProcessGroup> init(const InitOptions& options = {});

// Runs `body` and returns the exit code for main(): 0, Error::code() of a convoy::Error, or 1 after
// another exception. The error goes to the launcher's error file (TORCHELASTIC_ERROR_FILE), or else
// to standard error. No other rank waits for this one after it.
int run_rank(const std::function<void()>& body);

}  // namespace convoy
