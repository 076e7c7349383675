// SPDX-License-Identifier: Apache-2.0
//
// Reads rows with the columns of published data sets. The turns must have the meaning that the
// authors gave them.
#include "convoy/data/datasets/schemas/plain_turns.h"

#include <gtest/gtest.h>

#include <string>

#include "convoy/data/datasets/schemas/schema.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

ConvertedRow converted(std::string_view text) {
  return convert_to_learn({Json::parse(text), "rows.jsonl", 7, 6}, {});
}

std::string unread_of(const ConvertedRow& row) {
  std::string names;
  for (const std::string& name : row.unread) names += (names.empty() ? "" : ",") + name;
  return names;
}

// Returns the turns of the row, as "system=s;user=u;assistant=a", and behind a bar the unread
// columns. Returns the error's text for a row that is refused.
std::string read(std::string_view text) {
  try {
    const ConvertedRow row = converted(text);
    Json messages = row.sample.messages;
    if (row.sample.completion_messages.is_array())
      for (const Json& message : row.sample.completion_messages) messages.push_back(message);
    std::string turns;
    for (const Json& message : messages)
      turns += fmt::format("{}{}={}", turns.empty() ? "" : ";", message["role"].get<std::string>(),
                           message["content"].get<std::string>());
    return turns + "|" + unread_of(row);
  } catch (const DataError& error) {
    return error.what();
  }
}

TEST(PlainTurns, ContextIsPartOfTheQuestion) {
  // The columns of databricks/databricks-dolly-15k.
  EXPECT_EQ(read(R"({"instruction":"When?","context":"In 1904.","response":"1904",
                     "category":"closed_qa"})"),
            "user=When?\nIn 1904.;assistant=1904|category");
  EXPECT_EQ(read(R"({"instruction":"When?","context":"","response":"1904"})"),
            "user=When?;assistant=1904|");
  // The columns of rajpurkar/squad and squad_v2, and a form with plain texts.
  EXPECT_EQ(read(R"({"id":"5","title":"Mill","context":"In 1904.","question":"When?",
                     "answers":{"text":["1904","in 1904"],"answer_start":[3,0]}})"),
            "user=In 1904.\nWhen?;assistant=1904|id,title");
  EXPECT_EQ(read(R"({"context":"c","question":"q","answers":{"text":[],"answer_start":[]}})"),
            "user=c\nq;assistant=|");
  EXPECT_EQ(read(R"({"context":"c","question":"q","answers":"{\"text\": [\"a\"]}"})"),
            "user=c\nq;assistant=a|");
  EXPECT_EQ(read(R"({"context":"c","question":"q","answer":"a"})"), "user=c\nq;assistant=a|");
  EXPECT_EQ(read(R"({"passage":"c","question":"q","answer":"yes"})"), "user=c\nq;assistant=yes|");
  EXPECT_EQ(read(R"({"context":"c","prompt":"In c: q","response":"a"})"),
            "user=In c: q;assistant=a|");
  EXPECT_EQ(read(R"({"context":["c","d"],"question":"q","answer":"a"})"),
            "user=c\nd\nq;assistant=a|");
  // The context of hotpot_qa is no text, and two columns with a context have no order.
  EXPECT_EQ(read(R"({"question":"q","answer":"a","context":{"title":["t"],"sentences":[["s"]]}})"),
            "user=q;assistant=a|context");
  EXPECT_EQ(read(R"({"question":"q","answer":"a","context":"c","passage":"p"})"),
            "user=q;assistant=a|context,passage");
  EXPECT_EQ(read(R"({"instruction":"i","input":"n","output":"o","context":"c"})"),
            "user=i\nn;assistant=o|context");
  EXPECT_EQ(read(R"({"instruction":"i","input":"n","response":"o"})"), "user=i\nn;assistant=o|");
}

TEST(PlainTurns, SystemPromptsAndHistoryAreTurns) {
  // The columns of Open-Orca/OpenOrca.
  EXPECT_EQ(read(R"({"id":"1","system_prompt":"S","question":"q","response":"a"})"),
            "system=S;user=q;assistant=a|id");
  // The columns of the alpaca format of LLaMA-Factory, and of ms-swift.
  EXPECT_EQ(read(R"({"instruction":"i","input":"","output":"o","system":"S",
                     "history":[["q1","a1"],["q2","a2"]]})"),
            "system=S;user=q1;assistant=a1;user=q2;assistant=a2;user=i;assistant=o|");
  EXPECT_EQ(read(R"({"system":"S","query":"q","response":"a","history":[["q1","a1"]]})"),
            "system=S;user=q1;assistant=a1;user=q;assistant=a|");
  EXPECT_EQ(read(R"({"query":"q","response":"a","history":"[[\"q1\", \"a1\"]]","system":""})"),
            "user=q1;assistant=a1;user=q;assistant=a|");
  EXPECT_EQ(read(R"({"query":"q","response":"a","history":[["q1"]]})"),
            "row 7: wanted a question and its answer, two strings, at history[0]");
  EXPECT_EQ(read(R"({"question":"q","answer":"a","history":"of Rome"})"),
            "user=q;assistant=a|history");
  EXPECT_EQ(read(R"({"question":"q","answer":"a","system":"s","system_prompt":"t"})"),
            "row 7: ambiguous row: `system` and `system_prompt` differ");
}

