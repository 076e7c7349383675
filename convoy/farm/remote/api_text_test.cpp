// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/api_text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace convoy::remote {
namespace {

using nlohmann::ordered_json;
using process::TextFinish;

TEST(ApiText, SendsChatsAndPlainTexts) {
  process::TextRequest request{.prompt = {.text = "1 + 1 ="},
                               .sampling = {.temperature = 0, .max_new_tokens = 9}};
  const ApiText plain = api_text(request, "m", {});
  EXPECT_EQ(plain.path, "/completions");
  EXPECT_EQ(plain.body, R"({"model":"m","max_tokens":9,"temperature":0.0,"prompt":"1 + 1 ="})");
  request.prompt = {.messages = {{{"role", "user"}, {"content", "1 + 1 = ?"}}}};
  request.sampling = {.temperature = 0.5,
                      .top_k = 7,
                      .min_p = 0.1,
                      .repetition_penalty = 1.1,
                      .max_new_tokens = 9,
                      .stop = {"END"}};
  request.draw = {.seed = 42, .row = 3, .sample = 1};
  const ApiText chat = api_text(request, "m", {{"enable_thinking", false}});
  EXPECT_EQ(chat.path, "/chat/completions");
  ordered_json body = ordered_json::parse(chat.body);
  EXPECT_EQ(body["messages"], request.prompt.messages);
  EXPECT_EQ(body["chat_template_kwargs"]["enable_thinking"], false);
  EXPECT_EQ(body["stop"], ordered_json({"END"}));
  EXPECT_EQ(body["top_k"], 7);
  EXPECT_EQ(body["min_p"], 0.1);
  EXPECT_EQ(body["repetition_penalty"], 1.1);
  const int64_t seed = body["seed"];
  EXPECT_GE(seed, 0);
  EXPECT_LE(seed, INT32_MAX);
  for (const char* of_the_text : {"messages", "seed", "chat_template_kwargs"})
    body.erase(of_the_text);
  EXPECT_EQ(ordered_json::parse(chat.settings), body);
  // Only the draw decides the seed.
  request.number = 77;
  EXPECT_EQ(ordered_json::parse(api_text(request, "m", {}).body)["seed"], seed);
  request.draw.sample = 2;
  EXPECT_NE(ordered_json::parse(api_text(request, "m", {}).body)["seed"], seed);
  request.schema = R"({"type":"object"})";
  const ApiText formed = api_text(request, "m", {});
  EXPECT_EQ(ordered_json::parse(formed.body)["response_format"],
            ordered_json::parse(R"({"type":"json_schema","json_schema":{"name":"text",)"
                                R"("schema":{"type":"object"},"strict":true}})"));
  EXPECT_NE(formed.settings.find("response_format"), std::string::npos)
      << "a server that refuses it refuses it for every text of the stage";
  // The variables of a row replace the engine's variables; tools are a field of the API.
  request.prompt.variables = {{"tools", {{{"name", "f"}}}}, {"depth", 2}};
  body = ordered_json::parse(api_text(request, "m", {{"enable_thinking", false}}).body);
  EXPECT_EQ(body["chat_template_kwargs"], ordered_json({{"depth", 2}}));
  EXPECT_EQ(body["tools"][0]["name"], "f");
  request.prompt = {.text = "\xff"};
  EXPECT_THROW(api_text(request, "m", {}), nlohmann::json::exception);
}

TEST(ApiText, AsksForTheLikeliestTokensOfAPromptOfTokensAndReadsThem) {
  const ApiText asked = api_text({.prompt = {.ids = {4, 9, 2}},
                                  .sampling = {.temperature = 0, .max_new_tokens = 1},
                                  .prompt_likeliest = 2},
                                 "m", {});
  EXPECT_EQ(asked.path, "/completions");
  EXPECT_EQ(
      asked.body,
      R"({"model":"m","max_tokens":1,"temperature":0.0,"prompt_logprobs":2,"prompt":[4,9,2]})");
  const auto read = read_api_text(R"({"choices":[{"text":"","finish_reason":"length",
      "prompt_logprobs":[null,
        {"9":{"logprob":-0.1,"rank":1,"decoded_token":"nine"},"8":{"logprob":-2.5}},
        {"2":{"logprob":-0.4,"rank":1},"x":{"logprob":-1},"3":{"rank":2},
         "4":{"logprob":"-0.5"}}]}]})")
                        .text;
  ASSERT_TRUE(read);
  ASSERT_EQ(read->prompt_likeliest.size(), 3u);
  EXPECT_TRUE(read->prompt_likeliest[0].empty());
  ASSERT_EQ(read->prompt_likeliest[1].size(), 2u);
  EXPECT_EQ(read->prompt_likeliest[1][0].id, 9);
  EXPECT_EQ(read->prompt_likeliest[1][0].logprob, -0.1F);
  EXPECT_EQ(read->prompt_likeliest[1][0].text, "nine");
  EXPECT_EQ(read->prompt_likeliest[1][1].text, "");
  ASSERT_EQ(read->prompt_likeliest[2].size(), 3u) << "what is no token is left out";
  EXPECT_EQ(read->prompt_likeliest[2][0].logprob, -0.4F);
  for (const size_t at : {1u, 2u})
    EXPECT_TRUE(std::isnan(read->prompt_likeliest[2][at].logprob)) << "no number";
}

