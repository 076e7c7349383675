// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/random/numbers.h"

namespace convoy::experiments {
namespace {

// The answers are from tests/kat_vectors of Random123 1.14.
TEST(Philox, GivesTheKnownAnswers) {
  const PhiloxWords zeros = {}, ones = {~0u, ~0u, ~0u, ~0u};
  const PhiloxWords pi = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
  EXPECT_EQ(philox4x32(zeros, {0, 0}, 10),
            (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32(ones, {~0u, ~0u}, 10),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32(pi, {0xa4093822, 0x299f31d0}, 10),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(philox4x32(zeros, {0, 0}, 7),
            (PhiloxWords{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(philox4x32(ones, {~0u, ~0u}, 7),
            (PhiloxWords{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
  EXPECT_EQ(philox4x32(pi, {0xa4093822, 0x299f31d0}, 7),
            (PhiloxWords{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
}

Address address_at(Precision precision, uint64_t guess, int64_t seed = 7) {
  return {stream_key(3, seed), Stream::Guess, precision, guess};
}

class EachPrecisionOfNumbers : public ::testing::TestWithParam<Precision> {};

// The kernels share Philox rounds between guesses and slots; this test computes every word alone.
TEST_P(EachPrecisionOfNumbers, UniformTilesHoldTheWordsOfTheirAddresses) {
  for (const CpuLevel level : usable_cpu_levels()) {
    for (const uint64_t guess : {uint64_t{0}, uint64_t{12345}, (uint64_t{5} << 32) - 3}) {
      const uint32_t num_slots = 11;
      std::vector<float> tile(num_slots * kTileGuesses);
      fill_uniform_tile(address_at(GetParam(), guess), num_slots, tile.data(), level);
      for (uint32_t lane = 0; lane < kTileGuesses; ++lane) {
        std::vector<uint32_t> words(num_slots);
        fill_words(address_at(GetParam(), guess + lane), 0, words);
        for (uint32_t slot = 0; slot < num_slots; ++slot) {
          const float wanted = static_cast<float>(static_cast<int32_t>(words[slot] | 1)) * 0x1p-31f;
          ASSERT_EQ(tile[slot * kTileGuesses + lane], wanted)
              << cpu_level_name(level) << " guess " << guess + lane << " slot " << slot;
        }
      }
    }
  }
}

TEST_P(EachPrecisionOfNumbers, NormalTilesHaveTheSameBitsAtEveryLevel) {
  for (const uint32_t num_slots : {1u, 2u, 3u, 4u, 149u, 150u, 151u}) {
    for (uint64_t guess = 0; guess < 4096; guess += 16) {
      std::vector<float> wanted(num_slots * kTileGuesses);
      fill_normal_tile(address_at(GetParam(), guess), num_slots, wanted.data(), CpuLevel::Scalar);
      for (const CpuLevel level : usable_cpu_levels()) {
        std::vector<float> tile(num_slots * kTileGuesses);
        fill_normal_tile(address_at(GetParam(), guess), num_slots, tile.data(), level);
        ASSERT_EQ(tile, wanted) << cpu_level_name(level);
      }
      if (num_slots > 4 && guess > 256) break;
    }
  }
}

TEST_P(EachPrecisionOfNumbers, NormalsFollowBoxMuller) {
  const double tolerance = GetParam() == Precision::Exact ? 3e-6 : 2e-4;
  std::vector<uint32_t> words(4000);
  std::vector<float> normals(4000);
  fill_words(address_at(GetParam(), 9), 0, words);
  fill_normals(address_at(GetParam(), 9), 0, normals);
  for (size_t at = 0; at < words.size(); ++at) {
    const size_t first = at / 4 * 4 + at % 2;
    const double f = static_cast<int32_t>(words[first] | 1);
    const double radius = std::copysign(std::sqrt(-2 * std::log(std::abs(f) / 0x1p31)), f);
    const uint32_t turn = words[first + 2];
    const double angle = M_PI / 2 * ((static_cast<double>(turn & 0x7FFFFEu) + 1) / 0x1p23 - 0.5);
    const bool is_cosine = (at % 4 < 2) != (turn >> 31 != 0);
    const double wanted = radius * (is_cosine ? std::cos(angle) : std::sin(angle));
    ASSERT_NEAR(normals[at], wanted, tolerance * (1 + std::abs(radius))) << at;
  }
}

TEST(Numbers, PackedNormalsAreTwoOfEachWord) {
  const Address address = address_at(Precision::Fast, 9);
  std::vector<uint32_t> words(2000);
  std::vector<float> normals(4000), part(13);
  fill_words(address, 0, words);
  fill_packed_normals(address, 0, normals);
  fill_packed_normals(address, 1011, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), normals.begin() + 1011));
  for (size_t at = 0; at < normals.size(); ++at) {
    // Slots 0 and 2 of each four slots come from one word, and slots 1 and 3 from the next.
    const uint32_t word = words[at / 4 * 2 + at % 2];
    const double f = static_cast<int32_t>((word & ~0x3FFu) | 0x200u);
    const double radius = std::copysign(std::sqrt(-2 * std::log(std::abs(f) / 0x1p31)), f);
    const double angle = M_PI / 2 * ((static_cast<double>(word & 0xFFEu) + 1) / 0x1p12 - 0.5);
    const bool is_cosine = (at % 4 < 2) != ((word & 1) != 0);
    ASSERT_NEAR(normals[at], radius * (is_cosine ? std::cos(angle) : std::sin(angle)),
                2e-4 * (1 + std::abs(radius)))
        << at;
  }
}

double normal_probability(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

enum class NormalKind { Exact, Fast, Packed };

// Sets to[slot * 16 + lane] to the normals of sixteen guesses, beginning with `guess`.
void fill_kind(NormalKind kind, uint64_t guess, std::vector<float>& to) {
  const auto num_slots = static_cast<uint32_t>(to.size() / kTileGuesses);
  if (kind != NormalKind::Packed) {
    fill_normal_tile(
        address_at(kind == NormalKind::Exact ? Precision::Exact : Precision::Fast, guess, 11),
        num_slots, to.data());
    return;
  }
  std::vector<float> slots(num_slots);
  for (uint32_t lane = 0; lane < kTileGuesses; ++lane) {
    fill_packed_normals(address_at(Precision::Fast, guess + lane, 11), 0, slots);
    for (uint32_t slot = 0; slot < num_slots; ++slot) to[slot * kTileGuesses + lane] = slots[slot];
  }
}

// Adds products that have the mean zero for independent normals x and y, and gives the sum in units
// of its standard error.
class Dependence {
 public:
  void add(double x, double y) {
    ++count_;
    linear_ += x * y;
    squares_ += (x * x - 1) * (y * y - 1);
    cubic_ += x * x * x * y;
    mixed_ += (x * x - 1) * y;
  }
  double worst() const {
    const double n = std::sqrt(count_);
    return std::max({std::abs(linear_) / n, std::abs(squares_) / (2 * n),
                     std::abs(cubic_) / (std::sqrt(15.0) * n),
                     std::abs(mixed_) / (std::sqrt(2.0) * n)});
  }

 private:
  double count_ = 0, linear_ = 0, squares_ = 0, cubic_ = 0, mixed_ = 0;
};

class NormalSample {
 public:
  void add(const std::vector<float>& tile) {
    const size_t slots = tile.size() / kTileGuesses;
    for (size_t each = 0; each < tile.size(); ++each) {
      const double x = tile[each];
      double power = 1;
      for (size_t m = 1; m < moments_.size(); ++m) moments_[m] += power *= x;
      ++count_;
      for (size_t at = 0; at < beyond_.size(); ++at) beyond_[at] += std::abs(x) > kBounds[at];
      // The cells have equal probability, so their counts give the distribution function at the
      // cells' borders.
      const double place = normal_probability(x) * static_cast<double>(cells_.size());
      ++cells_[std::min(cells_.size() - 1, static_cast<size_t>(place))];
    }
    for (size_t at = 0; at < lags_.size(); ++at)
      for (size_t each = 0; each + kLags[at] * kTileGuesses < slots * kTileGuesses; ++each)
        lags_[at].add(tile[each], tile[each + kLags[at] * kTileGuesses]);
    for (size_t each = 0; each + 1 < tile.size(); ++each)
      if (each % kTileGuesses + 1 < kTileGuesses) guesses_.add(tile[each], tile[each + 1]);
  }

  void expect_normal() const {
    const double n = count_;
    const double wanted[] = {1, 0, 1, 0, 3, 0, 15, 0, 105},
                 of_square[] = {1, 1, 3, 15, 105, 945, 10395, 135135, 2027025};
    for (size_t m = 1; m < moments_.size(); ++m)
      EXPECT_NEAR(moments_[m] / n, wanted[m],
                  4 * std::sqrt((of_square[m] - wanted[m] * wanted[m]) / n))
          << m;
    for (size_t at = 0; at < beyond_.size(); ++at) {
      const double expected = n * 2 * normal_probability(-kBounds[at]);
      EXPECT_NEAR(beyond_[at], expected, 4 * std::sqrt(expected) + 1) << kBounds[at];
    }
    double sum = 0, distance = 0;
    for (size_t at = 0; at < cells_.size(); ++at) {
      sum += cells_[at];
      distance = std::max(distance, std::abs(sum / n - static_cast<double>(at + 1) /
                                                           static_cast<double>(cells_.size())));
    }
    EXPECT_LT(distance * std::sqrt(n), 1.95);  // Kolmogorov-Smirnov test at 0.1 %
    for (size_t at = 0; at < lags_.size(); ++at) EXPECT_LT(lags_[at].worst(), 4.5) << kLags[at];
    EXPECT_LT(guesses_.worst(), 4.5);
  }

 private:
  static constexpr double kBounds[] = {3, 4, 4.5, 5};
  static constexpr size_t kLags[] = {1, 2, 3, 4, 8};
  double count_ = 0;
  std::vector<double> moments_ = std::vector<double>(9);
  std::vector<double> beyond_ = std::vector<double>(std::size(kBounds));
  std::vector<double> cells_ = std::vector<double>(10'000);
  std::vector<Dependence> lags_ = std::vector<Dependence>(std::size(kLags));
  Dependence guesses_;
};

class EachKindOfNormals : public ::testing::TestWithParam<NormalKind> {};
INSTANTIATE_TEST_SUITE_P(Numbers, EachKindOfNormals,
                         ::testing::Values(NormalKind::Exact, NormalKind::Fast,
                                           NormalKind::Packed));

// CONVOY_TEST_NORMALS sets the number of normals, by default 2e6. The test also passes with 1e8.
TEST_P(EachKindOfNormals, PassMomentsTailsDistributionAndIndependence) {
  const char* wanted = std::getenv("CONVOY_TEST_NORMALS");
  const double count = wanted != nullptr ? std::atof(wanted) : 2e6;
  std::vector<float> tile(size_t{500} * kTileGuesses);
  NormalSample sample;
  for (uint64_t guess = 0; static_cast<double>(guess) * 500 < count; guess += kTileGuesses) {
    fill_kind(GetParam(), guess, tile);
    sample.add(tile);
  }
  sample.expect_normal();
}

INSTANTIATE_TEST_SUITE_P(Numbers, EachPrecisionOfNumbers,
                         ::testing::Values(Precision::Exact, Precision::Fast));

TEST(Numbers, StreamsSeedsAndBlocksDiffer) {
  Address address = address_at(Precision::Exact, 0);
  std::vector<uint32_t> all(64), other(64);
  fill_words(address, 0, all);
  for (const Stream stream : {Stream::Teacher, Stream::Data, Stream::DescentInit}) {
    address.stream = stream;
    fill_words(address, 0, other);
    all.insert(all.end(), other.begin(), other.end());
  }
  fill_words(address_at(Precision::Exact, 0, 8), 0, other);
  all.insert(all.end(), other.begin(), other.end());
  fill_words(address_at(Precision::Exact, uint64_t{1} << 32), 0, other);
  all.insert(all.end(), other.begin(), other.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

TEST(Numbers, SlotsMayStartAnywhere) {
  std::vector<float> whole(20), part(9);
  fill_normals(address_at(Precision::Exact, 4), 0, whole);
  fill_normals(address_at(Precision::Exact, 4), 7, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 7));
}

TEST(Numbers, RefuseSeedsBeyondTheKey) {
  EXPECT_THROW(stream_key(0, -1), ConfigError);
  EXPECT_THROW(stream_key(int64_t{1} << 32, 0), ConfigError);
}

}  // namespace
}  // namespace convoy::experiments
