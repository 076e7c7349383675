// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/dynamic_code/dynamic_code.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"

namespace convoy::kernels {
namespace {

constexpr DynamicMap kKinds[] = {DynamicMap::Signed, DynamicMap::Unsigned};

TEST(DynamicCode, EqualsBitsandbytes) {
  const auto golden =
      nlohmann::json::parse(read_file(std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) /
                                      "tests/golden/optim/adamw_8bit.json"));
  for (const DynamicMap kind : kKinds) {
    const auto wanted =
        golden[kind == DynamicMap::Signed ? "signed" : "unsigned"].get<std::vector<float>>();
    ASSERT_EQ(wanted.size(), 256U);
    for (size_t code = 0; code < 256; ++code)
      EXPECT_EQ(DynamicCode::of(kind).values()[code], wanted[code]) << code;
  }
}

// Finds the nearest value by comparing all values.
uint8_t nearest_of_all(const DynamicCode& map, float x) {
  uint8_t best = 0;
  for (size_t code = 1; code < 256; ++code)
    if (std::fabs(x - map.values()[code]) < std::fabs(x - map.values()[best]))
      best = static_cast<uint8_t>(code);
  return best;
}

TEST(DynamicCode, FindsTheNearestValueAndOfTwoTheLower) {
  for (const DynamicMap kind : kKinds) {
    const DynamicCode& map = DynamicCode::of(kind);
    for (size_t code = 0; code < 256; ++code) {
      EXPECT_EQ(map.nearest(map.values()[code]), code);
      if (code == 255) continue;
      float x = map.thresholds()[code];
      EXPECT_EQ(map.nearest(x), code);
      EXPECT_EQ(map.nearest(std::nextafter(x, 2.0f)), code + 1);
      for (int step = 0; step < 4; ++step, x = std::nextafter(x, 2.0f))
        EXPECT_EQ(map.nearest(x), nearest_of_all(map, x)) << code;
    }
    for (int at = -20'000; at <= 20'000; ++at) {
      const auto share = static_cast<float>(at) / 20'000.0f;
      const float x = std::copysign(std::pow(10.0f, -7.5f * std::fabs(share)), share);
      EXPECT_EQ(map.nearest(x), nearest_of_all(map, x)) << x;
    }
    for (const float zero : {0.0f, -0.0f, 1e-42f, -1e-42f})
      EXPECT_EQ(map.nearest(zero), kind == DynamicMap::Signed ? 127 : 0);
    EXPECT_EQ(map.nearest(-1.0f), 0);
    EXPECT_EQ(map.nearest(1.0f), 255);
  }
}

}  // namespace
}  // namespace convoy::kernels
