// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/sampler.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <numeric>

#include "convoy/core/base/error.h"

namespace convoy {

DistributedSampler::DistributedSampler(size_t num_rows, const ProcessGroup& group,
                                       DistributedSamplerOptions options)
    : DistributedSampler(num_rows, group.size(), group.rank(), options) {}

DistributedSampler::DistributedSampler(size_t num_rows, int num_ranks, int rank,
                                       DistributedSamplerOptions options)
    : num_rows_(num_rows),
      num_ranks_(static_cast<size_t>(num_ranks)),
      rank_(static_cast<size_t>(rank)),
      options_(options),
      epoch_(std::make_shared<int64_t>(0)) {
  if (num_ranks < 1 || rank < 0 || rank >= num_ranks)
    throw ConfigError(fmt::format("the rank must be from 0 to num_ranks - 1, found rank {} of {}",
                                  rank, num_ranks),
                      {.hint = "pass rank() and size() of the process group"});
  reset();
}

size_t DistributedSampler::rows_of_rank() const {
  return options_.drop_last ? num_rows_ / num_ranks_ : (num_rows_ + num_ranks_ - 1) / num_ranks_;
}

std::vector<size_t> DistributedSampler::indices() const {
  std::vector<size_t> all(num_rows_);
  std::iota(all.begin(), all.end(), 0);
  if (options_.shuffle) {
    auto generator =
        at::make_generator<at::CPUGeneratorImpl>(options_.seed + static_cast<uint64_t>(*epoch_));
    const at::Tensor shuffled = at::randperm(static_cast<int64_t>(num_rows_), generator, at::kLong);
    std::copy_n(shuffled.const_data_ptr<int64_t>(), num_rows_, all.begin());
  }
  std::vector<size_t> own(rows_of_rank());
  for (size_t at = 0; at < own.size(); ++at) own[at] = all[(rank_ + at * num_ranks_) % num_rows_];
  return own;
}

void DistributedSampler::reset(std::optional<size_t> new_size) {
  if (new_size) num_rows_ = *new_size;
  order_ = indices();
  handed_out_ = 0;
}

std::optional<std::vector<size_t>> DistributedSampler::next(size_t batch_size) {
  const size_t end = std::min(order_.size(), handed_out_ + batch_size);
  if (end == handed_out_) return std::nullopt;
  const auto at = [&](size_t place) { return order_.begin() + static_cast<ptrdiff_t>(place); };
  std::vector<size_t> batch(at(handed_out_), at(end));
  handed_out_ = end;
  return batch;
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("epoch", at::tensor(*epoch_, at::kLong), /*is_buffer=*/true);
  archive.write("handed_out", at::tensor(static_cast<int64_t>(handed_out_), at::kLong),
                /*is_buffer=*/true);
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  at::Tensor epoch, handed_out;
  archive.read("epoch", epoch, /*is_buffer=*/true);
  archive.read("handed_out", handed_out, /*is_buffer=*/true);
  set_epoch(epoch.item<int64_t>());
  reset();
  handed_out_ = std::min(order_.size(), static_cast<size_t>(handed_out.item<int64_t>()));
}

}  // namespace convoy
