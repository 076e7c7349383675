// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/server_answer.h"

#include <gtest/gtest.h>

#include <ctime>

namespace convoy::remote {
namespace {

using std::chrono::milliseconds;

std::optional<milliseconds> rest(std::map<std::string, std::string> headers) {
  static const http::CurlLibrary curl;
  return retry_after(curl, {.status = 429, .headers = std::move(headers)});
}

TEST(ServerAnswer, ReadsTheRestThatIsMeant) {
  EXPECT_EQ(rest({{"retry-after", "5"}}), milliseconds(5000));
  EXPECT_EQ(rest({{"retry-after", " 0.5 "}}), milliseconds(500));
  EXPECT_EQ(rest({{"retry-after-ms", "250"}, {"retry-after", "9"}}), milliseconds(250));
  EXPECT_EQ(rest({{"retry-after", "86400"}}), milliseconds(3'600'000));
  for (const char* none : {"-5", "999999999999999999999", "nan", "inf", "soon", ""})
    EXPECT_EQ(rest({{"retry-after", none}}), std::nullopt) << none;
  EXPECT_EQ(rest({}), std::nullopt);
}

TEST(ServerAnswer, ADateCountsFromTheAnswersOwn) {
  for (const char* date : {"Sun, 06 Nov 1994 08:49:40 GMT", "Sunday, 06-Nov-94 08:49:40 GMT",
                           "Sun Nov  6 08:49:40 1994"})
    EXPECT_EQ(rest({{"retry-after", date}, {"date", "Sun, 06 Nov 1994 08:49:37 GMT"}}),
              milliseconds(3000))
        << date;
  // The date is in the past by the clock of this machine.
  EXPECT_EQ(rest({{"retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"}}), std::nullopt);
  char later[64];
  const time_t then = std::time(nullptr) + 100;
  std::strftime(later, sizeof later, "%a, %d %b %Y %H:%M:%S GMT", std::gmtime(&then));
  const auto left = rest({{"retry-after", later}});
  ASSERT_TRUE(left);
  EXPECT_GT(*left, milliseconds(50'000));
  EXPECT_LE(*left, milliseconds(100'000));
}

TEST(ServerAnswer, AStatusHasASense) {
  const auto sense = [](int status, std::string body = "") {
    return sense_of({.status = status, .headers = {}, .body = std::move(body)});
  };
  for (const int status : {429, 503, 529}) EXPECT_EQ(sense(status), AnswerSense::OfLoad) << status;
  for (const int status : {408, 409, 425, 500, 502, 504, 520})
    EXPECT_EQ(sense(status), AnswerSense::OfServer) << status;
  for (const int status : {301, 307, 404, 405, 501})
    EXPECT_EQ(sense(status), AnswerSense::OfAddress) << status;
  for (const int status : {401, 407}) EXPECT_EQ(sense(status), AnswerSense::OfKey) << status;
  for (const int status : {400, 403, 413, 422, 451})
    EXPECT_EQ(sense(status), AnswerSense::OfText) << status;
  EXPECT_EQ(sense(429, "Request too large for m on tokens per min"), AnswerSense::OfText);
}

TEST(ServerAnswer, AnAccountWithoutCreditIsNoLoad) {
  const auto sense = [](int status, std::string body) {
    return sense_of({.status = status, .headers = {}, .body = std::move(body)});
  };
  EXPECT_EQ(sense(402, ""), AnswerSense::OfCredit);
  for (const char* error :
       {R"({"message":"You exceeded your current quota","code":"insufficient_quota"})",
        R"({"message":"You exceeded your current quota","type":"insufficient_quota"})",
        R"({"message":"no","code":"billing_hard_limit_reached"})",
        R"({"message":"no","type":"exceeded_current_quota_error"})",
        R"({"message":"Insufficient credits. Add more"})", R"("Insufficient Balance")"}) {
    const std::string body = std::string(R"({"error":)") + error + "}";
    EXPECT_EQ(sense(429, body), AnswerSense::OfCredit) << body;
    EXPECT_EQ(sense(403, body), AnswerSense::OfCredit) << body;
    EXPECT_EQ(sense(500, R"({"choices":[)" + body + "]}"), AnswerSense::OfCredit) << body;
    EXPECT_EQ(sense(429, "[" + body + "]"), AnswerSense::OfCredit) << body;
  }
  // Some texts name a limit per minute, and some repeat words of a prompt.
  EXPECT_EQ(sense(429, R"({"error":{"message":"You exceeded your current quota","code":429}})"),
            AnswerSense::OfLoad);
  EXPECT_EQ(sense(429, R"({"error":{"message":"slow","code":"rate_limit_exceeded"}})"),
            AnswerSense::OfLoad);
  EXPECT_EQ(sense(400, R"({"detail":[{"input":"insufficient balance"}]})"), AnswerSense::OfText);
  EXPECT_EQ(sense(400, R"({"error":{"message":"bad input: insufficient balance"}})"),
            AnswerSense::OfText);
}

}  // namespace
}  // namespace convoy::remote
