// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy runs` as a user does, on the run folders in tests/golden/telemetry/runs.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Outcome {
  int status = -1;
  std::string output;
};

// Runs `convoy runs ARGUMENTS --dir <fixtures>`. `output` is stdout, with stderr if `redirection`
// asks for it.
Outcome runs(const std::string& arguments, const std::string& redirection = "2>/dev/null") {
  const std::string command = fmt::format(
      "{}/convoy runs {} --dir {}/tests/golden/telemetry/runs {}", std::getenv("CONVOY_BIN_DIR"),
      arguments, std::getenv("CONVOY_SOURCE_DIR"), redirection);
  const testing::ScriptEnd end = testing::run_command(command);
  return {end.code, end.out};
}

int64_t count_of(const std::string& text, const std::string& word) {
  int64_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(RunsList, TableAndJsonNameEveryRunWithItsState) {
  const Outcome table = runs("list");
  EXPECT_EQ(table.status, 0);
  EXPECT_EQ(count_of(table.output, "\n"), 3) << table.output;
  EXPECT_NE(table.output.find("finished"), std::string::npos);
  EXPECT_EQ(table.output.find('\x1b'), std::string::npos);
  const json records = json::parse(runs("list --json").output);
  ASSERT_EQ(records.size(), 2u);
  for (const json& record : records) {
    const bool whole = record["name"] == "sums-lora";
    EXPECT_EQ(record["state"], whole ? "finished" : "failed");
    EXPECT_EQ(record["steps"], whole ? 40 : 12);
    EXPECT_EQ(record["total_steps"], 40);
    EXPECT_EQ(record["best_eval_step"], whole ? 40 : 10);
  }
}

TEST(RunsShow, PrintsIdentityAndFigures) {
  const Outcome outcome = runs("show sums-l");
  EXPECT_EQ(outcome.status, 0);
  for (const char* word :
       {"sums-lora", "finished", "40/40", "alpha", "train_loss", "0.1806", "stamp\n  dtype  fp32"})
    EXPECT_NE(outcome.output.find(word), std::string::npos) << word << "\n" << outcome.output;
  EXPECT_EQ(json::parse(runs("show sums-lora --json").output)["identity"]["world_size"], 2);
}

TEST(RunsShow, UnknownAndAmbiguousNamesAreUsageErrors) {
  EXPECT_EQ(runs("show sums").status, 2);
  const Outcome outcome = runs("show sums-lroa", "2>&1");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.output.find("did you mean `sums-lora`"), std::string::npos) << outcome.output;
  EXPECT_EQ(runs("shwo sums-lora").status, 2);
}

TEST(RunsPlot, DrawsSvgToAPipeAndToFiles) {
  const Outcome outcome = runs("plot sums-lora");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.output.starts_with("<svg "));
  EXPECT_EQ(count_of(outcome.output, " 0 1,0 -"), 5) << "four evaluations and the legend";
  const fs::path folder = fs::temp_directory_path() / fmt::format("convoy-runs-{}", ::getpid());
  const std::string svg = (folder / "both.svg").string();
  EXPECT_EQ(runs("plot sums-lora sums-killed --output " + svg).status, 0);
  EXPECT_NE(read_file(svg).find(">sums-killed train<"), std::string::npos);
  EXPECT_EQ(
      runs("plot sums-lora --metric grad_norm --log-y --output " + (folder / "a.png").string())
          .status,
      0);
  EXPECT_TRUE(read_file(folder / "a.png").starts_with("\x89PNG"));
  EXPECT_EQ(runs("compare sums-lora sums-killed --output " + (folder / "a.pdf").string()).status,
            0);
  EXPECT_TRUE(read_file(folder / "a.pdf").starts_with("%PDF-"));
  const Outcome other = runs("plot sums-lora --output " + (folder / "a.gif").string(), "2>&1");
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.output.find("ends in .svg, .png or .pdf"), std::string::npos) << other.output;
  fs::remove_all(folder);
}

TEST(RunsPlot, AsciiDrawsInTheTerminal) {
  const Outcome outcome = runs("plot sums-lora --ascii");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.output.find("step 40"), std::string::npos) << outcome.output;
}

TEST(RunsTail, ShowsTheLastRowsAndEndsWithTheRun) {
  const Outcome outcome = runs("tail sums-lora --lines 3 --follow");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(count_of(outcome.output, "\n"), 3) << outcome.output;
  EXPECT_NE(outcome.output.find("end 40  finished"), std::string::npos) << outcome.output;
  const Outcome raw = runs("tail sums-killed -n 1 --json");
  EXPECT_EQ(json::parse(raw.output)["step"], 12);
}

