// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/pictures/picture.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"

namespace convoy::pictures {
namespace {

std::string figure(const std::string& text) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"96\" height=\"48\" viewBox=\"0 0 96 "
         "48\" "
         "font-family=\"Helvetica, Arial, sans-serif\"><rect width=\"96\" height=\"48\" "
         "fill=\"#fff\"/>"
         "<text x=\"4\" y=\"30\" font-size=\"13\">" +
         text + "</text></svg>";
}

uint32_t number_at(const std::string& png, size_t at) {
  uint32_t number = 0;
  for (size_t byte = 0; byte < 4; ++byte)
    number = number << 8 | static_cast<uint8_t>(png[at + byte]);
  return number;
}

TEST(Pictures, APngHasThePixelsOfTheFigure) {
  const std::string png = picture_for("a.png", figure("loss"));
  ASSERT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(number_at(png, 16), 96u);
  EXPECT_EQ(number_at(png, 20), 48u);
}

// The letters are drawn with Convoy's own fonts, so neither the machine's fonts nor its settings
// change a bit.
TEST(Pictures, AreTheSameOnEveryMachine) {
  EXPECT_EQ(sha256_hex(picture_for("a.png", figure("loss 0.5 \xce\xb1\xe2\x89\xa4\xd0\x96"))),
            "10bc97a194edb54dc2c82a4ac4916f14e605befb65bdca10afd79ea1834438e4");
}

TEST(Pictures, LettersOfManyAlphabetsDifferFromTheUnknownOne) {
  // Two letters that the fonts lack look the same. Greek letters, Cyrillic letters and signs do not
  // look like them.
  const std::string unknown = picture_for("a.png", figure("\xe4\xb8\x80"));
  EXPECT_EQ(picture_for("a.png", figure("\xe4\xba\x8c")), unknown);
  for (const char* const letter :
       {"\xce\xb1", "\xd0\x96", "\xc3\xa9", "\xe2\x89\xa4", "\xe2\x86\x92", " "})
    EXPECT_NE(picture_for("a.png", figure(letter)), unknown) << letter;
}

TEST(Pictures, LettersThatBecomeBoxesAreTold) {
  const std::string svg = figure("loss \xce\xb1 \xe6\x8d\x9f\xe5\xa4\xb1\xe6\x8d\x9f");
  const auto told = [](const std::string& file, const std::string& drawn) {
    ::testing::internal::CaptureStderr();
    warn_of_boxes(Log(), file, drawn);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(told("a.png", svg)
                .find("a.png has boxes for letters that Convoy's font lacks: "
                      "\xe6\x8d\x9f\xe5\xa4\xb1 ("),
            std::string::npos);
  EXPECT_NE(told("a.pdf", svg), "");
  EXPECT_EQ(told("a.svg", svg), "");
  EXPECT_EQ(told("a.png", figure("loss \xce\xb1")), "");
}

TEST(Pictures, APdfHasOnePageAndItsFont) {
  const std::string pdf = picture_for("a.pdf", figure("loss"));
  EXPECT_TRUE(pdf.starts_with("%PDF-"));
  EXPECT_NE(pdf.find("/MediaBox [0 0 72 36]"), std::string::npos);
  EXPECT_NE(pdf.find("ConvoySans-Regular"), std::string::npos);
}

// Libraries below keep fonts and opacities in hash maps, whose order changes from call to call. Two
// fonts and four opacities would show it in the file.
TEST(Pictures, APdfIsTheSameFileAgain) {
  std::string parts = "loss</text>";
  for (const char* const opacity : {"0.2", "0.4", "0.6", "0.8"})
    parts += std::string("<text font-weight=\"bold\" y=\"20\" fill-opacity=\"") + opacity +
             "\">a</text><rect width=\"9\" height=\"9\" opacity=\"" + opacity + "\"/>";
  const std::string svg = figure(parts + "<text>");
  const std::string pdf = picture_for("a.pdf", svg);
  EXPECT_NE(pdf.find("ConvoySans-Bold"), std::string::npos);
  for (int again = 0; again < 20; ++again) ASSERT_EQ(picture_for("a.pdf", svg), pdf);
}

TEST(Pictures, BytesThatAreNoTextAreDrawnAsUnknownLetters) {
  EXPECT_EQ(picture_for("a.png", figure("\xff")), picture_for("a.png", figure("\xef\xbf\xbd")));
  EXPECT_EQ(picture_for("a.svg", figure("x")), figure("x"));
}

TEST(Pictures, ANameSaysTheFormat) {
  for (const char* const name : {"a.svg", "b.c/a.png", "a.pdf"})
    require_picture_name("--output", name);
  for (const char* const name : {"a", "a.gif", "a.PNG", "png"}) {
    try {
      require_picture_name("--output", name);
      FAIL() << name;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.sentence(), "--output needs a file that ends in .svg, .png or .pdf, found `" +
                                      std::string(name) + "` (write --output picture.svg)");
    }
  }
}

}  // namespace
}  // namespace convoy::pictures
