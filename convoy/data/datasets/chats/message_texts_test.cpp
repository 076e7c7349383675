// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chats/message_texts.h"

#include <gtest/gtest.h>

#include <string>

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

// A "template" that writes each content between brackets.
std::string bracketed(const ordered_json& messages) {
  std::string text;
  for (const ordered_json& message : messages) {
    text += "[";
    if (message["content"].is_string()) text += message["content"].get<std::string>();
    if (message["content"].is_array())
      for (const ordered_json& part : message["content"]) text += part["text"].get<std::string>();
    text += "]";
  }
  return text;
}

MessageTexts texts_by(const RenderTexts& render, const ordered_json& messages) {
  return find_message_texts(render, messages, render(messages));
}

TEST(CutTexts, ArePartsThatATemplateLeavesOut) {
  const auto cut_of = [](const std::string& text, const std::string& rendered) {
    const CutTexts cut = find_cut_texts({{{"role", "assistant"}, {"content", text}}}, rendered);
    return std::string(cut.thoughts ? "thoughts" : "") + (cut.others ? "others" : "");
  };
  EXPECT_EQ(cut_of("one two", "[one two]"), "");
  EXPECT_EQ(cut_of(" one\n two ", "[one two]"), "");
  EXPECT_EQ(cut_of("a \"b\"", R"({"content": "a \"b\""})"), "");
  EXPECT_EQ(cut_of("one Two", "[ONE TWO]"), "");
  EXPECT_EQ(cut_of(" a/b \xC3\xA9~?\n", "[a/b%20%C3%A9~%3F]"), "");  // urlencode
  EXPECT_EQ(cut_of("one two", "[one%20t]"), "others");
  EXPECT_EQ(cut_of("one two", "[one]"), "others");
  EXPECT_EQ(cut_of("<think>\nso\n</think>\n\nnine", "[nine]"), "thoughts");
  EXPECT_EQ(cut_of("<think>\nso\n</think>\n\nnine", "[ni]"), "others");
}

TEST(MessageTexts, PlacesAreThoseOfTheTextsWithoutBlanks) {
  const ordered_json messages = {
      {{"content", " one\n"}},
      {{"content", "  "}},
      {{"content", ordered_json::array({{{"text", "two"}}, {{"text", "three"}}})}}};
  const MessageTexts texts = texts_by(bracketed, messages);
  ASSERT_EQ(bracketed(messages), "[ one\n][  ][twothree]");
  EXPECT_TRUE(texts.exact);
  EXPECT_FALSE(texts.unwritten);
  EXPECT_FALSE(texts.printed);
  const std::vector<TextMark> wanted = {{0, 0, 2, true},   {0, 0, 5, false}, {2, 1, 12, true},
                                        {2, 1, 15, false}, {2, 2, 15, true}, {2, 2, 20, false}};
  EXPECT_EQ(texts.marks, wanted);
  const auto places = content_places(texts, 3);
  ASSERT_TRUE(places);
  EXPECT_EQ((*places)[2].begin, 12u);
  EXPECT_EQ((*places)[2].end, 20u);
  EXPECT_FALSE((*places)[1].begin);
}

TEST(MessageTexts, ATextThatIsLeftOutIsFoundThoughItsWordsStandElsewhere) {
  const auto first = [](const ordered_json& messages) {
    return bracketed(ordered_json(messages.begin(), messages.begin() + 1));
  };
  const ordered_json messages = {{{"content", "the words"}}, {{"content", "words"}}};
  EXPECT_EQ(texts_by(first, messages).unwritten, 1u);
}

TEST(MessageTexts, MarksThatChangeTheOutputAreTriedAlone) {
  // Cuts what begins with a hash, drops the second message, and counts the letters of the third.
  const auto odd = [](const ordered_json& messages) {
    const auto text = [&](size_t index) { return messages[index]["content"].get<std::string>(); };
    const std::string first = text(0);
    return (first.starts_with("#") ? first.substr(1) : first) + "|" +
           std::to_string(text(2).size());
  };
  const ordered_json messages = {
      {{"content", "#title"}}, {{"content", "lost"}}, {{"content", "x"}}};
  const MessageTexts texts = texts_by(odd, messages);
  EXPECT_FALSE(texts.exact);
  EXPECT_EQ(texts.unwritten, 1u);
  EXPECT_EQ(texts.marks, (std::vector<TextMark>{{0, 0, 5, false}}));
}

TEST(MessageTexts, PartsThatAreWrittenAsDataAreTold) {
  const auto dumping = [](const ordered_json& messages) {
    return messages[1]["content"].dump(-1, ' ', true);
  };
  EXPECT_EQ(texts_by(dumping,
                     {{{"content", "x"}}, {{"content", ordered_json::array({{{"text", "two"}}})}}})
                .printed,
            1u);
}

TEST(MessageTexts, ATextThatIsWrittenTwiceHasNoPlace) {
  const auto twice = [](const ordered_json& messages) {
    return bracketed(messages) + bracketed(messages);
  };
  const MessageTexts texts = texts_by(twice, {{{"content", "x"}}});
  EXPECT_EQ(texts.marks.size(), 4u);
  EXPECT_FALSE(content_places(texts, 1));
}

}  // namespace
}  // namespace convoy::data