TEST(RunsCompare, ShowsFiguresSideBySideAndDrawsBoth) {
  const Outcome table = runs("compare sums-lora sums-killed");
  EXPECT_EQ(table.status, 0);
  for (const char* word :
       {"FIGURE", "sums-lora", "sums-killed", "40/40", "12/40", "train_loss", "ranks", "strategy"})
    EXPECT_NE(table.output.find(word), std::string::npos) << word << "\n" << table.output;
  const json report = json::parse(runs("compare sums-lora sums-killed --json").output);
  EXPECT_EQ(report["figures"]["steps"][0], "40/40");
  EXPECT_EQ(runs("compare sums-lora").status, 2);
  const Outcome twice = runs("compare sums-lora sums-l", "2>&1");
  EXPECT_EQ(twice.status, 2);
  EXPECT_NE(twice.output.find("run `sums-l` is named twice"), std::string::npos) << twice.output;
  const fs::path folder = fs::temp_directory_path() / fmt::format("convoy-cmp-{}", ::getpid());
  EXPECT_EQ(runs("compare sums-lora sums-killed --output " + (folder / "both.svg").string()).status,
            0);
  EXPECT_NE(read_file(folder / "both.svg").find(">sums-killed train<"), std::string::npos);
  fs::remove_all(folder);
}

TEST(RunsExport, WritesOneRowForEachStepAndEvaluation) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("convoy-exp-{}", ::getpid());
  fs::create_directories(folder);
  const std::string csv = (folder / "runs.csv").string();
  EXPECT_EQ(runs("export --output " + csv).status, 0);
  const std::string text = read_file(csv);
  EXPECT_TRUE(text.starts_with("run,event,time,step")) << text.substr(0, 200);
  EXPECT_GT(count_of(text, "\n"), 52);  // the runs have 40 and 12 steps
  EXPECT_EQ(runs("export --output " + csv).status, 2) << "it exists";
  EXPECT_EQ(runs("export sums-killed --force --output " + csv).status, 0);
  EXPECT_EQ(count_of(read_file(csv), "sums-lora"), 0);
  EXPECT_EQ(runs("export").status, 2);
  EXPECT_EQ(runs("export --output " + (folder / "runs.xlsx").string()).status, 2);
  const Outcome parquet = runs("export --output " + (folder / "runs.parquet").string(), "2>&1");
  EXPECT_EQ(parquet.status, 0) << parquet.output;
  fs::remove_all(folder);
}

TEST(RunsClean, ListsAndRemovesNothingUnasked) {
  const Outcome plan = runs("clean --keep-best 1 --dry-run");
  EXPECT_EQ(plan.status, 0);
  EXPECT_NE(plan.output.find("sums-killed"), std::string::npos) << plan.output;
  EXPECT_EQ(plan.output.find("sums-lora"), std::string::npos) << plan.output;
  const Outcome unasked = runs("clean --keep-best 1 </dev/null", "2>&1");
  EXPECT_EQ(unasked.status, 2);
  EXPECT_NE(unasked.output.find("--yes"), std::string::npos) << unasked.output;
  EXPECT_EQ(runs("clean sums-lora --keep-best 1 --dry-run").status, 2);
  EXPECT_EQ(json::parse(runs("list --json").output).size(), 2U);
}

TEST(RunsExport, ADamagedFileOfTextsIsNamed) {
  const testing::TemporaryFolder folder;
  const std::string run = folder / "run";
  const std::string row =
      R"({"row": 1, "sample": 0, "prompt": "2 + 2", "text": "4", "reward": 1, "logprobs": [-1]})"
      "\n";
  write_file_atomic(folder / "run/run.json", "{}");
  write_file_atomic(folder / "run/rollouts/step-1.jsonl", row);
  write_file_atomic(folder / "run/rollouts/step-2.jsonl", row + row.substr(0, 30));
  const std::string place = "run/rollouts/step-2.jsonl:2: ";
  const Outcome shown = runs("show " + run, "2>&1");
  EXPECT_EQ(shown.status, 0);
  EXPECT_EQ(count_of(shown.output, place), 1) << shown.output;
  EXPECT_NE(shown.output.find("reward 1"), std::string::npos) << shown.output;
  const std::string output = folder / "rollouts.jsonl";
  const Outcome named = runs("export " + run + " --rollouts --output " + output, "2>&1");
  EXPECT_EQ(named.status, 10) << named.output;
  EXPECT_NE(named.output.find(place), std::string::npos) << named.output;
  EXPECT_FALSE(fs::exists(output));
  const testing::ScriptEnd all = testing::run_command(
      fmt::format("{}/convoy runs export --rollouts --output {} --dir {} 2>&1",
                  std::getenv("CONVOY_BIN_DIR"), output, folder.path().string()));
  EXPECT_EQ(all.code, 0) << all.out;
  EXPECT_EQ(count_of(all.out, place), 1) << all.out;
  EXPECT_EQ(count_of(read_file(output), "\n"), 2);
}

