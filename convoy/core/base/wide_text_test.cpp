// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/wide_text.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy {
namespace {

using namespace std::string_view_literals;

TEST(WideText, IsKnownByItsMarkOrItsZeros) {
  EXPECT_EQ(wide_encoding("\xff\xfeh\0i\0"sv), "UTF-16");
  EXPECT_EQ(wide_encoding("\xfe\xff\0h\0i"sv), "UTF-16");
  EXPECT_EQ(wide_encoding("\xff\xfe\0\0h\0\0\0"sv), "UTF-32");
  EXPECT_EQ(wide_encoding("h\0i\0\n\0"sv), "UTF-16LE");
  EXPECT_EQ(wide_encoding("\0h\0i\0\n"sv), "UTF-16BE");
  for (const std::string_view other :
       {""sv, "hi"sv, "h\0i"sv, "\xef\xbb\xbfhi"sv, "hi\0there"sv, "h\0i\0there"sv, "\0\0\0\0"sv})
    EXPECT_EQ(wide_encoding(other), "") << other;
}

TEST(WideText, IsRefusedWithTheCommandThatConvertsIt) {
  EXPECT_NO_THROW(refuse_wide_text("hi", "a.txt"));
  try {
    refuse_wide_text("\xff\xfeh\0"sv, "a.txt");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "the file is UTF-16 text, wanted UTF-8");
    EXPECT_EQ(error.location().hint, "convert it: iconv -f UTF-16 -t UTF-8 a.txt > NEW");
  }
}

}  // namespace
}  // namespace convoy
