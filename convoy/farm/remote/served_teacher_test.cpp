// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/served_teacher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/http/http_server.h"

namespace convoy::remote {
namespace {

using nlohmann::json;

constexpr int32_t kVocab = 70;

std::string own_text(int32_t id) { return fmt::format(" word{}", id); }

// The logarithm of the teacher's probability of a token after another: the same for all but the
// order of the tokens.
double logprob_of(int32_t before, int32_t token) {
  const int32_t rank = (token + 3 * before) % kVocab;
  double sum = 0;
  for (int32_t other = 0; other < kVocab; ++other) sum += std::exp(-0.5 * other);
  return -0.5 * rank - std::log(sum);
}

json logprob_json(int32_t before, int32_t token) {
  return {{"logprob", static_cast<float>(logprob_of(before, token))},
          {"rank", nullptr},
          {"decoded_token", own_text(token)}};
}

// A place in vLLM's form, with `count` likeliest tokens and the text's own.
json place_json(int32_t before, int32_t said, int64_t count) {
  json place = json::object();
  for (int32_t token = 0; token < kVocab; ++token)
    if ((token + 3 * before) % kVocab < count)
      place[std::to_string(token)] = logprob_json(before, token);
  place[std::to_string(said)] = logprob_json(before, said);
  return place;
}

class TeacherServer {
 public:
  using Change = std::function<void(json& answer)>;
  using Refuse = std::function<bool(http::Exchange&, int before)>;  // true: it answered

  explicit TeacherServer(Change change = {}, Refuse refuse = {})
      : server_("127.0.0.1", 0, {},
                [this, change = std::move(change),
                 refuse = std::move(refuse)](std::unique_ptr<http::Exchange> exchange) {
                  if (exchange->method() == "GET")
                    return exchange->respond(200, {}, R"({"data": [{"id": "big"}]})");
                  if (refuse && refuse(*exchange, requests_++)) return;
                  json answer = answer_to(json::parse(exchange->body()));
                  if (change) change(answer);
                  exchange->respond(200, {}, answer.dump());
                }) {}

  settings::DistillSettings settings(int64_t top_k = 4) const {
    settings::DistillSettings settings;
    settings.engine = {fmt::format("http://127.0.0.1:{}/v1", server_.port())};
    settings.teacher = "big";
    settings.top_k = top_k;
    return settings;
  }

 private:
  static json answer_to(const json& body) {
    EXPECT_EQ(body.at("max_tokens"), 1);
    EXPECT_EQ(body.at("model"), "big");
    const auto ids = body.at("prompt").get<std::vector<int32_t>>();
    json places = json::array({nullptr});
    for (size_t at = 1; at < ids.size(); ++at)
      places.push_back(place_json(ids[at - 1], ids[at], body.at("prompt_logprobs")));
    return {
        {"choices", {{{"text", "x"}, {"finish_reason", "length"}, {"prompt_logprobs", places}}}}};
  }

