// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/masks/learnt_turns.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/files_test.h"
#include "files/source_folder.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;
using testing::source_folder;
using Roles = std::vector<std::string>;

std::string learnt_tokens(const text::Tokenizer& tokenizer, const EncodedRow& row,
                          bool skip_special) {
  std::vector<int32_t> ids;
  for (size_t token = 0; token < row.ids.size(); ++token)
    if (row.supervised[token] != 0) ids.push_back(row.ids[token]);
  return tokenizer.decode(ids, skip_special);
}

Sample sample_of_turns(ordered_json messages) {
  Sample sample;
  sample.kind = Sample::Kind::Chat;
  sample.messages = std::move(messages);
  return sample;
}

class LearntTurnsOfTally : public ::testing::Test {
 protected:
  std::string learnt_of(const ordered_json& messages, const Supervision& supervision) {
    const SampleEncoder encoder(tokenizer_, &template_, supervision);
    return learnt_tokens(tokenizer_, encoder.encode(sample_of_turns(messages)), false);
  }

  text::ChatTemplate template_of(const std::string& source) {
    return *text::ChatTemplate::load(model_, folder_.write("t.jinja", source));
  }

  ScratchFolder folder_;
  fs::path model_ = source_folder() / "examples/tally-3m";
  text::Tokenizer tokenizer_ = text::Tokenizer::load(model_);
  text::ChatTemplate template_ = *text::ChatTemplate::load(model_);
  ordered_json turns_ = {
      {{"role", "system"}, {"content", "Add."}}, {{"role", "user"}, {"content", "1 + 1?"}},
      {{"role", "assistant"}, {"content", "2"}}, {{"role", "user"}, {"content", "2 + 2?"}},
      {{"role", "assistant"}, {"content", "4"}}, {{"role", "user"}, {"content", "Thanks"}}};
};

TEST_F(LearntTurnsOfTally, RolesAreLearntWithTheirEnds) {
  EXPECT_EQ(learnt_of(turns_, {.roles = {"user"}}),
            "1 + 1?<|im_end|>2 + 2?<|im_end|>Thanks<|im_end|>");
  EXPECT_EQ(learnt_of(turns_, {.roles = {"system"}}), "Add.<|im_end|>");
  EXPECT_EQ(learnt_of(turns_, {.roles = {"assistant", "user"}}),
            "1 + 1?<|im_end|>2<|im_end|>2 + 2?<|im_end|>4<|im_end|>Thanks<|im_end|>");
  EXPECT_EQ(learnt_of(turns_, {.roles = {"tool"}}), "");
  EXPECT_EQ(learnt_of(turns_, {.supervise = Supervise::Last, .roles = {"user", "assistant"}}),
            "Thanks<|im_end|>");
}

TEST_F(LearntTurnsOfTally, EndsAreLearntAsAskedFor) {
  EXPECT_EQ(learnt_of(turns_, {}), "2<|im_end|>4<|im_end|>");
  EXPECT_EQ(learnt_of(turns_, {.ends = LearntEnds::None}), "24");
  // The last end is the end of the user's last turn, which is learnt as in axolotl.
  EXPECT_EQ(learnt_of(turns_, {.ends = LearntEnds::Last}), "24<|im_end|>");
  EXPECT_EQ(learnt_of(turns_, {.ends = LearntEnds::All}),
            "<|im_end|><|im_end|>2<|im_end|><|im_end|>4<|im_end|><|im_end|>");
}

TEST_F(LearntTurnsOfTally, WhiteSpaceAroundAContentDoesNotMoveItsEnds) {
  turns_[1]["content"] = "  1 + 1? \n";
  EXPECT_EQ(learnt_of(turns_, {.roles = {"user"}, .ends = LearntEnds::None}),
            learnt_tokens(
                tokenizer_,
                SampleEncoder(tokenizer_, &template_, {.roles = {"user"}, .ends = LearntEnds::Turn})
                    .encode(sample_of_turns(turns_)),
                true));
}

TEST_F(LearntTurnsOfTally, AMessageThatTheTemplateDropsIsRefused) {
  const auto chat_template = template_of(
      "{% for m in messages if m.role != 'system' %}{% if m.role == 'user' %}"
      "[INST] {{ m.content | trim }} [/INST]{% else %}{{ m.content }}<|im_end|>{% endif %}"
      "{% endfor %}");
  const SampleEncoder encoder(tokenizer_, &chat_template, {.roles = {"system", "user"}});
  EXPECT_THROW(encoder.encode(sample_of_turns(turns_)), DataError);
  turns_[0]["content"] = "";
  turns_[1]["content"] = " 1 + 1?  ";
  EXPECT_EQ(learnt_tokens(tokenizer_, encoder.encode(sample_of_turns(turns_)), false),
            "1 + 1? [/INST]2 + 2? [/INST] Thanks [/INST]");
}

