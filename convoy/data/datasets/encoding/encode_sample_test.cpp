// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/encode_sample.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/datasets/files_test.h"
#include "files/source_folder.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;
using testing::source_folder;
using Kind = Sample::Kind;

fs::path golden_folder() { return source_folder() / "tests/golden/text"; }

class TemplateFile {
 public:
  explicit TemplateFile(const std::string& source) {
    std::string pattern = (fs::temp_directory_path() / "convoy_encode_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    write_file_atomic(folder_ / "t.jinja", source);
  }
  ~TemplateFile() { fs::remove_all(folder_); }
  text::ChatTemplate load(const fs::path& model) const {
    return *text::ChatTemplate::load(model, folder_ / "t.jinja");
  }

 private:
  fs::path folder_;
};

Sample chat_sample(ordered_json messages, ordered_json tools = nullptr) {
  Sample sample;
  sample.kind = Kind::Chat;
  sample.messages = std::move(messages);
  sample.variables["tools"] = std::move(tools);
  sample.file = "rows.jsonl";
  sample.line = 7;
  return sample;
}

// Decodes the supervised tokens.
std::string learnt(const text::Tokenizer& tokenizer, const EncodedRow& row) {
  std::vector<int32_t> ids;
  for (size_t token = 0; token < row.ids.size(); ++token)
    if (row.supervised[token] != 0) ids.push_back(row.ids[token]);
  return tokenizer.decode(ids, false);
}

TEST(EncodeSample, MaskOfTagsAndOfPrefixDifferenceEqualTransformers) {
  const auto chats = ordered_json::parse(read_file(golden_folder() / "chats.json"));
  int compared = 0;
  for (const auto& entry : chats) {
    const std::string name = entry["template"].get<std::string>();
    if (!entry.contains("mask")) continue;
    SCOPED_TRACE(name + " " + entry["case"].get<std::string>());
    const fs::path model = source_folder() / entry["folder"].get<std::string>();
    const auto tokenizer = text::Tokenizer::load(model);
    const std::string source = read_file(golden_folder() / "templates" / (name + ".jinja"));
    const Sample sample = chat_sample(entry["messages"], entry["tools"]);
    for (const bool with_tags : {true, false}) {
      SCOPED_TRACE(with_tags ? "tags" : "prefix difference");
      const auto chat_template = TemplateFile(with_tags ? source : untagged(source)).load(model);
      ASSERT_EQ(chat_template.has_generation_tags(), with_tags);
      const SampleEncoder encoder(tokenizer, &chat_template, Supervision());
      const EncodedRow row = encoder.encode(sample);
      EXPECT_EQ(row.ids, entry["ids"].get<std::vector<int32_t>>());
      EXPECT_EQ(row.supervised, entry["mask"].get<std::vector<uint8_t>>())
          << learnt(tokenizer, row);
      ++compared;
    }
  }
  EXPECT_GE(compared, 50);
}

class TallyChat : public ::testing::Test {
 protected:
  fs::path model_ = source_folder() / "examples/tally-3m";
  text::Tokenizer tokenizer_ = text::Tokenizer::load(model_);
  text::ChatTemplate template_ = *text::ChatTemplate::load(model_);

