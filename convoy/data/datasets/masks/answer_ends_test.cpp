// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/masks/answer_ends.h"

#include <gtest/gtest.h>

#include <string>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

class AnswerEnds : public ::testing::Test {
 protected:
  // The tokens of ChatML have these ids: <|endoftext|> 0, <|im_start|> 1, <|im_end|> 2.
  const std::filesystem::path model_ = testing::source_folder() / "examples/tally-3m";
  const text::Tokenizer tokenizer_ = text::Tokenizer::load(model_);
  convoy::testing::TemporaryFolder folder_;

  text::ChatTemplate with(const std::string& source) const {
    write_file_atomic(folder_ / "t.jinja", source);
    return *text::ChatTemplate::load(model_, folder_ / "t.jinja");
  }
  std::optional<int32_t> end_by(const std::string& source) const {
    return turn_end(with(source), tokenizer_);
  }
  std::vector<int32_t> learnt(const std::string& source, const ordered_json& messages,
                              const Supervision& supervision, int64_t max_tokens = 512) const {
    const text::ChatTemplate chat_template = with(source);
    const EncodedRow row = SampleEncoder(tokenizer_, &chat_template, supervision)
                               .encode({.kind = Sample::Kind::Chat, .messages = messages});
    return learnt_ends(TokenDataset::from_rows({row}), tokenizer_, max_tokens);
  }
};

const std::string kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
const ordered_json kUser = {{"role", "user"}, {"content", "1 + 1 = ?"}};
const ordered_json kAssistant = {{"role", "assistant"}, {"content", "2"}};

TEST_F(AnswerEnds, ATemplatesTokenBehindTheAnswer) {
  EXPECT_EQ(end_by(kChatMl), 2);
  // Llama 2's template has this form: a blank stands before the mark.
  EXPECT_EQ(end_by("{% for m in messages %}{{ m.content + ' <|endoftext|>' }}{% endfor %}"), 0);
  // The template reads only contents that are lists of parts.
  EXPECT_EQ(
      end_by("{% for m in messages %}{% for p in m.content %}{% if p is mapping %}{{ p.text }}"
             "{% endif %}{% endfor %}<|im_end|>{% endfor %}"),
      2);
  EXPECT_EQ(end_by("{% for m in messages %}{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}"),
            std::nullopt);
  EXPECT_EQ(end_by("{{ messages[0].content }}"), std::nullopt);
  EXPECT_EQ(end_by("{{ raise_exception('no') }}"), std::nullopt);
}

TEST_F(AnswerEnds, TheTokenThatRowsTeach) {
  EXPECT_EQ(learnt(kChatMl, {kUser, kAssistant}, {}), (std::vector<int32_t>{2}));
  // With loss on every token, the line break behind the end token is learnt too.
  EXPECT_EQ(learnt(kChatMl, {kUser, kAssistant}, {.supervise = Supervise::All}),
            (std::vector<int32_t>{2}));
  EXPECT_TRUE(learnt(kChatMl, {kUser, kAssistant}, {.ends = LearntEnds::None}).empty());
  // A user's turn follows the answer, so the token behind the answer need not be the end of a text.
  EXPECT_TRUE(learnt(kChatMl, {kUser, kAssistant, kUser}, {}).empty());
  EXPECT_TRUE(learnt(kChatMl, {kUser, kAssistant}, {}, 3).empty()) << "rows that may be cut";
}

TEST_F(AnswerEnds, AnotherEosIsNamedInPlaceOfTheTokenizersOwn) {
  EXPECT_EQ(text::Tokenizer::load(model_, "<|endoftext|>").eos_id(), 0);
  EXPECT_NE(text::Tokenizer::load(model_, "<|endoftext|>").content_hash(),
            tokenizer_.content_hash());
  EXPECT_THROW(text::Tokenizer::load(model_, "<|no_such|>"), ConfigError);
  write_file_atomic(folder_ / "t.jinja", "{{ eos_token }}");
  const auto named = text::ChatTemplate::load(model_, folder_ / "t.jinja", "<|endoftext|>");
  EXPECT_EQ(named->render(ordered_json::array({kUser}), nullptr, false).text, "<|endoftext|>");
}

}  // namespace
}  // namespace convoy::data
