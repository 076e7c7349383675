// SPDX-License-Identifier: Apache-2.0
//
// Reads rows as files have them, and tests which tokens are learnt and with what weights.
#include "convoy/data/datasets/masks/turn_weights.h"

#include <gtest/gtest.h>

#include <string>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/chain/row_shape.h"
#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/schemas/schema.h"
#include "files/source_folder.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kTagged =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation "
    "%}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}\n"
    "{% endfor %}";

class TurnWeights : public ::testing::Test {
 protected:
  static Sample sample_of(const std::string& text) {
    const Row row{Json::parse(text), "rows.jsonl", 7, 6};
    return convert_row(row, detect_schema(row, {}), {}).sample;
  }

  // Returns a row with two questions, a wrong answer and a right answer. The arguments are JSON
  // text: further members of the answers, of the first question, and of the row.
  static std::string chat(const std::string& first, const std::string& second,
                          const std::string& user = "", const std::string& of_row = "") {
    return R"({"messages": [{"role": "user", "content": "q")" + user +
           R"(}, {"role": "assistant", "content": "bad")" + first +
           R"(}, {"role": "user", "content": "sure?"}, {"role": "assistant", "content": "good")" +
           second + "}]" + of_row + "}";
  }

  EncodedRow encoded(const std::string& text, const Supervision& supervision = {},
                     const char* template_source = nullptr) {
    const auto chat_template = *text::ChatTemplate::load(
        model_, template_source == nullptr ? "" : folder_.write("t.jinja", template_source));
    return SampleEncoder(tokenizer_, &chat_template, supervision).encode(sample_of(text));
  }

  // Returns the learnt tokens. A weight other than 1 is written behind the tokens that have it.
  std::string learnt(const EncodedRow& row) const {
    std::string text;
    std::vector<int32_t> ids;
    float weight = 1;
    const auto end_run = [&] {
      text += tokenizer_.decode(ids, false);
      if (weight != 1) text += fmt::format("*{:g}", weight);
      ids.clear();
    };
    for (size_t token = 0; token < row.ids.size(); ++token) {
      if (row.supervised[token] == 0) continue;
      const float own = row.weights.empty() ? 1 : row.weights[token];
      if (own != weight) end_run();
      weight = own;
      ids.push_back(row.ids[token]);
    }
    end_run();
    return text;
  }

  static std::string refusal(const std::string& text) {
    try {
      sample_of(text);
    } catch (const DataError& error) {
      return error.what();
    }
    return "none";
  }

  ScratchFolder folder_;
  fs::path model_ = testing::source_folder() / "examples/tally-3m";
  text::Tokenizer tokenizer_ = text::Tokenizer::load(model_);
};

TEST_F(TurnWeights, EveryToolsSpellingDecidesWhatIsLearnt) {
  EXPECT_EQ(learnt(encoded(chat("", ""))), "bad<|im_end|>good<|im_end|>");
  for (const char* tagged : {static_cast<const char*>(nullptr), kTagged}) {
    for (const char* key :
         {"weight", "loss_weight", "train", "training", "trainable", "loss", "loss_mask"})
      for (const auto& [no, yes] : {std::pair("0", "1"), std::pair("false", "true"),
                                    std::pair("0.0", "1.0"), std::pair("false", "null")}) {
        const std::string row =
            chat(fmt::format(R"(, "{}": {})", key, no), fmt::format(R"(, "{}": {})", key, yes));
        EXPECT_EQ(learnt(encoded(row, {}, tagged)), "good<|im_end|>") << row;
      }
    EXPECT_EQ(learnt(encoded(chat(R"(, "masked": true)", R"(, "masked": false)"), {}, tagged)),
              "good<|im_end|>");
    EXPECT_EQ(learnt(encoded(chat("", "", "", R"(, "loss_mask": [0, 0, 0, 1])"), {}, tagged)),
              "good<|im_end|>");
  }
  EXPECT_EQ(learnt(encoded(R"({"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", )"
                           R"("value": "bad", "weight": 0}, {"from": "human", "value": "sure?"}, )"
                           R"({"from": "gpt", "value": "good", "weight": 1}]})")),
            "good<|im_end|>");
  EXPECT_EQ(learnt(encoded(R"({"prompt": [{"role": "user", "content": "q"}], "completion": [)"
                           R"({"role": "assistant", "content": "bad", "weight": 0}, )"
                           R"({"role": "user", "content": "sure?"}, )"
                           R"({"role": "assistant", "content": "good"}]})")),
            "good<|im_end|>");
}

