// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <compare>
#include <cstring>

#include "convoy/core/base/hash.h"
#include "convoy/data/datasets/chain/duplicates.h"
#include "convoy/data/datasets/chain/sorted_runs.h"

namespace convoy::data {
namespace {

struct HashedRow {
  std::array<uint64_t, 2> hash = {};  // the first half of a SHA-256
  int64_t row = 0;
  auto operator<=>(const HashedRow&) const = default;
};

}  // namespace

DuplicateReport find_exact_duplicates(const RowPass& pass, const ContentConfig& content,
                                      const std::filesystem::path& scratch) {
  SortedRuns<HashedRow> hashes(scratch);
  DuplicateReport report;
  report.pass = for_each_row<HashedRow>(
      pass,
      [&](const Row& row) {
        Sha256 sha;
        sha.update(row_content(row, content));
        const auto digest = sha.digest();
        HashedRow hashed{.row = row.index};
        std::memcpy(hashed.hash.data(), digest.data(), sizeof(hashed.hash));
        return hashed;
      },
      [&](const HashedRow& hashed) { hashes.add(hashed); });
  HashedRow first{.row = -1};
  bool is_cluster = false;
  hashes.for_each([&](const HashedRow& next) {
    if (first.row < 0 || next.hash != first.hash) {
      first = next;
      is_cluster = false;
      return;
    }
    report.clusters += !is_cluster;
    is_cluster = true;
    report.duplicates.push_back({next.row, first.row});
  });
  std::sort(report.duplicates.begin(), report.duplicates.end(),
            [](const Duplicate& left, const Duplicate& right) { return left.row < right.row; });
  return report;
}

}  // namespace convoy::data
