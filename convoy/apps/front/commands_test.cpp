// SPDX-License-Identifier: Apache-2.0
//
// Tests the table of commands: names, groups, flags and their spellings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/help/exit_codes.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"

namespace convoy::apps {
namespace {

// Calls visit(command, words) for each command and action that the help shows; words are for
// example "data mix".
template <class Visit>
void for_each_command(const Visit& visit) {
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    visit(command, std::string(command.name));
    for (const Command& action : command.actions)
      if (!action.hidden) visit(action, fmt::format("{} {}", command.name, action.name));
  }
}

std::vector<config::Field> fields_of(const Command& command) {
  std::vector<config::Field> fields;
  for (const FlagGroup& group : command.flags)
    for (config::Field& field : group.fields().fields) fields.push_back(std::move(field));
  return fields;
}

TEST(Commands, NamesAreUniqueAndExamplesReal) {
  std::set<std::string> names;
  for_each_command([&names](const Command& command, const std::string& words) {
    EXPECT_TRUE(names.insert(words).second) << words;
    EXPECT_TRUE(command.run != nullptr || !command.actions.empty()) << words;
    for (std::string_view rest = command.examples; !rest.empty();) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::string line(rest.substr(0, end));
      EXPECT_TRUE((line + " ").starts_with("convoy " + words + " ") ||
                  (line + " ").starts_with("convoy " + words.substr(0, words.find(' ')) + " "))
          << words << ": " << line;
      rest = rest.substr(std::min(end + 1, rest.size()));
    }
    const std::string help = help_text(command);
    EXPECT_NE(help.find("Usage:\n  convoy " + words.substr(0, words.find(' '))), std::string::npos)
        << words;
    EXPECT_NE(help.find("Examples:\n  convoy "), std::string::npos) << words;
  });
}

TEST(Commands, SummariesAreAVerbAndAnObject) {
  const std::set<std::string> verbs = {
      "Add",     "Check", "Compare",   "Copy",     "Count",  "Download", "Draw",  "Evaluate",
      "Fill",    "Find",  "Fine-tune", "Generate", "Join",   "Leave",    "List",  "Measure",
      "Prepare", "Print", "Process",   "Put",      "Remove", "Run",      "Serve", "Set",
      "Show",    "Split", "Start",     "Sweep",    "Time",   "Upload",   "Watch", "Write"};
  for_each_command([&verbs](const Command& command, const std::string& words) {
    const std::string summary(command.summary);
    std::string first = summary.substr(0, summary.find(' '));
    if (first.ends_with(',')) first.pop_back();
    EXPECT_TRUE(verbs.contains(first)) << words << ": " << summary;
    EXPECT_LE(summary.size(), 60U) << words << ": " << summary;
    EXPECT_FALSE(summary.ends_with('.')) << words << ": " << summary;
  });
}

TEST(Commands, TheOverviewHoldsAtMost19CommandsInGroups) {
  const std::string text = overview_text();
  size_t begin = 0;
  for (const char* heading :
       {"Get started:", "Models and data:", "Train and use:", "Run jobs:", "Look:", "Advanced:"}) {
    const size_t at = text.find(std::string("\n") + heading + "\n");
    ASSERT_NE(at, std::string::npos) << heading;
    EXPECT_GE(at, begin) << heading;
    EXPECT_EQ(text.find(std::string("\n") + heading + "\n", at + 1), std::string::npos) << heading;
    begin = at;
  }
  EXPECT_LE(std::count_if(commands().begin(), commands().end(),
                          [](const Command& command) { return !command.hidden; }),
            19);
}

TEST(Commands, HelpShowsTheFirstTwelveFlagsAndAllOnRequest) {
  for_each_command([](const Command& command, const std::string& words) {
    const std::vector<config::Field> fields = fields_of(command);
    const auto num_shown = std::count_if(fields.begin(), fields.end(),
                                         [](const config::Field& field) { return !field.hidden; });
    EXPECT_LE(command.first_flags.size(), 12U) << words;
    if (command.first_flags.empty()) {
      EXPECT_LE(num_shown, 12) << words << " needs first_flags";
      return;
    }
    const std::string usual = help_text(command), all = help_text(command, {}, HelpDepth::All);
    for (const std::string_view flag : command.first_flags)
      EXPECT_NE(usual.find(fmt::format("--{} ", flag)), std::string::npos) << words << " " << flag;
    EXPECT_NE(usual.find("--help-all"), std::string::npos) << words;
    for (const config::Field& field : fields)
      EXPECT_EQ(all.find(fmt::format("--{} ", config::flag_word(field))) != std::string::npos,
                !field.hidden)
          << words << " " << field.name;
  });
}

