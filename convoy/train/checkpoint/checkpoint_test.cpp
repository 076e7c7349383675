// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <limits>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/train/comm/store_barrier.h"
#include "files/temporary_folder.h"

namespace convoy::checkpoint {
namespace {

namespace fs = std::filesystem;
using convoy::testing::TemporaryFolder;

TrainState state_at(int64_t step) {
  TrainState state;
  state.progress = {.step = step,
                    .epoch = 2,
                    .tokens_seen = 12345678901,
                    .supervised_tokens_seen = 99,
                    .best_metric = 0.1 + 0.2,
                    .best_step = 5,
                    .evaluations_without_improvement = 1,
                    .evaluation_pending = true};
  state.stamp.set("dtype", "bf16");
  state.stamp.set("seed", 42);
  state.extra["log_history"] = io::Json::array({{{"loss", 1.5}}});
  return state;
}

TrainTensors random_tensors() {
  TrainTensors tensors;
  tensors.whole["parameters"] = {{"layer.weight", at::randn({3, 5})},
                                 {"bias", at::randn({4}).to(at::kBFloat16)}};
  tensors.whole["optimizer"] = {{"exp_avg.layer.weight", at::randn({3, 5})},
                                {"step", at::scalar_tensor(7, at::kLong)}};
  tensors.whole["gradients"] = {};
  return tensors;
}

void expect_same(const LoadedCheckpoint& loaded, const TrainState& saved,
                 const TrainTensors& tensors) {
  EXPECT_EQ(loaded.state.progress, saved.progress);
  EXPECT_EQ(loaded.state.stamp, saved.stamp);
  EXPECT_EQ(loaded.state.extra, saved.extra);
  for (const auto& [group, whole] : tensors.whole) {
    const GroupReader reader = loaded.group(group);
    ASSERT_EQ(reader.names().size(), whole.size());
    for (const auto& [name, tensor] : whole) {
      const at::Tensor found = reader.read(name);
      EXPECT_EQ(found.scalar_type(), tensor.scalar_type()) << name;
      EXPECT_TRUE(at::equal(found, tensor)) << name;
    }
  }
}

TEST(CheckpointStore, LoadsExactlyWhatWasSaved) {
  TemporaryFolder folder;
  CheckpointStore store(folder / "checkpoints", 2);
  store.prepare();
  EXPECT_FALSE(store.load_newest().has_value());
  const TrainState state = state_at(8);
  TrainTensors tensors = random_tensors();
  tensors.whole["parameters"]["transposed"] = at::randn({4, 6}).t();
  tensors.whole["parameters"]["special"] =
      at::scalar_tensor(-std::numeric_limits<float>::infinity());
  tensors.whole["parameters"]["of_autograd"] = at::randn({2}).requires_grad_();
  const fs::path saved = store.save(state, tensors, true, {{"trainer_state.json", "{}\n"}});
  const auto loaded = store.load_newest();
  ASSERT_TRUE(loaded.has_value());
  expect_same(*loaded, state, tensors);
  EXPECT_TRUE(loaded->notices.empty());
  EXPECT_EQ(read_file(saved / "trainer_state.json"), "{}\n");
  expect_same(*store.load_best(), state, tensors);
  expect_same(load_checkpoint(folder / "checkpoints/last"), state, tensors);
  // Other programs can read the files, which are plain safetensors.
  EXPECT_EQ(io::ModelWeights(saved / "optimizer.safetensors").names(),
            (std::vector<std::string>{"exp_avg.layer.weight", "step"}));
}

TEST(CheckpointStore, FallsBackInWordsAndRefusesWhenNoneIsLeft) {
  TemporaryFolder folder;
  CheckpointStore store(folder.path(), 2);
  store.prepare();
  const TrainState first = state_at(1);
  const TrainTensors tensors = random_tensors();
  store.save(first, tensors, false);
  const fs::path second = store.save(state_at(2), random_tensors(), false);
  const fs::path weights = second / "parameters.safetensors";
  std::string bytes = read_file(weights);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(weights, std::ios::binary) << bytes;

  const auto loaded = store.load_newest();
  ASSERT_TRUE(loaded.has_value());
  expect_same(*loaded, first, tensors);
  ASSERT_EQ(loaded->notices.size(), 1u);
  EXPECT_NE(loaded->notices[0].find("parameters.safetensors"), std::string::npos)
      << loaded->notices[0];
  EXPECT_THROW(load_checkpoint(second), CheckpointError);
  EXPECT_THROW(load_checkpoint(folder / "absent"), CheckpointError);

  fs::remove(folder / "step-00000001/optimizer.safetensors");
  try {
    store.load_newest();
    FAIL() << "nothing is valid";
  } catch (const CheckpointError& error) {
    EXPECT_EQ(error.code(), ExitCode::NoCheckpoint);
    EXPECT_NE(error.sentence().find("optimizer.safetensors"), std::string::npos)
        << error.sentence();
  }
}

TEST(Progress, HoldsWhatIsSetAndReadsThatOfOlderVersions) {
  io::Json written = to_json(state_at(8).progress);
  for (const char* unset : {"position_in_epoch", "micro_step"}) {
    EXPECT_FALSE(written.contains(unset));
    written[unset] = 3;
  }
  EXPECT_EQ(progress_from_json(written, "manifest.json"), state_at(8).progress);
}

// Any number of ranks may write the pieces, and any other number may read them.
class Pieces : public ::testing::Test {
 protected:
  // Writes pieces of `each` elements, one for each rank. The rank `left_out` writes none.
  void write(int64_t each, int left_out = -1) {
    io::SnapshotWriter writer(folder_.path());
    const int ranks = static_cast<int>((whole_.numel() + each - 1) / each);
    for (int rank = 0; rank < ranks; ++rank) {
      const int64_t begin = rank * each;
      const int64_t count = std::min(each, whole_.numel() - begin);
      std::vector<Piece> pieces = {{"m", {5, 4}, begin, whole_.view({-1}).narrow(0, begin, count)}};
      if (rank == left_out) pieces.clear();
      if (rank == 0) pieces.push_back({"of one rank", {2}, 0, at::ones({2})});
      write_pieces(writer, "optimizer", rank, ranks, pieces);
    }
  }

