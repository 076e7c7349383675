// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/prompt_template.h"

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
  EXPECT_EQ(PromptTemplate("a\n\n", "p", {}).render({}), "a\n");
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

TEST(PromptTemplate, AMissingColumnIsTheRowsError) {
  const PromptTemplate prompt("{{ row.grade }}", "p", {});
  EXPECT_THROW(prompt.render({}), DataError);
}

}  // namespace
}  // namespace convoy::process
