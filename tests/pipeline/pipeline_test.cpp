// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy process` with a real model, and tests the files of whole runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/data/datasets/formats/row_source.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string source() { return std::getenv("CONVOY_SOURCE_DIR"); }

class Pipeline : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file_atomic(folder_ / "q.txt", "Question: {{ problem }}\nAnswer:\n");
    write_file_atomic(folder_ / "judge.txt", "Question: {{ problem }}\nAnswer: {{ reasoning }}\n");
  }

  Json manifest_of(const std::string& output) const {
    return Json::parse(read_file(folder_ / (output + ".manifest.json")));
  }

  // Runs `convoy process` greedily on plain text, as the model was trained.
  testing::ScriptEnd process(const std::string& arguments) {
    return testing::run_script(
        folder_.path(),
        fmt::format("OMP_NUM_THREADS=1 {}/convoy process --model {}/examples/tally-3m --plain "
                    "--generate-prompt q.txt --temperature 0 --max-tokens 100 {} 2>&1",
                    std::getenv("CONVOY_BIN_DIR"), source(), arguments));
  }
  std::vector<Json> done(const std::string& output, const std::string& arguments) {
    const testing::ScriptEnd end = process(fmt::format("--output {} {}", output, arguments));
    EXPECT_EQ(end.code, 0) << end.out;
    said_ = end.out;
    return rows(output);
  }
  std::vector<Json> rows(const std::string& file) {
    std::vector<Json> all;
    if (!fs::exists(folder_ / file)) return all;
    const auto source = data::open_rows(folder_ / file);
    while (auto row = source->next()) all.push_back(std::move(row->value));
    return all;
  }
  std::string sums() const { return source() + "/examples/sums/test.jsonl"; }

  testing::TemporaryFolder folder_;
  std::string said_;
};

std::string behind_hashes(const std::string& text) {
  const size_t at = text.rfind("####");
  if (at == std::string::npos) return "";
  std::string answer = text.substr(at + 4);
  std::erase_if(answer, [](char letter) { return letter == ' ' || letter == '\n'; });
  return answer;
}

// The checker's accuracy equals the accuracy of a plain comparison, and the rows are in order.
TEST_F(Pipeline, SumsComeBackInOrderWithTheirAnswersChecked) {
  const std::vector<Json> got =
      done("sums.json", fmt::format("--dataset {} --num-examples 40 --stages generate,verify "
                                    "--world-size 2 --deterministic",
                                    sums()));
  ASSERT_EQ(got.size(), 40u);
  std::ifstream file(sums());
  int64_t right = 0;
  int64_t verified = 0;
  for (const Json& row : got) {
    std::string line;
    std::getline(file, line);
    const Json original = Json::parse(line);
    EXPECT_EQ(row["problem"], original["question"]);
    EXPECT_EQ(row["metadata"]["original_data"], original);
    EXPECT_EQ(row["gold"], behind_hashes(original["answer"]));
    EXPECT_EQ(row["state"], "ok");
    EXPECT_TRUE(row["timestamp"].is_null());
    right += behind_hashes(row["reasoning"]) == behind_hashes(original["answer"]);
    verified += row["verified"] == "yes";
  }
  EXPECT_EQ(right, verified);
  EXPECT_GE(verified, 38);
  EXPECT_EQ(rows("sums.csv").size(), 40u);
  const Json manifest = manifest_of("sums.json");
  EXPECT_EQ(manifest["rows_by_state"], Json({{"ok", 40}}));
  EXPECT_EQ(manifest["outputs"][0]["sha256"], sha256_hex_of_file(folder_ / "sums.json"));
  EXPECT_NE(said_.find("of 40 rows right"), std::string::npos) << said_;
}

TEST_F(Pipeline, TheNumberOfWorkersAndWhereARunBeginsChangeNoByte) {
  const std::string common = fmt::format(
      "--dataset {} --deterministic --samples 2 --temperature 0.8 --stages generate,verify,vote ",
      sums());
  done("one.jsonl", common + "--num-examples 12");
  done("two.jsonl", common + "--num-examples 12 --world-size 2 --batch-size 3");
  EXPECT_EQ(read_file(folder_ / "one.jsonl"), read_file(folder_ / "two.jsonl"));
  std::vector<Json> rest = done("rest.jsonl", common + "--start-from 8 --num-examples 4");
  const std::vector<Json> all = rows("one.jsonl");
  ASSERT_EQ(rest.size(), 4u);
  for (size_t at = 0; at < rest.size(); ++at) {
    EXPECT_EQ(rest[at]["source_index"], 8 + at);
    rest[at]["index"] = all[8 + at]["index"];
    EXPECT_EQ(rest[at], all[8 + at]);
  }
}

