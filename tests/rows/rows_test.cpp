// SPDX-License-Identifier: Apache-2.0
//
// Runs the programs on users' rows. Unusable rows give an error with the right exit code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "convoy/core/base/files.h"
#include "parity/convoy_program.h"

namespace convoy {
namespace {

using nlohmann::json;
using testing::Outcome;

class Rows : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    write_file_atomic(convoy_ / name, text);
    return (convoy_ / name).string();
  }
  std::string model() const { return model_; }
  Outcome run(const std::string& command, const std::string& arguments) const {
    return convoy_.run(fmt::format("{} --model {} {}", command, model(), arguments));
  }
  void let_the_template_read_parts();
  void expect(const Outcome& outcome, int status, const char* mention) const {
    EXPECT_EQ(outcome.status, status) << outcome.output;
    EXPECT_NE(outcome.output.find(mention), std::string::npos) << outcome.output;
  }

  testing::ConvoyProgram convoy_;
  std::string source_ = std::getenv("CONVOY_SOURCE_DIR");
  std::string model_ = source_ + "/examples/tally-3m";
};

// The template reads a content that is text or a list of parts, as templates of vision models do.
// Qwen2's template joins texts with `+`, which Python, and so Convoy, refuses for lists.
constexpr const char* kTemplateOfParts =
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

constexpr const char* kQuestion = R"({"role":"user","content":[{"type":"text","text":"1 + 1?"}]})";

void Rows::let_the_template_read_parts() {
  const std::filesystem::path own = convoy_ / "model";
  std::filesystem::copy(model_, own);
  write_file_atomic(own / "chat_template.jinja", kTemplateOfParts);
  model_ = own.string();
}

TEST_F(Rows, ContentAsPartsIsAnsweredAndCompared) {
  let_the_template_read_parts();
  const std::string rows =
      write("parts.jsonl", fmt::format(R"({{"messages":[{},{{"role":"assistant","content":[)"
                                       R"({{"type":"text","text":"2"}}]}}]}})",
                                       kQuestion) +
                               "\n");
  const Outcome outcome =
      run("eval", fmt::format("--data {} --generate --max-new-tokens 2 --output-dir {}", rows,
                              (convoy_ / "out").string()));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  const auto samples = testing::read_json_lines(convoy_ / "out/samples.jsonl");
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0]["ref"], "2");
}

TEST_F(Rows, QuestionsThatCannotBeAskedAreSkippedOrEndWith10) {
  let_the_template_read_parts();
  const std::string rows = write(
      "mixed.jsonl", fmt::format(R"({{"messages":[{0},{{"role":"assistant","content":"2"}}]}})"
                                 "\n"
                                 R"({{"messages":[{0},{{"role":"assistant"}}]}})"
                                 "\n{{torn\n"
                                 R"({{"messages":[{0}]}})"
                                 "\n",
                                 kQuestion));
  const std::string short_answers = fmt::format("--data {} --generate --max-new-tokens 2 ", rows);
  expect(run("eval", short_answers), 10, "mixed.jsonl:2");
  expect(run("eval", short_answers + "--bad-rows skip"), 0, "lines 2, 3, 4");
  const std::string prompts = fmt::format("--prompts {} --max-new-tokens 2 ", rows);
  expect(run("generate", prompts), 10, "mixed.jsonl:2");
  const Outcome skipped = run("generate", prompts + "--bad-rows skip");
  expect(skipped, 0, "lines 2, 3");
  expect(skipped, 0, "\"index\":3");
  const std::string data = fmt::format("--data {} --bad-rows skip", rows);
  expect(run("score", data), 0, "lines 2, 3");
  expect(run("tokens", data), 0, "lines 2, 3");
}

TEST_F(Rows, ATemplateThatReadsOnlyTextsGetsTheTextOfTheParts) {
  const auto prompt_tokens = [&](const std::string& message) {
    const std::string rows = write("parts.jsonl", fmt::format(R"({{"messages":[{}]}})", message));
    const Outcome outcome = run("generate", "--prompts " + rows + " --max-new-tokens 1 --quiet");
    return outcome.output.substr(0, outcome.output.find("completion"));
  };
  EXPECT_EQ(prompt_tokens(kQuestion), prompt_tokens(R"({"role":"user","content":"1 + 1?"})"));
  const std::string image = write(
      "image.jsonl", R"({"messages":[{"role":"user","content":[{"type":"image","image":"x"}]}]})");
  expect(run("generate", "--prompts " + image), 10, "image.jsonl:1");
}