TEST(RunsExport, TextsBecomeRowsForTraining) {
  const testing::TemporaryFolder folder;
  const std::string run = folder / "run";
  const auto text = [](int step, int row, const char* said, double reward, bool is_cut = false,
                       const char* asked = R"("Q: 2 + 2\nA:")") {
    return fmt::format(
        R"({{"step": {}, "row": {}, "sample": 0, "prompt": "2 + 2", "asked": {}, "text": "{}", )"
        R"("reward": {}, "truncated": {}, "logprobs": [-1]}})"
        "\n",
        step, row, asked, said, reward, is_cut);
  };
  constexpr const char* kChat = R"([{"role": "user", "content": "Hi"}])";
  write_file_atomic(folder / "run/run.json", "{}");
  write_file_atomic(folder / "run/rollouts/step-1.jsonl",
                    text(1, 7, "4", 1) + text(1, 7, "5", 0) + text(1, 7, "6", -1, true) +
                        text(1, 7, "4", 1) + text(1, 8, "1", 0.5) + text(1, 8, "2", 0.5));
  write_file_atomic(folder / "run/rollouts/step-2.jsonl",
                    text(2, 7, "4", 1) + text(2, 7, "5", 0) +
                        text(2, 9, "<think>\\nwell\\n</think>\\n\\nHello", 1, false, kChat) +
                        text(2, 9, "No", 0, false, kChat));
  const std::string output = folder / "rows.jsonl";
  const std::string common = "export " + run + " --force --output " + output;
  const Outcome sft = runs(common + " --as sft", "2>&1");
  EXPECT_EQ(sft.status, 0) << sft.output;
  EXPECT_EQ(read_file(output),
            R"({"prompt":"Q: 2 + 2\nA:","completion":"4"})"
            "\n"
            R"({"prompt":[{"role":"user","content":"Hi"}],"completion":[{"role":"assistant",)"
            R"("content":"Hello","reasoning_content":"well"}]})"
            "\n");
  EXPECT_NE(sft.output.find("2 rows of 10 texts; left out: 1 cut, 2 of an earlier row"),
            std::string::npos)
      << sft.output;
  const Outcome pairs = runs(common + " --as pairs", "2>&1");
  EXPECT_EQ(pairs.status, 0) << pairs.output;
  EXPECT_EQ(read_file(output),
            R"({"prompt":"Q: 2 + 2\nA:","chosen":"4","rejected":"5","problem_id":7,)"
            R"("score_chosen":1.0,"score_rejected":0.0})"
            "\n"
            R"({"prompt":[{"role":"user","content":"Hi"}],"chosen":[{"role":"assistant",)"
            R"("content":"Hello","reasoning_content":"well"}],"rejected":[{"role":"assistant",)"
            R"("content":"No"}],"problem_id":9,"score_chosen":1.0,"score_rejected":0.0})"
            "\n");
  for (const auto& [more, code, said] : std::vector<std::tuple<std::string, int, std::string>>{
           {" --as sft --min-reward 2", 10,
            "no whole text has a reward of 2 or more; the best has 1"},
           {" --as pairs --min-reward 2", 2, "no effect without --as sft"}}) {
    const Outcome refused = runs(common + more, "2>&1");
    EXPECT_EQ(refused.status, code) << refused.output;
    EXPECT_NE(refused.output.find(said), std::string::npos) << refused.output;
  }
}

// Texts that are gone are named; without a word the others would pass for all.
TEST(RunsExport, TextsThatAreGoneAreNamed) {
  const testing::TemporaryFolder folder;
  const std::string run = folder / "run";
  write_file_atomic(folder / "run/run.json", R"({"stamp": {"policy.inner_steps": "1"}})");
  for (const int step : {1, 2, 4, 5})
    write_file_atomic(folder / fmt::format("run/rollouts/step-{}.jsonl", step),
                      step == 2
                          ? ""
                          : R"({"row": 1, "sample": 0, "prompt": "2", "text": "4", "reward": 1, )"
                            R"("logprobs": [-1]})"
                            "\n");
  const std::string said = "the texts of step 2, 3 are gone";
  const Outcome shown = runs("show " + run, "2>&1");
  EXPECT_EQ(shown.status, 0);
  EXPECT_EQ(count_of(shown.output, said), 1) << shown.output;
  const std::string output = folder / "rollouts.jsonl";
  const Outcome named = runs("export " + run + " --rollouts --output " + output, "2>&1");
  EXPECT_EQ(named.status, 10) << named.output;
  EXPECT_NE(named.output.find(said), std::string::npos) << named.output;
  fs::remove(folder / "run/rollouts/step-5.jsonl");
  ASSERT_EQ(::mkfifo((folder / "run/rollouts/step-5.jsonl").c_str(), 0600), 0);
  const Outcome piped = runs("show " + run, "2>&1");
  EXPECT_EQ(piped.status, 0);
  EXPECT_NE(piped.output.find("step-5.jsonl: "), std::string::npos) << piped.output;
}

}  // namespace
}  // namespace convoy
