// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/train_stamp.h"

#include <gtest/gtest.h>

#include <set>
#include <type_traits>
#include <variant>

#include "convoy/apps/recipes/training/agreement.h"
#include "convoy/core/config/describe.h"

namespace convoy::recipes {
namespace {

void change(const config::Field& field) {
  std::visit(
      [](auto* value) {
        using Value = std::remove_pointer_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>)
          *value = !*value;
        else if constexpr (std::is_arithmetic_v<Value>)
          *value += 1;
        else if constexpr (std::is_same_v<Value, std::string>)
          *value += "x";
        else if constexpr (std::is_same_v<Value, config::JsonMap>)
          value->json = R"({"x": 1})";
        else if constexpr (std::is_same_v<Value, config::JsonList>)
          value->json = R"([{"x": 1}])";
        else if constexpr (std::is_same_v<Value, config::NameList>)
          value->names.push_back("x");
        else if constexpr (requires { value->push_back({}); })
          value->push_back({});
        else if constexpr (requires { value->is_auto(); })
          value->value = 17;
        else
          value->pairs.emplace_back("x", 1);
      },
      field.value);
}

checkpoint::Stamp stamp_of(const settings::TrainSettings& settings) {
  checkpoint::Stamp stamp;
  stamp_settings(stamp, settings);
  return stamp;
}

// Covers settings that are added later, too: a run that continues with another value says so.
TEST(StampedSettings, EveryChangeIsSeen) {
  settings::TrainSettings settings;
  const checkpoint::Stamp before = stamp_of(settings);
  std::set<std::string> unseen;
  size_t num_fields = 0;
  config::for_each_field(config::list_fields(settings), "",
                         [&](const std::string& path, const config::Field& field) {
                           ++num_fields;
                           const settings::TrainSettings original = settings;
                           change(field);
                           const auto differences = checkpoint::compare(before, stamp_of(settings));
                           settings = original;
                           if (differences.empty()) unseen.insert(path);
                           EXPECT_LE(differences.size(), 1u) << path;
                         });
  EXPECT_EQ(unseen.erase("train.resume_from_checkpoint"), 1u);
  for (const std::string& path : unseen) EXPECT_TRUE(is_own_to_a_node(path)) << path;
  EXPECT_EQ(before.fields().size(), num_fields - unseen.size() - 1) << "two settings share a name";
  EXPECT_GE(num_fields, 60u);
}

TEST(StampedSettings, OlderCheckpointsAreTakenToHaveTheDefaults) {
  settings::TrainSettings settings;
  settings.train.learning_rate = 1e-3;
  checkpoint::Stamp older;
  older.set_informational("learning_rate", "0.001");
  EXPECT_TRUE(
      checkpoint::compare(with_later_settings(older, stamp_of(settings)), stamp_of(settings))
          .empty());
  settings.train.optimizer.adam_beta1 = 0.8;
  const auto differences =
      checkpoint::compare(with_later_settings(older, stamp_of(settings)), stamp_of(settings));
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].field, "adam_beta1");
}

TEST(StampedSettings, CheckpointsFromBeforeTheChoiceHaveStatesInFp32) {
  settings::TrainingSettings train;
  checkpoint::Stamp current;
  stamp_optimizer(current, train);
  EXPECT_TRUE(checkpoint::compare(with_later_settings({}, current), current).empty());
  train.optim = "adamw_8bit";
  stamp_optimizer(current, train);
  const auto differences = checkpoint::compare(with_later_settings({}, current), current);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].field, "optimizer_states");
  EXPECT_EQ(differences[0].saved, "fp32");
}

}  // namespace
}  // namespace convoy::recipes
