// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy data SUB` as a user does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "convoy/core/base/files.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

class DataCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file_atomic(folder_.path() / "rows.jsonl",
                      R"({"messages": [{"role": "user", "content": "1+1"},)"
                      R"( {"role": "assistant", "content": "2"}]})"
                      "\n"
                      R"({"messages": [{"role": "user", "content": "2+2"},)"
                      R"( {"role": "assistant", "content": "4"}]})"
                      "\n");
  }
  convoy::testing::ScriptEnd data(const std::string& arguments) const {
    return convoy::testing::run_script(
        folder_.path(),
        fmt::format("'{}/convoy' data {}", std::getenv("CONVOY_BIN_DIR"), arguments));
  }

  convoy::testing::TemporaryFolder folder_;
};

TEST_F(DataCommand, ExistingOutputsAreRefusedWithoutForce) {
  for (const std::string command :
       {"convert rows.jsonl a.jsonl --to messages", "system rows.jsonl b.jsonl --prompt Careful.",
        "style rows.jsonl c.jsonl --style Briefly.", "dedup rows.jsonl d.jsonl",
        "split rows.jsonl parts --names a,b --ratios 0.5 0.5",
        "process rows.jsonl --output processed --ratios 0.5 0.5 0",
        "convert rows.jsonl shards.jsonl --shard-rows 1", "stats rows.jsonl --histogram e.svg",
        "validate rows.jsonl --report f.jsonl"}) {
    const auto first = data(command);
    ASSERT_EQ(first.code, 0) << command << first.out;
    const auto again = data(command);
    EXPECT_EQ(again.code, 2) << command << again.out;
    EXPECT_NE(again.out.find("exists already"), std::string::npos) << again.out;
    EXPECT_NE(again.out.find("--force overwrites it"), std::string::npos) << again.out;
    EXPECT_EQ(data(command + " --force").code, 0) << command;
  }
}