TEST(ApiText, ReadsTextsAndTheirEnds) {
  const auto chat =
      read_api_text(
          R"({"choices":[{"message":{"role":"assistant","content":"two"},"finish_reason":"stop"}],
          "usage":{"prompt_tokens":5,"completion_tokens":2}})")
          .text;
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->text, "two");
  EXPECT_EQ(chat->finish, TextFinish::Stop);
  EXPECT_EQ(chat->prompt_tokens, 5);
  EXPECT_EQ(chat->new_tokens, 2);
  const auto plain = read_api_text(R"({"choices":[{"text":" 2","finish_reason":"length"}],
          "usage":{"prompt_tokens":5.0,"completion_tokens":"2"}})")
                         .text;
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->text, " 2");
  EXPECT_EQ(plain->finish, TextFinish::Length);
  EXPECT_EQ(plain->prompt_tokens, 5);
  EXPECT_EQ(plain->new_tokens, 2);
}

TEST(ApiText, EveryEndKeepsTheText) {
  const auto finish = [](const std::string& reason) {
    const auto text =
        read_api_text(R"({"choices":[{"text":"2","finish_reason":)" + reason + "}]}").text;
    EXPECT_TRUE(text && text->text == "2") << reason;
    return text ? text->finish : TextFinish::Error;
  };
  for (const char* reason : {R"("stop")", R"("eos_token")", "null", R"("tool_calls")", R"("STOP")",
                             R"("end_turn")", R"("stop_sequence")", R"("something new")", "7"})
    EXPECT_EQ(finish(reason), TextFinish::Stop) << reason;
  for (const char* reason : {R"("length")", R"("MAX_TOKENS")", R"("model_length")", R"("abort")",
                             R"("content_filter")", R"("insufficient_system_resource")"})
    EXPECT_EQ(finish(reason), TextFinish::Length) << reason;
  EXPECT_TRUE(read_api_text(R"({"choices":[{"text":"2"}]})").text);
}

TEST(ApiText, AnEndThatIsNeitherKeepsTheServersWord) {
  const auto word = [](const std::string& reason) {
    return read_api_text(R"({"choices":[{"text":"2","finish_reason":")" + reason + "\"}]}")
        .text->other_finish;
  };
  for (const char* own : {"content_filter", "SAFETY", "abort"}) EXPECT_EQ(word(own), own);
  for (const char* usual : {"stop", "length", "eos_token", "MAX_TOKENS", "tool_calls"})
    EXPECT_EQ(word(usual), "") << usual;
}

ApiAnswer with_message(const std::string& message, const std::string& reason = "stop") {
  return read_api_text(R"({"choices":[{"message":)" + message + R"(,"finish_reason":")" + reason +
                       R"("}]})");
}

TEST(ApiText, PutsAThoughtBeforeItsText) {
  const auto text = [](const std::string& message) { return with_message(message).text->text; };
  EXPECT_EQ(text(R"({"reasoning_content":"one and one","content":"2"})"),
            "<think>one and one</think>2");
  // The server reports that the text ended by itself or that a limit cut it.
  EXPECT_EQ(text(R"({"reasoning":"one and one","content":null})"), "<think>one and one</think>");
  EXPECT_EQ(text(R"({"reasoning_content":"one and one","content":""})"),
            "<think>one and one</think>");
  const std::string thoughts = R"({"reasoning":"one and","content":null})";
  EXPECT_EQ(with_message(thoughts, "length").text->text, "<think>one and");
  EXPECT_EQ(with_message(thoughts, "").text->text, "<think>one and");
  EXPECT_EQ(with_message(thoughts, "STOP").text->text, "<think>one and</think>");
  EXPECT_EQ(text(R"({"reasoning_content":null,"content":"2"})"), "2");
}