// All stages run at once. The model gives no judgements, so no row has a score; a missing score is
// not 0.
TEST_F(Pipeline, AllStagesLeaveEveryRowInAState) {
  write_file_atomic(folder_ / "rows.jsonl",
                    "{\"question\": \"Ann has 3 pens and buys 4. How many pens does Ann have?\", "
                    "\"answer\": \"#### 7\"}\n"
                    "{\"note\": \"no problem here\"}\n"
                    "{\"question\": \"Ann has 3 pens and buys 4. How many pens does Ann have?\", "
                    "\"answer\": \"#### 1000\"}\n");
  const std::vector<Json> got =
      done("all.jsonl",
           "--dataset rows.jsonl --samples 2 --temperature 0.5 --evaluate-prompt judge.txt "
           "--improve-prompt q.txt --evaluate-max-tokens 20 --max-iterations 1");
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0]["samples"].size(), 2u);
  EXPECT_EQ(got[0]["votes"]["samples"], 2);
  EXPECT_TRUE(got[0]["quality_score"].is_null());
  EXPECT_EQ(got[0]["scores"]["parsed"], false);
  EXPECT_EQ(got[1]["state"], "bad_input");
  EXPECT_TRUE(got[1]["reasoning"].is_null());
  // A wrong answer is improved once. The version that is not better is stored in the history.
  EXPECT_EQ(got[2]["verified"], "no");
  EXPECT_EQ(got[2]["history"].size(), 1u);
  EXPECT_GT(got[2]["tokens"]["by_stage"]["improve"], 0);
}

// The same model, whose judgements and solutions are held to a schema.
TEST_F(Pipeline, TextsOfASchemaAlwaysParse) {
  write_file_atomic(
      folder_ / "solution.json",
      R"({"type": "object", "properties": {"answer": {"type": "integer", "minimum": 0,)"
      R"( "maximum": 999}}, "required": ["answer"], "additionalProperties": false})");
  const std::string common = fmt::format(
      "--dataset {} --num-examples 4 --samples 2 --temperature 0.8 --stages "
      "generate,verify,evaluate "
      "--evaluate-prompt judge.txt --schema solution.json ",
      sums());
  const std::vector<Json> got = done("formed.jsonl", common + "--evaluate-schema scores");
  ASSERT_EQ(got.size(), 4u);
  for (const Json& row : got) {
    EXPECT_EQ(row["state"], "ok");
    EXPECT_EQ(Json::parse(row["reasoning"].get<std::string>())["answer"].dump(), row["answer"]);
    EXPECT_NE(row["verified"], "unknown");
    EXPECT_EQ(row["scores"]["parsed"], true) << row["evaluation"];
    EXPECT_TRUE(row["quality_score"].is_number());
  }
  // Another schema is another run.
  write_file_atomic(folder_ / "solution.json", R"({"type": "object", "required": ["answer"]})");
  const testing::ScriptEnd other =
      process("--output formed.jsonl --evaluate-schema scores " + common);
  EXPECT_EQ(other.code, 2) << other.out;
  EXPECT_NE(other.out.find("generate.schema"), std::string::npos) << other.out;
  write_file_atomic(folder_ / "solution.json", R"({"not": {}})");
  const testing::ScriptEnd dry = process("--output dry.jsonl --dry-run " + common);
  EXPECT_EQ(dry.code, 2) << dry.out;
  EXPECT_NE(dry.out.find("keywords that are not covered: \"not\""), std::string::npos) << dry.out;
}

