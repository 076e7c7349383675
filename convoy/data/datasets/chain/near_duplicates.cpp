// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <compare>

#include "convoy/core/base/hash.h"
#include "convoy/data/datasets/chain/duplicates.h"
#include "convoy/data/datasets/chain/sorted_runs.h"

namespace convoy::data {
namespace {

constexpr int64_t kMinima = 128;
constexpr size_t kMaxLeaders = 256;  // maximum per bucket; see Linker

using Signature = std::array<uint32_t, kMinima>;

struct Permutation {
  uint32_t factor = 0;
  uint32_t offset = 0;
};

std::vector<Permutation> permutations_of(uint64_t seed) {
  std::vector<Permutation> permutations;
  for (uint64_t index = 0; index < kMinima; ++index) {
    const std::array<uint64_t, 2> words = {seed, index};
    const uint64_t drawn = mix_seed(words);
    // An odd factor permutes the 32-bit words.
    permutations.push_back({static_cast<uint32_t>(drawn) | 1u, static_cast<uint32_t>(drawn >> 32)});
  }
  return permutations;
}

Signature signature_of(const std::vector<uint64_t>& hashes,
                       const std::vector<Permutation>& permutations) {
  Signature signature;
  signature.fill(UINT32_MAX);
  for (const uint64_t hash : hashes) {
    const auto low = static_cast<uint32_t>(hash);
    const auto high = static_cast<uint32_t>(hash >> 32);
    for (size_t at = 0; at < signature.size(); ++at) {
      // The high bits of the product depend on all bits of the word.
      const uint32_t mixed = (low ^ permutations[at].offset) * permutations[at].factor + high;
      signature[at] = std::min(signature[at], mixed ^ (mixed >> 15));
    }
  }
  return signature;
}

struct BandRow {
  uint64_t band = 0;  // hash of the band's number and its minima
  int64_t row = 0;
  auto operator<=>(const BandRow&) const = default;
};

struct SignedRow {
  int64_t row = 0;
  std::vector<uint64_t> hashes = {};
  std::vector<uint64_t> bands = {};
};

std::vector<uint64_t> band_hashes(const Signature& signature, const LshBands& lsh) {
  std::vector<uint64_t> hashes;
  for (int64_t band = 0; band < lsh.bands; ++band) {
    std::vector<uint64_t> words = {static_cast<uint64_t>(band)};
    for (int64_t at = band * lsh.rows; at < (band + 1) * lsh.rows; ++at)
      words.push_back(signature[static_cast<size_t>(at)]);
    hashes.push_back(mix_seed(words));
  }
  return hashes;
}

// Shingles of every row, on disk.
class ShingleStore {
 public:
  explicit ShingleStore(const std::filesystem::path& folder) : file_(folder) {}

  // Call it in the order of the rows. Skipped rows have no shingles.
  void add(int64_t row, const std::vector<uint64_t>& hashes) {
    ends_.resize(static_cast<size_t>(row) + 1, file_.size_bytes());
    file_.append({reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(uint64_t)});
    ends_.back() = file_.size_bytes();
  }
  void finish() { file_.flush(); }
  int64_t num_rows() const { return std::ssize(ends_); }
  std::vector<uint64_t> read(int64_t row) const {
    const auto at = static_cast<size_t>(row);
    const int64_t begin = at == 0 ? 0 : ends_[at - 1];
    std::vector<uint64_t> hashes(static_cast<size_t>(ends_[at] - begin) / sizeof(uint64_t));
    file_.read_at(begin,
                  {reinterpret_cast<char*>(hashes.data()), hashes.size() * sizeof(uint64_t)});
    return hashes;
  }

