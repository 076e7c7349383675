// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/ledger/changed_settings.h"

#include <gtest/gtest.h>

namespace convoy::process {
namespace {

using nlohmann::json;

TEST(ChangedSettings, AreNamedAsTheUserGivesThem) {
  const json then = {{"generate", {{"temperature", 0.6}, {"stop", nullptr}}},
                     {"stages", {"generate", "verify"}},
                     {"evaluate", {{"weights", {{"correctness", 1.0}}}}}};
  json now = then;
  EXPECT_EQ(changed_settings(now, then), "");
  now["generate"]["temperature"] = 0.7;
  EXPECT_EQ(changed_settings(now, then), "generate.temperature (--temperature): 0.7 now, 0.6 then");
  now = then;
  now["stages"] = {"generate"};
  EXPECT_EQ(changed_settings(now, then), "stages (--stages): generate now, generate, verify then");
  now = then;
  now["generate"]["stop"] = {"END", "STOP"};
  EXPECT_EQ(changed_settings(now, then), "generate.stop (--stop): END, STOP now, nothing then");
  now = then;
  now["evaluate"]["weights"] = {{"correctness", 0.5}, {"elegance", 0.5}};
  EXPECT_EQ(changed_settings(now, then),
            "evaluate.weights.correctness: 0.5 now, 1.0 then; evaluate.weights.elegance: 0.5 now, "
            "nothing then");
}

TEST(ChangedSettings, WhatHasNoWordsIsSaidInASentence) {
  EXPECT_EQ(
      changed_settings({{"model", {{"identity", "a b c"}}}}, {{"model", {{"identity", "d"}}}}),
      "the model, its adapter or its chat template has changed");
  EXPECT_EQ(
      changed_settings({{"prompts", {{"evaluate", "long"}}}}, {{"prompts", {{"evaluate", "x"}}}}),
      "the text of prompts.evaluate has changed");
}

}  // namespace
}  // namespace convoy::process