TEST(PlainTurns, SystemColumnsStandBesideConversations) {
  const std::string turns = R"([{"role":"user","content":"q"},{"role":"assistant","content":"a"}])";
  EXPECT_EQ(read(fmt::format(R"({{"system":"S","messages":{},"id":1}})", turns)),
            "system=S;user=q;assistant=a|id");
  EXPECT_EQ(read(fmt::format(R"({{"system_prompt":"S","messages":{}}})", turns)),
            "system=S;user=q;assistant=a|");
  EXPECT_EQ(read(R"({"system":"S","prompt":[{"role":"user","content":"q"}],
                     "completion":[{"role":"assistant","content":"a"}]})"),
            "system=S;user=q;assistant=a|");
  // teknium/OpenHermes-2.5 has the system prompt in a column and as a turn.
  EXPECT_EQ(read(R"({"system_prompt":"S","conversations":[{"from":"system","value":"S"},
                     {"from":"human","value":"q"}]})"),
            "system=S;user=q|");
  EXPECT_EQ(read(R"({"system":"S","messages":[{"role":"system","content":"T"},
                     {"role":"user","content":"q"}]})"),
            "row 7: ambiguous row: its system turn and its column with a system prompt differ");
  // A row with a prompt and a completion as texts has no turns, so its system prompt is not read.
  EXPECT_EQ(unread_of(converted(R"({"system":"S","prompt":"p","completion":"c"})")), "system");
  const ConvertedRow prompt =
      convert_prompt({Json::parse(R"({"system":"S","prompt":"p"})"), "p.jsonl", 1, 0}, {});
  EXPECT_EQ(prompt.sample.messages.size(), 2u);
}

TEST(PlainTurns, ChoicesArePartOfTheQuestion) {
  const std::string asked = "user=q\nA. x\nB. y;assistant=";
  // The columns of cais/mmlu.
  EXPECT_EQ(read(R"({"question":"q","subject":"s","choices":["x","y"],"answer":1})"),
            asked + "B|subject");
  // The columns of allenai/ai2_arc.
  EXPECT_EQ(read(R"({"id":"i","question":"q","answerKey":"A",
                     "choices":{"text":["x","y"],"label":["A","B"]}})"),
            asked + "A|id");
  EXPECT_EQ(read(R"({"question":"q","answerKey":"2",
                     "choices":{"text":["x","y"],"label":["1","2"]}})"),
            "user=q\n1. x\n2. y;assistant=2|");
  // The columns of allenai/openbookqa and tau/commonsense_qa.
  EXPECT_EQ(read(R"({"question_stem":"q","answerKey":"B",
                     "choices":[{"label":"A","text":"x"},{"label":"B","text":"y"}]})"),
            asked + "B|");
  // The columns of TIGER-Lab/MMLU-Pro, GBaker/MedQA-USMLE-4-options and ehovy/race.
  EXPECT_EQ(read(R"({"question":"q","options":["x","y"],"answer":"B","answer_index":1})"),
            asked + "B|answer_index");
  EXPECT_EQ(read(R"({"question":"q","options":{"A":"x","B":"y"},"answer":"y"})"), asked + "y|");
  EXPECT_EQ(read(R"({"article":"Long.","question":"q","options":["x","y"],"answer":"A"})"),
            "user=Long.\nq\nA. x\nB. y;assistant=A|");
  EXPECT_EQ(read(R"({"question":"q","choices":"[\"x\", \"y\"]","answer":"1"})"), asked + "B|");
  EXPECT_EQ(read(R"({"question":"q","choices":["x","y"],"label":0})"), asked + "A|");
  // The columns of ceval/ceval-exam.
  EXPECT_EQ(read(R"({"id":0,"question":"q","A":"x","B":"y","C":"","answer":"B","explanation":""})"),
            asked + "B|id");
  // The question shows its choices already, or the column holds no choices.
  EXPECT_EQ(read(R"({"question":"q (A) x (B) y","choices":["x","y"],"answer":"A"})"),
            "user=q (A) x (B) y;assistant=A|");
  EXPECT_EQ(read(R"({"question":"q","options":{"temperature":"0.7","top_p":"1"},"answer":"a"})"),
            "user=q;assistant=a|options");
  EXPECT_EQ(read(R"({"question":"q","choices":"x or y","answer":"a"})"),
            "user=q;assistant=a|choices");
  // The index is no index of a choice, or it might be the text of a choice.
  EXPECT_EQ(read(R"({"question":"q","choices":["x","y"],"answer":2})"),
            "row 7: `answer` is 2, which names none of the 2 choices");
  EXPECT_EQ(read(R"({"question":"q","choices":[1,2,3],"answer":2})"),
            "row 7: `answer` is 2: the text of choice B, and the index from 0 of choice C");
  // If the choices are texts, a number is an index, even if a choice has the text of that number.
  EXPECT_EQ(read(R"({"question":"q","choices":["8","2","24"],"answer":2})"),
            "user=q\nA. 8\nB. 2\nC. 24;assistant=C|");
  EXPECT_EQ(read(R"({"question":"q","choices":["x","y"],"answer":"C"})"),
            "row 7: `answer` is \"C\", which names none of the 2 choices");
  // The columns of deepmind/aqua_rat.
  EXPECT_EQ(read(R"({"question":"q","options":["A)x","B)y"],"answer":"B"})"),
            "user=q\nA)x\nB)y;assistant=B|");
  // A text of one choice that is the index of another, as every answer of a CSV file may be.
  EXPECT_EQ(read(R"({"question":"q","choices":["1","2","3"],"answer":"2"})"),
            "row 7: `answer` is \"2\": the text of choice B, and the index from 0 of choice C");
  EXPECT_EQ(read(R"({"question":"q","A":"2","B":"x","C":"y","answer":"2"})"),
            "row 7: `answer` is \"2\": the text of choice A, and the index from 0 of choice C");
  EXPECT_EQ(read(R"({"question":"q","choices":["0","1","2"],"answer":"2"})"),
            "user=q\nA. 0\nB. 1\nC. 2;assistant=2|");
  EXPECT_EQ(read(R"({"question":"q","choices":["1","2","3"],"answer":"3"})"),
            "user=q\nA. 1\nB. 2\nC. 3;assistant=3|");
}

