// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/batches/mixed_items.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/batches/pack_rows.h"
#include "convoy/data/datasets/seeded_shuffle.h"

namespace convoy::data {
namespace {

constexpr uint64_t kRowStream = 0x6d69782d726f7773ull;
constexpr uint64_t kBlockStream = 0x6d69782d626c6f63ull;
constexpr int64_t kStride = 4096;
constexpr int64_t kBlocksPerWindow = 64;
// Maximum number of rows of an epoch in which a part is read once. A weight of one in a million is
// so reported as a mistake, before a day of work.
constexpr int64_t kMostEpochRows = int64_t{1} << 33;

// Chooses the part of the next row: the part that is furthest behind its share of the rows so far,
// this row included; on ties the first part.
class SharesKept {
 public:
  explicit SharesKept(const MixConfig& config) : counts_(config.parts.size(), 0) {
    double sum = 0;
    for (const MixPart& part : config.parts) sum += part.weight;
    for (const MixPart& part : config.parts) shares_.push_back(part.weight / sum);
  }

  size_t next() {
    ++drawn_;
    size_t best = 0;
    double most = -1e300;
    for (size_t part = 0; part < shares_.size(); ++part) {
      const double behind =
          shares_[part] * static_cast<double>(drawn_) - static_cast<double>(counts_[part]);
      if (behind > most + 1e-9) {
        most = behind;
        best = part;
      }
    }
    ++counts_[best];
    return best;
  }
  const std::vector<int64_t>& counts() const { return counts_; }

