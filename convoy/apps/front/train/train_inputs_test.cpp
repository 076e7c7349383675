// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/train/train_inputs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

// A reference of pairs is a whole model: the adapter that a run has trained is merged before.
TEST(TrainInputs, AnAdapterAsTheReferenceOfPairsIsToldHowToMerge) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path run = folder.path() / "run";
  write_file_atomic(run / "run.json", "{}");
  write_file_atomic(run / "adapter/adapter_config.json",
                    R"({"base_model_name_or_path": "org/base"})");
  settings::TrainSettings settings;
  settings.task = "dpo";
  for (const std::filesystem::path& named : {run, run / "adapter"}) {
    settings.preference.reference = named.string();
    const std::vector<DataError> missing = missing_train_inputs(settings);
    ASSERT_EQ(missing.size(), 1u) << named;
    EXPECT_EQ(missing[0].location().key, "preference.reference");
    EXPECT_NE(missing[0].location().hint.find("`convoy models merge --model org/base --adapter " +
                                              (run / "adapter").string() + " --output FOLDER`"),
              std::string::npos)
        << missing[0].location().hint;
  }
}

}  // namespace
}  // namespace convoy::apps