 private:
  ScratchFile file_;
  std::vector<int64_t> ends_;  // by row: end of its shingles in the file, in bytes
};

// Joins the rows of one bucket whose similarity reaches the threshold. A row is compared only with
// the leaders of its bucket: rows that matched no leader before them. A bucket has at most
// kMaxLeaders leaders; only boilerplate text reaches this number.
class Linker {
 public:
  Linker(const ShingleStore& shingles, double threshold)
      : shingles_(shingles),
        threshold_(threshold),
        parents_(static_cast<size_t>(shingles.num_rows())) {
    for (size_t row = 0; row < parents_.size(); ++row) parents_[row] = static_cast<int64_t>(row);
  }

  void add(const BandRow& next) {
    if (next.band != band_ || pending_ < 0) {
      band_ = next.band;
      leaders_.clear();
      pending_ = next.row;
      return;
    }
    // The shingles of a bucket's first row are read only when a second row comes.
    if (leaders_.empty()) leaders_.push_back({pending_, shingles_.read(pending_)});
    std::vector<uint64_t> hashes = shingles_.read(next.row);
    for (const Leader& leader : leaders_) {
      if (root(leader.row) != root(next.row) && jaccard(leader.hashes, hashes) < threshold_)
        continue;
      join(leader.row, next.row);
      return;
    }
    if (leaders_.size() < kMaxLeaders) leaders_.push_back({next.row, std::move(hashes)});
  }

  int64_t root(int64_t row) {
    for (int64_t* parent = &parent_of(row); *parent != row; parent = &parent_of(row)) {
      *parent = parent_of(*parent);
      row = *parent;
    }
    return row;
  }

 private:
  struct Leader {
    int64_t row;
    std::vector<uint64_t> hashes;
  };

  int64_t& parent_of(int64_t row) { return parents_[static_cast<size_t>(row)]; }

  // The smaller row is the root.
  void join(int64_t left, int64_t right) {
    left = root(left);
    right = root(right);
    parents_[static_cast<size_t>(std::max(left, right))] = std::min(left, right);
  }

  const ShingleStore& shingles_;
  double threshold_;
  std::vector<int64_t> parents_;
  uint64_t band_ = 0;
  int64_t pending_ = -1;  // the first row of the bucket
  std::vector<Leader> leaders_;
};

}  // namespace

LshBands lsh_bands(double threshold) {
  constexpr double kMissed = 1e-3;
  for (int64_t rows = kMinima; rows > 1; --rows) {
    const int64_t bands = kMinima / rows;
    const double missed =
        std::pow(1 - std::pow(threshold, static_cast<double>(rows)), static_cast<double>(bands));
    if (missed <= kMissed) return {bands, rows};
  }
  return {kMinima, 1};
}

DuplicateReport find_near_duplicates(const RowPass& pass, const ContentConfig& content,
                                     const NearConfig& near, const std::filesystem::path& scratch) {
  const std::vector<Permutation> permutations = permutations_of(near.seed);
  const LshBands lsh = lsh_bands(near.threshold);
  ShingleStore store(scratch);
  SortedRuns<BandRow> buckets(scratch);
  DuplicateReport report;
  report.pass = for_each_row<SignedRow>(
      pass,
      [&](const Row& row) {
        SignedRow made{.row = row.index,
                       .hashes = shingles(row_content(row, content), near.unit, near.shingle)};
        if (!made.hashes.empty())
          made.bands = band_hashes(signature_of(made.hashes, permutations), lsh);
        return made;
      },
      [&](const SignedRow& made) {
        store.add(made.row, made.hashes);
        for (const uint64_t band : made.bands) buckets.add({band, made.row});
      });
  store.finish();
  Linker linker(store, near.threshold);
  buckets.for_each([&](const BandRow& next) { linker.add(next); });
  std::vector<bool> is_cluster(static_cast<size_t>(store.num_rows()), false);
  for (int64_t row = 0; row < store.num_rows(); ++row) {
    const int64_t kept = linker.root(row);
    if (kept == row) continue;
    report.clusters += !is_cluster[static_cast<size_t>(kept)];
    is_cluster[static_cast<size_t>(kept)] = true;
    report.duplicates.push_back({row, kept});
  }
  return report;
}

}  // namespace convoy::data
