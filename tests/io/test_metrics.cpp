// metrics.jsonl: lines that any JSON parser reads; torn and repeated lines are cut on resume.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/json_string.h"
#include "io/text.h"
#include "tests/io/files.h"

namespace baregrad {
namespace {

using io::MetricsWriter;
using test::error_of;
using test::TemporaryFolder;

TEST(Text, JsonStrings) {
  EXPECT_EQ(json_string("a\"\\\n\x01é\xFF"), "\"a\\\"\\\\\\u000a\\u0001é\xEF\xBF\xBD\"");
  EXPECT_EQ(json_string("\xC0\x80\xED\xA0\x80"),
            "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(Metrics, OneObjectALine) {
  const TemporaryFolder folder;
  const std::string path = folder.file("metrics.jsonl");
  {
    MetricsWriter writer(path);
    writer.write(7, {{"loss", 0.1},
                     {"\"odd\"\n", std::string("\xc3\xa9\t")},
                     {"done", true},
                     {"not", false},
                     {"count", std::int64_t{-9'223'372'036'854'775'807}},
                     {"tiny", 5e-324},
                     {"nan", std::nan("")},
                     {"inf", std::numeric_limits<double>::infinity()}});
    writer.write(8, {});
    writer.flush();
  }
  const std::string text = test::contents(path);
  const std::size_t end = text.find('\n');
  const auto line = nlohmann::json::parse(text.substr(0, end));
  EXPECT_EQ(line.at("step"), 7);
  EXPECT_EQ(line.at("loss"), 0.1);
  EXPECT_EQ(line.at("\"odd\"\n"), "\xc3\xa9\t");
  EXPECT_EQ(line.at("done"), true);
  EXPECT_EQ(line.at("not"), false);
  EXPECT_EQ(line.at("count"), -9'223'372'036'854'775'807);
  EXPECT_EQ(line.at("tiny"), 5e-324);
  EXPECT_TRUE(line.at("nan").is_null());
  EXPECT_TRUE(line.at("inf").is_null());
  EXPECT_EQ(text.substr(end + 1), "{\"step\":8}\n");
}

TEST(Metrics, ATornLastLineIsCutOff) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m");
  for (const auto& [before, after] : std::vector<std::pair<std::string, std::string>>{
           {"", ""},
           {"{\"step\":1", ""},
           {"{\"step\":1}\n", "{\"step\":1}\n"},
           {"{\"step\":1}\n{\"st", "{\"step\":1}\n"},
           {"{\"step\":1,\"a\":2}", "{\"step\":1,\"a\":2}\n"},  // only its newline is missing
           {std::string("{\"step\":1}\n\0\0\0", 15), "{\"step\":1}\n"},
       }) {
    test::put_file(path, before);
    MetricsWriter writer(path);
    EXPECT_EQ(test::contents(path), after);
    writer.write(2, {});
    EXPECT_EQ(test::contents(path), after + "{\"step\":2}\n");
  }
}

TEST(Metrics, ResumeDropsWhatIsWrittenAgain) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m");
  const std::string note = "{\"step\":0,\"note\":\"before\"}\n";
  test::put_file(path, note + "{\"step\":1}\n{\"step\":2,\"a\":1}\n{\"step\":3}\n{\"ste");
  MetricsWriter writer(path, 2);
  EXPECT_EQ(test::contents(path), note + "{\"step\":1}\n");
  writer.write(2, {});
  MetricsWriter moved = std::move(writer);
  moved.write(3, {});
  EXPECT_EQ(test::contents(path), note + "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
  moved = MetricsWriter(path, 10);
  EXPECT_EQ(test::contents(path), note + "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
}

TEST(Metrics, AFileOfAnotherProgramIsLeftAsItIs) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m");
  for (const std::string text :
       {"a thesis without a line end", "{", "{\"st", "{\"note\":\"x\"}\n", "{\"step\":x}\n",
        "{\"step\":1}\nnotes\n", "{\"step\":1}\nnotes", "{\"step\":1} and more\n", "\n"}) {
    test::put_file(path, text);
    for (const std::optional<std::int64_t> resume :
         {std::optional<std::int64_t>(), std::optional<std::int64_t>(0)}) {
      EXPECT_NE(
          error_of<IoError>([&] { MetricsWriter(path, resume); }).find("not a line of metrics"),
          std::string::npos)
          << text;
      EXPECT_EQ(test::contents(path), text);
    }
  }
}

TEST(Metrics, EveryNameOccursOnce) {
  const TemporaryFolder folder;
  MetricsWriter writer(folder.file("m"));
  EXPECT_EQ(error_of<ValueError>([&] {
              writer.write(1, {{"a", 1.0}, {"b", 2.0}, {"a", 3.0}});
            }),
            "MetricsWriter::write: the name 'a' occurs twice");
  EXPECT_EQ(error_of<ValueError>([&] {
              writer.write(1, {{"step", std::int64_t{7}}});
            }),
            "MetricsWriter::write: the name 'step' occurs twice; the step is the first argument");
  EXPECT_TRUE(test::refuses_nul<ValueError>("MetricsWriter::write", [&] {
    writer.write(1, {{std::string("a\0b", 3), 1.0}});
  }));
  EXPECT_EQ(test::contents(folder.file("m")), "");
}

TEST(Metrics, Errors) {
  const TemporaryFolder folder;
  EXPECT_NE(error_of<IoError>([&] { MetricsWriter(folder.file("a/b")); }), "");
  MetricsWriter writer(folder.file("m"));
  EXPECT_EQ(error_of<ValueError>([&] {
              writer.write(1, {{"\xff", 1.0}});
            }),
            "MetricsWriter::write: the name '\\xff' is not UTF-8");
  EXPECT_EQ(error_of<ValueError>([&] {
              writer.write(1, {{"a", std::string("\xff")}});
            }),
            "MetricsWriter::write: the text '\\xff' is not UTF-8");
  EXPECT_EQ(test::contents(folder.file("m")), "");
}

}  // namespace
}  // namespace baregrad
