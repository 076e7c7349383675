// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/row_split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <numeric>

#include "convoy/core/base/hash.h"
#include "convoy/data/datasets/chain/row_content.h"
#include "convoy/data/datasets/chain/sorted_runs.h"
#include "convoy/data/datasets/encoding/row_parts.h"

namespace convoy::data {
namespace {

constexpr uint64_t kOrderStream = 0x73706c69742d6f72ull;

struct KeyedRow {
  uint64_t first = 0;   // Strata: hash of the value. Groups: place of the group in the seeded order
  uint64_t second = 0;  // Strata: place of the row in the seeded order. Groups: hash of the value
  int64_t row = 0;
  auto operator<=>(const KeyedRow&) const = default;
};

uint64_t seeded(uint64_t seed, uint64_t word) {
  const std::array<uint64_t, 3> words = {kOrderStream, seed, word};
  return mix_seed(words);
}

uint64_t column_hash(const Row& row, const std::string& column) {
  ContentConfig content;
  content.column = column;
  content.normalise = false;
  return hash_of(row_content(row, content));
}

// Wanted number of rows of each part; it may have a fraction.
std::vector<double> targets_of(const std::vector<PartSize>& parts, int64_t num_rows) {
  const std::vector<int64_t> sizes = part_sizes(parts, num_rows);
  return {sizes.begin(), sizes.end()};
}

// The part that lacks the most rows.
size_t neediest(const std::vector<double>& targets, const std::vector<int64_t>& have) {
  size_t best = 0;
  double most = -INFINITY;
  for (size_t part = 0; part < targets.size(); ++part) {
    const double lacks = targets[part] - static_cast<double>(have[part]);
    if (lacks > most) {
      most = lacks;
      best = part;
    }
  }
  return best;
}

class Splitter {
 public:
  Splitter(const RowPass& pass, const SplitPlan& plan, const std::filesystem::path& scratch)
      : pass_(pass), plan_(plan), keyed_(scratch) {}

  RowParts run() {
    if (plan_.parts.empty() || plan_.parts.size() > 255)
      throw ConfigError(
          fmt::format("a data set is split into 1 to 255 parts, found {}", plan_.parts.size()),
          {.hint = "split into fewer parts"});
    if (plan_.by == SplitBy::Rows)
      by_rows();
    else
      by_column();
    return std::move(parts_);
  }

 private:
  void by_rows() {
    const int64_t num_rows = open_dataset(pass_.dataset)->skip(INT64_MAX);
    const std::vector<int64_t> sizes = part_sizes(plan_.parts, num_rows);
    parts_.part_of_row = parts_of_rows(sizes, plan_.seed);
    parts_.rows_of_part = sizes;
    parts_.pass.rows_read = num_rows;
  }

  void by_column() {
    parts_.pass = for_each_row<KeyedRow>(
        pass_,
        [this](const Row& row) {
          const uint64_t value = column_hash(row, plan_.column);
          if (plan_.by == SplitBy::Strata)
            return KeyedRow{value, seeded(plan_.seed, static_cast<uint64_t>(row.index)), row.index};
          return KeyedRow{seeded(plan_.seed, value), value, row.index};
        },
        [this](const KeyedRow& row) { keyed_.add(row), ++good_rows_; });
    parts_.part_of_row.assign(static_cast<size_t>(parts_.pass.rows_read), 0);
    parts_.rows_of_part.assign(plan_.parts.size(), 0);
    targets_ = targets_of(plan_.parts, good_rows_);
    std::vector<int64_t> same;  // rows with the same value
    KeyedRow last;
    keyed_.for_each([&](const KeyedRow& next) {
      const bool is_new = plan_.by == SplitBy::Strata
                              ? next.first != last.first
                              : next.first != last.first || next.second != last.second;
      if (is_new && !same.empty()) deal(same);
      if (is_new) same.clear();
      same.push_back(next.row);
      last = next;
    });
    if (!same.empty()) deal(same);
  }

  void deal(const std::vector<int64_t>& rows) {
    ++parts_.num_values;
    plan_.by == SplitBy::Groups ? deal_group(rows) : deal_stratum(rows);
  }

  void put(int64_t row, size_t part) {
    parts_.part_of_row[static_cast<size_t>(row)] = static_cast<uint8_t>(part);
    ++parts_.rows_of_part[part];
  }

  void deal_group(const std::vector<int64_t>& rows) {
    const size_t part = neediest(targets_, parts_.rows_of_part);
    for (const int64_t row : rows) put(row, part);
  }