// Computes the figures of weighted turns from the figures of the same turns one by one.
TEST_F(Rows, WeightsOfTurnsReachScoresEvaluationsAndTraining) {
  const auto row = [](const char* first, const char* second) {
    return fmt::format(
        R"({{"messages": [{{"role": "user", "content": "1 + 1?"}}, {{"role": "assistant", )"
        R"("content": "3 or so"{}}}, {{"role": "user", "content": "Sure?"}}, )"
        R"({{"role": "assistant", "content": "2"{}}}]}})"
        "\n",
        first, second);
  };
  const auto scored = [&](const std::string& text) {
    const std::string output = (convoy_ / "scores.jsonl").string();
    const Outcome outcome = run(
        "score", fmt::format("--quiet --data {} --output {}", write("one.jsonl", text), output));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return testing::read_json_lines(output).at(0);
  };
  const json first = scored(row("", R"(, "weight": 0)"));
  const json second = scored(row(R"(, "loss": false)", ""));
  const std::string weighed = row(R"(, "weight": 0.25)", R"(, "train": true)");
  const json both = scored(weighed);
  const double nll = 0.25 * first["nll"].get<double>() + second["nll"].get<double>();
  const double weight = 0.25 * first["tokens"].get<double>() + second["tokens"].get<double>();
  EXPECT_NEAR(both["nll"].get<double>(), nll, 1e-4);
  EXPECT_EQ(both["weight"].get<double>(), weight);
  EXPECT_EQ(both["tokens"].get<int64_t>(),
            first["tokens"].get<int64_t>() + second["tokens"].get<int64_t>());

  const std::string data = write("weighed.jsonl", weighed);
  const std::string out = (convoy_ / "out").string();
  expect(run("eval", fmt::format("--data {} --output-dir {}", data, out)), 0, "");
  const json figures = json::parse(read_file(convoy_ / "out/metrics.json"));
  EXPECT_NEAR(figures["loss"].get<double>(), nll / weight, 1e-5);
  EXPECT_EQ(figures["supervised_tokens"], both["tokens"]);

  write("run.yaml", fmt::format("model: {{name: {}, dtype: fp32}}\n"
                                "data: {{train_path: {}, val_path: {}}}\n"
                                "train: {{output_dir: {}, steps: 1, learning_rate: 0.01}}\n",
                                model(), data, data, (convoy_ / "run").string()));
  expect(convoy_.run("train " + (convoy_ / "run.yaml").string()), 0, "1 row with weights of turns");
  double loss = 0;
  for (const json& event : testing::read_json_lines(convoy_ / "run/events.jsonl"))
    if (event["event"] == "step") loss = event["loss"].get<double>();
  EXPECT_NEAR(loss, nll / weight, 1e-5);
  expect(run("tokens", "--data " + data), 0, "(weight 0.25)");
  expect(run("tokens", "--data " + write("like.jsonl", row(R"(, "mask": 0)", ""))), 0,
         "1 row has turns with `mask`");
}

TEST_F(Rows, AnEmptyFileIsSaidByEveryCommand) {
  const std::string empty = write("empty.jsonl", "\n");
  for (const char* use : {"score --data", "generate --prompts", "tokens --data", "eval --data"})
    expect(convoy_.run(fmt::format("{} {} --model {}", use, empty, model())), 10,
           "the file has no rows");
  write("empty.yaml", fmt::format("model: {{name: {}}}\ndata: {{train_path: {}}}\n"
                                  "train: {{output_dir: {}}}\n",
                                  model(), empty, (convoy_ / "run").string()));
  expect(convoy_.run("train " + (convoy_ / "empty.yaml").string()), 10, "the file has no rows");
}

