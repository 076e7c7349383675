// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/flags.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::config {
namespace {

struct Flags {
  std::string model;
  int64_t max_new_tokens = 200;
  double temperature = 0.2;
  bool render = false;
  bool shuffle = true;
  bool verbose = false;
  bool quiet = false;
  std::string color = "auto";
  NameList stop;
  std::vector<int64_t> devices;
  AutoOr<int64_t> nproc;
  OrderedMap<double> shape;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("model", model, "model folder").alias("m");
    visit("max_new_tokens", max_new_tokens, "longest answer").at_least(1);
    visit("temperature", temperature, "0 = greedy").at_least(0);
    visit("render", render, "show the text");
    visit("shuffle", shuffle, "mix rows");
    visit("verbose", verbose, "more").alias("v");
    visit("quiet", quiet, "less").alias("q");
    visit("color", color, "colour").one_of({"auto", "always", "never"});
    visit("stop", stop, "strings that end an answer");
    visit("devices", devices, "indices");
    visit("nproc", nproc, "ranks").at_least(1).alias("ranks_of_host");
    visit("shape", shape, "numbers by name");
  }
};

std::vector<std::string> parse(Flags& flags, const std::vector<std::string>& arguments,
                               Positionals positionals = Positionals::Anywhere) {
  return parse_flags({list_fields(flags)}, arguments, positionals);
}

