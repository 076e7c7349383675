// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace convoy {
namespace {

std::string folded(std::string_view word) {
  std::string text(word);
  for (char& letter : text) {
    if (letter == '-') letter = '_';
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

// Optimal string alignment distance (Damerau-Levenshtein with adjacent swaps).
size_t edit_distance(const std::string& a, const std::string& b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> cost((a.size() + 1) * width);
  for (size_t row = 0; row <= a.size(); ++row) cost[row * width] = row;
  for (size_t column = 0; column <= b.size(); ++column) cost[column] = column;
  for (size_t row = 1; row <= a.size(); ++row) {
    for (size_t column = 1; column <= b.size(); ++column) {
      size_t best = std::min(cost[(row - 1) * width + column], cost[row * width + column - 1]) + 1;
      best = std::min(best, cost[(row - 1) * width + column - 1] + (a[row - 1] != b[column - 1]));
      if (row > 1 && column > 1 && a[row - 1] == b[column - 2] && a[row - 2] == b[column - 1])
        best = std::min(best, cost[(row - 2) * width + column - 2] + 1);
      cost[row * width + column] = best;
    }
  }
  return cost.back();
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string wanted = folded(word);
  std::string nearest;
  size_t smallest = std::max<size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(wanted, folded(candidate));
    if (distance < smallest) {
      smallest = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_word(word, candidates);
  return nearest.empty() ? "" : fmt::format(", did you mean `{}`?", nearest);
}

std::vector<std::string> nearest_first(std::string_view word, std::vector<std::string> candidates) {
  const std::string wanted = folded(word);
  std::vector<std::pair<size_t, std::string>> found;
  for (std::string& candidate : candidates)
    found.emplace_back(edit_distance(wanted, folded(candidate)), std::move(candidate));
  std::sort(found.begin(), found.end());
  std::transform(found.begin(), found.end(), candidates.begin(),
                 [](auto& pair) { return std::move(pair.second); });
  return candidates;
}

}  // namespace convoy