// The flags of `eval --per-row` belong to `eval` too.
TEST(Commands, NoTwoFlagsOfACommandShareASpelling) {
  for_each_command([](const Command& command, const std::string& words) {
    std::set<std::string> spellings;
    for (const FlagGroup& group : command.flags) {
      if (group.heading.starts_with("With --")) continue;
      for (const config::Field& field : group.fields().fields) {
        std::vector<std::string> own = field.aliases;
        own.push_back(field.name);
        if (!field.flag.empty()) own.push_back(field.flag);
        for (const std::string& spelling : own)
          EXPECT_TRUE(spellings.insert(spelling).second) << words << " --" << spelling;
      }
    }
  });
}

const config::Field* field_of(const std::vector<config::Field>& fields, const std::string& flag) {
  const std::string name = flag.substr(flag.find_first_not_of('-'));
  for (const config::Field& field : fields)
    if (config::is_flag_of(field, name)) return &field;
  return nullptr;
}

TEST(Commands, ErrorsNameAFlagAsItWasTyped) {
  Context context;
  const auto error_of = [&](const Words& words) -> std::string {
    for (const Command& command : commands()) {
      if (command.name != words.front()) continue;
      try {
        run_command(context, command, Words(words.begin() + 1, words.end()));
      } catch (const ConfigError& error) {
        return error.sentence();
      }
    }
    return "";
  };
  for (const char* spelling : {"--ranks", "--nproc", "--nproc_per_node", "--nproc-per-node"}) {
    const std::string said = error_of({"launch", spelling, "0", "true"});
    EXPECT_TRUE(said.starts_with(std::string(spelling) + ": wanted auto")) << said;
  }
  // The words behind `--` are for another program.
  const std::string own = error_of({"launch", "--ranks", "0", "--", "true", "--nproc", "2"});
  EXPECT_TRUE(own.starts_with("--ranks: wanted auto")) << own;
}

TEST(Commands, AMisspeltActionIsCorrectedToItsOldNameToo) {
  Context context;
  for (const Command& command : commands()) {
    if (command.name != "data") continue;
    try {
      run_command(context, command, {"prosess"});
      FAIL() << "there is no such action";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("did you mean `process`?"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Commands, NoHelpShowsAnEmptyChoice) {
  for_each_command([](const Command& command, const std::string& words) {
    for (const config::Field& field : fields_of(command)) {
      const std::string line = config::flag_line(field);
      EXPECT_EQ(line.substr(0, line.find("  ")).find(" |"), std::string::npos) << words << line;
    }
  });
}

TEST(Commands, EverySpellingOfEarlierVersionsAndGuidesIsAccepted) {
  std::istringstream lines(read_file(std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) /
                                     "convoy/apps/front/accepted_spellings.txt"));
  int num_flags = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const size_t flag_at = line.find(" -") + 1;
    const size_t equals = line.find(" = ");
    Words words;
    std::istringstream typed(line.substr(0, flag_at));
    for (std::string word; typed >> word;) words.push_back(word);
    words = current_words(words);
    const auto command =
        std::find_if(commands().begin(), commands().end(),
                     [&words](const Command& one) { return one.name == words.front(); });
    ASSERT_NE(command, commands().end()) << line;
    words.erase(words.begin());
    const Command* const action = find_action(*command, words);
    const std::vector<config::Field> fields = fields_of(action == nullptr ? *command : *action);
    std::istringstream flags(line.substr(flag_at, equals - flag_at));
    for (std::string flag; flags >> flag; ++num_flags) {
      const config::Field* const old = field_of(fields, flag);
      ASSERT_NE(old, nullptr) << line << ": " << flag;
      if (equals != std::string::npos) {
        EXPECT_EQ(old, field_of(fields, line.substr(equals + 3))) << line << ": " << flag;
      }
    }
  }
  EXPECT_GT(num_flags, 700);
}

TEST(ExitCodes, AreThoseOfTheirPage) {
  std::set<int> wanted;
  std::istringstream page(read_file(std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) /
                                    "docs/reference/exit-codes.md"));
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("| ") && std::isdigit(static_cast<unsigned char>(line[2])) != 0)
      wanted.insert(std::stoi(line.substr(2)));
  std::set<int> found;
  for (const ExitMeaning& meaning : exit_meanings()) {
    found.insert(static_cast<int>(meaning.code));
    EXPECT_NE(manual_page().find(std::string(meaning.text)), std::string::npos) << meaning.text;
  }
  EXPECT_EQ(found, wanted);
  EXPECT_NE(overview_text().find("\nExit codes: 0 done, 2 usage or config, "), std::string::npos);
  std::istringstream lines(exit_code_sentence());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace convoy::apps