// A turn that is marked as learnt is learnt whatever its role, as in axolotl.
TEST_F(TurnWeights, ATurnOfAnotherRoleIsLearntIfItSaysSo) {
  for (const char* says :
       {R"("train": true)", R"("training": 1)", R"("trainable": true)", R"("loss_mask": 1)",
        R"("masked": false)", R"("weight": 1, "train": true)"})
    EXPECT_EQ(learnt(encoded(chat(R"(, "train": false)", "", std::string(", ") + says))),
              "q<|im_end|>good<|im_end|>")
        << says;
  const Supervision users = Supervision::named("auto", {"user"});
  EXPECT_EQ(learnt(encoded(chat(R"(, "weight": 1)", "", R"(, "weight": 0)"), users)),
            "bad<|im_end|>sure?<|im_end|>");
}

// In OpenAI's, LLaMA-Factory's and ms-swift's formats, these keys belong to answers.
TEST_F(TurnWeights, AWeightOfAnotherRoleCountsOnlyWhereTheTurnIsLearnt) {
  const Supervision both = Supervision::named("auto", {"assistant", "user"});
  for (const char* key : {"weight", "loss_weight", "loss"}) {
    for (const char* value : {"1", "true", "0.5", "2"})
      EXPECT_EQ(learnt(encoded(chat("", "", fmt::format(R"(, "{}": {})", key, value)))),
                "bad<|im_end|>good<|im_end|>")
          << key << value;
    EXPECT_EQ(learnt(encoded(chat("", "", fmt::format(R"(, "{}": 0.5)", key)), both)),
              "q<|im_end|>*0.5bad<|im_end|>sure?<|im_end|>good<|im_end|>")
        << key;
    EXPECT_EQ(learnt(encoded(chat("", "", fmt::format(R"(, "{}": 0)", key)), both)),
              "bad<|im_end|>sure?<|im_end|>good<|im_end|>")
        << key;
  }
}

TEST_F(TurnWeights, FractionsAreWeightsOfTheTurnsTokens) {
  EXPECT_EQ(learnt(encoded(chat(R"(, "weight": 0.25)", ""))), "bad<|im_end|>*0.25good<|im_end|>");
  EXPECT_EQ(learnt(encoded(chat(R"(, "loss": true, "loss_scale": 2)", R"(, "loss_scale": 0.5)"))),
            "bad<|im_end|>*2good<|im_end|>*0.5");
  // A factor has no effect on a turn that is not learnt without it.
  EXPECT_EQ(
      learnt(encoded(chat(R"(, "loss": false, "loss_scale": 2)", "", R"(, "loss_scale": 2)"))),
      "good<|im_end|>");
  EXPECT_EQ(learnt(encoded(chat("", "", "", R"(, "loss_mask": [0, 0.5, 0, 1])"), {}, kTagged)),
            "bad<|im_end|>*0.5good<|im_end|>");
  // The mask adds a turn of the user, although the template marks answers.
  EXPECT_EQ(learnt(encoded(chat("", "", "", R"(, "loss_mask": [2, 0.5, 0, 1])"), {}, kTagged)),
            "q<|im_end|>*2bad<|im_end|>*0.5good<|im_end|>");
  EXPECT_EQ(learnt(encoded(chat("", ""), {.roles = {"user", "assistant"}}, kTagged)),
            "q<|im_end|>bad<|im_end|>sure?<|im_end|>good<|im_end|>");
}

