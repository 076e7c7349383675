// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/foreign_checkpoint.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/model_folder.h"
#include "files/temporary_folder.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;

class ForeignCheckpoint : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text = "x") const {
    fs::create_directories((folder_.path() / name).parent_path());
    write_file_atomic(folder_.path() / name, text);
  }
  std::string refusal() const {
    try {
      refuse_deepspeed_checkpoint(folder_.path());
      return "";
    } catch (const DataError& error) {
      return error.sentence();
    }
  }

  convoy::testing::TemporaryFolder folder_;
};

TEST_F(ForeignCheckpoint, OfTheTrainerIsAStartWithoutItsState) {
  put("config.json", "{}");
  EXPECT_FALSE(trainer_checkpoint_notice(folder_.path()));
  put("trainer_state.json", "{}");
  EXPECT_FALSE(trainer_checkpoint_notice(folder_.path())) << "Convoy's own have one too";
  put("optimizer.pt");
  ASSERT_TRUE(trainer_checkpoint_notice(folder_.path()));
  const ModelFolder folder = ModelFolder::open(folder_.path().string());
  ASSERT_EQ(folder.notices().size(), 1U);
  EXPECT_NE(folder.notices()[0].find("its optimizer, schedule"), std::string::npos);
}

TEST_F(ForeignCheckpoint, AFolderOfARunComesWithItsResult) {
  const auto refusal_of_run = [&] {
    try {
      ModelFolder::open(folder_.path().string());
      return std::string();
    } catch (const DataError& error) {
      return error.sentence();
    }
  };
  put("adapter/adapter_config.json", "{}");
  EXPECT_EQ(refusal_of_run().find("folder of a run"), std::string::npos);
  put("run.json", "{}");
  EXPECT_NE(refusal_of_run().find("give its adapter, " + (folder_.path() / "adapter").string()),
            std::string::npos)
      << refusal_of_run();
  put("model/config.json", "{}");
  EXPECT_NE(refusal_of_run().find("give its model, " + (folder_.path() / "model").string()),
            std::string::npos);
}

TEST_F(ForeignCheckpoint, OfDeepSpeedComesWithTheWayOut) {
  EXPECT_EQ(refusal(), "");
  put("latest", "global_step500");
  EXPECT_EQ(refusal(), "") << "a file of that name is not yet a checkpoint";
  put("global_step500/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt");
  EXPECT_NE(refusal().find("global_step500"), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("zero_to_fp32.py"), std::string::npos) << refusal();
  EXPECT_THROW(ModelFolder::open(folder_.path().string()), DataError);
  // A folder that has the model's configuration beside DeepSpeed's states opens as a model folder.
  // Its weights can be listed once the model's own weight file is there.
  put("config.json", "{}");
  EXPECT_NO_THROW(ModelFolder::open(folder_.path().string()));
  try {
    ModelFolder::open(folder_.path().string()).weight_file_names();
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_NE(error.sentence().find("DeepSpeed"), std::string::npos);
  }
  put("model.safetensors");
  EXPECT_NO_THROW(ModelFolder::open(folder_.path().string()).weight_file_names());
}

TEST_F(ForeignCheckpoint, OfDeepSpeedIsKnownInItsOtherForms) {
  put("mp_rank_00_model_states.pt");
  EXPECT_NE(refusal(), "");
  fs::remove(folder_.path() / "mp_rank_00_model_states.pt");
  EXPECT_EQ(refusal(), "");
  put("latest_universal", "universal\n");
  put("universal/zero/model.norm.weight/fp32.pt");
  EXPECT_NE(refusal().find("universal"), std::string::npos);
}

TEST_F(ForeignCheckpoint, TheTrainersOutputNamesItsNewest) {
  const auto open = [&]() -> std::string {
    try {
      ModelFolder::open(folder_.path().string());
      return "";
    } catch (const DataError& error) {
      return error.sentence();
    }
  };
  put("checkpoint-90/config.json", "{}");
  put("checkpoint-100/config.json", "{}");
  put("checkpoint-200/optimizer.pt");  // a checkpoint without a model
  put("checkpoint-old/config.json", "{}");
  EXPECT_NE(open().find("output folder of transformers' Trainer"), std::string::npos) << open();
  EXPECT_NE(open().find("give the newest, " + (folder_.path() / "checkpoint-100").string()),
            std::string::npos)
      << open();
  put("checkpoint-1000/adapter_config.json", "{}");
  EXPECT_NE(open().find("checkpoint-1000"), std::string::npos) << open();
  put("config.json", "{}");
  EXPECT_EQ(open(), "") << "with a model of its own it is a model folder";
}

TEST_F(ForeignCheckpoint, AnAdapterNamesItsBase) {
  EXPECT_FALSE(base_of_adapter_folder(folder_.path()));
  put("adapter_config.json", R"({"peft_type": "LORA", "base_model_name_or_path": "models/base"})");
  EXPECT_EQ(base_of_adapter_folder(folder_.path()), "models/base");
  put("adapter_config.json", R"({"peft_type": "LORA"})");
  EXPECT_THROW(base_of_adapter_folder(folder_.path()), DataError);
  put("config.json", "{}");
  EXPECT_FALSE(base_of_adapter_folder(folder_.path()));
}

}  // namespace
}  // namespace convoy::io