TEST_F(Pipeline, AFinishedRunIsPublishedAgainWithoutWork) {
  const std::string arguments =
      fmt::format("--dataset {} --num-examples 6 --stages generate,verify --deterministic", sums());
  done("a.jsonl", arguments);
  const std::string first = read_file(folder_ / "a.jsonl");
  fs::remove(folder_ / "a.jsonl");
  done("a.jsonl", arguments);
  EXPECT_EQ(read_file(folder_ / "a.jsonl"), first);
  EXPECT_EQ(said_.find("process: row"), std::string::npos) << said_;
  const testing::ScriptEnd shown = testing::run_script(
      folder_.path(), fmt::format("{}/convoy runs show last", std::getenv("CONVOY_BIN_DIR")));
  EXPECT_NE(shown.out.find("tokens/s"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("finished"), std::string::npos) << shown.out;
}

// The coordinator and its worker are killed while some rows are finished and others are not. Stored
// texts are not computed again, and the result has the same bytes as without the kill.
TEST_F(Pipeline, AKilledRunGoesOnToTheSameBytes) {
  const std::string arguments = fmt::format(
      "--dataset {} --num-examples 24 --stages generate,verify --deterministic", sums());
  done("whole.jsonl", arguments + " --run-dir whole");
  const std::string command = fmt::format(
      "OMP_NUM_THREADS=1 {}/convoy process --model {}/examples/tally-3m --plain --generate-prompt "
      "q.txt --temperature 0 --max-tokens 100 --output killed.jsonl --run-dir killed "
      "--batch-size 2 {}",
      std::getenv("CONVOY_BIN_DIR"), source(), arguments);
  const testing::ScriptEnd killed = testing::run_script(
      folder_.path(),
      fmt::format("LD_PRELOAD={}/libstalled_rows.so STALL_BYTES=4000 STALL_MARK=$PWD/stalled {} "
                  ">log 2>&1 & child=$!\n"
                  "until [ -e stalled ] || ! kill -0 $child 2>/dev/null; do sleep 0.02; done\n"
                  "kill -9 $child; wait; [ -e stalled ] && [ ! -e killed.jsonl ]",
                  std::getenv("CONVOY_BIN_DIR"), command));
  ASSERT_EQ(killed.code, 0) << killed.out << read_file(folder_ / "log");
  done("killed.jsonl", arguments + " --run-dir killed --world-size 2");
  EXPECT_EQ(read_file(folder_ / "killed.jsonl"), read_file(folder_ / "whole.jsonl"));
}

TEST_F(Pipeline, AnotherConfigurationIsAnotherRun) {
  const std::string common =
      fmt::format("--dataset {} --num-examples 4 --stages generate --run-dir run", sums());
  done("a.jsonl", common);
  const testing::ScriptEnd end = process("--output a.jsonl --seed 1 " + common);
  EXPECT_EQ(end.code, 2) << end.out;
  EXPECT_NE(end.out.find("seed"), std::string::npos) << end.out;
  done("b.jsonl", "--seed 1 --keep-apart " + common);
  EXPECT_EQ(rows("b.jsonl").size(), 4u);
}

// The cache has room for texts of 100 tokens, but not for their prompts too, which shows only when
// rows run.
TEST_F(Pipeline, RowsThatTheEngineRefusedAreComputedAgain) {
  std::string lines;
  for (const char* name : {"Ann", "Ben", "Cid"})
    lines += fmt::format(
        "{{\"question\": \"{0} has 3 pens and buys 4. Then {0} finds 5 pens and loses 2 pens, and "
        "at "
        "last {0} gives 1 pen to a friend. How many pens does {0} have?\", \"answer\": \"#### "
        "9\"}}\n",
        name);
  write_file_atomic(folder_ / "rows.jsonl", lines);
  const std::string common = "--dataset rows.jsonl --stages generate,verify --output a.jsonl ";
  const testing::ScriptEnd end = process(common + "--kv-blocks 4");
  EXPECT_EQ(end.code, 16) << end.out;
  EXPECT_NE(end.out.find("none of 3 rows has a text"), std::string::npos) << end.out;
  EXPECT_NE(end.out.find("more than the KV cache holds"), std::string::npos) << end.out;
  EXPECT_EQ(end.out.find("--max-new-tokens"), std::string::npos) << end.out;
  ASSERT_EQ(rows("a.jsonl").size(), 3u);
  EXPECT_EQ(rows("a.jsonl")[0]["state"], "engine_error");
  const testing::ScriptEnd again = process(common);
  EXPECT_EQ(again.code, 0) << again.out;
  EXPECT_EQ(rows("a.jsonl")[0]["state"], "ok");
  EXPECT_NE(again.out.find("3 rows in state engine_error: computed again"), std::string::npos);
  EXPECT_NE(again.out.find("of 3 rows right"), std::string::npos) << again.out;
}

TEST_F(Pipeline, LowMemoryIsAnotherRunAndTheRefusalSaysHowToKeepBoth) {
  const std::string common =
      fmt::format("--dataset {} --num-examples 2 --stages generate --output a.jsonl ", sums());
  EXPECT_EQ(process(common + "--dtype fp32").code, 0);
  // The device that `auto` resolves to decides, not the word `auto`.
  EXPECT_EQ(process(common + "--dtype fp32 --devices cpu").code, 0);
  const testing::ScriptEnd end = process(common + "--low-memory");
  EXPECT_EQ(end.code, 2) << end.out;
  EXPECT_NE(end.out.find("model.dtype (--dtype): bf16 now, fp32 then"), std::string::npos)
      << end.out;
  EXPECT_NE(end.out.find("--keep-apart"), std::string::npos) << end.out;
  EXPECT_EQ(process(common + "--low-memory --keep-apart").code, 0);
}

TEST_F(Pipeline, ResumeLastGoesOn) {
  const std::string common =
      fmt::format("--dataset {} --num-examples 2 --stages generate --output a.jsonl ", sums());
  EXPECT_EQ(process(common).code, 0);
  const testing::ScriptEnd end = process(common + "--resume last");
  EXPECT_EQ(end.code, 0) << end.out;
  EXPECT_EQ(end.out.find("process: row"), std::string::npos) << end.out;
}

TEST_F(Pipeline, RejectedRowsAreCountedAndNotWritten) {
  const std::vector<Json> got =
      done("kept.jsonl", fmt::format("--dataset {} --num-examples 10 --stages generate,filter "
                                     "--keep 'tokens < 40'",
                                     sums()));
  const Json counts = manifest_of("kept.jsonl")["rows_by_state"];
  EXPECT_GT(counts.value("rejected", 0), 0);
  EXPECT_EQ(got.size(), static_cast<size_t>(counts.value("ok", 0)));
  EXPECT_EQ(got.size() + counts.value("rejected", size_t{0}), 10u);
}

TEST_F(Pipeline, FiltersOfAFinishedRunAreAppliedAgainWithoutComputing) {
  const std::string common = fmt::format("--dataset {} --num-examples 10 --stages ", sums());
  const std::vector<Json> all = done("kept.jsonl", common + "generate,verify");
  ASSERT_EQ(all.size(), 10u);
  std::vector<Json> wanted;
  for (const Json& row : all)
    if (row["reasoning"].get<std::string>().size() < 90) wanted.push_back(row);
  ASSERT_GT(wanted.size(), 0u);
  ASSERT_LT(wanted.size(), 10u);
  const auto without_time = [](std::vector<Json> rows) {
    for (Json& row : rows) row.erase("timestamp");
    return rows;
  };
  const std::vector<Json> kept =
      done("kept.jsonl", common + "generate,verify,filter --keep 'characters < 90'");
  EXPECT_EQ(said_.find("process: row"), std::string::npos) << said_;
  EXPECT_EQ(without_time(kept), without_time(wanted));
  EXPECT_EQ(manifest_of("kept.jsonl")["configuration"]["filter"]["keep"],
            Json({"characters < 90"}));
  EXPECT_EQ(done("kept.jsonl", common + "generate,verify,filter --keep 'verified == no'").size(),
            0u);
  EXPECT_EQ(without_time(done("kept.jsonl", common + "generate,verify")), without_time(all));
  EXPECT_EQ(said_.find("process: row"), std::string::npos) << said_;
}

// Makes pairs, right solutions and problems of a finished run: nothing is computed, the bytes are
// the same each time, and `convoy train` learns from the files.
TEST_F(Pipeline, AFinishedRunMakesPairsSolutionsAndProblemsForTraining) {
  const std::string common = fmt::format(
      "--dataset {} --num-examples 12 --samples 4 --temperature 1.6 --top-p 1 --stages "
      "generate,verify ",
      sums());
  const std::vector<Json> all = done("rows.jsonl", common);
  const std::string wanted = common +
                             "--pairs pairs.jsonl --pairs-per-problem 2 --answers right.jsonl "
                             "--problems problems.jsonl --problems-max-difficulty 0.9 ";
  done("rows.jsonl", wanted);
  EXPECT_EQ(said_.find("process: row"), std::string::npos) << said_;
  EXPECT_NE(said_.find("pairs      "), std::string::npos) << said_;
  const std::vector<Json> pairs = rows("pairs.jsonl");
  ASSERT_GE(pairs.size(), 3u) << said_;
  for (const Json& pair : pairs) {
    const Json& row = all.at(pair["problem_id"].get<size_t>());
    EXPECT_EQ(pair["prompt"],
              fmt::format("Question: {}\nAnswer:", row["problem"].get<std::string>()));
    EXPECT_EQ(behind_hashes(pair["chosen"]), row["gold"].get<std::string>());
    EXPECT_NE(behind_hashes(pair["rejected"]), row["gold"].get<std::string>());
  }
  size_t solved = 0;
  for (const Json& row : all) solved += row["difficulty"] < 1;
  const std::vector<Json> problems = rows("problems.jsonl");
  ASSERT_EQ(problems.size(), solved);
  for (const Json& problem : problems) {
    const Json& row = all.at(problem["problem_id"].get<size_t>());
    EXPECT_EQ(problem["difficulty"], 1 - row["pass_at_k"]["1"].get<double>());
    EXPECT_EQ(problem["answer"], row["gold"]);
  }
  const std::string bytes = read_file(folder_ / "pairs.jsonl");
  done("rows.jsonl", wanted);
  EXPECT_EQ(read_file(folder_ / "pairs.jsonl"), bytes);
  EXPECT_EQ(manifest_of("rows.jsonl")["configuration"]["pairs"]["per_problem"], 2);
  for (const char* training : {"task=dpo data.train_path=pairs.jsonl --dry-run",
                               "task=dpo data.train_path=pairs.jsonl train.steps=2 --run-dir dpo",
                               "task=sft data.train_path=right.jsonl --dry-run",
                               "task=grpo 'reward=[{kind: answer}]' rollout.max_new_tokens=96 "
                               "data.train_path=problems.jsonl --dry-run"}) {
    const testing::ScriptEnd end = testing::run_script(
        folder_.path(), fmt::format("OMP_NUM_THREADS=1 {}/convoy train model.name={}/examples/"
                                    "tally-3m model.max_seq_len=256 {} 2>&1",
                                    std::getenv("CONVOY_BIN_DIR"), source(), training));
    EXPECT_EQ(end.code, 0) << end.out;
    EXPECT_EQ(end.out.find("not read"), std::string::npos) << end.out;
  }
  const testing::ScriptEnd twice = process("--output rows.jsonl --pairs ./rows.jsonl " + common);
  EXPECT_EQ(twice.code, 2) << twice.out;
  EXPECT_NE(twice.out.find("two outputs of the run have the name"), std::string::npos) << twice.out;
}

// The report gives the speed of the selected rows, not of the rows that the folder computed last.
TEST_F(Pipeline, TheReportOfAnEarlierConfigurationHasItsOwnSpeed) {
  const std::string common = fmt::format("--dataset {} --stages generate --run-dir run ", sums());
  done("a.jsonl", common + "--num-examples 3");
  const auto rows_of_start = [&] {
    return Json::parse(read_file(folder_ / "run/metrics.json"))["process"]["last_start"]["rows"];
  };
  EXPECT_EQ(rows_of_start(), 3);
  done("a.jsonl", common + "--num-examples 5 --keep-apart");
  EXPECT_EQ(rows_of_start(), 5);
  done("a.jsonl", common + "--num-examples 3 --keep-apart");
  EXPECT_EQ(rows_of_start(), 3);
}

TEST_F(Pipeline, TheDeviceCsvBeginsWithTheGuidesColumns) {
  done("a.jsonl",
       fmt::format("--dataset {} --num-examples 2 --stages generate --run-dir run", sums()));
  const std::string csv = read_file(folder_ / "run/devices.csv");
  EXPECT_TRUE(
      csv.starts_with("Timestamp,Elapsed,GPU_Index,GPU_Name,Temperature,GPU_Utilization,"
                      "Memory_Utilization,Memory_Used,Memory_Total,Power_Draw,"))
      << csv;
}

}  // namespace
}  // namespace convoy
