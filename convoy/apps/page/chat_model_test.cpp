// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/chat_model.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::page {
namespace {

using Words = std::vector<std::string>;

TEST(ChatModel, AnAdapterIsServedBesideItsBase) {
  const testing::TemporaryFolder run;
  const auto record = nlohmann::json::parse(
      R"({"config": {"model": {"name": "org/base", "revision": "v2"},
                     "data": {"template_path": "t.jinja", "template_kwargs": {"think": false}}}})");
  EXPECT_FALSE(chat_model(run.path(), record)) << "the training has not ended";
  std::filesystem::create_directories(run / "adapter");
  write_file_atomic(run / "adapter/adapter_config.json", "{}");
  const auto chat = chat_model(run.path(), record);
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->names, Words({"base", "trained"}));
  EXPECT_EQ(chat->flags,
            Words({"--model=org/base", "--revision=v2",
                   "--adapter=trained=" + (run / "adapter").string(), "--served-name=base",
                   "--template-path=t.jinja", "--template-kwargs={\"think\":false}"}));
  EXPECT_FALSE(chat_model(run.path(), nullptr)) << "no record names the base";
}

TEST(ChatModel, AWholeModelIsServedAlone) {
  const testing::TemporaryFolder run;
  std::filesystem::create_directories(run / "model");
  write_file_atomic(run / "model/config.json", "{}");
  const auto chat = chat_model(run.path(), {{"config", {{"model", {{"name", "org/base"}}}}}});
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->names, Words({"trained"}));
  EXPECT_EQ(chat->flags, Words({"--model=" + (run / "model").string(), "--served-name=trained"}));
}

}  // namespace
}  // namespace convoy::page