TEST_F(DataCommand, CheckFindsABenchmarkInRows) {
  write_file_atomic(folder_.path() / "benchmark.jsonl",
                    R"({"q": "Zoe has 10 red stickers and loses 3 of them on Monday."})"
                    "\n"
                    R"({"q": "short"})"
                    "\n");
  write_file_atomic(folder_.path() / "train.jsonl",
                    R"({"text": "Something else that has nothing in common with the other file."})"
                    "\n"
                    R"({"text": "Q: Zoe has 10 red stickers, and loses 3 of them on Monday. A: 7"})"
                    "\n");
  const auto found = data("check train.jsonl --against benchmark.jsonl");
  EXPECT_EQ(found.code, 10) << found.out;
  for (const char* part :
       {"train.jsonl:2: 100 % of row 1 of benchmark.jsonl: zoe has 10", "1 of 2 rows has a text",
        "1 of 2 rows cannot be looked for: no text of 8 words"})
    EXPECT_NE(found.out.find(part), std::string::npos) << part << "\n" << found.out;
  const auto cleaned =
      data("check train.jsonl clean.jsonl --against benchmark.jsonl --report found.jsonl");
  ASSERT_EQ(cleaned.code, 0) << cleaned.out;
  const std::string kept = read_file((folder_.path() / "clean.jsonl").string());
  EXPECT_TRUE(kept.starts_with(R"({"text":"Something else)")) << kept;
  EXPECT_EQ(std::count(kept.begin(), kept.end(), '\n'), 1);
  const std::string report = read_file((folder_.path() / "found.jsonl").string());
  EXPECT_TRUE(report.starts_with(R"({"row":1,)")) << report;
  EXPECT_EQ(data("check clean.jsonl --against benchmark.jsonl").code, 0);
  // Each benchmark counts alone, and none is overwritten.
  EXPECT_EQ(data("check train.jsonl --against benchmark.jsonl,benchmark.jsonl").code, 10);
  EXPECT_EQ(data("check train.jsonl benchmark.jsonl --against benchmark.jsonl --force").code, 2);
  EXPECT_EQ(data("check train.jsonl both.jsonl --report both.jsonl --against benchmark.jsonl").code,
            2);
  EXPECT_EQ(data("check train.jsonl --against benchmark.jsonl,").code, 2);
  EXPECT_EQ(data("check train.jsonl").code, 2);
  EXPECT_EQ(data("check train.jsonl --against benchmark.jsonl --schema text").code, 2);
}

TEST_F(DataCommand, PreferencesAreShownCheckedAndMeasuredWithBothSides) {
  write_file_atomic(folder_.path() / "pairs.jsonl",
                    R"({"prompt": "1 + 1 = ", "chosen": "2", "rejected": "11"})"
                    "\n"
                    R"({"prompt": "2 + 2 = ", "chosen": "4", "rejected": "22"})"
                    "\n");
  const std::string model =
      fmt::format("--model {}/examples/tally-3m", std::getenv("CONVOY_SOURCE_DIR"));
  const auto shown = data("tokens --data pairs.jsonl --schema preference --limit 1 " + model);
  ASSERT_EQ(shown.code, 0) << shown.out;
  for (const char* part : {"row 1: both sides begin with the same", "row 1, chosen: ",
                           "row 1, rejected: ", "every token behind the prompt counts"})
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << ": " << shown.out;
  const auto json = data("tokens --data pairs.jsonl --schema preference --json --quiet " + model);
  for (const char* part : {"\"side\":\"chosen\"", "\"side\":\"rejected\"", "\"shared_tokens\":"})
    EXPECT_NE(json.out.find(part), std::string::npos) << part << ": " << json.out;
  const auto checked = data("validate pairs.jsonl --schema preference " + model);
  EXPECT_EQ(checked.code, 0) << checked.out;
  EXPECT_NE(checked.out.find("2 rows good, all preference"), std::string::npos) << checked.out;
  const auto stats = data("stats pairs.jsonl --schema preference " + model);
  EXPECT_EQ(stats.code, 0) << stats.out;
  for (const char* part : {"\nchosen ", "\nrejected ", "\nshared "})
    EXPECT_NE(stats.out.find(part), std::string::npos) << part << ": " << stats.out;
  const auto figures = nlohmann::json::parse(
      data("stats pairs.jsonl --schema preference --max-seq-len 12 --json --quiet " + model).out);
  EXPECT_EQ(figures["chosen"]["total"].get<int64_t>() + figures["rejected"]["total"].get<int64_t>(),
            figures["supervised"]["total"].get<int64_t>());
  EXPECT_EQ(figures["rows_above_max_seq_len"], 0) << "the limit is of each side: " << figures;
  const auto rendered =
      data("tokens --data pairs.jsonl --schema preference --render --limit 1 --quiet " + model);
  EXPECT_EQ(rendered.out, "row 1, chosen:\n1 + 1 = 2\nrow 1, rejected:\n1 + 1 = 11\n");
  // In the form `messages`, one side of the pair would be lost.
  const auto converted = data("convert pairs.jsonl a.jsonl --schema preference --to messages");
  EXPECT_NE(converted.code, 0);
  EXPECT_NE(converted.out.find("a preference has two completions"), std::string::npos)
      << converted.out;
}

TEST_F(DataCommand, TokensWarnsAlikeWithAndWithoutRender) {
  write_file_atomic(folder_.path() / "calls.jsonl",
                    R"({"messages": [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", )"
                    R"("tool_calls": [{"type": "function", "function": {"name": "add", )"
                    R"("arguments": {"x": 1}}}]}, {"role": "tool", "content": [{"type": "text", )"
                    R"("text": "2"}]}, {"role": "assistant", "content": "2"}]})"
                    "\n");
  const std::string model = fmt::format("tokens --data calls.jsonl --model {}/examples/tally-3m",
                                        std::getenv("CONVOY_SOURCE_DIR"));
  for (const char* how : {"", " --render"}) {
    const auto shown = data(model + how);
    ASSERT_EQ(shown.code, 0) << shown.out;
    EXPECT_NE(shown.out.find("does not write the `tool_calls` of 1 row"), std::string::npos)
        << how << shown.out;
  }
}