TEST_F(Rows, ColumnsThatNothingReadsAreNamedOnceByEveryCommand) {
  const std::string rows = write("rows.jsonl",
                                 "{\"question\":\"1 + 1?\",\"answer\":2,\"topic\":\"sums\"}\n"
                                 "{\"question\":\"1 + 2?\",\"answer\":3,\"topic\":\"sums\"}\n");
  const std::string config = write(
      "run.yaml", fmt::format("model: {{name: {}}}\ndata: {{train_path: {}, val_path: {}, "
                              "cache_dir: none}}\n"
                              "train: {{output_dir: {}, steps: 1, batch_size: 2, grad_accum: 1}}\n",
                              model(), rows, rows, (convoy_ / "run").string()));
  const auto named = [&](const std::string& command, const std::string& count) {
    const Outcome outcome = convoy_.run(command);
    EXPECT_EQ(outcome.status, 0) << command << outcome.output;
    const std::string line = fmt::format("1 column is not read: `topic` (in {})", count);
    const size_t first = outcome.output.find(line);
    EXPECT_NE(first, std::string::npos) << command << outcome.output;
    EXPECT_EQ(outcome.output.find(line, first + 1), std::string::npos) << command << outcome.output;
  };
  const std::string with_data = fmt::format("--data {} --model {}", rows, model());
  named("data tokens " + with_data, "2 rows");
  named("data tokens --limit 1 " + with_data, "1 row");
  named("data validate " + with_data, "2 rows");
  named(fmt::format("data validate --data {}", rows), "2 rows");
  named("score " + with_data, "2 rows");
  named("eval --generate --max-new-tokens 1 " + with_data, "2 rows");
  named("train --dry-run " + config, "2 rows");
  named("train " + config, "2 rows");
  for (const char* command : {"train --dry-run ", "data encode ", "data validate --config "})
    expect(convoy_.run(command +
                       write("refusing.yaml", fmt::format("include: {}\n"
                                                          "data: {{unread_columns: error}}\n",
                                                          config))),
           10, "nothing reads the column topic");
}

TEST_F(Rows, DocumentsThatARenderedTextLeavesOutAreNamed) {
  const std::string rows =
      write("documents.jsonl",
            R"({"question":"1 + 1?","answer":"2","reasoning":"r","documents":[{"title":"t"}]})"
            "\n");
  const Outcome outcome = run("data tokens", fmt::format("--data {} --render", rows));
  expect(outcome, 0, "does not write the `documents` of 1 row");
  expect(outcome, 0, "does not write the thoughts");
}

TEST_F(Rows, ATextThatTheTemplateReplacesIsNamedWithoutCallingItLost) {
  const std::string rows = write("spaced.jsonl", R"({"question":"1 + 1?","answer":"just 2"})"
                                                 "\n");
  const auto shown_by = [&](const std::string& filter) {
    const std::string file =
        write("filter.jinja", "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content|" +
                                  filter + " }}<|im_end|>\n{% endfor %}");
    return run("data tokens", fmt::format("--data {} --chat-template {}", rows, file));
  };
  const Outcome replaced = shown_by("replace(' ', '_')");
  expect(replaced, 0, "does not write the text of 1 row as it is in the row");
  EXPECT_EQ(replaced.output.find("lost"), std::string::npos) << replaced.output;
  for (const char* const filter : {"upper", "urlencode", "tojson"})
    EXPECT_EQ(shown_by(filter).output.find("does not write"), std::string::npos) << filter;
}

// Uses Qwen3's template, in which `enable_thinking: false` writes an empty thought.
TEST_F(Rows, TemplateVariablesOfRowAndRun) {
  const std::string plain = R"({"messages":[{"role":"user","content":"a"}])";
  const std::string rows =
      write("kwargs.jsonl",
            plain + "}\n" + plain + R"(,"chat_template_kwargs":{"enable_thinking":false}})" + "\n" +
                plain + R"(,"chat_template_kwargs":{"enable_thinking":true}})" + "\n");
  const std::string show = fmt::format(
      "--data {} --render --add-generation-prompt --json --chat-template "
      "{}/tests/golden/text/templates/qwen3.jinja ",
      rows, source_);
  const auto empty_thoughts = [&](const std::string& arguments) {
    const Outcome outcome = run("tokens", show + arguments + " --quiet");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    std::string found;
    std::istringstream lines(outcome.output);
    for (std::string line; std::getline(lines, line);)
      found += json::parse(line)["text"].get<std::string>().ends_with("<think>\n\n</think>\n\n")
                   ? "1"
                   : "0";
    return found;
  };
  EXPECT_EQ(empty_thoughts(""), "010");
  EXPECT_EQ(empty_thoughts(R"(--template-kwargs '{"enable_thinking": false}')"), "110");
  expect(run("tokens", show + "--template-kwargs '{messages: []}'"), 2, "`messages`");
}