TEST(PlainTurns, ReasoningAndCallsAreMembersOfTheAnswer) {
  const auto answer = [](std::string_view text) { return converted(text).sample.messages.back(); };
  for (const char* column : {"reasoning", "reasoning_content"}) {
    const ConvertedRow row =
        converted(fmt::format(R"({{"question":"q","{}":"since","answer":"a"}})", column));
    EXPECT_EQ(row.sample.messages[1]["reasoning_content"], "since");
    EXPECT_EQ(unread_of(row), "");
  }
  EXPECT_EQ(answer(R"({"question":"q","thinking":"since","answer":"a"})")["thinking"], "since");
  EXPECT_EQ(unread_of(converted(R"({"prompt":"p","completion":"c","reasoning":"r"})")),
            "reasoning");
  // The columns of Salesforce/xlam-function-calling-60k.
  const ConvertedRow calls = converted(
      R"x({"query":"q","answers":"[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]",
          "tools":"[{\"name\": \"f\"}]"})x");
  EXPECT_EQ(calls.sample.messages[1]["tool_calls"][0]["function"]["arguments"]["a"], 1);
  EXPECT_EQ(calls.sample.variables["tools"][0]["name"], "f");
  EXPECT_EQ(unread_of(calls), "");
}

TEST(PlainTurns, ToolsAndDocumentsGoToTheTemplateWhereTheyAreLists) {
  const ConvertedRow row = converted(
      R"({"question":"q","answer":"a","tools":[{"name":"f"}],"documents":[{"title":"t"}]})");
  EXPECT_EQ(row.sample.variables["tools"][0]["name"], "f");
  EXPECT_EQ(row.sample.variables["documents"][0]["title"], "t");
  EXPECT_EQ(unread_of(row), "");
  EXPECT_EQ(unread_of(converted(
                R"({"question":"q","answer":"a","tools":"hammer, saw","documents":["x"]})")),
            "tools,documents");
  EXPECT_EQ(unread_of(converted(R"({"prompt":"p","completion":"c","tools":[{"name":"f"}]})")),
            "tools");
}