TEST_F(DataCommand, APromptThatBothSidesRepeatIsWarnedOfOnceAFile) {
  write_file_atomic(folder_.path() / "twice.jsonl",
                    R"({"prompt": "1 + 1 = ", "chosen": "1 + 1 = 2", "rejected": "1 + 1 = 11"})"
                    "\n"
                    R"({"prompt": "2 + 2 = ", "chosen": "2 + 2 = 4", "rejected": "2 + 2 = 22"})"
                    "\n");
  const std::string model =
      fmt::format(" --model {}/examples/tally-3m", std::getenv("CONVOY_SOURCE_DIR"));
  for (const std::string& tokens : {std::string(), model}) {
    const auto checked = data("validate twice.jsonl --schema preference" + tokens);
    EXPECT_EQ(checked.code, 0) << checked.out;
    EXPECT_NE(checked.out.find("in 2 pairs chosen and rejected both begin with the whole prompt"),
              std::string::npos)
        << checked.out;
  }
}

TEST_F(DataCommand, AnswersThatAreCalledGoodOrBadAreShownAndChecked) {
  write_file_atomic(folder_.path() / "judged.jsonl",
                    R"({"prompt": "1 + 1 = ", "completion": "2", "label": true})"
                    "\n"
                    R"({"prompt": "2 + 2 = ", "completion": "22", "label": "False"})"
                    "\n"
                    R"({"prompt": "3 + 3 = ", "completion": "6", "label": "yes"})"
                    "\n");
  const std::string model = fmt::format("--schema unpaired_preference --model {}/examples/tally-3m",
                                        std::getenv("CONVOY_SOURCE_DIR"));
  const auto shown = data("tokens --data judged.jsonl --limit 2 " + model);
  ASSERT_EQ(shown.code, 0) << shown.out;
  for (const char* part : {"row 1, good: ", "row 2, bad: ", "every token behind the prompt counts"})
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << ": " << shown.out;
  const auto checked = data("validate judged.jsonl " + model);
  EXPECT_EQ(checked.code, 10) << checked.out;
  EXPECT_NE(checked.out.find("judged.jsonl:3"), std::string::npos) << checked.out;
  EXPECT_NE(checked.out.find("`label` is \"yes\", wanted true or false"), std::string::npos)
      << checked.out;
  const auto converted =
      data("convert judged.jsonl a.jsonl --schema unpaired_preference --to text");
  EXPECT_NE(converted.code, 0) << "a bad answer would become an answer";
}

TEST_F(DataCommand, ColumnsThatAreNotKeptAreNamedOnce) {
  write_file_atomic(folder_.path() / "wide.jsonl",
                    R"({"prompt": "1+1", "completion": "2", "id": 7, "source": "a", "none": null})"
                    "\n"
                    R"({"prompt": "2+2", "completion": "4", "id": 8})"
                    "\n");
  const auto all = data("convert wide.jsonl all.jsonl --to messages");
  ASSERT_EQ(all.code, 0) << all.out;
  EXPECT_NE(all.out.find("2 columns are not kept: `id` (in 2 rows), `source` (in 1 row); --keep "
                         "COLUMN writes one too"),
            std::string::npos)
      << all.out;
  const auto kept = data("convert wide.jsonl kept.jsonl --to messages --keep id --json");
  ASSERT_EQ(kept.code, 0) << kept.out;
  EXPECT_NE(kept.out.find(R"("columns_not_kept":["source"])"), std::string::npos) << kept.out;
  const auto same = data("convert wide.jsonl same.csv");
  ASSERT_EQ(same.code, 0) << same.out;
  EXPECT_EQ(same.out.find("not kept"), std::string::npos) << same.out;
  const auto processed = data("process wide.jsonl --output out --ratios 0.5 0.5 0");
  ASSERT_EQ(processed.code, 0) << processed.out;
  EXPECT_NE(processed.out.find("`source` (in 1 row)"), std::string::npos) << processed.out;
}

