// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/utf8.h"

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(Utf8, FindsTheFirstIllFormedSequence) {
  EXPECT_FALSE(find_invalid_utf8("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82"));
  EXPECT_FALSE(find_invalid_utf8("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"));
  for (const char* bad : {"\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x99"})
    EXPECT_EQ(find_invalid_utf8(std::string("ab") + bad), 2u) << bad;
}

TEST(Utf8, CutsBetweenCharacters) {
  std::string text = "a\xc3\xa9\xe2\x82\xac";
  EXPECT_FALSE(cut_to_characters(text, 3));
  EXPECT_TRUE(cut_to_characters(text, 2));
  EXPECT_EQ(text, "a\xc3\xa9");
}

TEST(Utf8, KeepsWholeCharactersOfAnyNumberOfBytes) {
  const std::string text = "a\xc3\xa9\xe2\x82\xac";
  EXPECT_EQ(whole_characters_bytes(text, 0), 0u);
  EXPECT_EQ(whole_characters_bytes(text, 2), 1u);
  EXPECT_EQ(whole_characters_bytes(text, 3), 3u);
  EXPECT_EQ(whole_characters_bytes(text, 5), 3u);
  EXPECT_EQ(whole_characters_bytes(text, 6), 6u);
  EXPECT_EQ(whole_characters_bytes(text, 100), 6u);
  EXPECT_EQ(count_characters(text), 3);
}

}  // namespace
}  // namespace convoy
