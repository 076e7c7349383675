// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/text/template_clock.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "convoy/core/base/files.h"
#include "convoy/data/text/chat_template.h"

namespace convoy::text {
namespace {

constexpr int64_t kNoon = 1'700'049'600;  // 2023-11-15 12:00:00 UTC

class ClockInUtc : public ::testing::Test {
 protected:
  ClockInUtc() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  ~ClockInUtc() override {
    ::unsetenv("TZ");
    ::tzset();
  }

  static TemplateClock clock_of(std::string_view source) {
    TemplateClock clock;
    clock.add(source);
    clock.stop_at(kNoon);
    return clock;
  }
};

TEST_F(ClockInUtc, WordsAreWhatTheTemplateWrites) {
  EXPECT_EQ(clock_of("{{ strftime_now('%d %b %Y') }}").words(),
            "strftime_now(\"%d %b %Y\") is 15 Nov 2023");
  EXPECT_EQ(clock_of("{{ strftime_now( \"%Y\" ) }}{{ strftime_now('%Y') }}{{ strftime_now('%H') }}")
                .words(),
            "strftime_now(\"%Y\") is 2023, strftime_now(\"%H\") is 12");
  EXPECT_EQ(clock_of("{{ strftime_now(format) }}").words(), "strftime_now has 2023-11-15 12:00:00");
  EXPECT_EQ(clock_of("{% set now = strftime_now %}").words(),
            "strftime_now has 2023-11-15 12:00:00");
  EXPECT_EQ(clock_of("{% if strftime_now is defined %}x{% endif %}").words(), "");
  TemplateClock going = clock_of("{{ strftime_now('%H') }}");
  going.go();
  EXPECT_EQ(going.words(), "");
  EXPECT_TRUE(going.is_read());
}

TEST_F(ClockInUtc, EveryConversationOfATemplateHasItsInstant) {
  std::string pattern = "/tmp/convoy_clock_XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  write_file_atomic(folder / "chat_template.jinja",
                    "{{ strftime_now('%Y-%m-%d %H:%M:%S') }} {{ messages[0].content }}");
  auto chat_template = std::move(*ChatTemplate::load(folder));
  std::filesystem::remove_all(folder);
  const nlohmann::ordered_json messages = {{{"role", "user"}, {"content", "x"}}};
  chat_template.clock().stop_at(kNoon);
  EXPECT_EQ(chat_template.render(messages, nullptr, false).text, "2023-11-15 12:00:00 x");
  EXPECT_EQ(chat_template.clock().words(),
            "strftime_now(\"%Y-%m-%d %H:%M:%S\") is 2023-11-15 12:00:00");
  chat_template.clock().go();
  const Conversation conversation = chat_template.read(messages, nullptr);
  EXPECT_NE(conversation.render(1, false).text, "2023-11-15 12:00:00 x");
  chat_template.clock().stop_at(kNoon);  // the conversation was read before
  EXPECT_NE(conversation.render(1, false).text, "2023-11-15 12:00:00 x");
}

}  // namespace
}  // namespace convoy::text
