// SPDX-License-Identifier: Apache-2.0
//
// Deals the rows of a data set to the ranks, with the same indices as
// torch.utils.data.DistributedSampler of PyTorch 2.11 for the same size, seed and epoch. Use it
// with torch::data::make_data_loader, which takes a copy of it: all copies share their epoch.
//
//   convoy::DistributedSampler sampler(size, *group);
//   auto loader = torch::data::make_data_loader(dataset, sampler, batch_size);
//   for (int epoch = 0; epoch < epochs; ++epoch) {
//     sampler.set_epoch(epoch);
//     for (auto& batch : *loader) ...
//   }
#pragma once

#include <torch/data/samplers/base.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "convoy/library/process_group.h"

namespace convoy {

struct DistributedSamplerOptions {
  bool shuffle = true;
  uint64_t seed = 0;
  // Used when the row count is not a multiple of the world size: false repeats the first rows, true
  // leaves the last rows out.
  bool drop_last = false;
};

// Not collective: each rank computes its rows without the others.
class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  DistributedSampler(size_t num_rows, const ProcessGroup& group,
                     DistributedSamplerOptions options = {});
  // The share of rank `rank` of `num_ranks`. Throws ConfigError unless 0 <= `rank` < `num_ranks`.
  DistributedSampler(size_t num_rows, int num_ranks, int rank,
                     DistributedSamplerOptions options = {});

  // Sets the epoch of this sampler and all its copies, which determines the order from the next
  // pass over the rows on. Must be the same on every rank.
  void set_epoch(int64_t epoch) { *epoch_ = epoch; }
  int64_t epoch() const { return *epoch_; }
  size_t rows_of_rank() const;          // equal on every rank; rounded down with drop_last, else up
  std::vector<size_t> indices() const;  // rows of this rank, in the order of the epoch

  // Called by a data loader. reset() begins a pass over the rows, with `new_size` rows if it is
  // given.
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  // Save and load the epoch and the position in this pass.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  size_t num_rows_;
  size_t num_ranks_;
  size_t rank_;
  DistributedSamplerOptions options_;
  std::shared_ptr<int64_t> epoch_;
  std::vector<size_t> order_;  // order of the rows in this pass
  size_t handed_out_ = 0;
};

}  // namespace convoy
