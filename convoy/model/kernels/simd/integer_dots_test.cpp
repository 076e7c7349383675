// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/simd/integer_dots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace convoy::kernels {
namespace {

// Codes of a weight in panels, as IntegerPanels stores them.
struct DotCase {
  int64_t rows, columns, inner;
  int bits;
  int64_t group = 32;

  int64_t per_word() const { return 32 / bits; }
  int64_t words() const { return (inner + per_word() - 1) / per_word(); }
  int64_t panels() const { return round_up(columns, kPanelColumns) / kPanelColumns; }
  int64_t groups() const { return (inner + group - 1) / group; }
  int64_t stride() const { return panels() * kPanelColumns; }
};

std::vector<uint32_t> in_panels(const DotCase& of, const std::vector<int>& codes) {
  std::vector<uint32_t> words(of.panels() * of.words() * kPanelColumns);
  for (int64_t column = 0; column < of.columns; ++column)
    for (int64_t k = 0; k < of.inner; ++k) {
      const int64_t place = k % of.per_word();
      const int64_t shift = of.bits == 8 ? 8 * place : 4 * (place / 2) + 16 * (place % 2);
      const int64_t word = (column / kPanelColumns * of.words() + k / of.per_word());
      words[word * kPanelColumns + column % kPanelColumns] |=
          (static_cast<uint32_t>(codes[column * of.inner + k]) & (of.bits == 8 ? 0xffu : 0xfu))
          << shift;
    }
  return words;
}

struct DotOperands {
  std::vector<float> x;
  std::vector<int> codes;
  std::vector<c10::BFloat16> scales;  // [panels, groups, 32]
  std::vector<c10::BFloat16> offsets;
};

// fp32 holds every product and every sum of these operands exactly: the largest magnitude of a
// block is 127 times a power of two, and scales and offsets of the weight are powers of two.
DotOperands exact_operands(const DotCase& of, uint32_t seed) {
  std::mt19937 draw(seed);
  DotOperands made;
  const int lowest = of.bits == 8 ? -127 : -8;
  const int highest = of.bits == 8 ? 127 : 7;
  for (int64_t at = 0; at < of.columns * of.inner; ++at) {
    const bool extreme = at / of.inner % 3 == 0;  // all codes of the column are at one end
    made.codes.push_back(extreme ? (at / of.inner % 2 == 0 ? lowest : highest)
                                 : lowest + static_cast<int>(draw() % (highest - lowest + 1)));
  }
  for (int64_t row = 0; row < of.rows; ++row)
    for (int64_t k = 0; k < of.inner; ++k) {
      const bool extreme = row % 2 == 0 || k % kRoundedInputs == 0;
      const int code = extreme ? 127 : static_cast<int>(draw() % 255) - 127;
      const int sign = row % 4 == 2 ? -1 : 1;
      const int power = static_cast<int>((row + k / kRoundedInputs) % 2) - 1;
      made.x.push_back(std::ldexp(static_cast<float>(sign * code), power));
    }
  for (int64_t at = 0; at < of.panels() * of.groups() * kPanelColumns; ++at) {
    made.scales.emplace_back(std::ldexp(1.0f, static_cast<int>(draw() % 2) - 1));
    made.offsets.emplace_back(std::ldexp(draw() % 2 == 0 ? 1.0f : -1.0f, -1));
  }
  return made;
}

DotOperands random_operands(const DotCase& of, uint32_t seed) {
  DotOperands made = exact_operands(of, seed);
  std::mt19937 draw(seed + 1);
  std::normal_distribution<float> normal;
  for (float& x : made.x) x = normal(draw) * std::exp(2 * normal(draw));
  for (c10::BFloat16& scale : made.scales) scale = 0.01f * normal(draw);
  for (c10::BFloat16& offset : made.offsets) offset = 0.05f * normal(draw);
  return made;
}

// Rounds the values of x to codes and back, by plain arithmetic.
std::vector<double> rounded_values(const DotCase& of, const std::vector<float>& x) {
  std::vector<double> rounded;
  for (int64_t at = 0; at < of.rows * of.inner; ++at) {
    const int64_t row = at / of.inner;
    const int64_t first = at % of.inner / kRoundedInputs * kRoundedInputs;
    float most = 0;
    for (int64_t k = first; k < std::min(of.inner, first + kRoundedInputs); ++k)
      most = std::max(most, std::fabs(x[row * of.inner + k]));
    const float scale = most / 127.0f;
    rounded.push_back(most == 0 ? 0 : std::nearbyint(x[at] * (127.0f / most)) * double{scale});
  }
  return rounded;
}

struct DotSums {
  std::vector<double> sums;
  std::vector<double> magnitudes;  // sums of the terms' absolute values
};
DotSums plain_sums(const DotCase& of, const DotOperands& operands, bool offsets) {
  const std::vector<double> x = rounded_values(of, operands.x);
  DotSums plain;
  for (int64_t row = 0; row < of.rows; ++row)
    for (int64_t column = 0; column < of.columns; ++column) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < of.inner; ++k) {
        const double code = operands.codes[column * of.inner + k];
        const int64_t at = (column / kPanelColumns * of.groups() + k / of.group) * kPanelColumns +
                           column % kPanelColumns;
        const double scale = of.bits == 8 ? 1.0 : static_cast<float>(operands.scales[at]);
        const double offset = offsets ? static_cast<float>(operands.offsets[at]) : 0.0;
        sum += (scale * code + offset) * x[row * of.inner + k];
        magnitude +=
            (std::fabs(scale * code) + std::fabs(offset)) * std::fabs(x[row * of.inner + k]);
      }
      plain.sums.push_back(sum);
      plain.magnitudes.push_back(magnitude);
    }
  return plain;
}