 private:
  std::vector<double> shares_;
  std::vector<int64_t> counts_;
  int64_t drawn_ = 0;
};

bool epoch_ends(const MixConfig& config, const std::vector<int64_t>& counts) {
  const auto is_read = [&](size_t part) { return counts[part] >= config.parts[part].num_rows; };
  size_t read = 0;
  for (size_t part = 0; part < counts.size(); ++part) read += is_read(part);
  return config.stop == MixStop::FirstExhausted ? read > 0 : read == counts.size();
}

void check_parts(const MixConfig& config) {
  if (config.parts.empty() || config.parts.size() > 255)
    throw ConfigError(fmt::format("a mix has 1 to 255 data sets, found {}", config.parts.size()),
                      {.hint = "list from 1 to 255 data sets under datasets"});
  double sum = 0;
  for (const MixPart& part : config.parts) {
    if (part.num_rows <= 0)
      throw ConfigError(fmt::format("the data set `{}` has no row to draw", part.name),
                        {.hint = "name a file with rows, or take the data set out of the mix"});
    if (!(part.weight > 0))
      throw ConfigError(fmt::format("the data set `{}` has the weight {}", part.name, part.weight),
                        {.hint = "give a weight above 0, or take the data set out of the mix"});
    sum += part.weight;
  }
  for (const MixPart& part : config.parts)
    if (!(static_cast<double>(part.num_rows) * sum / part.weight <
          static_cast<double>(kMostEpochRows)))
      throw ConfigError(
          fmt::format("reading the data set `{}` once takes more than {} rows of an epoch",
                      part.name, kMostEpochRows),
          {.hint = "raise its weight, or take it out of the mix"});
}

}  // namespace

MixStop mix_stop_named(const std::string& name) {
  if (name == "all_exhausted") return MixStop::AllExhausted;
  if (name == "first_exhausted") return MixStop::FirstExhausted;
  throw ConfigError(
      fmt::format("wanted all_exhausted or first_exhausted as mix.stop, found `{}`", name),
      {.key = "mix.stop",
       .hint = "all_exhausted reads every data set whole, first_exhausted ends with the smallest"});
}

MixSchedule::MixSchedule(const MixConfig& config) {
  check_parts(config);
  SharesKept shares(config);
  while (!epoch_ends(config, shares.counts())) {
    if (epoch_rows() % kStride == 0) seen_.push_back(shares.counts());
    parts_.push_back(static_cast<uint8_t>(shares.next()));
  }
  totals_ = shares.counts();
}

MixSchedule::Draw MixSchedule::at(int64_t draw) const {
  const int64_t epoch = draw / epoch_rows();
  const int64_t row = draw % epoch_rows();
  const size_t part = parts_[static_cast<size_t>(row)];
  const int64_t from = row / kStride * kStride;
  const auto begin = parts_.begin();
  return {part, epoch * totals_[part] + seen_[static_cast<size_t>(row / kStride)][part] +
                    std::count(begin + from, begin + row, static_cast<uint8_t>(part))};
}

struct MixedItems::Window {
  int64_t number = -1;
  int64_t first_item = 0;  // first item in the run
  std::vector<std::vector<int64_t>> blocks;
};

struct MixedItems::Cache {
  std::mutex mutex;
  // The first item of each packed window, and of the window after the last one.
  std::vector<int64_t> first_items;
  Window window;
  // By part and pass: shuffled rows of the pass requested last and of the pass before it.
  std::map<std::pair<size_t, int64_t>, std::vector<int64_t>> orders;
};

MixedItems::MixedItems(TokenDataset dataset, MixConfig mix, const MixedItemsConfig& config)
    : dataset_(std::move(dataset)),
      mix_(std::move(mix)),
      config_(config),
      schedule_(mix_),
      items_per_epoch_(schedule_.epoch_rows()),
      cache_(std::make_unique<Cache>()) {
  if (!config_.packing) return;
  const int64_t mean_tokens =
      std::max<int64_t>(1, dataset_.total_tokens() / std::max<int64_t>(1, dataset_.num_rows()));
  window_rows_ =
      std::min(schedule_.epoch_rows(),
               std::max<int64_t>(1, kBlocksPerWindow * config_.block_tokens / mean_tokens));
  cache_->first_items = {0};
  // A window that is only partly in the first epoch counts in proportion.
  items_per_epoch_ = 0;
  for (int64_t begin = 0; begin < schedule_.epoch_rows(); begin += window_rows_) {
    const int64_t items = std::ssize(pack_next_window().blocks);
    const int64_t rows = std::min(window_rows_, schedule_.epoch_rows() - begin);
    items_per_epoch_ += std::max<int64_t>(1, items * rows / window_rows_);
  }
}

MixedItems::~MixedItems() = default;
MixedItems::MixedItems(MixedItems&&) noexcept = default;

// The caller must hold the lock.
int64_t MixedItems::row_at(int64_t draw) const {
  const auto [part, number] = schedule_.at(draw);
  const MixPart& rows = mix_.parts[part];
  const int64_t pass = number / rows.num_rows;
  const int64_t place = number % rows.num_rows;
  if (!config_.shuffle) return rows.first_row + place;
  auto& order = cache_->orders[{part, pass}];
  if (order.empty()) {
    order = seeded_permutation(rows.num_rows,
                               {kRowStream, config_.seed, part, static_cast<uint64_t>(pass)});
    std::erase_if(cache_->orders, [&](const auto& kept) {
      return kept.first.first == part && kept.first.second != pass && kept.first.second != pass - 1;
    });
  }
  return rows.first_row + cache_->orders.at({part, pass})[static_cast<size_t>(place)];
}

MixedItems::Window MixedItems::packed(int64_t number, int64_t first_item) const {
  std::vector<int64_t> rows;
  std::vector<int64_t> lengths_tokens;
  for (int64_t draw = number * window_rows_; draw < (number + 1) * window_rows_; ++draw) {
    rows.push_back(row_at(draw));
    lengths_tokens.push_back(dataset_.length_tokens(rows.back()));
  }
  std::vector<std::vector<int64_t>> blocks =
      pack_best_fit_decreasing(lengths_tokens, config_.block_tokens);
  const auto order = seeded_permutation(
      std::ssize(blocks), {kBlockStream, config_.seed, static_cast<uint64_t>(number)});
  Window window{.number = number, .first_item = first_item, .blocks = {}};
  for (const int64_t block : order) {
    std::vector<int64_t>& taken = blocks[static_cast<size_t>(block)];
    for (int64_t& row : taken) row = rows[static_cast<size_t>(row)];
    window.blocks.push_back(std::move(taken));
  }
  return window;
}

// The caller must hold the lock. Packs the window after the last packed one.
const MixedItems::Window& MixedItems::pack_next_window() const {
  const auto number = std::ssize(cache_->first_items) - 1;
  cache_->window = packed(number, cache_->first_items.back());
  cache_->first_items.push_back(cache_->first_items.back() + std::ssize(cache_->window.blocks));
  return cache_->window;
}

// The caller must hold the lock.
const MixedItems::Window& MixedItems::window_of(int64_t item) const {
  Cache& cache = *cache_;
  while (cache.first_items.back() <= item) pack_next_window();
  const auto behind = std::upper_bound(cache.first_items.begin(), cache.first_items.end(), item);
  const int64_t number = behind - cache.first_items.begin() - 1;
  if (cache.window.number != number)
    cache.window = packed(number, cache.first_items[static_cast<size_t>(number)]);
  return cache.window;
}

std::vector<int64_t> MixedItems::rows(int64_t item) const {
  const std::lock_guard lock(cache_->mutex);
  if (!config_.packing) return {row_at(item)};
  const Window& window = window_of(item);
  return window.blocks[static_cast<size_t>(item - window.first_item)];
}

}  // namespace convoy::data
