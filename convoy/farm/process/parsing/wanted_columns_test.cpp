// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/wanted_columns.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;

TEST(WantedColumns, AreThoseOfTheSettingsAndOfThePromptsInUse) {
  settings::ProcessSettings settings;
  settings.stages = {"generate", "verify"};
  settings.data.answer_field = "gold";
  const PipelinePlan plan(settings, {{"generate", "{{ problem }} {{ row.level }}"},
                                     {"evaluate", "{{ row.nowhere }}"},
                                     {"improve", "{{ problem }}"}});
  const std::vector<WantedColumn> wanted = wanted_columns(plan);
  ASSERT_EQ(wanted.size(), 2u);
  EXPECT_EQ(wanted[0].name, "gold");
  EXPECT_EQ(wanted[0].wanted_by, "--answer-field");
  EXPECT_EQ(wanted[1].name, "level");
  EXPECT_EQ(wanted[1].wanted_by, "the shipped prompt generate");
}

PipelinePlan plan_with(const std::string& generate, const std::string& evaluate) {
  settings::ProcessSettings settings;
  settings.stages = {"generate", "evaluate"};
  settings.prompts.evaluate = "judge.txt";
  return PipelinePlan(
      settings, {{"generate", generate}, {"evaluate", evaluate}, {"improve", "{{ problem }}"}});
}

constexpr const char* kJudge = "{{ solution }}";

TEST(ForeignNames, AreRefusedWhereTheRowHasThem) {
  const Json row = {{"problem", "p"}, {"hint", "h"}};
  for (const char* text :
       {"{{ problem }} {hint}", "{{ problem }}\n$hint", "{{ problem }} {# hint #}",
        "{{ row.hint }} ${hint}", "{{ problem }} {hint:s}", "{{ problem }} {hint!r}",
        "{{ problem }} {row[hint]}", "{{ problem }} {row['hint']}", "{{ problem }} {Hint}",
        "{{ problem }} [[hint]]", "{{ problem }} <%= hint %>", "{{ problem }} __hint__"})
    EXPECT_THROW(refuse_foreign_names(plan_with(text, kJudge), row), ConfigError) << text;
  try {
    refuse_foreign_names(plan_with("{{ problem }}\nUse $problem", kJudge), row);
    FAIL() << "wanted an error";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find(":2: `$problem` in a prompt is plain text, but `problem` is a "
                                    "column of the rows (write {{ problem }} where"),
              std::string::npos)
        << error.sentence();
  }
  for (const char* text :
       {"{{ problem }} {other}", "{{ problem }} {\"hint\": 1} \\boxed{hint}",
        "{{ problem }} $hint$", "{{ problem }} <hint>", "{{ problem }} $HINT",
        "{{ problem }} {\"Hint\": [\"hint\"]} {hint: 1}", "{{ problem }} **hint** [hint]"})
    EXPECT_NO_THROW(refuse_foreign_names(plan_with(text, kJudge), row)) << text;
}

PipelinePlan plan_with_system(const std::string& system) {
  settings::ProcessSettings settings;
  settings.stages = {"generate"};
  settings.prompts.system = system;
  return PipelinePlan(settings, {{"generate", "{{ problem }}"},
                                 {"evaluate", "{{ solution }}"},
                                 {"improve", "{{ problem }}"}});
}

TEST(SystemPrompt, ANameInBracesIsRefused) {
  for (const char* text : {"{sys}", "Act as {role}.", "{{ problem }}", "{{row.role}}", "${role}",
                           "%(role)s", "{role:s}", "<%= role %>"})
    try {
      plan_with_system(text);
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.location().key, "prompts.system");
      EXPECT_NE(error.sentence().find("in the system prompt would be sent as it stands (the system "
                                      "prompt is one text for all rows"),
                std::string::npos)
          << error.sentence();
    }
  for (const char* text :
       {"Answer in \\boxed{answer}.", "Reply as {\"answer\": 1}.", "The set {x}.", "x^{n} + $a$",
        "Use <b> and [b] and __b__ for $5.", "f(x) { return x; }"})
    EXPECT_NO_THROW(plan_with_system(text)) << text;
}

TEST(SystemPrompt, AColumnOfTheRowsIsRefusedInEverySpelling) {
  const Json row = {{"problem", "p"}, {"hint", "h"}, {"x", 1}};
  for (const char* text : {"Use $hint", "[[hint]]", "__hint__", "{x}", "{# hint #}"})
    EXPECT_THROW(refuse_foreign_names(plan_with_system(text), row), ConfigError) << text;
  EXPECT_NO_THROW(refuse_foreign_names(plan_with_system("Give a hint, $5, [hint]"), row));
  const std::vector<std::string> warnings = prompt_warnings(plan_with_system("{% if x %}"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("prompts.system: `{% if x %}` is sent"), std::string::npos);
}

TEST(PromptWarnings, NameWhatIsSentAsItStands) {
  EXPECT_TRUE(prompt_warnings(plan_with("{{ problem }} {x}", kJudge)).empty());
  const auto one = [](const std::string& generate, const std::string& evaluate) {
    const auto warnings = prompt_warnings(plan_with(generate, evaluate));
    return warnings.size() == 1 ? warnings.front() : "";
  };
  EXPECT_NE(one("{{ problem }}\n{# c #}", kJudge).find(":2: `{# c #}` is sent as it stands"),
            std::string::npos);
  EXPECT_NE(one("{{ problem }} Then: %s", kJudge).find("`%s` is sent"), std::string::npos);
  EXPECT_NE(one("{{ problem }}", "{{ problem }}")
                .find("never reads {{ solution }}: the judge sees "
                      "nothing"),
            std::string::npos);
  EXPECT_NE(one("{{ problem }}", "{{ reasoning }}").find("the judge sees the whole text"),
            std::string::npos);
}

TEST(ColumnSearch, AnyRowMayHaveThem) {
  ColumnSearch search({{"gold", "--answer-field"}, {"level", "q.txt"}});
  search.look_at(Json::parse(R"(["a list"])"));
  search.look_at(Json::parse(R"({"problem": "p", "gold": null})"));
  EXPECT_FALSE(search.found_all());
  search.look_at(Json::parse(R"({"level": 3})"));
  EXPECT_TRUE(search.found_all());
  EXPECT_NO_THROW(search.require_all());
}

TEST(ColumnSearch, NamesWhatNoRowHasAndWhatTheyHave) {
  ColumnSearch search({{"reslt", "--answer-field"}, {"problem", "q.txt"}, {"nix", "q.txt"}});
  search.look_at(Json::parse(R"({"problem": "p"})"));
  search.look_at(Json::parse(R"({"result": 1})"));
  try {
    search.require_all();
    FAIL() << "wanted an error";
  } catch (const DataError& error) {
    EXPECT_NE(error.sentence().find(
                  "no row has `reslt` (needed by --answer-field, did you mean `result`?), `nix` "
                  "(needed by q.txt); the rows have problem, result"),
              std::string::npos)
        << error.sentence();
  }
}

}  // namespace
}  // namespace convoy::process