TEST_F(LearntTurnsOfTally, ATemplateThatPutsTheSystemTurnIntoTheUsersIsFollowed) {
  const auto chat_template = template_of(
      "{% if messages[0].role == 'system' %}{% set first = messages[0].content + '\\n\\n' %}"
      "{% set loop_messages = messages[1:] %}{% else %}{% set first = '' %}"
      "{% set loop_messages = messages %}{% endif %}"
      "{% for m in loop_messages %}<|im_start|>{{ m.role }}\n{{ first if loop.first else '' }}"
      "{{ m.content | trim }}<|im_end|>\n{% endfor %}");
  turns_[0]["content"] = "Add them";  // no token with the line break
  const SampleEncoder system(tokenizer_, &chat_template, {.roles = {"system"}});
  EXPECT_EQ(learnt_tokens(tokenizer_, system.encode(sample_of_turns(turns_)), false), "Add them");
  const SampleEncoder user(tokenizer_, &chat_template, {.roles = {"user"}});
  EXPECT_EQ(learnt_tokens(tokenizer_, user.encode(sample_of_turns(turns_)), false),
            "1 + 1?<|im_end|>2 + 2?<|im_end|>Thanks<|im_end|>");
}

// Returns a template of ChatML with another end of each turn and another end of the conversation.
std::string chatml_ending(const std::string& turn_end, const std::string& conversation_end) {
  return "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}" + turn_end +
         "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% else %}" +
         conversation_end + "{% endif %}";
}

constexpr const char* kLastAnswer =
    "{% if loop.last and m.role == 'assistant' and not add_generation_prompt %}";

TEST_F(LearntTurnsOfTally, ATurnEndsAlikeWhateverEndsTheConversation) {
  const std::string both = "2<|im_end|>4<|im_end|>";
  const std::vector<std::pair<std::string, std::string>> templates = {
      {chatml_ending("<|im_end|>\n", "<|endoftext|>"), both},
      {chatml_ending("<|im_end|>", "<|endoftext|>"), both},
      {chatml_ending("<|im_end|>\n", "<|endoftext|>\n"), both},
      {chatml_ending("<|im_end|>\n", "### END\n"), both},
      {chatml_ending("<|im_end|>\n", ""), both},
      {chatml_ending("\n", "<|im_end|>"), "2\n4\n<|im_end|>"},
      {chatml_ending(std::string(kLastAnswer) + "<|endoftext|>{% else %}<|im_end|>{% endif %}", ""),
       "2<|im_end|>4<|endoftext|>"},
      {chatml_ending(std::string(kLastAnswer) + "<|im_end|>{% else %}<|im_end|>\n{% endif %}", ""),
       both},
      // These conversations end with the header of the next turn.
      {chatml_ending("<|im_end|>\n", "<|im_start|>user\n"), both},
      {chatml_ending("<|im_end|>", "<|im_start|>user"), both},
      // Both tokens end the turn itself.
      {chatml_ending("<|endoftext|><|im_end|>\n", "<|im_start|>user\n"),
       "2<|endoftext|><|im_end|>4<|endoftext|><|im_end|>"}};
  turns_.erase(turns_.size() - 1);
  for (const auto& [source, wanted] : templates) {
    SCOPED_TRACE(source);
    const auto chat_template = template_of(source);
    const SampleEncoder encoder(tokenizer_, &chat_template, {});
    EXPECT_EQ(learnt_tokens(tokenizer_, encoder.encode(sample_of_turns(turns_)), false), wanted);
    // In a long chat, turns are located by marks and not one by one.
    ordered_json many = turns_;
    for (size_t index = 1; index < turns_.size(); ++index) many.push_back(turns_[index]);
    const std::string twice =
        learnt_tokens(tokenizer_, encoder.encode(sample_of_turns(many)), false);
    EXPECT_EQ(twice.find("+"), std::string::npos) << twice;
    EXPECT_TRUE(twice.ends_with(wanted.substr(wanted.rfind('4')))) << twice;
    const SampleEncoder last(tokenizer_, &chat_template, {.supervise = Supervise::Last});
    EXPECT_EQ(learnt_tokens(tokenizer_, last.encode(sample_of_turns(turns_)), false),
              wanted.substr(wanted.rfind('4')));
  }
}

