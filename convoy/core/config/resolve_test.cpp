// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/resolve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/config/resolve_fixture_test.h"

namespace convoy::config {
namespace {

TEST_F(Resolve, ReadsEveryKindOfValue) {
  RootSettings settings;
  read(settings,
       "seed: 2e8\nname: yes\nrun:\n  learning_rate: 1e-4\n  batch_size: 3.0\n  packing: True\n  "
       "width: 8\n"
       "  scale: auto\n  steps: [1, 2]\n  weights: [0.5, 1e-1]\n  files: one\n  path: 'null'\n  "
       "schedule: no\n"
       "  inner:\n    targets: [q, \"1\"]\n    ranks: {a.b: 4}\n    alphas: {a: 1.5}\n");
  EXPECT_EQ(settings.seed, 200000000);
  EXPECT_EQ(settings.name, "yes");
  EXPECT_EQ(settings.run.learning_rate, 1e-4);
  EXPECT_EQ(settings.run.batch_size, 3);
  EXPECT_TRUE(settings.run.packing);
  EXPECT_EQ(settings.run.width.value, 8);
  EXPECT_TRUE(settings.run.scale.is_auto());
  EXPECT_EQ(settings.run.steps, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(settings.run.weights, (std::vector<double>{0.5, 0.1}));
  EXPECT_EQ(settings.run.files, (std::vector<std::string>{"one"}));
  EXPECT_EQ(settings.run.path, "null");
  EXPECT_EQ(settings.run.flat.schedule, "no");
  EXPECT_EQ(settings.run.inner.targets.names, (std::vector<std::string>{"q", "1"}));
  EXPECT_EQ(settings.run.inner.ranks, (OrderedMap<int64_t>{{"a.b", 4}}));
  EXPECT_EQ(settings.run.inner.alphas, (OrderedMap<double>{{"a", 1.5}}));
}

TEST_F(Resolve, BoundsAndChoicesHold) {
  EXPECT_EQ(error_of("run:\n  batch_size: 0\n"),
            "run.yaml:2: run.batch_size must be at least 1, found 0");
  EXPECT_EQ(error_of("run:\n  learning_rate: 0\n"),
            "run.yaml:2: run.learning_rate must be above 0 and at most 1, found 0");
  EXPECT_EQ(error_of("run:\n  lr: 2\n"),
            "run.yaml:2: run.lr must be above 0 and at most 1, found 2");
  EXPECT_EQ(error_of("run:\n  width: 1\n"), "run.yaml:2: run.width must be at least 2, found 1");
  EXPECT_EQ(error_of("run:\n  schedule: cosin\n"),
            "run.yaml:2: run.schedule must be one of linear, cosine, no, found \"cosin\", did you "
            "mean `cosine`?");
  EXPECT_EQ(error_of("run:\n  inner:\n    ranks: {a: 0}\n"),
            "run.yaml:3: run.inner.ranks.a must be at least 1, found 0");
}

TEST_F(Resolve, AliasesAreOneSetting) {
  RootSettings settings;
  read(settings, "r:\n  lr: 0.5\n  scheduler: linear\n  name: x\n  inner: {rank: 3}\n");
  EXPECT_EQ(settings.run.learning_rate, 0.5);
  EXPECT_EQ(settings.run.flat.schedule, "linear");
  EXPECT_EQ(settings.name, "x");
  EXPECT_EQ(settings.run.inner.r, 3);
  EXPECT_EQ(error_of("run:\n  lr: 1e-4\n  learning_rate: 0.0001\n"), "");
  EXPECT_EQ(error_of("run:\n  lr: 1e-4\n  learning_rate: 2e-4\n")
                .find("run.yaml:3: run.learning_rate and run.lr ("),
            0u);
  EXPECT_EQ(error_of("name: a\nrun:\n  name: b\n").find("run.yaml:3: run.name and name ("), 0u);
}

TEST_F(Resolve, WinningAliasWinsInOneSourceOnly) {
  RootSettings settings;
  const Resolved resolved = read(settings, "run:\n  local_path: here\n  path: hub\n");
  EXPECT_EQ(settings.run.path, "here");
  ASSERT_EQ(resolved.notices().size(), 1u);
  EXPECT_NE(resolved.notices()[0].find("run.local_path is used instead of run.path"),
            std::string::npos);
  read(settings, "run:\n  local_path: here\n", {.overrides = {"run.path=there"}});
  EXPECT_EQ(settings.run.path, "there");
}

TEST_F(Resolve, NullSaysNothing) {
  RootSettings settings;
  const Resolved resolved = read(settings, "seed:\nname: ~\nrun:\n  batch_size: null\n  inner:\n");
  EXPECT_EQ(settings.seed, 42);
  EXPECT_EQ(resolved.value("seed").origin, "default");
  EXPECT_EQ(resolved.value("run.batch_size").origin, "default");
}

// Each source overrides the sources after it: command line > environment > file > include > preset
// > default.
TEST_F(Resolve, Precedence) {
  folder_.write("base.yaml", "preset: small\nrun: {batch_size: 30}\n");
  const std::string from_file = (folder_.path() / "run.yaml").string() + ":2";
  const std::string from_include = (folder_.path() / "base.yaml").string() + ":2";
  struct Case {
    bool preset, include, file, environment, command_line;
    int64_t value;
    std::string origin;
  };
  const std::vector<Case> cases = {
      {false, false, false, false, false, 4, "default"},
      {true, false, false, false, false, 20, "preset small"},
      {true, true, false, false, false, 30, from_include},
      {true, true, true, false, false, 40, from_file},
      {true, true, true, true, false, 50, "environment RUN_BATCH_SIZE"},
      {true, true, true, true, true, 60, "command line"},
      {true, false, true, false, true, 60, "command line"},
      {false, false, true, true, false, 50, "environment RUN_BATCH_SIZE"},
  };
  for (const Case& expected : cases) {
    Sources sources;
    sources.presets = {{"small", "run: {batch_size: 20, packing: true}\n"}};
    if (expected.environment) sources.environment = {{"RUN_BATCH_SIZE", "50"}};
    if (expected.command_line) sources.overrides = {"run.batch-size=60"};
    std::string text = expected.include  ? "include: base.yaml\n"
                       : expected.preset ? "preset: small\n"
                                         : "name: x\n";
    if (expected.file) text += "run: {batch_size: 40}\n";
    RootSettings settings;
    const Resolved resolved = read(settings, text, sources);
    EXPECT_EQ(settings.run.batch_size, expected.value) << text;
    EXPECT_EQ(resolved.value("run.batch_size").origin, expected.origin) << text;
    EXPECT_EQ(settings.run.packing, expected.preset) << text;
  }
}

TEST_F(Resolve, CommandLinePresetBeatsTheFilesPreset) {
  Sources sources;
  sources.presets = {{"small", "seed: 1\n"}, {"large", "seed: 2\n"}};
  sources.overrides = {"preset=large"};
  RootSettings settings;
  read(settings, "preset: small\n", sources);
  EXPECT_EQ(settings.seed, 2);
  EXPECT_EQ(error_of("\npreset: smal\n", {.presets = sources.presets}),
            "run.yaml:2: there is no preset `smal`, did you mean `small`? (known: large, small)");
}

TEST_F(Resolve, IncludesMergeDeeplyAndRelativeToTheirFile) {
  folder_.write("deep/a.yaml", "include: b.yaml\nrun: {batch_size: 2}\n");
  folder_.write("deep/b.yaml", "seed: 7\nrun: {batch_size: 9, lr: 0.25, inner: {r: 5}}\n");
  folder_.write("c.yaml", "run: {inner: {alpha: 3}}\n");
  RootSettings settings;
  const Resolved resolved =
      read(settings, "include: [deep/a.yaml, c.yaml]\nrun: {learning_rate: 0.5}\n");
  EXPECT_EQ(settings.seed, 7);
  EXPECT_EQ(settings.run.batch_size, 2);
  EXPECT_EQ(settings.run.learning_rate, 0.5);
  EXPECT_EQ(settings.run.inner.r, 5);
  EXPECT_EQ(settings.run.inner.alpha, 3);
  EXPECT_EQ(without_folder(resolved.value("run.inner.r").origin), "deep/b.yaml:2");
}

TEST_F(Resolve, ManyIncludesOfIncludesEnd) {
  for (int level = 0; level < 12; ++level) {
    const std::string below = std::to_string(level + 1) + ".yaml";
    folder_.write(std::to_string(level) + ".yaml", "include: [" + below + ", " + below + "]\n");
  }
  folder_.write("12.yaml", "seed: 1\n");
  EXPECT_NE(error_of("include: 0.yaml\n").find("more than 200 includes"), std::string::npos);
}

TEST_F(Resolve, EnvironmentUsesOneNamePerKey) {
  Sources sources;
  sources.environment = {
      {"CONVOY_SEED", "9"},       {"SEED", "1"},        {"RUN_INNER_TARGETS", "[a, b]"},
      {"RUN_SCHEDULE", "linear"}, {"RUN_PACKING", "1"}, {"RUN_LR", "0.1"},
      {"RUN_BATCH_SIZE", ""}};
  RootSettings settings;
  const Resolved resolved = read(settings, "name: x\n", sources);
  EXPECT_EQ(settings.seed, 9);
  EXPECT_EQ(settings.run.inner.targets.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(settings.run.flat.schedule, "linear");
  EXPECT_TRUE(settings.run.packing);
  EXPECT_EQ(settings.run.learning_rate, 2e-4);
  EXPECT_EQ(settings.run.batch_size, 4);
  const std::vector<std::string>& notices = resolved.notices();
  EXPECT_NE(std::find(notices.begin(), notices.end(),
                      "environment RUN_LR is not read; the name is RUN_LEARNING_RATE"),
            notices.end());
  EXPECT_NE(std::find(notices.begin(), notices.end(), "environment CONVOY_SEED=9 sets seed"),
            notices.end());
  EXPECT_EQ(error_of("name: x\n", {.environment = {{"RUN_BATCH_SIZE", "many"}}}),
            "environment RUN_BATCH_SIZE: run.batch_size: wanted an integer, found \"many\"");
}

TEST_F(Resolve, OverridesAreCheckedLikeFiles) {
  EXPECT_EQ(override_error("run.batch_siz=2"),
            "command line: unknown key `run.batch_siz`, did you mean `run.batch_size`?");
  EXPECT_EQ(override_error("run.batch_size=x"),
            "command line: run.batch_size: wanted an integer, found \"x\"");
  EXPECT_EQ(override_error("run.steps=[1"),
            "command line: run.steps: wanted a list, found \"[1\" (a bracket is not closed)");
  EXPECT_EQ(override_error("run.packing=1"),
            "command line: run.packing: wanted true or false, found \"1\" (write true)");
  EXPECT_EQ(override_error("run.packing=0"),
            "command line: run.packing: wanted true or false, found \"0\" (write false)");
  for (const char* text : {"run.batch_size", "=1", ".=1", "run..lr=1", "run.=1"})
    EXPECT_NE(override_error(text).find("wanted key=value"), std::string::npos) << text;
  RootSettings settings;
  read(settings, "seed: 1\n",
       {.overrides = {"name=[draft] a=b", "run.inner.ranks={q: 2}", "run.packing=true",
                      "run.path="}});
  EXPECT_EQ(settings.name, "[draft] a=b");
  EXPECT_EQ(settings.run.inner.ranks, (OrderedMap<int64_t>{{"q", 2}}));
  EXPECT_TRUE(settings.run.packing);
}

TEST_F(Resolve, RulesAcceptNoticeReplaceAndRefuse) {
  Sources sources;
  sources.rules = {{"run.workers", {}, KeyAction::Notice, "there are none", ""},
                   {"run.fp16", {"false"}, KeyAction::Accept, "", ""},
                   {"run.fp16", {}, KeyAction::Refuse, "use bf16", ""},
                   {"run.schedule", {"cos"}, KeyAction::Replace, "", "cosine"}};
  RootSettings settings;
  settings.run.flat.schedule = "linear";
  const Resolved resolved =
      read(settings, "run:\n  workers: 4\n  fp16: False\n  schedule: COS\n", sources);
  EXPECT_EQ(settings.run.flat.schedule, "cosine");
  ASSERT_EQ(resolved.notices().size(), 1u);
  EXPECT_EQ(without_folder(resolved.notices()[0]),
            "run.yaml:2: run.workers has no effect: there are none");
  EXPECT_EQ(error_of("run:\n  fp16: true\n", sources),
            "run.yaml:2: run.fp16: true is not supported (use bf16)");
  sources.environment = {{"RUN_FP16", "true"}};
  EXPECT_EQ(error_of("seed: 1\n", sources),
            "environment RUN_FP16: run.fp16: true is not supported (use bf16)");
}

TEST_F(Resolve, ListsOfNumbersAndFixedWordsMayBeOneText) {
  RootSettings settings;
  read(settings, "run: {steps: '1, 2'}\n",
       {.overrides = {"run.weights=0.5,1e3"}, .environment = {{"RUN_FIGURES", "rougeL,sari"}}});
  EXPECT_EQ(settings.run.steps, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(settings.run.weights, (std::vector<double>{0.5, 1e3}));
  EXPECT_EQ(settings.run.figures, (std::vector<std::string>{"rougeL", "sari"}));
  read(settings, "seed: 1\n", {.overrides = {"run.figures=loss", "run.files=a,b"}});
  EXPECT_EQ(settings.run.figures, std::vector<std::string>{"loss"});
  EXPECT_EQ(settings.run.files, std::vector<std::string>{"a,b"});  // commas may be in names
  EXPECT_EQ(error_of("run: {figures: 'loss,bleu'}\n"),
            "run.yaml:1: run.figures must be one of loss, sari, rougeL, found \"bleu\"");
}

TEST_F(Resolve, SectionsOfOtherProgramsAloneAreWalked) {
  RootSettings settings;
  Sources sources;
  sources.rules = {{"peer.old", {}, KeyAction::Notice, "nothing reads it", ""}};
  EXPECT_EQ(read(settings, "peer: {old: 1}\n", sources).notices().size(), 1U);
  EXPECT_NE(error_of("peer: {new: 1}\n", sources).find("unknown key `peer.new`"),
            std::string::npos);
}

TEST_F(Resolve, EnvironmentNamesMayStandOnTheCommandLineAndAreExplainedInFiles) {
  RootSettings settings;
  read(settings, "seed: 1\n", {.overrides = {"RUN_BATCH_SIZE=7", "RUN_LR=0.5"}});
  EXPECT_EQ(settings.run.batch_size, 7);
  EXPECT_EQ(settings.run.learning_rate, 0.5);
  EXPECT_EQ(error_of("RUN_BATCH_SIZE: 1\n"),
            "run.yaml:1: RUN_BATCH_SIZE is the name of an environment variable; the key is "
            "run.batch_size (run.batch_size=1)");
}

TEST_F(Resolve, WrittenYamlReadsBackTheSame) {
  RootSettings settings;
  settings.name = "no \"quotes\" # here\n\ttabs: [";
  settings.run.learning_rate = 1e-7;
  settings.run.width = 7;
  settings.run.steps = {-1, 0};
  settings.run.weights = {0.1, 1e300, -2.5};
  settings.run.files = {"", "yes", "1e5", "~", "a, b", "ünïcode 語"};
  settings.run.path = "/a/b.yaml";
  settings.run.inner.ranks = {{"null", 1}, {"^layers\\.0.q", 3}};  // in this order
  settings.run.inner.alphas = {{"a: b", 1.0 / 3}};
  const Resolved written = resolve(settings, Sources{});
  RootSettings read_back;
  const Resolved again = read(read_back, written.yaml());
  EXPECT_EQ(again.yaml(), written.yaml());
  EXPECT_EQ(read_back.name, settings.name);
  EXPECT_EQ(read_back.run.weights, settings.run.weights);
  EXPECT_EQ(read_back.run.files, settings.run.files);
  EXPECT_EQ(read_back.run.inner.ranks, settings.run.inner.ranks);
  EXPECT_EQ(read_back.run.inner.alphas, settings.run.inner.alphas);
  EXPECT_EQ(again.json(), written.json());
  RootSettings with_comments;
  EXPECT_EQ(read(with_comments, again.yaml_with_origins()).json(), written.json());
}

TEST_F(Resolve, DocumentsGiveValuesWithoutTheirFiles) {
  RootSettings scratch;
  folder_.write("base.yaml", "run: {lr: 0.5}\n");
  const Sources sources{.file = folder_.write("run.yaml", "include: base.yaml\nseed: 3\n"),
                        .overrides = {"run.width=8"}};
  const Documents documents = read_documents(list_fields(scratch), sources);
  EXPECT_EQ(scratch.seed, RootSettings().seed) << "reading sets nothing";
  std::filesystem::remove(folder_.path() / "run.yaml");
  std::filesystem::remove(folder_.path() / "base.yaml");
  for (const int64_t rows : {2, 5}) {
    RootSettings settings;
    Documents decided = documents;
    Node node;
    node.kind = NodeKind::Scalar;
    node.text = std::to_string(rows);
    node.origin = "ranks";
    decided.imported.values.push_back({.path = "run.batch_size", .node = node, .spelling = "rows"});
    const Resolved resolved = resolve_documents(list_fields(settings), decided);
    EXPECT_EQ(settings.seed, 3);
    EXPECT_EQ(settings.run.learning_rate, 0.5);
    EXPECT_EQ(settings.run.width.value, 8);
    EXPECT_EQ(settings.run.batch_size, rows);
    EXPECT_EQ(without_folder(resolved.value("seed").origin), "run.yaml:2");
    EXPECT_EQ(resolved.value("run.batch_size").origin, "ranks");
  }
}

TEST_F(Resolve, ErrorsOfDocumentsAreSaidWhenValuesAreMadeWithTheirOwn) {
  RootSettings settings;
  const Sources sources{.file = folder_.write("run.yaml", "sed: 1\nrun:\n  batch_size: none\n"),
                        .overrides = {"name=a"}};
  const Documents documents = read_documents(list_fields(settings), sources);
  peek(list_fields(settings), documents);
  EXPECT_EQ(settings.name, "a");
  EXPECT_EQ(settings.run.batch_size, RunSettings().batch_size);
  std::string sentence;
  for (int time = 0; time < 2; ++time) {
    try {
      resolve_documents(list_fields(settings), documents);
      FAIL();
    } catch (const ConfigError& error) {
      const std::string said = without_folder(error.sentence());
      EXPECT_TRUE(sentence.empty() || said == sentence) << said;
      sentence = said;
    }
  }
  EXPECT_NE(sentence.find("run.yaml:1: unknown key `sed`, did you mean `seed`?"), std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("run.yaml:3: run.batch_size"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("2 errors"), std::string::npos) << sentence;
}

TEST_F(Resolve, RecordsCarryOrigins) {
  RootSettings settings;
  Resolved resolved = read(settings, "\nrun: {lr: 0.5}\n", {.overrides = {"seed=3"}});
  const nlohmann::json record = resolved.json_with_origins();
  EXPECT_EQ(record["seed"]["value"], 3);
  EXPECT_EQ(record["seed"]["origin"], "command line");
  EXPECT_EQ(record["run.learning_rate"]["value"], 0.5);
  EXPECT_EQ(without_folder(record["run.learning_rate"]["origin"]), "run.yaml:2");
  EXPECT_EQ(record["run.width"], (nlohmann::json{{"value", "auto"}, {"origin", "default"}}));
  settings.name = "chosen";
  resolved.decided("name", "the file's name");
  EXPECT_EQ(resolved.json_with_origins()["name"],
            (nlohmann::json{{"value", "chosen"}, {"origin", "decided: the file's name"}}));
  EXPECT_EQ(without_folder(resolved.location("run.learning_rate").file), "run.yaml");
  EXPECT_THROW(resolved.value("run.none"), StateError);
}

}  // namespace
}  // namespace convoy::config