  SampleEncoder encoder(Supervise supervise) const {
    return SampleEncoder(tokenizer_, &template_, {.supervise = supervise});
  }
  ordered_json turns_ = {{{"role", "user"}, {"content", "1 + 1?"}},
                         {{"role", "assistant"}, {"content", "2"}},
                         {{"role", "user"}, {"content", "2 + 2?"}},
                         {{"role", "assistant"}, {"content", "4"}}};
};

TEST_F(TallyChat, EveryAnswerWithItsEndIsLearnt) {
  const Sample sample = chat_sample(turns_);
  EXPECT_EQ(learnt(tokenizer_, encoder(Supervise::Auto).encode(sample)), "2<|im_end|>4<|im_end|>");
  EXPECT_EQ(learnt(tokenizer_, encoder(Supervise::Last).encode(sample)), "4<|im_end|>");
  const EncodedRow all = encoder(Supervise::All).encode(sample);
  EXPECT_EQ(all.supervised[0], 0);
  EXPECT_EQ(std::count(all.supervised.begin(), all.supervised.end(), 1),
            static_cast<std::ptrdiff_t>(all.ids.size()) - 1);
}

TEST_F(TallyChat, CompletionMessagesAreLearntAndPromptOnesAreNot) {
  Sample sample;
  sample.kind = Kind::ChatPromptCompletion;
  sample.messages = ordered_json(turns_.begin(), turns_.begin() + 3);
  sample.completion_messages = ordered_json::array({turns_[3]});
  const EncodedRow row = encoder(Supervise::Auto).encode(sample);
  EXPECT_EQ(learnt(tokenizer_, row), "4<|im_end|>");
  EXPECT_EQ(row.ids, encoder(Supervise::Auto).encode(chat_sample(turns_)).ids);
}

TEST_F(TallyChat, PromptEndsWithTheHeaderOfTheAnswer) {
  const EncodedRow prompt = encoder(Supervise::Auto).encode_prompt(chat_sample(turns_));
  const std::string text = tokenizer_.decode(prompt.ids, false);
  EXPECT_TRUE(text.ends_with("2 + 2?<|im_end|>\n<|im_start|>assistant\n")) << text;
}

TEST_F(TallyChat, NoAssistantTurnMeansNothingIsLearnt) {
  const Sample sample = chat_sample(ordered_json::array({turns_[0]}));
  EXPECT_EQ(learnt(tokenizer_, encoder(Supervise::Auto).encode(sample)), "");
}

TEST_F(TallyChat, ErrorsNameTheRow) {
  try {
    encoder(Supervise::Auto).encode(chat_sample(ordered_json::array({{{"content", 1}}})));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().file, "rows.jsonl");
    EXPECT_EQ(error.location().line, 7);
  }
  const SampleEncoder without(tokenizer_, nullptr, Supervision());
  EXPECT_THROW(without.encode(chat_sample(turns_)), DataError);
}

TEST_F(TallyChat, PolicySaysThatEosIsLearnt) {
  const std::string policy = encoder(Supervise::Auto).policy(chat_sample(turns_));
  EXPECT_NE(policy.find("EOS `<|im_end|>` is learnt"), std::string::npos) << policy;
  EXPECT_NE(policy.find("no BOS"), std::string::npos) << policy;
  EXPECT_NE(policy.find("prefix difference"), std::string::npos) << policy;
}

TEST(EncodeSample, ATurnThatCannotBeLocatedIsAnError) {
  const fs::path model = source_folder() / "examples/tally-3m";
  const auto tokenizer = text::Tokenizer::load(model);
  // The template writes the number of messages at the top, so the text of fewer messages is no
  // prefix of the whole text.
  const auto chat_template =
      TemplateFile(
          "{{ messages | length }}{% for m in messages %}{{ m.content | length }}{% endfor %}")
          .load(model);
  const SampleEncoder encoder(tokenizer, &chat_template, Supervision());
  EXPECT_THROW(encoder.encode(chat_sample({{{"role", "user"}, {"content", "a"}},
                                           {{"role", "assistant"}, {"content", "b"}},
                                           {{"role", "user"}, {"content", "c"}}})),
               DataError);
}

Sample text_sample(const std::string& text) {
  Sample sample;
  sample.text = text;
  return sample;
}

Sample pair_sample(const std::string& prompt, const std::string& completion) {
  Sample sample;
  sample.kind = Kind::PromptCompletion;
  sample.prompt = prompt;
  sample.completion = completion;
  return sample;
}

TEST(EncodeSample, TextGetsOneBosAndOneEos) {
  for (const char* name : {"llama3", "metaspace"}) {
    SCOPED_TRACE(name);
    const auto tokenizer = text::Tokenizer::load(golden_folder() / name);
    const SampleEncoder encoder(tokenizer, nullptr, Supervision());
    const int32_t bos = *tokenizer.bos_id();
    const int32_t eos = *tokenizer.eos_id();
    const auto plain = encoder.encode(text_sample("the fox"));
    EXPECT_EQ(std::count(plain.ids.begin(), plain.ids.end(), bos), 1);
    EXPECT_EQ(plain.ids.front(), bos);
    EXPECT_EQ(std::count(plain.ids.begin(), plain.ids.end(), eos), 1);
    EXPECT_EQ(plain.ids.back(), eos);
    EXPECT_EQ(plain.supervised[0], 0);
    EXPECT_EQ(plain.supervised.back(), 1);
    const std::string written = tokenizer.piece(bos) + "the fox" + tokenizer.piece(eos);
    const auto doubled = encoder.encode(text_sample(written));
    EXPECT_EQ(std::count(doubled.ids.begin(), doubled.ids.end(), bos), 1);
    EXPECT_EQ(std::count(doubled.ids.begin(), doubled.ids.end(), eos), 1);
    const auto prompt = encoder.encode_prompt(text_sample("the fox"));
    EXPECT_EQ(prompt.ids.front(), bos);
    EXPECT_NE(prompt.ids.back(), eos);
  }
}