template <class Element>
std::vector<float> sums_of(const IntegerDots<Element>& dots, const DotCase& of,
                           const DotOperands& operands, bool offsets) {
  const int64_t blocks = rounded_blocks(of.inner);
  std::vector<RoundedBlock> rows(of.rows * blocks);
  const std::vector<Element> x(operands.x.begin(), operands.x.end());
  for (int64_t row = 0; row < of.rows; ++row)
    (of.bits == 8 ? dots.round_for_bytes : dots.round_for_nibbles)(
        x.data() + row * of.inner, of.inner, rows.data() + row * blocks);
  const std::vector<uint32_t> words = in_panels(of, operands.codes);
  const NibbleGroups groups{.scales = operands.scales.data(),
                            .offsets = offsets ? operands.offsets.data() : nullptr,
                            .panel_stride = of.groups() * kPanelColumns,
                            .inputs = of.group};
  std::vector<float> sums(of.rows * of.stride(), 1.0f);
  (of.bits == 8 ? dots.multiply_bytes : dots.multiply_nibbles)(
      {rows.data(), blocks}, {words.data(), of.words() * kPanelColumns}, groups, sums.data(),
      of.stride(), {of.rows, of.columns, of.inner}, true);
  return sums;
}

std::vector<DotCase> dot_cases() {
  std::vector<DotCase> cases;
  for (const int bits : {4, 8})
    for (const int64_t rows : {1, 2, 3, 5, 8, 13})
      for (const auto& [columns, inner] : std::vector<std::pair<int64_t, int64_t>>{
               {1, 1}, {33, 32}, {40, 39}, {64, 160}, {7, 500}})
        cases.push_back({rows, columns, inner, bits, rows % 2 == 0 ? 64 : 32});
  return cases;
}

template <class Element>
void check_exact_sums() {
  for (const IntegerDots<Element>* dots : usable_integer_dots<Element>())
    for (const DotCase& of : dot_cases())
      for (const bool offsets : {false, true}) {
        if (of.bits == 8 && offsets) continue;
        const DotOperands operands = exact_operands(of, 3);
        const std::vector<double> wanted = plain_sums(of, operands, offsets).sums;
        const std::vector<float> found = sums_of(*dots, of, operands, offsets);
        for (int64_t at = 0; at < of.rows * of.columns; ++at)
          ASSERT_EQ(found[at / of.columns * of.stride() + at % of.columns], wanted[at] + 1)
              << dots->name << ", " << of.bits << " bits, " << of.rows << " x " << of.columns
              << " x " << of.inner << ", element " << at;
      }
}

TEST(IntegerDots, SumsOfWholeNumbersAreExactOnEveryLevel) {
  check_exact_sums<float>();
  check_exact_sums<c10::BFloat16>();  // bf16 holds these x exactly
}

TEST(IntegerDots, AddUpWhatAPlainLoopRoundsOnEveryLevel) {
  for (const IntegerDots<float>* dots : usable_integer_dots<float>())
    for (const DotCase& of : dot_cases()) {
      const bool offsets = of.bits == 4;
      const DotOperands operands = random_operands(of, 5);
      const DotSums wanted = plain_sums(of, operands, offsets);
      const std::vector<float> found = sums_of(*dots, of, operands, offsets);
      // A block rounds four times: its scale, its two terms and the total.
      const double steps = 4.0 * static_cast<double>(rounded_blocks(of.inner)) + 4;
      for (int64_t at = 0; at < of.rows * of.columns; ++at)
        ASSERT_NEAR(found[at / of.columns * of.stride() + at % of.columns], wanted.sums[at] + 1,
                    steps * std::ldexp(wanted.magnitudes[at] + 1, -24))
            << dots->name << ", " << of.bits << " bits, " << of.rows << " x " << of.columns << " x "
            << of.inner;
    }
}

TEST(IntegerDots, ABlockThatIsNoNumberMakesItsRowNone) {
  const DotCase of{3, 40, 100, 4};
  for (const IntegerDots<float>* dots : usable_integer_dots<float>())
    for (const float broken : {NAN, INFINITY, -INFINITY}) {
      DotOperands operands = random_operands(of, 5);
      const std::vector<float> whole = sums_of(*dots, of, operands, true);
      operands.x[of.inner + 70] = broken;
      const std::vector<float> found = sums_of(*dots, of, operands, true);
      for (int64_t column = 0; column < of.columns; ++column) {
        EXPECT_TRUE(std::isnan(found[of.stride() + column])) << dots->name;
        EXPECT_EQ(found[column], whole[column]);
        EXPECT_EQ(found[2 * of.stride() + column], whole[2 * of.stride() + column]);
      }
    }
}

TEST(IntegerDots, BlocksOfZerosAndOfTheSmallestNumbersAreZero) {
  const DotCase of{2, 32, 64, 8};
  for (const IntegerDots<float>* dots : usable_integer_dots<float>()) {
    DotOperands operands = random_operands(of, 5);
    std::fill(operands.x.begin(), operands.x.begin() + of.inner, 0.0f);
    std::fill(operands.x.begin() + of.inner, operands.x.end(),
              std::numeric_limits<float>::denorm_min());
    for (const float sum : sums_of(*dots, of, operands, false)) EXPECT_EQ(sum, 1.0f) << dots->name;
  }
}

}  // namespace
}  // namespace convoy::kernels
