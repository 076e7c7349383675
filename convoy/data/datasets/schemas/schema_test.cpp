// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/schema.h"

#include <gtest/gtest.h>

#include "convoy/core/base/files.h"
#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/schemas/sample_reader.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

Row row_of(std::string_view text) { return {Json::parse(text), "rows.jsonl", 7, 6}; }

std::string detected(std::string_view text, const SchemaConfig& config = {}) {
  return std::string(schema_name(detect_schema(row_of(text), config)));
}

Sample sample_of(std::string_view text, const SchemaConfig& config = {}) {
  const Row row = row_of(text);
  return convert_row(row, detect_schema(row, config), config).sample;
}

std::string turns_of(const Sample& sample) {
  std::string turns;
  for (const Json& message : sample.messages)
    turns += fmt::format("{}={};", message["role"].get<std::string>(),
                         message["content"].get<std::string>());
  return turns;
}

std::string schema_error_of(std::string_view text, const SchemaConfig& config = {}) {
  try {
    sample_of(text, config);
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().file, "rows.jsonl");
    EXPECT_EQ(error.location().line, 7);
    return error.what() + std::string(" | ") + error.location().hint;
  }
  return "no error";
}

void expect_error(std::string_view text, const char* mention, const SchemaConfig& config = {}) {
  const std::string error = schema_error_of(text, config);
  EXPECT_NE(error.find(mention), std::string::npos) << error;
}

TEST(Schema, EachRowOfTheTableIsRecognised) {
  EXPECT_EQ(detected(R"({"instruction":"i","input":"x","output":"o"})"), "alpaca");
  EXPECT_EQ(detected(R"({"instruction":"i","output":"o"})"), "alpaca");
  EXPECT_EQ(detected(R"({"conversations":[{"from":"human","value":"v"}]})"), "sharegpt");
  EXPECT_EQ(detected(R"({"messages":[],"id":3})"), "messages");
  EXPECT_EQ(detected(R"({"prompt":"p","completion":"c"})"), "prompt_completion");
  EXPECT_EQ(detected(R"({"system":"s","user":"u","assistant":"a"})"), "triple");
  EXPECT_EQ(detected(R"({"input":"i","target":"t"})"), "rendered");
  EXPECT_EQ(detected(R"({"text":"t"})"), "text");
  EXPECT_EQ(detected(R"({"body":"t"})", {.text_field = "body"}), "text");
  EXPECT_EQ(detected(R"({"instruction":"i","input":"x","output":"o"})", {.task = "pretrain"}),
            "text");
  EXPECT_EQ(detected(R"(["q",{"answer":"a"}])"), "loose");
  for (const char* user : {"user", "question", "prompt", "input", "instruction", "query"})
    for (const char* assistant : {"assistant", "answer", "response", "target", "output"}) {
      const std::string text = fmt::format(R"({{"{}":"u","{}":"a"}})", user, assistant);
      const std::string both = fmt::format("{}+{}", user, assistant);
      const std::string wanted = both == "input+target"         ? "rendered"
                                 : both == "instruction+output" ? "alpaca"
                                                                : "loose";
      EXPECT_EQ(detected(text), wanted) << text;
    }
}

// In Parquet, every object of a column has all keys of the column; the keys that a row lacked are
// null.
TEST(Schema, NullMembersAreLeftOutAtEveryDepth) {
  const Sample padded = sample_of(
      R"({"tools":[{"function":{"name":"f","parameters":{"properties":{"q":{"type":"string"},"a":null},)"
      R"("required":["q",null]}}}],"chat_template_kwargs":{"x":1,"y":null},)"
      R"("messages":[{"role":"user","content":"u","tool_calls":null},)"
      R"({"role":"assistant","content":null,)"
      R"("tool_calls":[{"function":{"name":"f","arguments":{"q":"x","a":null,"b":{"c":null}}}}]}]})");
  const Sample plain = sample_of(
      R"({"tools":[{"function":{"name":"f","parameters":{"properties":{"q":{"type":"string"}},)"
      R"("required":["q",null]}}}],"chat_template_kwargs":{"x":1},"messages":[{"role":"user","content":"u"},)"
      R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"q":"x","b":{}}}}]}]})");
  EXPECT_EQ(padded.messages, plain.messages);
  EXPECT_EQ(padded.variables, plain.variables);
  // The author of a JSON text wrote its nulls, so they stay.
  const Sample text =
      sample_of(R"({"tools":"[{\"default\":null}]","messages":[{"role":"user","content":"u"}]})");
  EXPECT_TRUE(text.variables["tools"][0].contains("default"));
}

