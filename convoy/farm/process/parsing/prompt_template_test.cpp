// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/prompt_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::process {
namespace {

TEST(PromptTemplate, PutsValuesInAndLeavesSingleBraces) {
  const PromptTemplate prompt("In \\boxed{}: {{ problem }} and {{problem}}, {{ row.grade }}.\n",
                              "p.txt", {"problem"});
  EXPECT_EQ(prompt.render({{"problem", "1+1 {{ x }}"}, {"row.grade", "3"}}),
            "In \\boxed{}: 1+1 {{ x }} and 1+1 {{ x }}, 3.");
}

TEST(PromptTemplate, EndsWithoutTheFilesLastNewlineAlone) {
  EXPECT_EQ(PromptTemplate("Question: {{ problem }}\nAnswer:\n", "p", {"problem"})
                .render({{"problem", "1+1?"}}),
            "Question: 1+1?\nAnswer:");
  EXPECT_EQ(PromptTemplate("{{ row.a }}\n\n", "p", {}).render({{"row.a", "a"}}), "a\n");
  EXPECT_EQ(PromptTemplate("\xEF\xBB\xBF{{ row.a }}", "p", {}).render({{"row.a", "a"}}), "a");
}

TEST(PromptTemplate, UnknownNamesAreErrorsWithFileAndLine) {
  try {
    PromptTemplate("first\n{{ problme }}\n", "prompts/mine.txt", {"problem"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.location().file, "prompts/mine.txt");
    EXPECT_EQ(error.location().line, 2);
    EXPECT_NE(std::string(error.what()).find("did you mean `problem`"), std::string::npos);
  }
  EXPECT_THROW(PromptTemplate("{{ problem", "p", {"problem"}), ConfigError);
}

std::string refusal_of(const std::string& text) {
  try {
    PromptTemplate(text, "p.txt", {"problem", "solution"});
  } catch (const ConfigError& error) {
    return fmt::format("{}: {} | {}", error.location().line, error.what(), error.location().hint);
  }
  return "none";
}

void expect_prompt_refusal(const std::string& text, const std::vector<std::string>& mentions) {
  const std::string found = refusal_of(text);
  for (const std::string& mention : mentions)
    EXPECT_NE(found.find(mention), std::string::npos) << text << "\n" << found;
}

TEST(PromptTemplate, OneThatReadsNoColumnIsRefusedWithTheSpelling) {
  for (const char* spelled : {"{problem}", "${problem}", "$problem", "%(problem)s", "<problem>",
                              "[problem]", "{ problem }"})
    expect_prompt_refusal(fmt::format("Solve.\n{}", spelled),
                          {"2: a prompt reads no column", "send the same text",
                           fmt::format("`{}` is plain text", spelled), "write {{ problem }}"});
  expect_prompt_refusal("Solve {question} in \\boxed{answer}.",
                        {"`{question}` is plain text", "write {{ problem }}"});
  expect_prompt_refusal("Solve {row.grade}", {"write {{ row.grade }}"});
  expect_prompt_refusal("Solve %s", {"`%s` is plain text"});
  expect_prompt_refusal("Solve <b>this</b> for $5 \\boxed{x}", {"1: a prompt reads no column"});
}

TEST(PromptTemplate, ANameInSingleBracesThatNothingReadsIsRefused) {
  for (const char* spelled :
       {"{solution}", "${solution}", "%(solution)s", "{row.grade}", "{solution:s}", "{solution!r}",
        "{row[grade]}", "[[solution]]", "<%= solution %>"})
    expect_prompt_refusal(fmt::format("{{{{ problem }}}}\nJudge {}", spelled),
                          {"2: `", spelled, "plain text, and nothing else in it reads"});
  for (const char* text : {"\\boxed{solution}", "{{ solution }} {solution}", "<solution>", "{x}",
                           "$solution$", "{\"solution\": 1}", "[solution]"})
    EXPECT_EQ(refusal_of(fmt::format("{{{{ problem }}}} {}", text)), "none") << text;
}

TEST(PromptTemplate, NamesOfOtherProgramsAreFound) {
  const auto found = [](const std::string& text) {
    std::string all;
    for (const ForeignName& one : foreign_names("{{ problem }}\n" + text))
      all += fmt::format("{}:{}={} ", one.line, one.text, fmt::join(one.names, ","));
    return all;
  };
  EXPECT_EQ(found("See {hint} and ${hint}"), "2:{hint}=hint 2:${hint}=hint ");
  EXPECT_EQ(found("See $hint and %(hint)s."), "2:$hint=hint 2:%(hint)s=hint ");
  EXPECT_EQ(found("{{ problem }}{hint}"), "2:{hint}=hint ");
  EXPECT_EQ(found("{hint:s} {hint!r} {hint!s:>10} {hint:.2f}"),
            "2:{hint:s}=hint 2:{hint!r}=hint 2:{hint!s:>10}=hint 2:{hint:.2f}=hint ");
  EXPECT_EQ(found("{row[hint]} {row['hint']} {item[\"hint\"]} {hint[0]}"),
            "2:{row[hint]}=hint 2:{row['hint']}=hint 2:{item[\"hint\"]}=hint 2:{hint[0]}=hint ");
  EXPECT_EQ(found("[[hint]] [[ hint ]] <%= hint %> __hint__ __a_hint__"),
            "2:[[hint]]=hint 2:[[ hint ]]=hint 2:<%= hint %>=hint 2:__hint__=hint "
            "2:__a_hint__=a_hint ");
  EXPECT_EQ(found("Solve: %s"), "2:%s= ");
  EXPECT_EQ(found("{# the hint #}"), "2:{# the hint #}=the,hint ");
  EXPECT_EQ(found("{% if hint %}x{% endif %}"), "2:{% if hint %}=if,hint 2:{% endif %}=endif ");
  for (const char* text : {"{\"hint\": 1}",
                           "{\"hint\"}",
                           "\\boxed{hint}",
                           "x^{hint} + y_{hint}",
                           "\\frac{1}{hint}",
                           "\\{hint\\}",
                           "$hint$",
                           "$hint + 1$ for $5",
                           "<hint>",
                           "[hint]",
                           "printf(\"%s\", hint);",
                           "{hint: 1}",
                           "{hint:1}",
                           "{hint:[1]}",
                           "{hint: \"s\"}",
                           "{hint[}",
                           "[[1, 2]]",
                           "a[[hint]]",
                           "if __name__ == 1: pass",
                           "__hint__s",
                           "snake__hint__case",
                           "[[hint], 1]",
                           "{hint!}",
                           "{ hint: 1 }",
                           "def f(x) { return hint; }",
                           "100%sure",
                           "{#hint",
                           "f(x){hint}"})
    EXPECT_EQ(found(text), "") << text;
}

TEST(PromptTemplate, AMissingColumnIsTheRowsError) {
  const PromptTemplate prompt("{{ row.grade }}", "p", {});
  EXPECT_THROW(prompt.render({}), DataError);
}

}  // namespace
}  // namespace convoy::process