  std::atomic<int> requests_ = 0;
  http::Server server_;
};

OwnTokens own_tokens() {
  OwnTokens tokens{.vocab_size = kVocab};
  for (int32_t id = 0; id < kVocab; ++id) tokens.texts.push_back(own_text(id));
  return tokens;
}

std::vector<TaughtTokens> answers_of(ServedTeacher& teacher, const std::vector<TaughtText>& texts) {
  std::vector<TaughtTokens> answers(texts.size());
  teacher.ask(texts, {},
              [&](size_t text, TaughtTokens tokens) { answers[text] = std::move(tokens); });
  return answers;
}

std::string refusal_of(const settings::DistillSettings& settings) {
  try {
    ServedTeacher(settings, own_tokens(), Log(LogLevel::Quiet));
  } catch (const Error& error) {
    return error.sentence();
  }
  return "";
}

TEST(ServedTeacher, GivesTheServersLikeliestTokensToTheBitAndTheShareOfAllOthers) {
  TeacherServer server;
  constexpr int64_t kTopK = 4;
  ServedTeacher teacher(server.settings(kTopK), own_tokens(), Log(LogLevel::Quiet));
  const std::vector<TaughtText> texts = {{.ids = {1, 2, 30, 4}, .first = 2},
                                         {.ids = {5, 6}, .first = 1},
                                         {.ids = {9, 8, 7}, .first = 3}};
  const std::vector<TaughtTokens> answers = answers_of(teacher, texts);
  for (size_t text = 0; text < texts.size(); ++text) {
    const size_t asked = texts[text].ids.size() - static_cast<size_t>(texts[text].first);
    ASSERT_EQ(answers[text].ids.size(), asked * kTopK);
    ASSERT_EQ(answers[text].logprobs.size(), asked * (kTopK + 1));
    for (size_t place = 0; place < asked; ++place) {
      const int32_t before = texts[text].ids[static_cast<size_t>(texts[text].first) + place - 1];
      double others = 0;
      for (int32_t token = 0; token < kVocab; ++token)
        others += std::exp(logprob_of(before, token));
      for (int64_t rank = 0; rank < kTopK; ++rank) {
        const int32_t id = answers[text].ids[place * kTopK + static_cast<size_t>(rank)];
        EXPECT_EQ((id + 3 * before) % kVocab, rank);
        EXPECT_EQ(answers[text].logprobs[place * (kTopK + 1) + static_cast<size_t>(rank)],
                  static_cast<float>(logprob_of(before, id)));
        others -= std::exp(logprob_of(before, id));
      }
      EXPECT_NEAR(answers[text].logprobs[place * (kTopK + 1) + kTopK], std::log(others), 1e-5);
    }
  }
}

// Probabilities in fp32 do not say how little is left of 1: a token that was said, and the last
// one listed, bound it.
TEST(ServedTeacher, BoundsAShareOfOthersThatRoundingHides) {
  double listed_logprob = 0;
  double said_logprob = -50;
  const TeacherServer server([&](json& answer) {
    for (json& place : answer["choices"][0]["prompt_logprobs"])
      if (place.is_object())
        for (auto& [id, token] : place.items())
          token["logprob"] = token["logprob"].get<double>() > -0.95 ? listed_logprob : said_logprob;
  });
  ServedTeacher teacher(server.settings(1), own_tokens(), Log(LogLevel::Quiet));
  const auto others = [&] {
    return answers_of(teacher, {{.ids = {0, 5}, .first = 1}})[0].logprobs[1];
  };
  EXPECT_NEAR(others(), std::log(std::exp2(-23)), 1e-5) << "more than rounding is not known";
  said_logprob = -10;
  EXPECT_NEAR(others(), -10, 1e-5) << "at least the token that was said";
}

TEST(ServedTeacher, BoundsAShareOfOthersByTheLastTokenListed) {
  const TeacherServer server([&](json& answer) {
    for (json& place : answer["choices"][0]["prompt_logprobs"])
      if (place.is_object())
        for (auto& [id, token] : place.items()) {
          const double logprob = token["logprob"];
          token["logprob"] = logprob > -0.95 ? 0 : logprob > -1.45 ? -30 : -31;
        }
  });
  ServedTeacher teacher(server.settings(2), own_tokens(), Log(LogLevel::Quiet));
  EXPECT_NEAR(answers_of(teacher, {{.ids = {0, 5}, .first = 1}})[0].logprobs[2],
              std::log(68.0) - 30, 1e-5)
      << "at most as likely as the last one listed";
}

// The first token of every place gets another log-probability, in texts of three tokens.
TEST(ServedTeacher, RefusesNumbersThatAreNoLogProbabilitiesBeforeItGivesAny) {
  std::function<void(json & place)> change;
  bool is_changed = false;
  const TeacherServer server([&](json& answer) {
    json& places = answer["choices"][0]["prompt_logprobs"];
    if (is_changed && places.size() == 3) change(places[2]);
  });
  ServedTeacher teacher(server.settings(), own_tokens(), Log(LogLevel::Quiet));
  is_changed = true;
  const auto refusal = [&](std::function<void(json & place)> by) {
    change = std::move(by);
    try {
      teacher.ask({{TaughtText{.ids = {1, 2, 3}, .first = 1, .place = "row 7, sample 1"}}}, {},
                  [](size_t, const TaughtTokens&) { FAIL() << "an answer"; });
    } catch (const DataError& error) {
      EXPECT_EQ(error.location().key, "distill.engine");
      EXPECT_EQ(error.location().hint.find("distill.top_k=0"), std::string::npos);
      const std::string said = error.what();
      const std::string place = "row 7, sample 1, token 2 of 3, ";
      const size_t at = said.find(place);
      return at == said.npos ? said : said.substr(at + place.size());
    }
    return std::string("taken");
  };
  const auto with_first = [&](const json& logprob) {
    return refusal([=](json& place) { place.begin().value()["logprob"] = logprob; });
  };
  const std::string wanted = ": wanted a finite number of 0 or less";
  const auto starts = [](const std::string& text, const std::string& with) {
    EXPECT_EQ(text.substr(0, with.size()), with);
  };
  starts(with_first(0.5), "0.5 as the log-probability of token ");
  starts(with_first(1e39), "inf as the log-probability of token ");
  starts(with_first(-1e39), "-inf as the log-probability of token ");
  EXPECT_NE(with_first(-1e39).find(wanted), std::string::npos);
  starts(with_first("-0.5"), "no number as the log-probability of token ");
  starts(with_first(nullptr), "no number as the log-probability of token ");
  starts(refusal([](json& place) {
           for (auto& [id, token] : place.items()) token["logprob"] = 0.0;
         }),
         "tokens whose probabilities add up to ");
  starts(refusal([](json& place) {
           for (auto& [id, token] : place.items()) token["logprob"] = -9999;
         }),
         "0 as the probability of the likeliest token of 70");
  starts(refusal([](json& place) {
           const std::string id = place.begin().key();
           place["0" + id] = place[id];
         }),
         "token ");
  starts(refusal([](json& place) { place = nullptr; }), "no tokens, where the first token");
  starts(refusal([](json& place) { place = json::object(); }), "no tokens, where the first token");
}

TEST(ServedTeacher, TakesWhatRoundingLeavesAboveOne) {
  const TeacherServer server([](json& answer) {
    for (json& place : answer["choices"][0]["prompt_logprobs"])
      if (place.is_object())
        for (auto& [id, token] : place.items())
          token["logprob"] = token["logprob"].get<double>() > -0.95 ? 5e-4 : -20;
  });
  EXPECT_EQ(refusal_of(server.settings()), "");
}

TEST(ServedTeacher, NamesTheKeysOfATraining) {
  settings::DistillSettings nobody;
  nobody.engine = {"http://127.0.0.1:1/v1"};
  nobody.teacher = "big";
  nobody.top_k = 4;
  const std::string said = refusal_of(nobody);
  EXPECT_NE(said.find("no server of distill.engine answers"), std::string::npos) << said;
  EXPECT_EQ(said.find("--engine"), std::string::npos) << said;
}

TEST(ServedTeacher, AsksABusyServerAgain) {
  const TeacherServer server({}, [](http::Exchange& exchange, int before) {
    if (before % 3 != 0) return false;
    exchange.respond(503, {{"Retry-After", "0"}}, "later");
    return true;
  });
  ServedTeacher teacher(server.settings(), own_tokens(), Log(LogLevel::Quiet));
  std::vector<TaughtText> texts(20, {.ids = {1, 2, 3}, .first = 1});
  for (const TaughtTokens& answer : answers_of(teacher, texts)) EXPECT_EQ(answer.ids.size(), 8u);
}

TEST(ServedTeacher, RefusesAServerThatDoesNotSayWhatIsAskedFor) {
  const TeacherServer silent([](json& answer) { answer["choices"][0].erase("prompt_logprobs"); });
  EXPECT_NE(refusal_of(silent.settings()).find("gives no prompt_logprobs in completions"),
            std::string::npos);
  const TeacherServer sparing([](json& answer) {
    for (json& place : answer["choices"][0]["prompt_logprobs"])
      while (place.is_object() && place.size() > 2) place.erase(place.begin());
  });
  EXPECT_NE(
      refusal_of(sparing.settings()).find("gives 2 tokens in a place, and distill.top_k is 4"),
      std::string::npos)
      << refusal_of(sparing.settings());
  const TeacherServer other_reader(
      [](json& answer) { answer["choices"][0]["prompt_logprobs"].erase(1); });
  EXPECT_NE(refusal_of(other_reader.settings())
                .find("gives log-probabilities of 63 tokens of a text of 64"),
            std::string::npos);
  const TeacherServer bounded({}, [](http::Exchange& exchange, int) {
    exchange.respond(400, {}, R"({"error": {"message": "greater than max allowed: 2"}})");
    return true;
  });
  EXPECT_NE(refusal_of(bounded.settings()).find("greater than max allowed: 2"), std::string::npos);
  const TeacherServer server;
  settings::DistillSettings nobody = server.settings();
  nobody.teacher = "small";
  EXPECT_NE(refusal_of(nobody).find("has no model `small`; it has big"), std::string::npos);
  EXPECT_NE(refusal_of(server.settings(kVocab)).find("there are 70 tokens"), std::string::npos);
}

TEST(ServedTeacher, RefusesOtherTokensByTheToken) {
  const TeacherServer other([](json& answer) {
    for (json& place : answer["choices"][0]["prompt_logprobs"])
      if (place.contains("69")) place["69"]["decoded_token"] = "elsewhere";
  });
  EXPECT_NE(refusal_of(other.settings()).find("token 69 is `elsewhere`, here ` word69`"),
            std::string::npos)
      << refusal_of(other.settings());
  const TeacherServer larger([](json& answer) {
    answer["choices"][0]["prompt_logprobs"][1]["70"] = {{"logprob", -0.1}};
  });
  EXPECT_NE(refusal_of(larger.settings()).find("has a token 70, and the model 70 of them"),
            std::string::npos);
  // Decoders differ in a space before the first word and in parts of characters.
  const TeacherServer alike([](json& answer) {
    for (json& place : answer["choices"][0]["prompt_logprobs"])
      for (auto& [id, token] : place.items())
        token["decoded_token"] = id == "3" ? "\xef\xbf\xbd" : "word" + id;
  });
  EXPECT_EQ(refusal_of(alike.settings()), "");
}

TEST(ServedTeacher, SaysOnceThatTokensAreNotSpelled) {
  const TeacherServer server([](json& answer) {
    for (json& place : answer["choices"][0]["prompt_logprobs"])
      if (place.is_object())
        for (auto& [id, token] : place.items()) token.erase("decoded_token");
  });
  ::testing::internal::CaptureStderr();
  ServedTeacher teacher(server.settings(), own_tokens(), Log(LogLevel::Quiet));
  answers_of(teacher, {{.ids = {1, 2, 3}, .first = 1}});
  const std::string said = ::testing::internal::GetCapturedStderr();
  const size_t first = said.find("does not spell its tokens");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("does not spell its tokens", first + 1), std::string::npos) << said;
}

TEST(ServedTeacher, NamesTheTextThatItCannotRead) {
  const TeacherServer server({}, [](http::Exchange& exchange, int) {
    if (json::parse(exchange.body()).at("prompt").size() != 3) return false;
    exchange.respond(400, {}, R"({"error": {"message": "the context length is 2"}})");
    return true;
  });
  ServedTeacher teacher(server.settings(), own_tokens(), Log(LogLevel::Quiet));
  try {
    answers_of(teacher, {{.ids = {1, 2}, .first = 1},
                         {.ids = {1, 2, 3}, .first = 1, .place = "row 7, sample 1"}});
    FAIL() << "a text that is too long";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("row 7, sample 1"), std::string::npos) << error.what();
    EXPECT_EQ(error.location().key, "distill.engine");
  }
  EXPECT_EQ(answers_of(teacher, {{.ids = {1, 2}, .first = 1}})[0].ids.size(), 4u)
      << "nothing of the texts before is under way";
}

TEST(ServedTeacher, StopsOnRequest) {
  const TeacherServer server;
  ServedTeacher teacher(server.settings(), own_tokens(), Log(LogLevel::Quiet));
  const std::vector<TaughtText> texts = {{.ids = {1, 2}, .first = 1}};
  EXPECT_THROW(teacher.ask(
                   texts, [] { return true; }, [](size_t, TaughtTokens) {}),
               StopRequest);
}

TEST(ServedTeacher, ItsAddressIsReadWithoutAsking) {
  settings::DistillSettings settings;
  settings.teacher = "big";
  settings.engine = {"http://gpu1:8000/v1/"};
  EXPECT_EQ(teacher_servers(settings).addresses[0], "http://gpu1:8000/v1");
  for (const char* address : {"gpu1:8000", "http://gpu1:99999/v1", "http://gpu1:8000/v1?key=1"}) {
    settings.engine = {address};
    try {
      teacher_servers(settings);
      FAIL() << address;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.location().key, "distill.engine");
    }
  }
}

}  // namespace
}  // namespace convoy::remote