TEST_F(DataCommand, NoPartIsWrittenEmpty) {
  const auto shares = data("split rows.jsonl parts --names train,val --ratios 0.9 0.1");
  EXPECT_EQ(shares.code, 2) << shares.out;
  EXPECT_NE(shares.out.find("part `val` would get none of the 2 rows"), std::string::npos)
      << shares.out;
  EXPECT_NE(shares.out.find("--counts"), std::string::npos) << shares.out;
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "parts/train.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "parts/val.jsonl"));
  const auto counts = data("split rows.jsonl parts --names train,val --counts -1 2");
  EXPECT_EQ(counts.code, 2) << counts.out;
  EXPECT_NE(counts.out.find("part `train`"), std::string::npos) << counts.out;
  const auto zero = data("split rows.jsonl parts --ratios 0.5 0.5 0");
  ASSERT_EQ(zero.code, 0) << zero.out;
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "parts/val.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "parts/test.jsonl"));
  const auto processed = data("process rows.jsonl --output processed");
  EXPECT_EQ(processed.code, 2) << processed.out;
  EXPECT_NE(processed.out.find("part `test` would get none"), std::string::npos) << processed.out;
}

TEST_F(DataCommand, MixJoinsAndWeighs) {
  write_file_atomic(folder_.path() / "pairs.csv",
                    "prompt,completion\n3+3,6\n4+4,8\n5+5,10\n6+6,12\n");
  const auto joined = data("mix rows.jsonl pairs.csv --output joined.jsonl --to messages --json");
  ASSERT_EQ(joined.code, 0) << joined.out;
  EXPECT_NE(joined.out.find(R"("rows_written":6)"), std::string::npos) << joined.out;
  EXPECT_NE(joined.out.find(R"("of pairs.csv":4)"), std::string::npos) << joined.out;
  EXPECT_EQ(data("validate joined.jsonl").code, 0);
  const auto weighed =
      data("mix rows.jsonl=0.5 pairs.csv=0.5 --output weighed.jsonl --to messages");
  ASSERT_EQ(weighed.code, 0) << weighed.out;
  EXPECT_NE(weighed.out.find("of rows.jsonl 4; of pairs.csv 4"), std::string::npos) << weighed.out;
  const auto unlike = data("mix rows.jsonl pairs.csv --output unlike.jsonl");
  ASSERT_EQ(unlike.code, 0) << unlike.out;
  EXPECT_NE(unlike.out.find("the schemas messages, prompt_completion"), std::string::npos)
      << unlike.out;
  for (const std::string command :
       {"mix rows.jsonl --output x.jsonl", "mix rows.jsonl=0.5 pairs.csv --output x.jsonl",
        "mix rows.jsonl=much pairs.csv=1 --output x.jsonl",
        "mix rows.jsonl pairs.csv --output rows.jsonl --force",
        "mix rows.jsonl pairs.csv --output x.jsonl --stop first_exhausted"})
    EXPECT_EQ(data(command).code, 2) << command;
}