// The generation prompt opens a thought that only the last answer has, as in Qwen3.5.
TEST_F(LearntTurnsOfTally, APromptThatGoesOnBehindTheHeaderIsNoPartOfInnerTurns) {
  const auto chat_template = template_of(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n"
      "{% if m.role == 'assistant' and loop.last %}<think>\n\n</think>\n\n{% endif %}"
      "{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n\n</think>\n\n{% endif %}");
  turns_.erase(turns_.size() - 1);
  EXPECT_EQ(
      learnt_tokens(tokenizer_,
                    SampleEncoder(tokenizer_, &chat_template, {}).encode(sample_of_turns(turns_)),
                    false),
      "2<|im_end|>4<|im_end|>");
}

// Both tokens belong to the last turn, whose text is the same behind a generation prompt.
TEST_F(LearntTurnsOfTally, AnEndOfTextBehindTheTurnsOwnEndIsNotLearnt) {
  const std::string more = "{% if loop.last and m.role == 'assistant' %}<|endoftext|>{% endif %}";
  turns_.erase(turns_.begin() + 3, turns_.end());
  for (const std::string& end : {"<|im_end|>\n" + more, "<|im_end|>" + more + "\n"}) {
    const auto chat_template = template_of(chatml_ending(end, ""));
    const SampleEncoder encoder(tokenizer_, &chat_template, {});
    EXPECT_EQ(learnt_tokens(tokenizer_, encoder.encode(sample_of_turns(turns_)), false),
              "2<|im_end|>")
        << end;
  }
}

TEST_F(LearntTurnsOfTally, TheHeaderOfTheNextTurnIsNoPartOfInnerTurns) {
  const auto chat_template = template_of(chatml_ending("<|im_end|>\n", "<|im_start|>user\n"));
  EXPECT_EQ(
      learnt_tokens(tokenizer_,
                    SampleEncoder(tokenizer_, &chat_template, {}).encode(sample_of_turns(turns_)),
                    false),
      "2<|im_end|>4<|im_end|>");
}

// The template has no token for the end of a turn: the mark of the next role ends an answer, as in
// GLM's template.
TEST_F(LearntTurnsOfTally, AnAnswerThatLearnsNoEndIsNoted) {
  const auto open_end = [&](const std::string& source, const Supervision& supervision) {
    const auto chat_template = template_of(source);
    return SampleEncoder(tokenizer_, &chat_template, supervision)
        .encode(sample_of_turns(turns_))
        .open_end;
  };
  const std::string endless =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  EXPECT_EQ(open_end(endless, {}), "4");
  EXPECT_EQ(open_end(endless, {.ends = LearntEnds::None}), "");
  EXPECT_EQ(open_end(chatml_ending("\n", ""), {}), "4");
  EXPECT_EQ(open_end(chatml_ending("<|im_end|>\n", ""), {}), "");
  // data.eos_token names the mark that ends an answer.
  tokenizer_ = text::Tokenizer::load(model_, "<|im_start|>");
  const auto chat_template = template_of(endless);
  const EncodedRow row =
      SampleEncoder(tokenizer_, &chat_template, {}).encode(sample_of_turns(turns_));
  EXPECT_EQ(learnt_tokens(tokenizer_, row, false), "2<|im_start|>4<|im_start|>");
  EXPECT_EQ(row.open_end, "");
}

TEST_F(LearntTurnsOfTally, TurnsOfOtherRolesEndAlikeToo) {
  const auto chat_template = template_of(chatml_ending("<|im_end|>\n", "<|endoftext|>"));
  const SampleEncoder encoder(tokenizer_, &chat_template, {.roles = {"user", "assistant"}});
  EXPECT_EQ(learnt_tokens(tokenizer_, encoder.encode(sample_of_turns(turns_)), false),
            "1 + 1?<|im_end|>2<|im_end|>2 + 2?<|im_end|>4<|im_end|>Thanks<|im_end|>");
}