  TemporaryFolder folder_;
  const at::Tensor whole_ = at::arange(20, at::kFloat).view({5, 4});
};

TEST_F(Pieces, AreReadInAnyOtherPieces) {
  for (const int64_t each : {20, 7, 3, 1}) {
    fs::remove_all(folder_.path());
    fs::create_directories(folder_.path());
    write(each);
    const GroupReader reader(folder_.path(), "optimizer");
    EXPECT_EQ(reader.names(), (std::vector<std::string>{"m", "of one rank"}));
    EXPECT_TRUE(reader.read("m").equal(whole_));
    EXPECT_TRUE(reader.read("of one rank").equal(at::ones({2})));
    for (const auto& [begin, count] : {std::pair{0, 20}, {0, 1}, {6, 9}, {19, 1}, {3, 0}})
      EXPECT_TRUE(reader.read("m", begin, count).equal(whole_.view({-1}).narrow(0, begin, count)))
          << each << " " << begin;
  }
}

TEST_F(Pieces, WhatIsMissingIsNamed) {
  write(7, 1);
  const GroupReader reader(folder_.path(), "optimizer");
  EXPECT_TRUE(reader.read("m", 0, 7).equal(whole_.view({-1}).narrow(0, 0, 7)));
  try {
    reader.read("m");
    FAIL() << "elements are missing";
  } catch (const CheckpointError& error) {
    EXPECT_NE(error.sentence().find("element 7 of `m`"), std::string::npos) << error.sentence();
  }
  EXPECT_THROW(reader.read("absent"), CheckpointError);
  EXPECT_THROW(GroupReader(folder_.path(), "model"), CheckpointError);
  fs::remove(folder_ / "optimizer-00002-of-00003.safetensors");
  EXPECT_THROW(GroupReader(folder_.path(), "optimizer"), CheckpointError);
}

TEST_F(Pieces, ADamagedListOfPiecesIsNamedWithItsFile) {
  const fs::path file = folder_ / "optimizer-00001-of-00001.safetensors";
  write(20);
  const std::string whole = read_file(file);
  const auto refusal_with = [&](const std::string& from, const std::string& to) {
    std::string damaged = whole;
    const size_t at = damaged.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    damaged.replace(at, from.size(), to);
    write_file_atomic(file, damaged);
    try {
      GroupReader(folder_.path(), "optimizer");
      return std::string("accepted");
    } catch (const CheckpointError& error) {
      return error.sentence();
    }
  };
  // Each damage keeps the length, so the file itself stays a whole safetensors file.
  for (const auto& [from, to] :
       {std::pair{"\\\"shape\\\":[5,4]", "\\\"shape\\\":[5,{]"},
        {"\\\"shape\\\":[5,4]", "\\\"shape\\\":false"},
        {"\\\"shape\\\":[5,4]", "\\\"shapo\\\":[5,4]"},
        {"{\\\"shape\\\":[5,4],\\\"begin\\\":0}", "[\\\"shape\\\",[5,4],\\\"begin\\\",0]"}}) {
    const std::string refusal = refusal_with(from, to);
    EXPECT_NE(refusal.find("optimizer-00001-of-00001.safetensors"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("the list of its pieces is damaged"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("resume from an older checkpoint"), std::string::npos) << refusal;
  }
}

// Two ranks each save a piece. Returns the error of each rank, by rank.
std::vector<std::string> save_together(const fs::path& folder,
                                       const std::vector<at::Tensor>& values) {
  telemetry::FlightWriter flight;
  const auto store_barriers = comm::StoreBarrier::of_threads({}, 2, flight);
  std::vector<std::string> errors(2);
  std::vector<std::thread> ranks;
  for (size_t rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      const auto group = comm::join_group_at(store_barriers[rank], std::chrono::seconds(60));
      CheckpointStore store(folder, 2);
      if (rank == 0) store.prepare();
      TrainTensors tensors;
      tensors.pieces["optimizer"] = {{"m", {40}, 20 * static_cast<int64_t>(rank), values[rank]}};
      try {
        store.start_save_together(*group, state_at(8), std::move(tensors), false)->wait();
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  for (std::thread& rank : ranks) rank.join();
  return errors;
}

TEST(SavedTogether, WhateverKeepsARankFromWritingItsPartEndsTheSave) {
  TemporaryFolder folder;
  const at::Tensor good = at::arange(20, at::kFloat);
  EXPECT_EQ(save_together(folder / "good", {good, good}), (std::vector<std::string>{"", ""}));
  // LibTorch throws here, not Convoy: it refuses to view the columns of the tensor as one row.
  const auto errors = save_together(folder / "bad", {good, good.view({5, 4}).t()});
  EXPECT_NE(errors[0].find("rank 1 could not write its part: view size is not compatible"),
            std::string::npos)
      << errors[0];
  EXPECT_EQ(errors[0].find('\n'), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("view size is not compatible"), std::string::npos) << errors[1];
  EXPECT_FALSE(CheckpointStore(folder / "bad", 2).newest_step().has_value());
}

TEST(Stamp, RoundTrips) {
  Stamp stamp;
  stamp.set("dtype", "bf16");
  stamp.set_informational("world_size", "2");
  stamp.set("dtype", "fp32");
  EXPECT_EQ(stamp.fields().size(), 2u);
  EXPECT_EQ(Stamp::from_json(stamp.to_json(), "f"), stamp);
  EXPECT_THROW(Stamp::from_json({{"fields", {{"dtype", 1}}}, {"informational", {}}}, "f"),
               DataError);
}

TEST(Stamp, AFieldThatTheStateDependsOnIsNeverForced) {
  Stamp saved, current;
  saved.set("optimizer_states", "fp32");
  current.set_of_state("optimizer_states", "int8");
  for (const std::vector<std::string>& forced :
       {std::vector<std::string>{}, {"optimizer_states"}, {"all"}})
    try {
      require_same_stamp(saved, current, forced, "step-00000001");
      FAIL();
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.sentence().find("--force-stamp"), std::string::npos) << error.sentence();
    }
  current.set_of_state("optimizer_states", "fp32");
  EXPECT_TRUE(require_same_stamp(saved, current, {}, "step-00000001").empty());
}

TEST(Stamp, EachDifferingFieldHasItsOwnMessage) {
  const std::vector<std::string> fields = {
      "backend",   "dtype", "quantisation",   "lora.r",         "attention", "packing",
      "data_hash", "seed",  "model.revision", "tokenizer_hash", "grad_accum"};
  Stamp saved;
  for (const std::string& field : fields) saved.set(field, "old " + field);
  saved.set_informational("world_size", "1");
  for (const std::string& field : fields) {
    Stamp current = saved;
    current.set(field, "new " + field);
    current.set_informational("world_size", "2");
    try {
      require_same_stamp(saved, current, {}, "step-00000001");
      FAIL() << field;
    } catch (const ConfigError& error) {
      EXPECT_EQ(static_cast<int>(error.code()), 2);
      EXPECT_EQ(error.location().key, field);
      const std::string message = error.sentence();
      for (const std::string& part :
           {field, "old " + field, "new " + field, "--force-stamp " + field,
            std::string("Changed as well: world_size: the checkpoint has `1`, this run `2`")})
        EXPECT_NE(message.find(part), std::string::npos) << message;
      for (const std::string& other : fields)
        EXPECT_EQ(message.find("old " + other) != std::string::npos, other == field) << message;
    }
    EXPECT_EQ(require_same_stamp(saved, current, {field}, "x").size(), 2u);
    EXPECT_EQ(require_same_stamp(saved, current, {"all"}, "x").size(), 2u);
  }
}

TEST(Stamp, FieldsOfOneSideOnlyDiffer) {
  Stamp saved;
  saved.set("a", "1");
  Stamp current;
  current.set("b", "2");
  const std::vector<StampDifference> differences = compare(saved, current);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].current, "(absent)");
  EXPECT_EQ(differences[1].saved, "(absent)");
  EXPECT_TRUE(compare(saved, saved).empty());
}

// Training may change the tensors as soon as they are read, before the files are written, and also
// after a save that failed before it read them.
TEST(PendingSave, TellsWhenTensorsMayChange) {
  std::promise<void> on;
  PendingSave save([&](PendingSave& own) {
    own.tensors_are_read();
    on.get_future().wait();
    return std::filesystem::path("written");
  });
  save.await_read();
  EXPECT_FALSE(save.is_done());
  on.set_value();
  EXPECT_EQ(save.wait(), "written");
  PendingSave failing([](PendingSave&) -> std::filesystem::path { throw IoError("full"); });
  failing.await_read();
  EXPECT_THROW(failing.wait(), IoError);
}

}  // namespace
}  // namespace convoy::checkpoint
