// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/sum_of_squares/sum_of_squares_launch.h"
#include "convoy/model/kernels/sum_of_squares/sum_of_squares_ops.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kChunk = gpu::kSquaresChunk;

int64_t chunks_of(const at::Tensor& tensor) { return (tensor.numel() + kChunk - 1) / kChunk; }

// Writes the sums of tensors' chunks into sums_C, one tensor after another; one launch takes
// tensors of one type.
class ChunkSums {
 public:
  explicit ChunkSums(const at::Tensor& sums_C) : sums_C_(sums_C) {}

  void add(const at::Tensor& tensor) {
    if (tensor.numel() == 0) return;
    if (launched_.num_tensors == gpu::kSquaresTensors || type_ != tensor.scalar_type()) start();
    type_ = tensor.scalar_type();
    const uint64_t number = launched_.num_tensors++;
    launched_.values[number] = tensor.const_data_ptr();
    launched_.counts[number] = static_cast<uint64_t>(tensor.numel());
    launched_.first_chunk[number + 1] =
        launched_.first_chunk[number] + static_cast<uint64_t>(chunks_of(tensor));
    add_moved_once({tensor}, moved_);
  }
  void start() {
    const uint64_t chunks = launched_.first_chunk[launched_.num_tensors];
    if (chunks == 0) return;
    const at::Tensor own_C = sums_C_.narrow(0, first_, static_cast<int64_t>(chunks));
    launched_.sums = own_C.mutable_data_ptr<double>();
    add_moved_once({own_C}, moved_);
    launch(sums_C_, kernel_name("sum_of_squares", type_), chunks, launched_, moved_);
    first_ += static_cast<int64_t>(chunks);
    launched_ = {};
    moved_.clear();
  }

 private:
  at::Tensor sums_C_;
  at::ScalarType type_ = at::kFloat;
  int64_t first_ = 0;
  gpu::SquaresLaunch launched_;
  PartlyMoved moved_;
};

at::Tensor sum(const std::vector<at::Tensor>& tensors) {
  int64_t chunks = 0;
  for (const at::Tensor& tensor : tensors) chunks += chunks_of(tensor);
  const at::Tensor sums_C = at::empty({chunks}, tensors[0].options().dtype(at::kDouble));
  ChunkSums sums(sums_C);
  for (const at::Tensor& tensor : tensors) sums.add(tensor);
  sums.start();
  return sums_C.sum();
}

}  // namespace

const SumOfSquaresOps kSumOfSquaresCuda = {sum};

}  // namespace convoy::kernels
