// SPDX-License-Identifier: Apache-2.0
//
// Rows of several data sets, drawn by weight into one endless stream: a pure function of (weights,
// rows, seed, position), so that a resumed run reads exactly the rows of the uninterrupted one.
//
// The data set of the next row is not random: it is the data set furthest behind its share. Within
// any stretch of the stream each set has its share to within two rows. Rows within a data set are
// shuffled by the seed, and shuffled again after each pass; no row repeats before all other rows of
// its data set were drawn.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convoy/data/datasets/tokens/token_dataset.h"

namespace convoy::data {

enum class MixStop {
  AllExhausted,    // an epoch ends when every data set was read once; smaller ones are repeated
  FirstExhausted,  // an epoch ends when the first data set was read once
};

MixStop mix_stop_named(const std::string& name);  // Throws ConfigError

// A range of the rows of one TokenDataset.
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

// Says which part each row of an epoch comes from. All epochs of a run use the same schedule.
class MixSchedule {
 public:
  // Throws ConfigError when a part has no rows or no weight.
  explicit MixSchedule(const MixConfig& config);

  int64_t epoch_rows() const { return static_cast<int64_t>(parts_.size()); }
  int64_t epoch_rows_of(size_t part) const { return totals_[part]; }
  // The part of row `draw` of the run, and the number of rows drawn from that part before it.
  struct Draw {
    size_t part = 0;
    int64_t number = 0;
  };
  Draw at(int64_t draw) const;

 private:
  std::vector<uint8_t> parts_;   // part of each row of the epoch
  std::vector<int64_t> totals_;  // number of rows of each part in the epoch
  // Number of rows of each part before every kStride-th row.
  std::vector<std::vector<int64_t>> seen_;
};

struct MixedItemsConfig {
  bool shuffle = true;
  bool packing = false;
  int64_t block_tokens = 0;
  uint64_t seed = 0;
};

// The stream as items that are dealt to ranks: rows, or blocks when packing. Blocks are filled
// best-fit from a window of rows of all parts, enough for some tens of blocks. So each window has
// its rows in the shares of the parts. Thread-safe.
class MixedItems {
 public:
  MixedItems(TokenDataset dataset, MixConfig mix, const MixedItemsConfig& config);
  ~MixedItems();
  MixedItems(MixedItems&&) noexcept;

  // Number of items of the first epoch. Every epoch has the same number, though the blocks of later
  // epochs hold other rows.
  int64_t items_per_epoch() const { return items_per_epoch_; }
  // The rows of an item, in layout order. `item` counts from 0 over the whole stream of the run.
  std::vector<int64_t> rows(int64_t item) const;
  const MixSchedule& schedule() const { return schedule_; }

 private:
  struct Window;
  struct Cache;

  int64_t row_at(int64_t draw) const;
  const Window& window_of(int64_t item) const;
  const Window& pack_next_window() const;
  Window packed(int64_t number, int64_t first_item) const;

  TokenDataset dataset_;
  MixConfig mix_;
  MixedItemsConfig config_;
  MixSchedule schedule_;
  int64_t window_rows_ = 1;
  int64_t items_per_epoch_ = 0;
  std::unique_ptr<Cache> cache_;  // guarded by its mutex
};

}  // namespace convoy::data