  // Gives each part the whole rows of its share; each remaining row goes to the part that lacks the
  // most rows over all strata so far.
  void deal_stratum(const std::vector<int64_t>& rows) {
    std::vector<double> wanted;
    std::vector<int64_t> counts;
    for (const double target : targets_) {
      const double exact = target * static_cast<double>(rows.size()) /
                           static_cast<double>(std::max<int64_t>(1, good_rows_));
      owed_.resize(targets_.size());
      wanted.push_back(exact);
      counts.push_back(static_cast<int64_t>(std::floor(exact + 1e-9)));
    }
    for (size_t part = 0; part < wanted.size(); ++part)
      owed_[part] += wanted[part] - static_cast<double>(counts[part]);
    for (auto left = std::ssize(rows) - std::accumulate(counts.begin(), counts.end(), int64_t{0});
         left > 0; --left) {
      const auto most = std::max_element(owed_.begin(), owed_.end());
      *most -= 1;
      ++counts[static_cast<size_t>(most - owed_.begin())];
    }
    size_t at = 0;
    for (size_t part = 0; part < counts.size(); ++part)
      for (int64_t count = 0; count < counts[part]; ++count) put(rows[at++], part);
  }

  const RowPass& pass_;
  const SplitPlan& plan_;
  SortedRuns<KeyedRow> keyed_;
  int64_t good_rows_ = 0;
  std::vector<double> targets_;
  std::vector<double> owed_;  // by part: rows that it lacks so far, because of rounding
  RowParts parts_;
};

}  // namespace

std::vector<int64_t> part_sizes(const std::vector<PartSize>& parts, int64_t num_rows) {
  double shares = 0;
  int64_t counted = 0;
  for (const PartSize& part : parts) {
    shares += part.rows < 0 ? part.share : 0;
    counted += std::max<int64_t>(0, part.rows);
  }
  const bool has_shares =
      std::any_of(parts.begin(), parts.end(), [](const PartSize& part) { return part.rows < 0; });
  if (has_shares && !(std::abs(shares - 1.0) <= 1e-6))
    throw ConfigError(fmt::format("the shares of the parts sum to {:.6g}, wanted 1", shares),
                      {.key = "--ratios", .hint = "such as --ratios 0.8 0.1 0.1"});
  if (counted > num_rows || (!has_shares && counted < num_rows))
    throw ConfigError(fmt::format("the parts have {} rows, the data set {}", counted, num_rows),
                      {.key = "--counts", .hint = "-1 for one of them: all that is left"});
  const auto left = static_cast<double>(num_rows - counted);
  std::vector<int64_t> sizes;
  double share = 0;
  int64_t dealt = 0;
  for (const PartSize& part : parts) {
    if (part.rows >= 0) {
      sizes.push_back(part.rows);
      continue;
    }
    share += part.share;
    const int64_t bound = std::min<int64_t>(num_rows - counted, std::llround(left * share));
    sizes.push_back(bound - dealt);
    dealt = bound;
  }
  for (size_t at = 0; at < parts.size(); ++at) {
    if (parts[at].most_rows < 0 || sizes[at] <= parts[at].most_rows) continue;
    sizes.front() += sizes[at] - parts[at].most_rows;
    sizes[at] = parts[at].most_rows;
  }
  return sizes;
}

std::vector<PartSize> parts_of_split(const settings::SplitSettings& split) {
  // The loss over kMostValRows rows is precise enough to compare checkpoints.
  constexpr double kValShare = 0.1;
  constexpr int64_t kMostValRows = 500;
  const double free = 1 - split.test_ratio;
  PartSize val{.name = "val"};
  if (!split.val_ratio.is_auto()) {
    val.share = *split.val_ratio.value;
  } else if (!split.train_ratio.is_auto()) {
    val.share = free - *split.train_ratio.value;
  } else {
    val.share = std::min(kValShare, free);
    val.most_rows = kMostValRows;
  }
  const double train = split.train_ratio.value.value_or(free - val.share);
  const double sum = train + val.share + split.test_ratio;
  constexpr double kRounding = 1e-6;
  if (!(std::abs(sum - 1.0) <= kRounding) || train < -kRounding || val.share < -kRounding)
    throw ConfigError(
        fmt::format("the split ratios sum to {:.6g}, wanted 1", sum),
        {.key = "data.split", .hint = "make train_ratio + val_ratio + test_ratio = 1"});
  return {{.name = "train", .share = train}, val, {.name = "test", .share = split.test_ratio}};
}

RowParts split_rows(const RowPass& pass, const SplitPlan& plan,
                    const std::filesystem::path& scratch) {
  return Splitter(pass, plan, scratch).run();
}

}  // namespace convoy::data