TEST(Schema, NullValuesCountAsAbsent) {
  EXPECT_EQ(detected(R"({"messages":null,"prompt":"p","completion":"c","text":null})"),
            "prompt_completion");
}

TEST(Schema, ThePageOfRowsListsAll) {
  const std::filesystem::path source = std::getenv("CONVOY_SOURCE_DIR");
  const std::string page = read_file(source / "docs/reference/rows.md");
  for (auto schema = Schema::Messages; schema <= Schema::Loose;
       schema = static_cast<Schema>(static_cast<int>(schema) + 1))
    EXPECT_NE(page.find(fmt::format("\n| `{}` | ", schema_name(schema))), std::string::npos)
        << schema_name(schema);
}

TEST(Schema, AmbiguousAndUnknownRowsAreErrorsThatName) {
  expect_error(R"({"messages":[],"text":"t"})", "fits messages, text");
  expect_error(R"({"prompt":"p","completion":"c","messages":[]})", "messages, prompt_completion");
  expect_error(R"({"question":"q","input":"i","answer":"a"})",
               "question, input could each be the user's text");
  expect_error(R"({"question":"q","answer":"a","response":"r"})",
               "answer, response could each be the assistant's text");
  expect_error(R"({"foo":1,"bar":2})", "no row schema fits the keys foo, bar");
  expect_error(R"({"foo":1,"bar":2})", "set data.schema=text and data.text_field=KEY");
  EXPECT_EQ(detected(R"({"instruction":"i","input":"","output":"o","text":"i o"})"), "alpaca");
  expect_error(R"({"foo":1,"bar":null})", "no row schema fits the keys foo, bar (null)");
  expect_error(R"({})", "no keys");
  expect_error(R"("text")", "a JSON string");
  expect_error(R"([1,2])", "a JSON array");
  EXPECT_EQ(detected(R"({"messages":[],"text":"t"})", {.schema = "text"}), "text");
  EXPECT_THROW(detected("{}", {.schema = "mesages"}), ConfigError);
}

TEST(Schema, AlpacaJoinsInstructionAndInput) {
  EXPECT_EQ(turns_of(sample_of(R"({"instruction":"Add","input":"1 2","output":"3"})")),
            "user=Add\n1 2;assistant=3;");
  EXPECT_EQ(turns_of(sample_of(R"({"instruction":"Add","input":"","output":"3"})")),
            "user=Add;assistant=3;");
  EXPECT_EQ(turns_of(sample_of(R"({"instruction":"Add","input":null,"output":"3"})")),
            "user=Add;assistant=3;");
  const Sample text =
      sample_of(R"({"instruction":"Add","input":"1 2","output":"3"})", {.task = "pretrain"});
  EXPECT_EQ(text.kind, Sample::Kind::Text);
  EXPECT_EQ(text.text, "Add\n1 2\n3");
}

TEST(Schema, ShareGptNamesBecomeRoles) {
  const Sample sample =
      sample_of(R"({"conversations":[{"from":"system","value":"s"},{"from":"human","value":"h"},
    {"from":"gpt","value":"g"},{"from":"user","value":"u"},{"from":"assistant","value":"a"},{"from":"tool","value":"t"}]})");
  EXPECT_EQ(turns_of(sample), "system=s;user=h;assistant=g;user=u;assistant=a;tool=t;");
  EXPECT_EQ(turns_of(sample_of(R"({"system":"S","conversations":[{"from":"human","value":"h"}]})")),
            "system=S;user=h;");
  expect_error(R"({"conversations":[{"from":"alien","value":"v"}]})",
               "unknown speaker `alien` at conversations[0]");
  expect_error(R"({"conversations":[{"role":"user","content":"v"}]})", "wanted {from, value}");
  expect_error(R"({"conversations":"x"})", "is no JSON");
}

TEST(Schema, MessagesKeepEveryTurnAndItsOtherMembers) {
  const Sample sample =
      sample_of(R"({"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"2"},
    {"role":"user","content":"3"},{"role":"assistant","content":"4","reasoning_content":"r","name":null}]})");
  EXPECT_EQ(sample.kind, Sample::Kind::Chat);
  EXPECT_EQ(turns_of(sample), "user=1;assistant=2;user=3;assistant=4;");
  EXPECT_EQ(sample.messages[3]["reasoning_content"], "r");
  EXPECT_FALSE(sample.messages[3].contains("name"));
  EXPECT_EQ(sample.file, "rows.jsonl");
  EXPECT_EQ(sample.line, 7);
  EXPECT_EQ(sample.index, 6);
}