TEST_F(LearntTurnsOfTally, ASpanThatHoldsAnotherMessageIsRefused) {
  const auto tagged = template_of(
      "{% for m in messages %}{% if m.role == 'user' %}{% generation %}{{ m.content }}<|im_end|>"
      "{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}{% endfor %}");
  EXPECT_THROW(SampleEncoder(tokenizer_, &tagged, {}).encode(sample_of_turns(turns_)), DataError);
  // Each question follows its answer, and one end token ends the whole conversation.
  const auto swapped = template_of(
      "{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>assistant\n"
      "{{ m.content }}\n{{ messages[loop.index0 - 1].content }}{% endif %}{% endfor %}<|im_end|>"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  turns_.erase(turns_.size() - 1);
  turns_.erase(turns_.begin());
  EXPECT_THROW(SampleEncoder(tokenizer_, &swapped, {}).encode(sample_of_turns(turns_)), DataError);
}

TEST_F(LearntTurnsOfTally, AContentOfPartsIsRefusedForOtherRolesWhereTheTemplateReadsIt) {
  turns_[1]["content"] = ordered_json::array({{{"type", "text"}, {"text", "1 + 1?"}}});
  EXPECT_NO_THROW(learnt_of(turns_, {.roles = {"user"}}));  // joined to a text
  const auto reading = template_of(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}"
      "{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}"
      "<|im_end|>\n{% endfor %}");
  const SampleEncoder encoder(tokenizer_, &reading, {.roles = {"user"}});
  EXPECT_THROW(encoder.encode(sample_of_turns(turns_)), DataError);
}

TEST_F(LearntTurnsOfTally, EndsThatAreNoTokensAreRefused) {
  const auto chat_template =
      template_of("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
  const SampleEncoder plain(tokenizer_, &chat_template, {});
  EXPECT_NO_THROW(plain.policy(sample_of_turns(turns_)));
  const SampleEncoder encoder(tokenizer_, &chat_template, {.ends = LearntEnds::None});
  try {
    encoder.policy(sample_of_turns(turns_));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("data.train_on_eos"), std::string::npos);
  }
}

std::string without_blanks(const std::string& text) {
  std::string kept;
  for (const char letter : text)
    if (std::string_view(" \t\r\n").find(letter) == std::string_view::npos) kept += letter;
  return kept;
}

// In every golden template, the learnt tokens of the user's turns are the user's texts.
TEST(LearntTurns, OfTheUserAreTheContentsInEveryGoldenTemplate) {
  const fs::path golden = source_folder() / "tests/golden/text";
  int compared = 0;
  for (const auto& entry : ordered_json::parse(read_file(golden / "chats.json"))) {
    if (!entry.contains("mask")) continue;
    SCOPED_TRACE(entry["template"].get<std::string>() + " " + entry["case"].get<std::string>());
    const fs::path model = source_folder() / entry["folder"].get<std::string>();
    const auto tokenizer = text::Tokenizer::load(model);
    const auto chat_template = *text::ChatTemplate::load(
        model, golden / "templates" / (entry["template"].get<std::string>() + ".jinja"));
    Sample sample = sample_of_turns(entry["messages"]);
    sample.variables["tools"] = entry["tools"];
    std::string wanted;
    bool plain = true;
    for (const auto& message : sample.messages)
      if (message["role"] == "user") {
        plain = plain && message["content"].is_string();
        if (plain) wanted += message["content"].get<std::string>();
      }
    // A content with the text of a special token is encoded as that token, which is not decoded
    // here.
    if (!plain || wanted.find("<|") != std::string::npos) continue;
    const SampleEncoder encoder(tokenizer, &chat_template,
                                {.roles = {"user"}, .ends = LearntEnds::None});
    const std::string found =
        without_blanks(learnt_tokens(tokenizer, encoder.encode(sample), true));
    if (found.find("[/INST]") == std::string::npos) {  // this end of a turn is text, not a token
      EXPECT_EQ(found, without_blanks(wanted));
    }
    ++compared;
  }
  EXPECT_GE(compared, 30);
}

TEST(Supervision, SettingsThatContradictAreRefused) {
  settings::DataSettings data;
  EXPECT_EQ(Supervision::from(data).roles, Roles{"assistant"});
  data.supervise = "all";
  EXPECT_EQ(Supervision::from(data).supervise, Supervise::All);
  data.train_on_eos = "none";
  EXPECT_THROW(Supervision::from(data), ConfigError);
  data.train_on_eos = "turn";
  data.roles_to_train.names = {"user"};
  EXPECT_THROW(Supervision::from(data), ConfigError);
  data.supervise = "assistant";
  EXPECT_THROW(Supervision::from(data), ConfigError);
  data.supervise = "auto";
  EXPECT_EQ(Supervision::from(data).roles, Roles{"user"});
  data.roles_to_train.names = {};
  EXPECT_THROW(Supervision::from(data), ConfigError);
}

}  // namespace
}  // namespace convoy::data