TEST(PlainTurns, AnswersThatTheRowCallsBadAreRefused) {
  // The labels of trl-lib/kto-mix-14k, LLaMA-Factory and ms-swift.
  for (const char* row : {R"({"prompt":"p","completion":"c","label":false})",
                          R"({"prompt":"p","completion":"c","label":"False"})",
                          R"({"messages":[{"role":"user","content":"q"}],"label":false})",
                          R"({"conversations":[{"from":"human","value":"q"}],"kto_tag":false})"})
    EXPECT_NE(read(row).find("alse: the answer is a bad one"), std::string::npos) << read(row);
  // The label 0 as JSON, CSV and Parquet hold it.
  for (const char* zero : {"0", R"("0")", "0.0"})
    EXPECT_NE(read(fmt::format(R"({{"prompt":"p","completion":"c","label":{}}})", zero))
                  .find("0: the answer is a bad one"),
              std::string::npos)
        << zero;
  EXPECT_EQ(unread_of(converted(R"({"prompt":"p","completion":"c","label":1})")), "");
  EXPECT_EQ(unread_of(converted(R"({"prompt":"p","completion":"c","label":true})")), "");
  // These labels are classes, and not marks of an answer.
  EXPECT_EQ(unread_of(converted(R"({"prompt":"p","completion":"c","label":2})")), "label");
  EXPECT_EQ(unread_of(converted(R"({"question":"q","choices":["x","y"],"answer":"x","label":0})")),
            "label");
  EXPECT_EQ(unread_of(converted(R"({"text":"t","label":false})")), "label");
  // Rows of preferences are refused with a hint.
  const Row row{Json::parse(R"({"prompt":"p","chosen":"c","rejected":"r"})"), "rows.jsonl", 7, 6};
  try {
    detect_schema(row, {});
    FAIL() << "wanted an error";
  } catch (const DataError& error) {
    EXPECT_NE(error.location().hint.find("these are preferences"), std::string::npos);
  }
  EXPECT_EQ(read(R"({"query":"q","response":"a","rejected_response":"b"})"),
            "user=q;assistant=a|rejected_response");
}

TEST(PlainTurns, RowsWithImagesAreRefused) {
  for (const char* row :
       {R"({"image":"a.jpg","conversations":[{"from":"human","value":"<image>\nWhat?"},
            {"from":"gpt","value":"A cat"}]})",
        R"({"query":"<image>Q","response":"A","images":["a.png"]})",
        R"({"prompt":"p","completion":"c","image":{"bytes":"x","path":null}})",
        R"({"messages":[{"role":"user","content":"<video>"},{"role":"assistant","content":"a"}],
            "videos":["a.mp4"]})"})
    EXPECT_NE(read(row).find("is not text, and only text is learnt"), std::string::npos) << row;
  EXPECT_EQ(unread_of(converted(R"({"query":"Q","response":"A","images":[],"image":null})")), "");
  EXPECT_EQ(unread_of(converted(R"({"text":"t","image":"a.png"})")), "image");
}

TEST(PlainTurns, WholeNumbersAreTexts) {
  EXPECT_EQ(read(R"({"question":"6 * 7?","answer":42})"), "user=6 * 7?;assistant=42|");
  EXPECT_EQ(read(R"({"question":7,"answer":-3})"), "user=7;assistant=-3|");
  EXPECT_EQ(converted(R"({"prompt":"6 * 7 = ","completion":42})").sample.completion, "42");
  EXPECT_EQ(converted(R"({"text":18446744073709551615})").sample.text, "18446744073709551615");
  for (const char* answer : {"4.5", "true"})
    EXPECT_NE(read(fmt::format(R"({{"question":"q","answer":{}}})", answer))
                  .find("wanted a string under `answer`"),
              std::string::npos);
}

TEST(PlainTurns, StructsOfListsAreListsOfStructs) {
  EXPECT_EQ(read(R"({"messages":{"role":["user","assistant"],"content":["q","a"]}})"),
            "user=q;assistant=a|");
  EXPECT_EQ(read(R"({"conversations":{"from":["human","gpt"],"value":["q","a"]}})"),
            "user=q;assistant=a|");
  EXPECT_EQ(read(R"({"prompt":{"role":["user"],"content":["q"]},
                     "completion":{"role":["assistant"],"content":["a"]}})"),
            "user=q;assistant=a|");
  const ConvertedRow row = converted(
      R"({"messages":[{"role":"assistant","content":{"type":["text"],"text":["a"]},
          "tool_calls":{"type":["function"],"function":[{"name":"f"}]}}],
          "tools":{"type":["function"],"function":[{"name":"f"}]}})");
  EXPECT_EQ(row.sample.messages[0]["content"][0]["text"], "a");
  EXPECT_EQ(row.sample.messages[0]["tool_calls"][0]["function"]["name"], "f");
  EXPECT_EQ(row.sample.variables["tools"][0]["function"]["name"], "f");
  EXPECT_EQ(read(R"({"messages":{"role":["user","assistant"],"content":["q"]}})"),
            "row 7: wanted a list under `messages`, found a JSON object");
}

}  // namespace
}  // namespace convoy::data