// If the text begins with BOS, no second one is added, and the row is marked.
TEST(EncodeSample, ABosOfItsOwnIsCounted) {
  const fs::path folder = golden_folder() / "llama3";
  const auto tokenizer = text::Tokenizer::load(folder);
  const auto with_bos =
      TemplateFile("{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}")
          .load(folder);
  const auto without =
      TemplateFile("{% for m in messages %}{{ m.content }}{% endfor %}").load(folder);
  const std::string bos = tokenizer.piece(*tokenizer.bos_id());
  const SampleEncoder encoder(tokenizer, &with_bos, {.supervise = Supervise::All});
  EXPECT_FALSE(encoder.encode(text_sample("the fox")).own_bos);
  EXPECT_TRUE(encoder.encode(text_sample(bos + "the fox")).own_bos);
  EXPECT_TRUE(encoder.encode(pair_sample(bos + "the", " fox")).own_bos);
  EXPECT_TRUE(encoder.encode_prompt(text_sample(bos + "the fox")).own_bos);
  const Sample chat = chat_sample({{{"role", "user"}, {"content", "a"}}});
  EXPECT_TRUE(encoder.encode(chat).own_bos);
  EXPECT_TRUE(encoder.encode_prompt(chat).own_bos);
  EXPECT_FALSE(
      SampleEncoder(tokenizer, &without, {.supervise = Supervise::All}).encode(chat).own_bos);
  EXPECT_EQ(own_bos_notice(1),
            "1 row begins with a BOS of its own; the one that the tokenizer adds was left out");
}

TEST_F(TallyChat, VariablesReachTheTemplateInEveryUseOfARow) {
  const auto chat_template =
      TemplateFile(
          "{% for m in messages %}{{ m.role }}{{ mood }}:{% if m.role == 'assistant' %}"
          "{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}"
          "{% endfor %}{% if add_generation_prompt %}assistant{{ mood }}:{% endif %}")
          .load(model_);
  Sample sample = chat_sample(ordered_json(turns_.begin(), turns_.begin() + 2));
  sample.variables["mood"] = "!";
  for (const Supervise supervise : {Supervise::Auto, Supervise::Last, Supervise::All}) {
    const SampleEncoder encoder(tokenizer_, &chat_template, {.supervise = supervise});
    EXPECT_EQ(tokenizer_.decode(encoder.encode(sample).ids, false), "user!:1 + 1?assistant!:2");
    EXPECT_EQ(tokenizer_.decode(encoder.encode_prompt(sample).ids, false),
              "user!:1 + 1?assistant!:");
    EXPECT_EQ(encoder.render(sample, false), "user!:1 + 1?assistant!:2");
  }
}

TEST_F(TallyChat, EmptyAnswersAreLearntOnlyWhenAsked) {
  const std::string tagged =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
      "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}\n"
      "{% else %}{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  Sample sample = chat_sample(turns_);
  sample.messages[1]["content"] = " \n";
  for (const std::string& source : {tagged, untagged(tagged)}) {
    const auto chat_template = TemplateFile(source).load(model_);
    const SampleEncoder skipping(tokenizer_, &chat_template, Supervision());
    EXPECT_EQ(learnt(tokenizer_, skipping.encode(sample)), "4<|im_end|>");
    EXPECT_TRUE(skipping.encode(sample).empty_answer);
    EXPECT_FALSE(skipping.encode(chat_sample(turns_)).empty_answer);
    const SampleEncoder learning(tokenizer_, &chat_template,
                                 {.empty_answers = EmptyAnswers::Learn});
    EXPECT_EQ(learnt(tokenizer_, learning.encode(sample)), " \n<|im_end|>4<|im_end|>");
    EXPECT_FALSE(learning.encode(sample).empty_answer);
    const SampleEncoder refusing(tokenizer_, &chat_template,
                                 {.empty_answers = EmptyAnswers::Error});
    EXPECT_THROW(refusing.encode(sample), DataError);
    EXPECT_NO_THROW(refusing.encode(chat_sample(turns_)));
  }
}