std::string error_of(const std::vector<std::string>& arguments) {
  Flags flags;
  try {
    parse(flags, arguments);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(Flags, WhatHasNoEffectIsRefused) {
  Flags flags;
  parse(flags, {"--no-shuffle", "--max-new-tokens", "5"});
  const auto error = [&](const std::vector<std::string>& names) -> std::string {
    try {
      refuse_without_effect(flags, names, "with --text");
      return "";
    } catch (const ConfigError& refusal) {
      return refusal.what();
    }
  };
  EXPECT_EQ(error({"shuffle"}), "--no-shuffle has no effect with --text");
  EXPECT_EQ(error({"model", "max_new_tokens"}), "--max-new-tokens has no effect with --text");
  EXPECT_EQ(error({"model", "render", "stop"}), "");
}

TEST(Flags, BothSpellingsAndBothForms) {
  Flags flags;
  EXPECT_EQ(parse(flags, {"--max-new-tokens", "5", "a.yaml", "--model=x", "k=v"}),
            (std::vector<std::string>{"a.yaml", "k=v"}));
  EXPECT_EQ(flags.max_new_tokens, 5);
  EXPECT_EQ(flags.model, "x");
  parse(flags, {"--max_new_tokens=7", "-m", "y", "--temperature", "1e-1"});
  EXPECT_EQ(flags.max_new_tokens, 7);
  EXPECT_EQ(flags.model, "y");
  EXPECT_EQ(flags.temperature, 0.1);
}

TEST(Flags, BooleansAndShortGroups) {
  Flags flags;
  parse(flags, {"--render", "--no-shuffle", "-vq"});
  EXPECT_TRUE(flags.render && flags.verbose && flags.quiet);
  EXPECT_FALSE(flags.shuffle);
  parse(flags, {"--render=false", "--shuffle=true"});
  EXPECT_FALSE(flags.render);
  EXPECT_TRUE(flags.shuffle);
  EXPECT_THROW(parse(flags, {"--shuffle=1"}), ConfigError);  // a configuration file refuses 1 too
}

TEST(Flags, ListsAddAndLastPlainValueWins) {
  Flags flags;
  parse(flags,
        {"--stop", "a,b", "--stop", "--", "--devices", "0,1", "--nproc", "2", "--nproc", "auto"});
  EXPECT_EQ(flags.stop.names, (std::vector<std::string>{"a,b", "--"}));
  EXPECT_EQ(flags.devices, (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(flags.nproc.is_auto());
}

TEST(Flags, NumbersOfAListMayStandApart) {
  Flags flags;
  EXPECT_EQ(parse(flags, {"--devices", "4", "8", "-16", "--render", "rest"}),
            (std::vector<std::string>{"rest"}));
  EXPECT_EQ(flags.devices, (std::vector<int64_t>{4, 8, -16}));
  EXPECT_TRUE(flags.render);
  EXPECT_EQ(parse(flags, {"--devices", "1,2", "3", "a.yaml"}),
            (std::vector<std::string>{"a.yaml"}));
  EXPECT_EQ(flags.devices, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(parse(flags, {"--devices", "1", "--", "2"}), (std::vector<std::string>{"2"}));
  EXPECT_EQ(parse(flags, {"--max-new-tokens", "5", "6"}), (std::vector<std::string>{"6"}));
}

TEST(Flags, TextIsTakenAsItIs) {
  Flags flags;
  parse(flags, {"--model", "[not a list", "--color", "never"});
  EXPECT_EQ(flags.model, "[not a list");
  parse(flags, {"--model", "-5"});
  EXPECT_EQ(flags.model, "-5");
}

TEST(Flags, OtherProgramsArgumentsAreLeftAlone) {
  Flags flags;
  EXPECT_EQ(parse(flags, {"--nproc", "2", "prog", "--render", "x"}, Positionals::EndFlags),
            (std::vector<std::string>{"prog", "--render", "x"}));
  EXPECT_FALSE(flags.render);
  EXPECT_EQ(parse(flags, {"--", "--render"}), (std::vector<std::string>{"--render"}));
  EXPECT_EQ(parse(flags, {"-", "-1"}), (std::vector<std::string>{"-", "-1"}));
}

TEST(Flags, ErrorsSayWhatWasMeant) {
  EXPECT_EQ(error_of({"--max-new-token", "5"}),
            "unknown flag --max-new-token, did you mean --max-new-tokens?");
  EXPECT_EQ(error_of({"--ranks-of-hosts", "2"}),
            "unknown flag --ranks-of-hosts, did you mean --ranks-of-host?");
  EXPECT_EQ(error_of({"--nprok", "2"}), "unknown flag --nprok, did you mean --nproc?");
  EXPECT_EQ(error_of({"--zzz=1"}), "unknown flag --zzz");
  EXPECT_EQ(error_of({"-x"}), "unknown flag -x");
  EXPECT_EQ(error_of({"--model"}), "--model needs a value (text)");
  EXPECT_EQ(error_of({"--model", "--render"}), "--model needs a value (text)");
  EXPECT_EQ(error_of({"--max-new-tokens", "many"}),
            "command line: --max-new-tokens: wanted an integer, found \"many\"");
  EXPECT_EQ(error_of({"--max-new-tokens", "0"}),
            "command line: --max-new-tokens must be at least 1, found 0");
  EXPECT_EQ(error_of({"--color", "alway"}),
            "command line: --color must be one of auto, always, never, found \"alway\", did you "
            "mean `always`?");
  EXPECT_EQ(error_of({"--no-model"}), "unknown flag --no-model, did you mean --model?");
}

TEST(Flags, WhatDiffersIsWrittenAsItIsRead) {
  Flags flags, defaults;
  flags.model = "a b";
  flags.temperature = 0.5;
  flags.render = true;
  flags.shuffle = false;
  flags.nproc = AutoOr<int64_t>(3);
  flags.shape = {{"a", 0.5}, {"b", 2}};
  const std::vector<std::string> written =
      flags_that_differ(list_fields(flags), list_fields(defaults));
  EXPECT_EQ(written, (std::vector<std::string>{"--model", "a b", "--temperature", "0.5", "--render",
                                               "--no-shuffle", "--nproc", "3", "--shape",
                                               "{a: 0.5, b: 2}"}));
  EXPECT_TRUE(parse(defaults, written).empty());
  EXPECT_TRUE(flags_that_differ(list_fields(flags), list_fields(defaults)).empty());
}

TEST(Flags, NumbersByNameAreJson) {
  Flags flags;
  parse(flags, {"--shape", R"({"a":0.5,"b":2})"});
  EXPECT_EQ(flags.shape, (OrderedMap<double>{{"a", 0.5}, {"b", 2}}));
  EXPECT_EQ(error_of({"--shape", R"({"a": "x"})"}),
            "command line: --shape.a: wanted a number, found \"x\"");
  EXPECT_EQ(error_of({"--shape", "{a"}),
            "command line: --shape: wanted pairs in braces, {name: value}, found \"{a\"");
}

TEST(Flags, TableShowsSpellingKindAndDefault) {
  const std::string table = flag_table_of<Flags>();
  EXPECT_NE(table.find("--max-new-tokens integer"), std::string::npos);
  EXPECT_NE(table.find("(default 200)"), std::string::npos);
  EXPECT_NE(table.find("-m, --model text"), std::string::npos);
  EXPECT_NE(table.find("--shape {...} "), std::string::npos);
  EXPECT_NE(table.find("--color auto|always|never"), std::string::npos);
}

struct Ranks {
  std::string nproc_per_node;
  bool wait = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("nproc_per_node", nproc_per_node, "ranks").alias("n");
    visit("wait", wait, "wait");
  }
};

TEST(Flags, ValuesAreCopiedByName) {
  Ranks from{.nproc_per_node = "", .wait = true};
  Ranks to{.nproc_per_node = "2"};
  copy_values(list_fields(from), list_fields(to), {"wait"});
  EXPECT_EQ(to.nproc_per_node, "2");
  EXPECT_TRUE(to.wait);
  copy_values(list_fields(from), list_fields(to), {"nproc_per_node"});
  EXPECT_EQ(to.nproc_per_node, "") << "the default too";
}

TEST(Flags, TakenFlagsLeaveTheWordsOfTheOthersAsTheyAre) {
  Ranks ranks;
  Flags flags;
  const std::vector<std::string> words = {
      "a.yaml", "--nproc-per-node", "2",   "--model",  "--x", "k=v",
      "-n3",    "--wait",           "-qv", "--stop=a", "--",  "--wait"};
  const TakenFlags taken = take_flags({list_fields(ranks)}, {list_fields(flags)}, words);
  EXPECT_EQ(taken.left, (std::vector<std::string>{"a.yaml", "--model", "--x", "k=v", "-qv",
                                                  "--stop=a", "--", "--wait"}));
  EXPECT_EQ(taken.positionals, (std::vector<std::string>{"a.yaml", "k=v", "--wait"}));
  EXPECT_EQ(taken.given, (std::vector<std::string>{"nproc_per_node", "nproc_per_node", "wait"}));
  EXPECT_EQ(ranks.nproc_per_node, "3");
  EXPECT_TRUE(ranks.wait);
  EXPECT_EQ(flags.model, "--x");
  EXPECT_TRUE(flags.quiet);
  EXPECT_THROW(take_flags({list_fields(ranks)}, {list_fields(flags)}, {"--nproc-per-nod", "2"}),
               ConfigError);
  EXPECT_EQ(taken.positionals, parse_flags({list_fields(ranks), list_fields(flags)}, words));
}

}  // namespace
}  // namespace convoy::config
