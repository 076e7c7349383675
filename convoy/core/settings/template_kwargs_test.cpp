// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/template_kwargs.h"

#include <gtest/gtest.h>

namespace convoy::settings {
namespace {

using nlohmann::ordered_json;

TEST(TemplateKwargs, NamesAreVariablesOfATemplate) {
  for (const char* name : {"enable_thinking", "_x1", "größe"})
    EXPECT_FALSE(template_kwargs_problem({{name, true}})) << name;
  for (const char* name : {"", "1x", "a-b", "a b"})
    EXPECT_TRUE(template_kwargs_problem({{name, true}})) << name;
  // YAML's reading of {enable_thinking:false}.
  const auto problem = template_kwargs_problem({{"enable_thinking:false", nullptr}});
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->find("a space follows the colon"), std::string::npos) << *problem;
}

TEST(TemplateKwargs, WhatTheCommandDecidesIsRefused) {
  EXPECT_TRUE(template_kwargs_problem({{"add_generation_prompt", true}}));
  EXPECT_TRUE(template_kwargs_problem({{"tools", "search"}}));
  EXPECT_TRUE(template_kwargs_problem({{"tools", {"search"}}}));
  EXPECT_TRUE(template_kwargs_problem({{"documents", {1}}}));
  EXPECT_FALSE(template_kwargs_problem({{"tools", ordered_json::array()}, {"documents", nullptr}}));
}

}  // namespace
}  // namespace convoy::settings