TEST(EncodeSample, EmptyCompletionsAndTextsAreLearntOnlyWhenAsked) {
  const auto tokenizer = text::Tokenizer::load(golden_folder() / "llama3");
  const SampleEncoder skipping(tokenizer, nullptr, Supervision());
  const SampleEncoder learning(tokenizer, nullptr, {.empty_answers = EmptyAnswers::Learn});
  const SampleEncoder refusing(tokenizer, nullptr, {.empty_answers = EmptyAnswers::Error});
  for (const Sample& sample :
       {pair_sample("the user:", ""), pair_sample("the user:", " \n"), text_sample("")}) {
    EXPECT_EQ(learnt(tokenizer, skipping.encode(sample)), "");
    EXPECT_TRUE(skipping.encode(sample).empty_answer);
    EXPECT_TRUE(learnt(tokenizer, learning.encode(sample)).ends_with("<|eot_id|>"));
    EXPECT_THROW(refusing.encode(sample), DataError);
  }
}

TEST_F(TallyChat, ToolsThatTheTemplateDoesNotWriteAreTold) {
  const ordered_json tools =
      ordered_json::parse(R"([{"type": "function", "function": {"name": "add"}}])");
  ordered_json calling = {{"role", "assistant"}, {"content", nullptr}};
  calling["tool_calls"] = ordered_json::parse(
      R"([{"type": "function", "function": {"name": "add", "arguments": {}}}])");
  const Sample sample = chat_sample(ordered_json::array({turns_[0], calling}), tools);
  const std::string plain =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}CALLS<|im_end|>\n"
      "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  const auto with = [&](const std::string& calls, const std::string& head) {
    std::string source = plain;
    return TemplateFile(head + source.replace(source.find("CALLS"), 5, calls)).load(model_);
  };
  const auto neither = with("", "");
  const EncodedRow unread = SampleEncoder(tokenizer_, &neither, Supervision()).encode(sample);
  EXPECT_TRUE(unread.tools_unread);
  EXPECT_TRUE(unread.calls_unread);
  EXPECT_TRUE(unread.empty_answer);
  EXPECT_EQ(learnt(tokenizer_, unread), "");
  const auto both = with("{% for c in m.tool_calls %}{{ c.function.name }}{% endfor %}",
                         "{% for t in tools %}{{ t.function.name }}{% endfor %}");
  const EncodedRow read = SampleEncoder(tokenizer_, &both, Supervision()).encode(sample);
  EXPECT_FALSE(read.tools_unread);
  EXPECT_FALSE(read.calls_unread);
  EXPECT_FALSE(read.empty_answer);
  EXPECT_EQ(learnt(tokenizer_, read), "add<|im_end|>");
}

TEST_F(TallyChat, DocumentsAndReasoningThatTheTemplateDoesNotWriteAreTold) {
  const auto told = [&](const std::string& head, const std::string& thoughts) {
    ordered_json answer = turns_[1];
    answer["reasoning_content"] = "since";
    Sample sample = chat_sample(ordered_json::array({turns_[0], answer}));
    sample.variables["documents"] = ordered_json::array({{{"title", "t"}}});
    const auto chat_template =
        TemplateFile(head + "{% for m in messages %}<|im_start|>{{ m.role }}\n" + thoughts +
                     "{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}"
                     "<|im_start|>assistant\n{% endif %}")
            .load(model_);
    std::string parts;
    for (const Supervise supervise : {Supervise::Auto, Supervise::All}) {
      const EncodedRow row =
          SampleEncoder(tokenizer_, &chat_template, {.supervise = supervise}).encode(sample);
      parts +=
          fmt::format("{}{} ", row.documents_unread ? 'd' : '-', row.reasoning_unread ? 'r' : '-');
    }
    return parts;
  };
  const std::string documents = "{% for d in documents %}{{ d.title }}{% endfor %}";
  EXPECT_EQ(told("", ""), "dr dr ");
  EXPECT_EQ(told(documents, ""), "-r -r ");
  EXPECT_EQ(told("", "{{ m.reasoning_content }}"), "d- d- ");
  EXPECT_EQ(told(documents, "{{ m.reasoning_content }}"), "-- -- ");
}

