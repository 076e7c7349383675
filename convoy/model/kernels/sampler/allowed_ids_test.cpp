// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/sampler/allowed_ids.h"

#include <gtest/gtest.h>

#include <random>

namespace convoy::kernels::sampler {
namespace {

std::vector<int64_t> listed(const AllowedIds& ids) {
  std::vector<int64_t> found;
  ids.for_each_run([&](int64_t begin, int64_t count) {
    for (int64_t id = begin; id < begin + count; ++id) found.push_back(id);
  });
  return found;
}

// One after the other through the words' bits.
std::vector<int64_t> wanted_of(std::span<const uint32_t> words, int64_t num_ids) {
  std::vector<int64_t> wanted;
  for (int64_t id = 0; id < num_ids && id < std::ssize(words) * 32; ++id)
    if ((words[static_cast<size_t>(id / 32)] >> (id % 32) & 1U) != 0) wanted.push_back(id);
  return wanted;
}

void expect_numbered(std::span<const uint32_t> words, int64_t num_ids) {
  AllowedIds ids;
  ids.set(words, num_ids);
  const std::vector<int64_t> wanted = wanted_of(words, num_ids);
  EXPECT_EQ(listed(ids), wanted);
  ASSERT_EQ(ids.size(), std::ssize(wanted));
  std::vector<int64_t> places(static_cast<size_t>(num_ids + 40), kNoPlace);
  for (int64_t place = 0; place < std::ssize(wanted); ++place) {
    EXPECT_EQ(ids.id_at(place), wanted[static_cast<size_t>(place)]);
    places[static_cast<size_t>(wanted[static_cast<size_t>(place)])] = place;
  }
  for (int64_t id = 0; id < std::ssize(places); ++id)
    EXPECT_EQ(ids.place_of(id), places[static_cast<size_t>(id)]) << id;
  EXPECT_EQ(ids.place_of(-1), kNoPlace);
}

TEST(AllowedIds, AreNumberedInTheirOrder) {
  std::mt19937 chance(5);
  const uint32_t all = ~0U;
  for (const int64_t num_ids : {1, 31, 32, 33, 90, 96}) {
    for (const std::vector<uint32_t>& words :
         std::vector<std::vector<uint32_t>>{{all, all, all},
                                            {0, 0, 0},
                                            {0x80000001U, 0, 0x80000000U},
                                            {0, all},
                                            {all, all, all, all},
                                            {0xfff0f00fU, 0x7fffffffU, 0xfffffffeU}})
      expect_numbered(words, num_ids);
    for (int repetition = 0; repetition < 20; ++repetition)
      expect_numbered(std::vector<uint32_t>{static_cast<uint32_t>(chance()),
                                            static_cast<uint32_t>(chance() & chance() & chance()),
                                            static_cast<uint32_t>(chance() | chance())},
                      num_ids);
  }
}

TEST(AllowedIds, NothingIsAllowedWithoutWords) {
  AllowedIds ids;
  ids.set({}, 5);
  EXPECT_EQ(ids.size(), 0);
  EXPECT_TRUE(listed(ids).empty());
  EXPECT_EQ(ids.place_of(0), kNoPlace);
}

}  // namespace
}  // namespace convoy::kernels::sampler
