// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy process` as a user does, up to the start of the computation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/process/process_config.h"
#include "convoy/core/base/files.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class ProcessCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    write("rows.jsonl",
          "{\"question\": \"1 + 1?\", \"answer\": \"It is 2.\\n#### 2\"}\n"
          "{\"text\": \"no problem\"}\n"
          "{\"question\": \"2 + 2?\", \"answer\": \"#### 4\"}\n");
  }

  void write(const std::string& name, const std::string& text) {
    write_file_atomic(folder_ / name, text);
  }

  // Runs the command; `out` is stdout and stderr.
  testing::ScriptEnd run(const std::string& arguments, const std::string& variables = "") {
    return testing::run_script(
        folder_.path(),
        fmt::format("{} {}/convoy {} 2>&1", variables, std::getenv("CONVOY_BIN_DIR"), arguments));
  }
  testing::ScriptEnd process(const std::string& arguments, const std::string& variables = "") {
    return run(fmt::format("process --model {}/examples/tally-3m {}",
                           std::getenv("CONVOY_SOURCE_DIR"), arguments),
               variables);
  }
  json plan(const std::string& arguments) {
    const testing::ScriptEnd end = testing::run_script(
        folder_.path(),
        fmt::format("{}/convoy process --model {}/examples/tally-3m --dataset rows.jsonl --dry-run "
                    "--json {} 2>messages",
                    std::getenv("CONVOY_BIN_DIR"), std::getenv("CONVOY_SOURCE_DIR"), arguments));
    EXPECT_EQ(end.code, 0) << end.out << read_file(folder_ / "messages");
    return json::parse(end.out, nullptr, false);
  }
  void expect_refusal(const testing::ScriptEnd& end, const std::string& mention) {
    EXPECT_EQ(end.code, 2) << end.out;
    EXPECT_NE(end.out.find(mention), std::string::npos) << end.out;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(ProcessCommand, TheDryRunTellsRowsStagesAndPromptAndStartsNothing) {
  const json told = plan("--samples 3 --max-tokens 100 --max-iterations 1 --world-size 2");
  EXPECT_EQ(told["rows"], 3);
  // Each row has 3 solutions, 3 judgements, and 3 improvements, which are judged too.
  EXPECT_EQ(told["requests_at_most"], 3 * (3 + 3 + 6));
  EXPECT_EQ(told["new_tokens_at_most"], 3 * 3 * (100 + 1024 + 100 + 1024));
  EXPECT_EQ(told["workers"], "2 workers on cpu");
  EXPECT_NE(told["memory"].get<std::string>().find(" a worker"), std::string::npos) << told;
  const std::string prompt = told["first_prompt"];
  EXPECT_TRUE(prompt.starts_with("<|im_start|>")) << prompt;
  EXPECT_NE(prompt.find("\\boxed{}.\n\nProblem: 1 + 1?<|im_end|>"), std::string::npos) << prompt;
  EXPECT_TRUE(prompt.ends_with("<|im_start|>assistant\n")) << prompt;
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  EXPECT_FALSE(fs::exists(folder_ / "data/final_data.json"));
}

TEST_F(ProcessCommand, APlainPromptOfOnesOwnIsTakenAsItIs) {
  write("q.txt", "Question: {{ problem }}\nAnswer:\n");
  EXPECT_EQ(plan("--plain --generate-prompt q.txt")["first_prompt"], "Question: 1 + 1?\nAnswer:");
  write("c.yaml", "prompts: {chat: off, generate: q.txt}\ngenerate: {n: 2}\n");
  EXPECT_EQ(plan("c.yaml")["first_prompt"], "Question: 1 + 1?\nAnswer:");
  EXPECT_EQ(plan("c.yaml --chat on")["first_prompt"].get<std::string>().substr(0, 12),
            "<|im_start|>");
}

// Zero is a value like any other, and a flag overrides the file whatever its value.
TEST_F(ProcessCommand, FlagsBeatTheFileAlsoWhereTheyAreZeroOrTheDefault) {
  write("c.yaml",
        "improve: {max_iterations: 5}\ngenerate: {max_tokens: 10}\nevaluate: {max_tokens: 1}\n");
  EXPECT_EQ(plan("c.yaml --num-examples 1")["new_tokens_at_most"], 10 + 1 + 5 * 11);
  EXPECT_EQ(plan("c.yaml --num-examples 1 --max-iterations 0")["new_tokens_at_most"], 10 + 1);
  EXPECT_EQ(
      plan("c.yaml --num-examples 1 --max-iterations 0 --max-tokens 4096")["new_tokens_at_most"],
      4096 + 1);
  const testing::ScriptEnd none =
      process("--dataset rows.jsonl --num-examples 0 --start-from 0 --dry-run");
  EXPECT_EQ(none.code, 10) << none.out;
  EXPECT_NE(none.out.find("--limit 0 takes no row"), std::string::npos) << none.out;
  EXPECT_EQ(plan("--start-from 1")["rows"], 2);
  EXPECT_EQ(plan("generate.n=2 --num-examples 1")["requests_at_most"], 2 * (1 + 1 + 4));
}

// The guide's command lines, with another model and another program as worker.
TEST_F(ProcessCommand, TakesTheGuidesCommandLines) {
  const std::string cached = "hub/hub/datasets--AI-MO--NuminaMath-1.5/";
  write(cached + "refs/main", "abc");
  write(cached + "snapshots/abc/data/train-00000-of-00001.jsonl",
        "{\"problem\": \"1 + 1?\", \"solution\": \"2\", \"answer\": \"2\"}\n");
  for (const char* line :
       {"--force-download --batch-size 4 --optimize-gpu --no-warnings",
        "--force-download --batch-size 1 --max-tokens 4096 --cleanup-delay 2.0 --optimize-gpu "
        "--no-warnings --low-memory",
        "--world-size 2", "--num-nodes 2 --node-rank 1 --master-addr 10.0.0.1 --master-port 12355",
        "--seed 0 --debug --split train --cleanup-delay 0 --start-from 0 --num-examples 1 "
        "--max-iterations 0 --output here.json"}) {
    const testing::ScriptEnd end =
        process(fmt::format("--dataset numina_math --dry-run {}", line), "HF_HOME=$PWD/hub");
    EXPECT_EQ(end.code, 0) << line << "\n" << end.out;
  }
}

TEST_F(ProcessCommand, WhatHasNoMeaningAnyMoreSaysSoInOneLine) {
  const std::string out =
      process("--dataset rows.jsonl --dry-run --optimize-gpu --cleanup-delay 2.0 --force-download")
          .out;
  for (const char* flag : {"--optimize-gpu has no effect", "--cleanup-delay has no effect",
                           "--force-download: the files are read again"})
    EXPECT_NE(out.find(flag), std::string::npos) << out;
  EXPECT_EQ(out.find("convoy data fetch"), std::string::npos) << out;
  const std::string quiet = process(
                                "--dataset rows.jsonl --dry-run --optimize-gpu --cleanup-delay "
                                "2.0 --force-download --no-warnings")
                                .out;
  EXPECT_EQ(quiet.find("no effect"), std::string::npos) << quiet;
  EXPECT_EQ(quiet.find("read again"), std::string::npos) << quiet;
  EXPECT_EQ(process("--dataset rows.jsonl --dry-run").out.find("no effect"), std::string::npos);
}

TEST_F(ProcessCommand, SaysWhatIsMissing) {
  // The guide's lines with their own model and data set, whose names Convoy knows.
  for (const char* line : {"--dataset rows.jsonl", "--world-size 2",
                           "--dataset numina_math --force-download --batch-size 4 --optimize-gpu "
                           "--no-warnings"}) {
    const testing::ScriptEnd end = run(fmt::format("process {}", line));
    expect_refusal(end, "no model given");
    expect_refusal(end, "--preset process-standard");
    expect_refusal(end, "process-low-memory");
  }
  expect_refusal(process(""), "no data set given");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  const testing::ScriptEnd absent = process("--dataset numina_math --dry-run", "HF_HOME=$PWD/hub");
  EXPECT_EQ(absent.code, 10) << absent.out;
  EXPECT_NE(absent.out.find("convoy data fetch AI-MO/NuminaMath-1.5"), std::string::npos)
      << absent.out;
}

TEST_F(ProcessCommand, RefusesWhatItCanNotDoBeforeItStarts) {
  expect_refusal(process("--dataset rows.jsonl --output out.docx"), "out.docx");
  expect_refusal(process("--dataset rows.jsonl --stages generate,juge"), "unknown stage `juge`");
  expect_refusal(process("--dataset rows.jsonl --stages generate,verify,pairs"), "--pairs FILE");
  expect_refusal(process("--dataset rows.jsonl --pairs pairs.jsonl"), "--samples 4");
  expect_refusal(process("--dataset rows.jsonl --keep 'scor >= 1'"), "unknown name `scor`");
  expect_refusal(process("--dataset rows.jsonl --node-rank 2 --num-nodes 2"), "node_rank");
  expect_refusal(process("--dataset rows.jsonl --max-token 5"), "did you mean --max-tokens");
  write("p.txt", "{{ question }}\n");
  expect_refusal(process("--dataset rows.jsonl --generate-prompt p.txt"), "p.txt:1");
  write("c.yaml", "generate: {temprature: 1}\n");
  expect_refusal(process("c.yaml --dataset rows.jsonl"), "c.yaml:1");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

// A copy of the program has no ../lib/convoy beside it, as a broken installation.
TEST_F(ProcessCommand, AnOutputWhosePluginIsMissingIsRefusedBeforeTheStart) {
  fs::create_directories(folder_ / "bin");
  fs::copy_file(fs::path(std::getenv("CONVOY_BIN_DIR")) / "convoy", folder_ / "bin/convoy");
  const auto end_of = [&](const std::string& output) {
    return testing::run_script(
        folder_.path(),
        fmt::format("bin/convoy process --model {}/examples/tally-3m --dataset rows.jsonl {} 2>&1",
                    std::getenv("CONVOY_SOURCE_DIR"), output));
  };
  for (const char* const output :
       {"--output o.parquet --dry-run", "--output o.json --dry-run", "--output o.jsonl.zst",
        "--output o.jsonl --answers a.csv --dry-run", "--output o.parquet"}) {
    const testing::ScriptEnd end = end_of(output);
    EXPECT_EQ(end.code, 12) << output << end.out;
    EXPECT_NE(end.out.find("is written through a plugin that is missing"), std::string::npos)
        << output << end.out;
    EXPECT_NE(end.out.find("an output that ends in .jsonl"), std::string::npos) << end.out;
  }
  EXPECT_EQ(end_of("--output o.jsonl --dry-run").code, 0) << end_of("--output o.jsonl").out;
}

TEST_F(ProcessCommand, BadRowsStopWhereThatIsWanted) {
  const testing::ScriptEnd end = process("--dataset rows.jsonl --bad-rows error --dry-run");
  EXPECT_EQ(end.code, 10) << end.out;
  EXPECT_NE(end.out.find("rows.jsonl:2"), std::string::npos) << end.out;
}

// A dry run and a run give the same error, and the run writes nothing.
TEST_F(ProcessCommand, DataThatCanNotServeIsToldBeforeTheStart) {
  write("empty.jsonl", "");
  write("other.jsonl", "{\"a\": 1}\n{\"a\": 2}\n");
  write("q.txt", "{{ problem }} {{ row.qestion }}\n");
  write("torn.jsonl", "{torn\n{\"problem\": \"p\"}\n");
  const std::pair<const char*, const char*> wrong[] = {
      {"--dataset empty.jsonl", "the data set has no rows"},
      {"--dataset rows.jsonl --num-examples 0", "-1 takes all"},
      {"--dataset rows.jsonl --start-from 3", "lower --start-from"},
      {"--dataset other.jsonl",
       "none of the 2 rows can be used; the first: the row has no problem"},
      {"--dataset rows.jsonl --generate-prompt q.txt",
       "rows.jsonl: no row has `qestion` (needed by q.txt, did you mean `question`?)"},
      {"--dataset torn.jsonl --answer-field nix", "no row has `nix` (needed by --answer-field)"},
      {"--dataset absent.jsonl", "No such file"}};
  for (const auto& [arguments, mention] : wrong)
    for (const char* way : {" --dry-run", ""}) {
      const testing::ScriptEnd end = process(std::string(arguments) + way);
      EXPECT_EQ(end.code, 10) << end.out;
      EXPECT_NE(end.out.find(mention), std::string::npos) << end.out;
    }
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

// The plan is checked before the worker program is searched.
TEST_F(ProcessCommand, OtherRowsOfTheSameSetAreRefusedByTheirName) {
  const auto start = [&](const std::string& selection) {
    return process("--dataset rows.jsonl --output o.jsonl " + selection, "CONVOY_WORKER=$PWD/none");
  };
  EXPECT_NE(start("--num-examples 2").out.find("none, found none"), std::string::npos);
  expect_refusal(start(""), "(data.num_examples (--limit): all now, 2 then)");
  expect_refusal(start("--num-examples 1"), "(data.num_examples (--num-examples): 1 now, 2 then)");
  expect_refusal(start("--start-from 2"), "data.start_from (--start-from): 2 now, 0 then");
  expect_refusal(start("--num-examples 1"), "--keep-apart");
}

TEST_F(ProcessCommand, AColumnMayBeSparse) {
  write("q.txt", "{{ problem }} {{ row.text }}\n");
  EXPECT_EQ(plan("--answer-field text --num-examples 1")["rows"], 1);
  write("sparse.jsonl", "{\"problem\": \"p\"}\n{\"problem\": \"q\", \"text\": \"t\"}\n");
  const testing::ScriptEnd end =
      process("--dataset sparse.jsonl --plain --generate-prompt q.txt --dry-run");
  EXPECT_EQ(end.code, 0) << end.out;
  EXPECT_NE(end.out.find("q t"), std::string::npos) << end.out;
}

TEST_F(ProcessCommand, NoOutputReplacesOrBecomesAnInput) {
  write("mine.csv", "question,answer\n1 + 1?,2\n");
  write("shards/a.jsonl", "{\"question\": \"1 + 1?\"}\n");
  write("kept.jsonl.manifest.json", "[{\"question\": \"1 + 1?\"}]");
  fs::create_symlink("rows.jsonl", folder_ / "link.jsonl");
  for (const char* line :
       {"--dataset rows.jsonl --output rows.jsonl",
        "--dataset rows.jsonl --output ./x/../rows.jsonl",
        "--dataset rows.jsonl --output link.jsonl", "--dataset mine.csv --output mine.json",
        "--dataset kept.jsonl.manifest.json --output kept.jsonl",
        "--dataset rows.jsonl,mine.csv --output mine.csv",
        "--dataset shards --output shards/out.jsonl",
        "--dataset shards --output shards/new/out.csv",
        "--dataset 'shards/*.jsonl*' --output shards/out.jsonl",
        "--dataset 'shards/*.jsonl.manifest.json,rows.jsonl' --output shards/out.jsonl",
        "--dataset 'shards/{a,b}.jsonl' --output shards/b.jsonl"}) {
    for (const char* how : {" --dry-run", ""}) {
      const testing::ScriptEnd end = process(std::string(line) + how);
      if (end.code == 10 && std::string(line).find("manifest.json,rows") != std::string::npos)
        continue;  // no file matches the pattern yet
      EXPECT_EQ(end.code, 2) << line << "\n" << end.out;
      EXPECT_NE(end.out.find("the output"), std::string::npos) << line << "\n" << end.out;
    }
  }
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  for (const char* line : {"--dataset mine.csv --output mine.json --csv=false",
                           "--dataset 'shards/*.jsonl' --output out.jsonl",
                           "--dataset 'shards/*.jsonl' --output shards/deeper/out.jsonl"})
    EXPECT_EQ(process(std::string(line) + " --dry-run").code, 0) << line;
  expect_refusal(run("process verify --data rows.jsonl --output rows.jsonl"), "the output");
}

TEST_F(ProcessCommand, RefusesSettingsThatNoRowCouldFulfil) {
  expect_refusal(process("--dataset rows.jsonl --max-tokens 100 --kv-blocks 1"), "--kv-blocks");
  expect_refusal(process("--dataset rows.jsonl --stop ''"), "generate.stop");
  write("empty.txt", "\n");
  expect_refusal(process("--dataset rows.jsonl --generate-prompt empty.txt"), "empty.txt");
  expect_refusal(process("--dataset rows.jsonl --stages generate,filter --keep 'score > 0.5'"),
                 "evaluate");
  expect_refusal(process("--dataset rows.jsonl --stages generate,improve"), "before improve");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  const std::string out = process("--dataset rows.jsonl --max-tokens 100000 --dry-run").out;
  EXPECT_NE(out.find("generate.max_tokens is 100000"), std::string::npos) << out;
}

TEST_F(ProcessCommand, ADryRunAndARefusalLeaveNothing) {
  EXPECT_EQ(process("--dataset rows.jsonl --output new/deep/out.json --dry-run").code, 0);
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  expect_refusal(process("--output new/out.json"), "no data set given");
  EXPECT_EQ(process("--dataset absent.jsonl --output new/out.json").code, 10);
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  expect_refusal(process("--dataset rows.jsonl --output x/ --dry-run"), "is a folder");
  expect_refusal(process("--dataset rows.jsonl --resume last"), "no run");
}

TEST_F(ProcessCommand, ConfigShowsAndChecksItsFiles) {
  EXPECT_NE(run("config show --preset process-low-memory").out.find("low_memory: true"),
            std::string::npos);
  write("base.yaml", "task: process\npreset: process-standard\ngenerate: {n: 4}\n");
  write("c.yaml", "include: base.yaml\ndata: {dataset: gsm8k}\n");
  const testing::ScriptEnd end = run("config show --json c.yaml seed=7");
  const json shown = json::parse(end.out, nullptr, false);
  ASSERT_TRUE(shown.is_object()) << end.out;
  EXPECT_EQ(shown["generate"]["n"], 4);
  EXPECT_EQ(shown["workers"]["batch_size"], 4);
  EXPECT_EQ(shown["data"]["dataset"], "gsm8k");
  EXPECT_EQ(shown["seed"], 7);
  EXPECT_EQ(run("config check c.yaml").out, "ok\n");
  write("bad.yaml", "task: process\nstages: [verify, generate]\n");
  expect_refusal(run("config check bad.yaml"), "generate must come first");
  EXPECT_NE(run("config prompts improve").out.find("{{ feedback }}"), std::string::npos);
  EXPECT_NE(run("config schema process").out.find("max_iterations"), std::string::npos);
}

TEST_F(ProcessCommand, ListsDataSets) {
  const std::string list = run("process --list-datasets").out;
  for (const char* key : {"gsm8k", "numina_math", "aqua"})
    EXPECT_NE(list.find(key), std::string::npos) << list;
  const testing::ScriptEnd info = run("process --dataset-info rows.jsonl --json");
  EXPECT_EQ(info.code, 0) << info.out;
  EXPECT_NE(info.out.find("1 + 1?"), std::string::npos) << info.out;
}

TEST(ProcessConfig, FlagsBeatTheOtherSourcesAndPlainIsTheWeakest) {
  const auto chat = [](const std::vector<std::string>& words) {
    Context context;
    ProcessConfig config;
    read_process_config(context, words, config);
    return config.settings.prompts.chat;
  };
  EXPECT_EQ(chat({"prompts.chat=on"}), "on");
  EXPECT_EQ(chat({"--plain", "prompts.chat=on"}), "off");
  EXPECT_EQ(chat({"prompts.chat=off", "--chat", "auto"}), "auto") << "the default too";
  EXPECT_EQ(chat({"--plain", "--chat", "on"}), "on");
  EXPECT_EQ(chat({"--chat=on", "--plain"}), "on");
}

}  // namespace
}  // namespace convoy::apps
