// SPDX-License-Identifier: Apache-2.0
//
// Rows of several data sets, drawn by weight into one endless stream: a pure function of (weights,
// rows, seed, position), so that a resumed run reads exactly what the unbroken one would.
//
// Which data set the next row comes from is no chance: it is the one that is furthest behind its
// share, so that within any stretch of the stream each has its share to within two rows. Within a
// data set rows come in a seeded shuffle, and in another one once all were read; no row comes again
// before the others of its data set have.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convoy/data/datasets/token_dataset.h"

namespace convoy::data {

enum class MixStop {
  AllExhausted,    // an epoch ends when each data set was read once; smaller ones come again
  FirstExhausted,  // with the first that was read once
};

MixStop mix_stop_named(const std::string& name);  // Throws ConfigError

// A stretch of the rows of one TokenDataset.
struct MixPart {
  std::string name;
  int64_t first_row = 0;
  int64_t num_rows = 0;
  double weight = 1;
};

struct MixConfig {
  std::vector<MixPart> parts = {};  // empty: no mix
  MixStop stop = MixStop::AllExhausted;
};

// From which part each row of an epoch comes. The epochs of a run are alike.
class MixSchedule {
 public:
  // Throws ConfigError when a part has no rows or no weight.
  explicit MixSchedule(const MixConfig& config);

  int64_t epoch_rows() const { return static_cast<int64_t>(parts_.size()); }
  int64_t epoch_rows_of(size_t part) const { return totals_[part]; }
  // The part of row `draw` of the run, and how many rows were drawn from that part before it.
  struct Draw {
    size_t part = 0;
    int64_t number = 0;
  };
  Draw at(int64_t draw) const;

 private:
  std::vector<uint8_t> parts_;              // of each row of the epoch
  std::vector<int64_t> totals_;             // rows of each part in it
  std::vector<std::vector<int64_t>> seen_;  // rows of each part before every kStride-th
};

struct MixedUnitsConfig {
  bool shuffle = true;
  bool packing = false;
  int64_t block_tokens = 0;
  uint64_t seed = 0;
};

// The stream as units that are dealt to ranks: rows, or blocks when packing. Blocks are filled
// best-fit from a window of some tens of blocks' rows, whatever part they come from, so that each
// window has the shares of its rows. Thread-safe.
class MixedUnits {
 public:
  MixedUnits(TokenDataset dataset, MixConfig mix, const MixedUnitsConfig& config);
  ~MixedUnits();
  MixedUnits(MixedUnits&&) noexcept;

  // Of the first epoch: blocks of later ones differ in what they hold, and an epoch is as many of
  // them.
  int64_t units_per_epoch() const { return units_per_epoch_; }
  // Of the run's stream, from 0 on. Rows in the order in which they are laid out.
  std::vector<int64_t> rows(int64_t unit) const;
  const MixSchedule& schedule() const { return schedule_; }

 private:
  struct Window;
  struct Cache;

  int64_t row_at(int64_t draw) const;
  const Window& window_of(int64_t unit) const;
  const Window& pack_next_window() const;
  Window packed(int64_t number, int64_t first_unit) const;

  TokenDataset dataset_;
  MixConfig mix_;
  MixedUnitsConfig config_;
  MixSchedule schedule_;
  int64_t window_rows_ = 1;
  int64_t units_per_epoch_ = 0;
  std::unique_ptr<Cache> cache_;  // behind a lock
};

}  // namespace convoy::data
