// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/certain_text.h"

#include <gtest/gtest.h>

namespace convoy::generate {
namespace {

std::string grown(const std::vector<std::string>& stop, const std::vector<std::string>& texts) {
  CertainText certain(stop);
  std::string parts;
  for (const std::string& text : texts) {
    const std::string_view part = certain.grow(text);
    parts.append(part).append("|");
  }
  parts.append(certain.end(texts.back()));
  return parts;
}

TEST(CertainText, GoesOutAtOnce) {
  EXPECT_EQ(grown({}, {"Tom", "Tom has", "Tom has 7"}), "Tom| has| 7|");
}

TEST(CertainText, HoldsTheBeginningOfAStopStringBack) {
  EXPECT_EQ(grown({"\n\n", "END"}, {"a\n", "a\nb", "a\nbE", "a\nbEx"}), "a|\nb||Ex|");
  EXPECT_EQ(grown({"END"}, {"aEN", "aENE", "aENEN", "aEN"}), "a|EN|||");
}

TEST(CertainText, HoldsPartsOfALetterBack) {
  EXPECT_EQ(grown({}, {"a\uFFFD", "a\uFFFD\uFFFD\uFFFD", "a\U0001F600b"}), "a||\U0001F600b|");
  EXPECT_EQ(grown({"ab"}, {"xa\uFFFD", "xa\u00E9"}), "x|a\u00E9|");
  EXPECT_EQ(grown({}, {"a\uFFFD"}), "a|\uFFFD");
}

}  // namespace
}  // namespace convoy::generate