TEST_F(TurnWeights, HoldWithEverySupervision) {
  const std::string row = chat(R"(, "weight": 0.5)", R"(, "weight": 0)");
  EXPECT_EQ(learnt(encoded(row, Supervision::named("last"))), "bad<|im_end|>*0.5");
  const EncodedRow all = encoded(row, Supervision::named("all"));
  const EncodedRow plain = encoded(chat("", ""), Supervision::named("all"));
  EXPECT_EQ(count_supervised(plain) - count_supervised(all), 3);  // g, ood, <|im_end|>
  EXPECT_NE(learnt(all).find("bad<|im_end|>*0.5"), std::string::npos) << learnt(all);
  EXPECT_NE(learnt(all).find("sure?"), std::string::npos);
  EXPECT_EQ(learnt(encoded(chat(R"(, "train": false)", R"(, "train": false)"))), "");
}

TEST_F(TurnWeights, TheTemplateDoesNotSeeThem) {
  const char* dumping = "{% for m in messages %}{{ m | tojson }}<|im_end|>{% endfor %}";
  const auto chat_template = *text::ChatTemplate::load(model_, folder_.write("d.jinja", dumping));
  const SampleEncoder encoder(tokenizer_, &chat_template, {});
  const std::string plain = encoder.render(sample_of(chat("", "")), false);
  EXPECT_EQ(encoder.render(sample_of(chat(R"(, "weight": 0)", R"(, "masked": false)")), false),
            plain);
  EXPECT_EQ(prompt_messages(sample_of(chat(R"(, "weight": 0)", ""))),
            prompt_messages(sample_of(chat("", ""))));
}

TEST_F(TurnWeights, ConversionsKeepThem) {
  const Sample sample = sample_of(chat(R"(, "train": false)", R"(, "weight": 0.5)"));
  for (const Schema schema : {Schema::Messages, Schema::ShareGpt}) {
    const Json row = row_of(sample, schema);
    EXPECT_EQ(learnt(encoded(row.dump())), "good<|im_end|>*0.5") << row;
  }
}

TEST_F(TurnWeights, WhatCannotBeFollowedIsRefusedByName) {
  for (const auto& [members, mention] :
       {std::pair(R"(, "weight": "high")", "`weight` is \"high\", wanted true, false, 0"),
        std::pair(R"(, "weight": -1)", "`weight` is -1"),
        std::pair(R"(, "weight": 1e-9)", "`weight` is 1e-09"),
        std::pair(R"(, "loss": [1, 0])", "`loss` is a JSON array"),
        std::pair(R"(, "masked": 0.5)", "`masked` is 0.5, wanted true or false"),
        std::pair(R"(, "weight": 0, "train": true)", "`weight` and `train` contradict each other"),
        std::pair(R"(, "weight": 0.5, "loss_weight": 2)", "contradict"),
        std::pair(R"(, "train_detail": [])", "`train_detail` chooses parts of a text")}) {
    const std::string found = refusal(chat(members, ""));
    EXPECT_NE(found.find(mention), std::string::npos) << found;
    EXPECT_NE(found.find("messages[1]"), std::string::npos) << found;
  }
  EXPECT_NE(refusal(chat("", "", "", R"(, "loss_mask": [0, 1])"))
                .find("`loss_mask` has 2 entries for 4 turns"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", )"
                    R"("content": [{"type": "text", "text": "a", "train": false}]}]})")
                .find("a part of the `content` at messages[1] has `train`"),
            std::string::npos);
}