TEST_F(TallyChat, VariablesThatTheTemplateDoesNotHaveAreTold) {
  const auto chat_template =
      TemplateFile(
          "{% if enable_thinking %}think{% endif %}{% for m in messages %}<|im_start|>"
          "{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}"
          "<|im_start|>assistant\n{% endif %}")
          .load(model_);
  Sample sample = chat_sample(turns_);
  sample.variables = {{"enable_thinking", false}, {"enable_thinkng", false}};
  const EncodedRow row = SampleEncoder(tokenizer_, &chat_template, Supervision()).encode(sample);
  EXPECT_EQ(row.variables_unread, std::vector<std::string>{"enable_thinkng"});
}

TEST_F(TallyChat, PartsAreJoinedWhereTheTemplateReadsOnlyTexts) {
  const auto parts = [](const std::string& first, const std::string& second) {
    return ordered_json::array(
        {{{"type", "text"}, {"text", first}}, {{"type", "text"}, {"text", second}}});
  };
  Sample sample = chat_sample(ordered_json(turns_.begin(), turns_.begin() + 2));
  sample.messages[0]["content"] = parts("1 +", "1?");
  sample.messages[1]["content"] = parts("2", "or so");
  // The model's own template concatenates texts, which fails for a list; the other template prints
  // the list as Python does.
  auto printing = TemplateFile(
                      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
                      "<|im_end|>\n{% endfor %}{% if add_generation_prompt "
                      "%}<|im_start|>assistant\n{% endif %}")
                      .load(model_);
  for (const text::ChatTemplate* chat_template : {&template_, &printing}) {
    const SampleEncoder encoder(tokenizer_, chat_template, Supervision());
    EXPECT_NE(encoder.render(sample, false).find("1 +\n1?<|im_end|>"), std::string::npos)
        << encoder.render(sample, false);
    EXPECT_EQ(learnt(tokenizer_, encoder.encode(sample)), "2\nor so<|im_end|>");
    EXPECT_NE(tokenizer_.decode(encoder.encode_prompt(sample).ids, false).find("1 +\n1?"),
              std::string::npos);
  }
  const auto reading = TemplateFile(
                           "{% for m in messages %}<|im_start|>{{ m.role }}\n"
                           "{% if m.content is string %}{{ m.content }}{% else %}"
                           "{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endif %}"
                           "<|im_end|>\n{% endfor %}")
                           .load(model_);
  const std::string bracketed =
      SampleEncoder(tokenizer_, &reading, Supervision()).render(sample, false);
  EXPECT_NE(bracketed.find("[1 +][1?]<|im_end|>"), std::string::npos) << bracketed;
  const auto concatenating = TemplateFile(
                                 "{% for m in messages %}<|im_start|>{{ m.role }}\n"
                                 "{% if m.content is string %}{{ m.content }}{% else %}"
                                 "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}"
                                 "<|im_end|>\n{% endfor %}")
                                 .load(model_);
  const std::string own =
      SampleEncoder(tokenizer_, &concatenating, Supervision()).render(sample, false);
  EXPECT_NE(own.find("1 +1?<|im_end|>"), std::string::npos) << own;
}

TEST(EncodeSample, CompletionBeginsWhereTheTokensPart) {
  const auto tokenizer = text::Tokenizer::load(golden_folder() / "llama3");
  const SampleEncoder encoder(tokenizer, nullptr, Supervision());
  const auto apart = encoder.encode(pair_sample("the user:", " answers"));
  EXPECT_EQ(learnt(tokenizer, apart), " answers<|eot_id|>");
  // "ques" + "tion" is tokenised as one text, so a token may belong to both.
  const auto joined = encoder.encode(pair_sample("the ques", "tion"));
  const auto whole = tokenizer.encode("the question", text::SpecialTokens::Add).ids;
  EXPECT_EQ(std::vector<int32_t>(joined.ids.begin(), joined.ids.end() - 1), whole);
  EXPECT_TRUE(learnt(tokenizer, joined).ends_with("tion<|eot_id|>"));
  EXPECT_TRUE(joined.crosses_seam);
  EXPECT_FALSE(apart.crosses_seam);
  EXPECT_EQ(encoder.encode(pair_sample("the user:", "")).crosses_seam, false);
  const auto empty = encoder.encode(pair_sample("", "x"));
  EXPECT_EQ(empty.supervised[0], 0);
  EXPECT_EQ(learnt(tokenizer, empty), "x<|eot_id|>");
}

}  // namespace
}  // namespace convoy::data