TEST_F(Rows, FlagsThatAModeDoesNotReadAreRefused) {
  const std::string rows = write("rows.jsonl", "{\"prompt\":\"1\",\"completion\":\"2\"}\n");
  const std::string data = fmt::format("--data {} ", rows);
  const auto refused = [&](const char* command, const std::string& arguments, const char* flag) {
    expect(run(command, arguments), 2, flag);
  };
  refused("tokens", data + "--no-special", "--no-special has no effect");
  refused("tokens", data + "--render --supervise all", "--supervise has no effect");
  refused("tokens", "--text x --limit 2", "--limit has no effect");
  refused("tokens", "--text x --system-prompt s", "--system-prompt has no effect");
  refused("generate", "--prompt x --chat off --system-prompt s", "--system-prompt has no effect");
  refused("generate", "--interactive --chat on", "--chat has no effect");
  refused("generate", "--interactive --output o", "--output has no effect");
  refused("generate", "--prompt x --greedy --temperature 0.7", "exclude each other");
  refused("eval", data + "--max-new-tokens 5", "--max-new-tokens has no effect");
  refused("eval", data + "--split val", "--split has no effect");
  refused("eval", "--samples s.jsonl", "--model has no effect");
  const Outcome system = run("tokens", "--text x --render --system-prompt 'Be brief.'");
  expect(system, 0, "Be brief.");
}

TEST_F(Rows, APromptIsAUserTurnWhereTheModelHasATemplate) {
  const std::string question = "What is 2 + 2?";
  const auto tokens = [&](const std::string& arguments) {
    const Outcome outcome = run("generate", arguments + " --json --max-new-tokens 1 --quiet");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    std::vector<int64_t> counts;
    for (std::istringstream lines(outcome.output); lines.good();) {
      std::string line;
      if (std::getline(lines, line)) counts.push_back(json::parse(line)["prompt_tokens"]);
    }
    return counts;
  };
  const std::string prompt = fmt::format("--prompt '{}' ", question);
  const auto plain = tokens(prompt + "--chat off");
  const auto turn = tokens(prompt);
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_GT(turn.at(0), plain[0]);
  EXPECT_EQ(tokens(prompt + "--chat on"), turn);
  EXPECT_EQ(tokens(prompt + prompt), (std::vector<int64_t>{turn[0], turn[0]}));
  EXPECT_NE(tokens(prompt + "--system-prompt 'Be brief and kind.'"), turn);

  const std::string rows = "--prompts " + write("rows.jsonl", fmt::format(R"({{"prompt":"{0}"}})"
                                                                          "\n",
                                                                          question));
  EXPECT_EQ(tokens(rows), plain);
  EXPECT_EQ(tokens(rows + " --chat on"), turn);
  const std::string chat =
      "--prompts " +
      write("chat.jsonl", fmt::format(R"({{"messages":[{{"role":"user","content":"{0}"}}]}})"
                                      "\n",
                                      question));
  EXPECT_EQ(tokens(chat), turn);
  EXPECT_EQ(tokens(chat + " --chat off"), turn);  // the turns are all of the text

  const std::string lines =
      "--prompts " + write("lines.txt", fmt::format("{0}\r\n\n{0}", question));
  EXPECT_EQ(tokens(lines), (std::vector<int64_t>{turn[0], turn[0]}));
  EXPECT_EQ(tokens(lines + " --chat off"), (std::vector<int64_t>{plain[0], plain[0]}));
  const std::string marked =
      "--prompts " + write("marked.txt", fmt::format("\xEF\xBB\xBF{}\r\n", question));
  EXPECT_EQ(tokens(marked + " --chat off"), (std::vector<int64_t>{plain[0]}));
  expect(run("generate", "--prompts " + write("empty.txt", "\n  \n")), 10, "has no prompt");
  expect(run("generate", "--max-new-tokens 1 --prompts " +
                             write("both.jsonl", R"({"prompt": "1+1", "messages": []})")),
         0, "1 row has `messages` beside `prompt`, the first is row 1 on line 1: `prompt` is read");

  expect(run("generate", prompt + "--max-new-tokens 1"), 0, "--chat off");
  std::filesystem::copy(model_, convoy_ / "base");
  std::filesystem::remove(convoy_ / "base/chat_template.jinja");
  model_ = (convoy_ / "base").string();
  EXPECT_EQ(tokens(prompt), plain);
  expect(run("generate", prompt + "--chat on"), 2, "has no chat template");
  expect(run("generate", prompt + "--system-prompt s"), 2, "--system-prompt has no effect");
}

}  // namespace
}  // namespace convoy
