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

// How the numbers of the ranks are combined. The backend decides whether Max and Min keep a NaN.
enum class Reduce { Sum, Mean, Max, Min };

// Use it on one thread. All ranks must call its collective functions, in the same order, with
// tensors of one shape and type. Tensors are on the CPU or on device(), with any strides. Functions
// that reduce accept float, double, half, bfloat16, int and long; sums and means also accept
// complex numbers. All other functions accept any type.
//
// First the ranks compare their calls: if functions, types, shapes, roots or reductions differ, all
// ranks throw CommError. So a call waits until every rank has made it. A collective of CPU tensors
// then blocks until it is done. A collective of GPU tensors returns while the GPU works, and the
// current stream waits for it; its error is thrown by a later call. After an error the group is
// unusable: let the error end the rank.
class ProcessGroup {
 public:
  ~ProcessGroup();  // leaves the group; while an exception unwinds, calls abort()
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Collective; blocks. A group over the ranks of a c10d group that the program has made, for
  // tensors on the CPU. The program may go on using its group, on every rank in the same order.
  // split() throws ConfigError. abort() is limited to what the backend can do: with Gloo the other
  // ranks fail only when this process ends. Unlike init(), it does not divide the CPU threads of
  // the host. Throws ConfigError for null, and for a group without a backend for CPU tensors.
  static std::shared_ptr<ProcessGroup> over(c10::intrusive_ptr<c10d::ProcessGroup> group);
  // The same ranks as a c10d::ProcessGroup, for tensors on the CPU: the group that over() was
  // given, or a group with Gloo. Calls of it are neither compared nor recorded. Every rank must
  // make these calls and the calls of this group in the same order. It is unusable after abort().
  c10::intrusive_ptr<c10d::ProcessGroup> c10d_group();

  int rank() const;
  int size() const;
  int local_rank() const;        // rank among the job's ranks on this host, also in a part
  int local_size() const;        // number of the job's ranks on this host
  torch::Device device() const;  // the CPU, or this rank's GPU
  bool is_leader() const { return rank() == 0; }

  // Collective. Replaces `tensor` on every rank by the reduction over all ranks. Throws ConfigError
  // for a type that cannot be reduced, for a mean of int or long, and for Max or Min of complex
  // numbers.
  void all_reduce(torch::Tensor tensor, Reduce reduce = Reduce::Sum);
  // Collective. Replaces `tensor` by the tensor of rank `root`. Throws ConfigError when `root` is
  // not a rank.
  void broadcast(torch::Tensor tensor, int root = 0);
  // Collective. Returns [size(), ...]: the tensors of all ranks, in the order of the ranks.
  torch::Tensor all_gather(const torch::Tensor& tensor);
  // Collective. `tensor` is [size(), ...], one row for each rank. Returns this rank's row, reduced
  // over all ranks: [...]. Throws as all_reduce() does, and ConfigError for any other number of
  // rows.
  torch::Tensor reduce_scatter(const torch::Tensor& tensor, Reduce reduce = Reduce::Sum);
  // Collective. Start the functions above and return at once; see Work.
  [[nodiscard]] Work start_all_reduce(torch::Tensor tensor, Reduce reduce = Reduce::Sum);
  [[nodiscard]] Work start_all_gather(const torch::Tensor& tensor);
  [[nodiscard]] Work start_reduce_scatter(const torch::Tensor& tensor, Reduce reduce = Reduce::Sum);
  // Collective. Returns the bytes of each rank, in the order of the ranks; lengths may differ.
  std::vector<std::string> all_gather_bytes(std::string_view bytes);
  // Collective. Returns when every rank has called it.
  void barrier();
  // Collective over this group. Ranks with the same `color`, any number, become a group of their
  // own, which exists as long as somebody holds it. Its rank() counts from 0 in the order of this
  // group's ranks. Errors name it by its split and color: "group part 1.7" is the part of color 7
  // from the first split of a group, "part 1.7/2.0" a part of that part. It has the time limit of
  // this group. Throws CommError.
  std::shared_ptr<ProcessGroup> split(int color);
  // This rank gives up, in this group and in all parts of it. The other ranks then fail at once,
  // not after the time limit.
  void abort();

 private:
  friend struct detail::GroupAccess;
  struct Internal;
  explicit ProcessGroup(std::shared_ptr<Internal> internal);

  std::shared_ptr<Internal> internal_;  // also held by the parts of this group
};

struct InitOptions {
  // Time limit for joining, and for every collective.
  std::chrono::seconds timeout = std::chrono::minutes(30);
  // kCPU: Gloo. kCUDA: NCCL, on the GPU with the number local_rank.
  torch::DeviceType device = torch::kCPU;
};

// Collective. Joins the ranks that the environment describes; each call makes another group. It
// reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which `convoy
// launch` and torchrun set. Without RANK and WORLD_SIZE this process is the only rank. If several
// ranks are on a host, each computes with an equal share of its CPU threads, or with
// OMP_NUM_THREADS. Freed memory up to 512 MiB stays with the process for the next step, unless
// MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_ or GLIBC_TUNABLES is set. Throws ConfigError when
// only one of RANK and WORLD_SIZE is set or a value is no number, DeviceError without the GPU, and
// CommError when some rank does not join in time.
std::shared_ptr<ProcessGroup> init(const InitOptions& options = {});

// Runs `body` and returns the exit code for main(): 0, Error::code() of a convoy::Error, or 1 after
// any other exception. The error is written to the launcher's error file (TORCHELASTIC_ERROR_FILE),
// or else to standard error. After an error no other rank waits for this one. While `body` runs,
// the process ends with CommError's code when gloo's own thread finds that the ranks called
// different collectives.
int run_rank(const std::function<void()>& body);

}  // namespace convoy