TEST(Schema, ToolsMayBeAListOrAJsonString) {
  const char* tail =
      R"("messages":[{"role":"assistant","content":null,"tool_calls":[{"type":"function"}]}]})";
  EXPECT_EQ(
      sample_of(std::string(R"({"tools":[{"name":"f"}],)") + tail).variables["tools"][0]["name"],
      "f");
  EXPECT_EQ(sample_of(std::string(R"({"tools":"[{\"name\":\"f\"}]",)") + tail)
                .variables["tools"][0]["name"],
            "f");
  EXPECT_TRUE(sample_of(std::string(R"({"tools":"",)") + tail).variables["tools"].is_null());
  expect_error(std::string(R"({"tools":"[{",)") + tail, "the string under `tools` is no JSON");
  EXPECT_EQ(sample_of(std::string(R"({"tools":["{\"name\":\"f\"}"],)") + tail)
                .variables["tools"][0]["name"],
            "f");
  expect_error(std::string(R"({"tools":{"a":1},)") + tail, "wanted a list as `tools`");
  expect_error(std::string(R"({"tools":["f"],)") + tail, "wanted a list of objects as `tools`");
}

TEST(Schema, CallsMayBeAListOrAJsonText) {
  const auto row_with = [](const std::string& calls) {
    return R"({"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a",)"
           R"("tool_calls":)" +
           calls + "}]}";
  };
  for (const char* const calls :
       {R"([{"function":{"name":"f"}}])", R"("[{\"function\":{\"name\":\"f\"}}]")",
        R"(["{\"function\":{\"name\":\"f\"}}"])"})
    EXPECT_EQ(sample_of(row_with(calls)).messages[1]["tool_calls"],
              Json::parse(R"([{"function":{"name":"f","arguments":{}}}])"))
        << calls;
  EXPECT_FALSE(sample_of(row_with(R"("[]")")).messages[1].contains("tool_calls"));
  for (const char* const calls : {R"("f")", R"({"function":{"name":"f"}})", "[1]", "7"})
    expect_error(row_with(calls), "wanted a list of objects as `tool_calls` at messages[1]");
}

TEST(Schema, MessagesAreChecked) {
  expect_error(R"({"messages":[]})", "empty list");
  expect_error(R"({"messages":{"role":"user"}})", "wanted a list");
  expect_error(R"({"messages":["hi"]})", "at messages[0]");
  expect_error(R"({"messages":[{"content":"c"}]})", "wanted a string `role`");
  expect_error(R"({"messages":[{"role":"asistant","content":"c"}]})", "did you mean `assistant`");
  expect_error(R"({"messages":[{"role":"user","content":"c"},{"role":"assistant"}]})",
               "`content` is missing or null at messages[1]");
  expect_error(R"({"messages":[{"role":"assistant","content":null}]})",
               "`content` is missing or null");
  expect_error(R"({"messages":[{"role":"user","content":5}]})", "found a JSON number");
  expect_error(R"({"messages":[{"role":"user","content":[{"type":"image","url":"x"}]}]})",
               "only text parts");
  expect_error(R"({"messages":[{"role":"user","content":[]}]})",
               "the list of parts `content` is empty at messages[0]");
  EXPECT_FALSE(sample_of(R"({"messages":[{"role":"user","content":"u"},{"role":"assistant",)"
                         R"("content":[],"tool_calls":[{"function":{"name":"f"}}]}]})")
                   .messages[1]
                   .contains("content"));
  const Sample parts =
      sample_of(R"({"messages":[{"role":"user","content":[{"type":"text","text":"t"}]}]})");
  EXPECT_EQ(parts.messages[0]["content"][0]["text"], "t");
}

TEST(Schema, PromptCompletionIsTwoStringsOrTwoLists) {
  const Sample plain = sample_of(R"({"prompt":"p","completion":"c"})");
  EXPECT_EQ(plain.kind, Sample::Kind::PromptCompletion);
  EXPECT_EQ(plain.prompt + plain.completion, "pc");
  const Sample chat = sample_of(
      R"({"prompt":[{"role":"user","content":"u"}],"completion":[{"role":"assistant","content":"a"}],"tools":"[{}]"})");
  EXPECT_EQ(chat.kind, Sample::Kind::ChatPromptCompletion);
  EXPECT_EQ(turns_of(chat), "user=u;");
  EXPECT_EQ(chat.completion_messages[0]["content"], "a");
  EXPECT_EQ(chat.variables["tools"][0], Json::object());
  expect_error(R"({"prompt":"p","completion":[{"role":"assistant","content":"a"}]})",
               "two strings, or as two lists");
}

TEST(Schema, VariablesOfTheRowGoOverThoseOfTheRun) {
  const std::string chat = R"("messages":[{"role":"user","content":"q"}])";
  const SchemaConfig run{.template_kwargs = {{"enable_thinking", true}, {"language", "fr"}}};
  const auto variables = [&](const std::string& columns, const SchemaConfig& config = {}) {
    return sample_of("{" + chat + columns + "}", config).variables;
  };
  EXPECT_EQ(variables(""), Json::object());
  EXPECT_EQ(variables(R"(,"chat_template_kwargs":null,"tools":null,"documents":"")", run),
            run.template_kwargs);
  EXPECT_EQ(variables(R"(,"chat_template_kwargs":{"enable_thinking":false})", run),
            Json({{"enable_thinking", false}, {"language", "fr"}}));
  EXPECT_EQ(variables(R"(,"chat_template_kwargs":"{\"depth\":2}")"), Json({{"depth", 2}}));
  EXPECT_EQ(variables(R"(,"documents":[{"title":"t"}])")["documents"][0]["title"], "t");
  EXPECT_EQ(variables(R"(,"chat_template_kwargs":{"documents":[{"title":"t"}]})")["documents"],
            Json::array({{{"title", "t"}}}));
  // Rows of the other chat schemas have `chat_template_kwargs` too, but their column `documents`
  // may hold anything.
  const Sample loose = sample_of(
      R"({"question":"q","answer":"a","documents":["x"],"chat_template_kwargs":{"a":1}})");
  EXPECT_EQ(loose.variables, Json({{"a", 1}}));
}

TEST(Schema, VariablesThatAreNotTheUsersAreRefused) {
  const auto expect = [&](const char* columns, const char* mention) {
    expect_error(fmt::format(R"({{"messages":[{{"role":"user","content":"q"}}],{}}})", columns),
                 mention);
  };
  expect(R"("chat_template_kwargs":{"messages":[]})", "`messages`");
  expect(R"("chat_template_kwargs":{"add_generation_prompt":true})", "`add_generation_prompt`");
  expect(R"("chat_template_kwargs":[1])", "wanted an object under `chat_template_kwargs`");
  expect(R"("chat_template_kwargs":"thinking")", "is no JSON");
  expect(R"("chat_template_kwargs":{"tools":[]},"tools":[])", "keep one of them");
  expect(R"("documents":["plain text"])", "list of objects");
  expect(R"("tools":{"name":"f"})", "wanted a list as `tools`");
}

TEST(Schema, TripleRenderedTextAndLoose) {
  EXPECT_EQ(turns_of(sample_of(R"({"system":"s","user":"u","assistant":"a"})")),
            "system=s;user=u;assistant=a;");
  EXPECT_EQ(turns_of(sample_of(R"({"system":"","user":"u","assistant":"a"})")),
            "user=u;assistant=a;");
  const Sample rendered = sample_of(R"({"input":"<u>","target":"<a>"})");
  EXPECT_EQ(rendered.kind, Sample::Kind::PromptCompletion);
  EXPECT_EQ(rendered.completion, "<a>");
  EXPECT_EQ(sample_of(R"({"text":"words"})").text, "words");
  EXPECT_EQ(turns_of(sample_of(R"({"question":"q","answer":"a","id":1})")), "user=q;assistant=a;");
  EXPECT_EQ(turns_of(sample_of(R"({"system":"s","query":"q","response":"a"})")),
            "system=s;user=q;assistant=a;");
  EXPECT_EQ(turns_of(sample_of(R"(["q",{"answer":"a","n":1}])")), "user=q;assistant=a;");
  expect_error(R"({"question":"q","answer":4.5})",
               "wanted a string under `answer`, found a JSON number");
  expect_error(R"({"text":["t"]})", "wanted a string under `text`");
  expect_error(R"({"prompt":"p"})", "`completion`, which is missing",
               {.schema = "prompt_completion"});
  expect_error(R"(["q","a"])", "found a JSON array", {.schema = "messages"});
}

TEST(Schema, SystemPromptOnlyWhereNoneIs) {
  const SchemaConfig config{.system_prompt = "S"};
  EXPECT_EQ(turns_of(sample_of(R"({"question":"q","answer":"a"})", config)),
            "system=S;user=q;assistant=a;");
  EXPECT_EQ(turns_of(sample_of(R"({"system":"s","user":"u","assistant":"a"})", config)),
            "system=s;user=u;assistant=a;");
  EXPECT_EQ(sample_of(R"({"prompt":"p","completion":"c"})", config).prompt, "p");
  EXPECT_TRUE(sample_of(R"({"text":"t"})", config).messages.is_null());
}

TEST(Schema, LongFieldsAreCutAndCounted) {
  const SchemaConfig config{.max_field_chars = 2};
  const Row row =
      row_of(R"({"messages":[{"role":"user","content":"ééé"},{"role":"assistant","content":"ok"},
    {"role":"user","content":[{"type":"text","text":"long"}]}]})");
  const ConvertedRow converted = convert_row(row, Schema::Messages, config);
  EXPECT_EQ(converted.fields_cut, 2);
  EXPECT_EQ(converted.sample.messages[0]["content"], "éé");
  EXPECT_EQ(converted.sample.messages[2]["content"][0]["text"], "lo");
  EXPECT_EQ(
      convert_row(row_of(R"(["question",{"answer":"answer"}])"), Schema::Loose, config).fields_cut,
      2);
}

TEST(Schema, PromptsNeedNoAnswer) {
  EXPECT_EQ(convert_prompt(row_of(R"({"prompt":"p"})"), {}).sample.prompt, "p");
  EXPECT_EQ(
      turns_of(convert_prompt(row_of(R"({"prompt":[{"role":"user","content":"u"}]})"), {}).sample),
      "user=u;");
  EXPECT_EQ(
      turns_of(
          convert_prompt(row_of(R"({"messages":[{"role":"user","content":"u"}]})"), {}).sample),
      "user=u;");
  EXPECT_EQ(convert_prompt(row_of(R"({"text":"t"})"), {}).sample.text, "t");
}

TEST(SampleReader, OneSchemaPerFileUnlessForced) {
  const ScratchFolder folder;
  const auto path =
      folder.write("mixed.jsonl", "{\"question\":\"q\",\"answer\":\"a\"}\n{\"text\":\"t\"}\n");
  SampleReader reader(path, {}, BadRows::Error);
  EXPECT_TRUE(reader.next());
  EXPECT_EQ(reader.schema(), Schema::Loose);
  try {
    reader.next();
    FAIL() << "wanted an error";
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().line, 2);
    EXPECT_NE(std::string(error.what()).find("schema text, the rows before it have loose"),
              std::string::npos);
  }
}

TEST(SampleReader, SkipCountsAndListsLines) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.jsonl",
                                 "{\"text\":\"1\"}\n{torn\n{\"text\":4.5}\n{\"text\":\"2\"}\n\n{"
                                 "\"nothing\":1}\n{\"text\":\"3\"}\n");
  SampleReader reader(path, {}, BadRows::Skip);
  std::string texts;
  std::vector<int64_t> indices;
  while (const auto sample = reader.next()) {
    texts += sample->text;
    indices.push_back(sample->index);
  }
  EXPECT_EQ(texts, "123");
  EXPECT_EQ(indices, (std::vector<int64_t>{0, 3, 5}));
  EXPECT_EQ(reader.rows_seen(), 6);
  EXPECT_EQ(reader.bad_rows().count(), 3);
  EXPECT_EQ(reader.bad_rows().summary().rfind(
                "3 unreadable rows skipped: lines 2, 3, 6; first: not valid JSON", 0),
            0u)
      << reader.bad_rows().summary();
  SampleReader strict(path, {}, BadRows::Error);
  strict.next();
  EXPECT_THROW(strict.next(), DataError);
}

TEST(SampleReader, SkipHasALimitAndLosesNoFileInSilence) {
  const ScratchFolder folder;
  std::string bytes;
  for (int row = 0; row < 1000; ++row) bytes += row % 4 == 0 ? "{bad\n" : "{\"text\":\"t\"}\n";
  SampleReader reader(folder.write("rows.jsonl", bytes), {}, BadRows::Skip);
  EXPECT_THROW(while (reader.next()){}, DataError);
  SampleReader cut(folder.write("cut.json", "[{\"text\":\"t\"},{\"text\":"), {}, BadRows::Skip);
  EXPECT_THROW(while (cut.next()){}, DataError);
}

}  // namespace
}  // namespace convoy::data