// A `loss_mask` has no entry for the turn that data.system_prompt adds.
TEST_F(TurnWeights, ALossMaskIsOfTheRowsOwnTurns) {
  SchemaConfig config;
  config.system_prompt = "be kind";
  const auto converted = [&](const std::string& text) {
    const Row row{Json::parse(text), "rows.jsonl", 7, 6};
    return convert_row(row, detect_schema(row, config), config).sample;
  };
  const Sample sample = converted(chat("", "", "", R"(, "loss_mask": [1, 0, 0, 2])"));
  ASSERT_EQ(sample.messages.size(), 5u);
  EXPECT_FALSE(sample.messages[0].contains("weight"));
  EXPECT_EQ(sample.messages[1]["weight"], 1);
  EXPECT_EQ(sample.messages[4]["weight"], 2);
  EXPECT_THROW(converted(chat("", "", "", R"(, "loss_mask": [0, 1, 0, 0, 1])")), DataError);
}

// The template has no role `developer`, so a turn of that role becomes a system turn.
TEST_F(TurnWeights, ADeveloperThatBecomesSystemKeepsItsWeight) {
  const auto row = [](const std::string& of_developer, const std::string& of_answer) {
    return R"({"messages": [{"role": "developer", "content": "be kind")" + of_developer +
           R"(}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "a")" +
           of_answer + "}]}";
  };
  EXPECT_EQ(learnt(encoded(row(R"(, "train": 0.5)", ""))), "be kind<|im_end|>*0.5a<|im_end|>");
  EXPECT_EQ(learnt(encoded(row(R"(, "train": true)", R"(, "train": false)"))), "be kind<|im_end|>");
  EXPECT_EQ(learnt(encoded(row("", R"(, "weight": 1)"))), "a<|im_end|>");
  const Supervision of_developer{.roles = {"developer"}};
  EXPECT_EQ(learnt(encoded(row("", ""), of_developer)), "be kind<|im_end|>");
  EXPECT_EQ(learnt(encoded(row("", R"(, "weight": 2)"), of_developer)),
            "be kind<|im_end|>a<|im_end|>*2");
  EXPECT_EQ(learnt(encoded(row(R"(, "weight": 0.5)", ""), of_developer)), "be kind<|im_end|>*0.5");
  const Supervision of_system{.roles = {"system"}};
  EXPECT_EQ(learnt(encoded(row("", ""), of_system)), "be kind<|im_end|>");
}

TEST_F(TurnWeights, KeysThatReadLikeAWeightAreNamed) {
  for (const char* key : {"mask", "Weight", "isTrainable", "loss-mask", "train_on_turn", "weights",
                          "ignore", "ignored", "skip", "excludeFromLoss"})
    EXPECT_EQ(sample_of(chat(fmt::format(R"(, "{}": 0)", key), "")).weight_like,
              std::vector<std::string>{key});
  for (const char* key : {"name", "constraint", "reasoning_content", "id", "x"})
    EXPECT_TRUE(sample_of(chat(fmt::format(R"(, "{}": 0)", key), "")).weight_like.empty()) << key;
  EXPECT_TRUE(sample_of(chat(R"(, "mask": null)", "")).weight_like.empty());
}

TEST_F(TurnWeights, OtherKeysThatNothingReadsAreNamed) {
  using Keys = std::vector<std::string>;
  const std::string row = chat(R"(, "country": "IT", "tags": [], "name": "x", "url": null)", "");
  EXPECT_EQ(encoded(row).keys_unread, (Keys{"country", "name"}));
  EXPECT_EQ(encoded(chat(R"(, "text": "more")", "")).keys_unread, Keys{"text"});
  const char* const reading =
      "{% for m in messages %}{{ m.country }}{{ m.name }}{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}>{% endif %}";
  EXPECT_EQ(encoded(row, {.supervise = Supervise::All}, reading).keys_unread, Keys());
  EXPECT_EQ(encoded(R"({"conversations": [{"from": "human", "value": "q", "country": "IT"},)"
                    R"({"from": "gpt", "value": "a"}]})",
                    {.supervise = Supervise::All}, reading)
                .keys_unread,
            Keys{"country"});
}

}  // namespace
}  // namespace convoy::data