TEST_F(DataCommand, ValidateSaysWhatATrainingWould) {
  const std::string model = fmt::format("{}/examples/tally-3m", std::getenv("CONVOY_SOURCE_DIR"));
  const std::string user = R"({"messages": [{"role": "user", "content": "1+1"}, )";
  write_file_atomic(
      folder_.path() / "empty.jsonl",
      fmt::format("{0}{1}\n{0}{2}\n", user, R"({"role": "assistant", "content": "2"}]})",
                  R"({"role": "assistant", "content": ""}]})"));
  // Training drops such a row and reports it.
  for (const std::string& with : {std::string(), fmt::format(" --model '{}'", model)}) {
    const auto empty = data("validate empty.jsonl" + with);
    EXPECT_EQ(empty.code, 0) << empty.out;
    for (const char* part : {"1 row has an empty answer, the first is row 2 on line 2",
                             "1 row good, all messages; 1 row dropped without a supervised token"})
      EXPECT_NE(empty.out.find(part), std::string::npos) << part << ": " << empty.out;
    const auto strict = data("validate empty.jsonl --empty-answers error" + with);
    EXPECT_EQ(strict.code, 10) << strict.out;
    EXPECT_NE(strict.out.find("empty.jsonl:2: "), std::string::npos) << strict.out;
  }
  write_file_atomic(
      folder_.path() / "parts.jsonl",
      R"({"messages": [{"role": "user", "content": [{"type": "image", "url": "a.png"}]}, )"
      R"({"role": "assistant", "content": "2"}]})"
      "\n");
  write_file_atomic(folder_.path() / "damaged.jsonl", R"({"prompt": "\ud83d", "completion": "2"})"
                                                      "\n");
  EXPECT_EQ(data("validate damaged.jsonl").code, 10);
  const auto mended = data("validate damaged.jsonl --bad-rows replace");
  EXPECT_EQ(mended.code, 0) << mended.out;
  EXPECT_NE(mended.out.find("1 character of 1 row was damaged"), std::string::npos) << mended.out;
  const auto parts = data("validate parts.jsonl");
  EXPECT_EQ(parts.code, 10) << parts.out;
  EXPECT_NE(parts.out.find("only text parts"), std::string::npos) << parts.out;

  write_file_atomic(folder_.path() / "run.yaml",
                    fmt::format("model: {{name: '{}', max_seq_len: 64}}\n"
                                "data: {{train_path: rows.jsonl, val_path: empty.jsonl, "
                                "empty_answers: error}}\n",
                                model));
  const auto run = data("validate --config run.yaml");
  EXPECT_EQ(run.code, 10) << run.out;
  EXPECT_NE(run.out.find("empty.jsonl:2"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("1 of 4 rows bad"), std::string::npos) << run.out;
  write_file_atomic(folder_.path() / "good.yaml",
                    fmt::format("model: {{name: '{}', max_seq_len: 64}}\n"
                                "data: {{train_path: rows.jsonl, val_path: rows.jsonl}}\n",
                                model));
  const auto good = data("validate --config good.yaml");
  EXPECT_EQ(good.code, 0) << good.out;
  EXPECT_NE(good.out.find("train: 2 rows of rows.jsonl"), std::string::npos) << good.out;
  EXPECT_NE(good.out.find("EOS `<|im_end|>` is learnt"), std::string::npos) << good.out;
  const auto cut = data(fmt::format("validate rows.jsonl --model '{}' --max-seq-len 12", model));
  EXPECT_NE(cut.out.find("100.0 % of the rows (2 of 2) lose their answer"), std::string::npos)
      << cut.out;
}

TEST_F(DataCommand, TextFilesAreRows) {
  write_file_atomic(folder_.path() / "book.txt", "one\n\ntwo\n");
  const auto document = data("convert book.txt document.jsonl");
  ASSERT_EQ(document.code, 0) << document.out;
  EXPECT_EQ(read_file(folder_.path() / "document.jsonl"), "{\"text\":\"one\\n\\ntwo\\n\"}\n");
  ASSERT_EQ(data("convert book.txt lines.jsonl --text-rows line").code, 0);
  EXPECT_EQ(read_file(folder_.path() / "lines.jsonl"), "{\"text\":\"one\"}\n{\"text\":\"two\"}\n");
}

}  // namespace
}  // namespace convoy::apps