TEST(ApiText, ReadsPartsAndCalls) {
  const auto text = [](const std::string& message) { return with_message(message).text->text; };
  EXPECT_EQ(text(R"({"content":[{"type":"text","text":"It is "},{"type":"text","text":"2."}]})"),
            "It is 2.");
  EXPECT_EQ(text(R"({"content":["It is ","2."]})"), "It is 2.");
  EXPECT_EQ(text(R"({"content":{"type":"output_text","text":"2"}})"), "2");
  EXPECT_EQ(text(R"({"content":[{"type":"thinking","thinking":[{"type":"text","text":"1+1"}]},
                                {"type":"text","text":"2"}]})"),
            "<think>1+1</think>2");
  EXPECT_EQ(text(R"({"content":null,"refusal":"I can't."})"), "I can't.");
  EXPECT_EQ(
      text(R"({"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\": 1}"}}]})"),
      "<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}\n</tool_call>");
  EXPECT_EQ(text(R"({"content":"2","function_call":{"name":"f","arguments":"broken"}})"),
            "2\n<tool_call>\n{\"name\":\"f\",\"arguments\":\"broken\"}\n</tool_call>");
}

TEST(ApiText, AMessageWithoutATextIsAnErrorForGood) {
  for (const char* message : {R"({"content":null})", "{}", R"({"content":[]})",
                              R"({"content":[{"type":"image_url"}]})"}) {
    const auto text = with_message(message).text;
    ASSERT_TRUE(text) << message;
    EXPECT_EQ(text->finish, TextFinish::Error) << message;
    EXPECT_FALSE(text->error_may_pass);
    EXPECT_EQ(text->error, "the server's answer holds no text (finish_reason `stop`)");
  }
  const auto filtered = with_message(R"({"content":null})", "content_filter").text;
  EXPECT_EQ(filtered->error, "the server's content filter withheld the text");
  EXPECT_EQ(filtered->other_finish, "");
  // With null, the limit was reached before any text. An empty text counts as a text.
  EXPECT_EQ(with_message(R"({"content":null})", "length").text->finish, TextFinish::Length);
  EXPECT_EQ(with_message(R"({"content":""})").text->finish, TextFinish::Stop);
}

TEST(ApiText, DamagedLettersDoNotLoseTheText) {
  EXPECT_EQ(with_message("{\"content\":\"bad \xff 7\"}").text->text, "bad \xef\xbf\xbd 7");
  EXPECT_EQ(with_message(R"({"content":"cut \ud83d 7 \ude00"})").text->text,
            "cut \xef\xbf\xbd 7 \xef\xbf\xbd");
  EXPECT_EQ(with_message(R"({"content":"\ud83d\ude00 \\ud83d \ud83d"})").text->text,
            "\xf0\x9f\x98\x80 \\ud83d \xef\xbf\xbd");
}

TEST(ApiText, AnErrorInTheBodyHasAStatus) {
  const auto status = [](const std::string& body) { return read_api_text(body).error_status; };
  EXPECT_EQ(status(R"({"error":{"message":"Provider returned error","code":502}})"), 502);
  EXPECT_EQ(status(R"({"error":{"message":"flagged","code":"403"}})"), 403);
  EXPECT_EQ(status(R"({"error":{"type":"invalid_request_error","code":"context_length"}})"), 400);
  EXPECT_EQ(status(R"({"error":{"message":"slow","code":"rate_limit_exceeded"}})"), 429);
  EXPECT_EQ(status(R"({"object":"error","message":"oops","code":40303})"), 500);
  EXPECT_EQ(status(R"({"choices":[{"text":"par","finish_reason":"error","error":{"code":429}}]})"),
            429);
  EXPECT_EQ(status(R"({"error":null,"choices":[{"text":"2"}]})"), 0);
}

TEST(ApiText, FindsNoTextInOtherBodies) {
  for (const char* body : {"", "<html>", "{}", "[]", "null", R"({"choices":null})",
                           R"({"choices":[{"text":" 2","finish_re)"}) {
    EXPECT_FALSE(read_api_text(body).text) << body;
    EXPECT_FALSE(read_api_text(body).is_of_api) << body;
  }
  for (const char* body :
       {R"({"choices":[]})", R"({"choices":[7]})", R"({"choices":{"0":1}})",
        R"({"choices":[{"index":0}]})", R"({"choices":[{"text":"","finish_reason":"abort"}]})",
        R"({"choices":[{"message":"2","finish_reason":"stop"}]})"}) {
    EXPECT_FALSE(read_api_text(body).text) << body;
    EXPECT_TRUE(read_api_text(body).is_of_api) << body;
  }
}

TEST(ApiText, TheLimitHasANewerName) {
  EXPECT_EQ(
      with_newer_limit(R"({"model":"m","max_tokens":5,"messages":[{"content":"max_tokens"}]})"),
      R"({"model":"m","max_completion_tokens":5,"messages":[{"content":"max_tokens"}]})");
}

}  // namespace
}  // namespace convoy::remote
