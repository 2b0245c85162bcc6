// Notebooks of experiments: their contents, and resuming after an interruption.
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "lab/fingerprint.h"
#include "lab/notebook.h"
#include "tests/io/files.h"

namespace baregrad::lab {
namespace {

using test::contents;
using test::put_file;

class NotebookTest : public ::testing::Test {
 protected:
  Notebook open(bool quick = true) {
    Options options;
    options.out = folder_.file("run");
    options.quick = quick;
    options.threads = 1;
    return {"sample",
            "Is it so?",
            "By looking.",
            options,
            [this](const std::string& text) { progress_.push_back(text); },
            [this](const std::string& text) { said_.push_back(text); }};
  }

  /// Makes the file look like one of another build.
  void change_program() {
    std::vector<Json> all = records();
    all[0]["program"] = "0123456789abcdef";
    std::string text;
    for (const Json& record : all) text += record.dump() + "\n";
    put_file(path(), text);
  }

  /// Two parts of one record each. Returns the names of the parts that ran now.
  std::vector<std::string> do_both(Notebook& notebook) {
    std::vector<std::string> done;
    for (const char* key : {"first", "second"}) {
      notebook.part(key, [&] {
        done.emplace_back(key);
        notebook.add("seen", {{"what", key}});
      });
    }
    return done;
  }

  std::string path() const { return folder_.file("run/sample.jsonl"); }

  std::vector<Json> records() const {
    std::vector<Json> all;
    const std::string text = contents(path());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      EXPECT_NE(end, std::string::npos) << "a line without an end";
      if (end == std::string::npos) break;
      all.push_back(Json::parse(text.substr(at, end - at)));
      at = end + 1;
    }
    return all;
  }

  std::vector<std::string> kinds() const {
    std::vector<std::string> all;
    for (const Json& record : records()) all.push_back(record.at("kind"));
    return all;
  }

  test::TemporaryFolder folder_;
  std::vector<std::string> progress_;
  std::vector<std::string> said_;
};

using Names = std::vector<std::string>;

std::vector<Json> without_seconds(std::vector<Json> all) {
  for (Json& record : all) record.erase("seconds");
  return all;
}

TEST_F(NotebookTest, HoldsAHeaderPartsAndAnEnd) {
  Notebook notebook = open();
  EXPECT_EQ(do_both(notebook), (Names{"first", "second"}));
  EXPECT_FALSE(notebook.finished());
  notebook.finish(1.5);
  EXPECT_TRUE(notebook.finished());
  EXPECT_EQ(kinds(), (Names{"header", "seen", "part", "seen", "part", "end"}));
  const std::vector<Json> all = records();
  EXPECT_EQ(all[0].at("experiment"), "sample");
  EXPECT_EQ(all[0].at("question"), "Is it so?");
  EXPECT_EQ(all[0].at("method"), "By looking.");
  EXPECT_EQ(all[0].at("command"), "baregrad lab sample --quick");
  EXPECT_EQ(all[0].at("threads"), 1);
  EXPECT_EQ(all[1].at("what"), "first");
  EXPECT_EQ(all[2].at("key"), "first");
  EXPECT_EQ(all.back().at("seconds"), 1.5);
  EXPECT_EQ(progress_, (Names{"sample: first", "sample: second"}));
}

TEST_F(NotebookTest, ReachesTheFileWhenAPartIsDone) {
  Notebook notebook = open();
  notebook.part("first", [&] {
    notebook.add("seen", {{"n", 1}});
    EXPECT_EQ(kinds(), (Names{"header"}));
  });
  EXPECT_EQ(kinds(), (Names{"header", "seen", "part"}));
}

TEST_F(NotebookTest, DoesAPartThatFailedAgain) {
  {
    Notebook notebook = open();
    notebook.part("first", [&] { notebook.add("seen", {{"what", "first"}}); });
    EXPECT_THROW(notebook.part("second",
                               [&] {
                                 notebook.add("seen", {{"what", "half"}});
                                 throw std::runtime_error("interrupted");
                               }),
                 std::runtime_error);
  }
  Notebook notebook = open();
  EXPECT_EQ(do_both(notebook), (Names{"second"}));
  EXPECT_EQ(kinds(), (Names{"header", "seen", "part", "seen", "part"}));
  EXPECT_EQ(records()[3].at("what"), "second");
}

TEST_F(NotebookTest, GoesOnWhereverItWasCut) {
  {
    Notebook notebook = open();
    do_both(notebook);
    notebook.finish(0);
  }
  const std::string whole = contents(path());
  std::vector<Json> expected = records();
  // Only the date may change, at midnight.
  const std::size_t first_end = whole.find("\"key\":\"first\"}\n") + 15;
  const std::size_t second_end = whole.find("\"key\":\"second\"}\n") + 16;
  std::vector<std::size_t> cuts;
  for (std::size_t end = whole.find('\n'); end != std::string::npos;
       end = whole.find('\n', end + 1)) {
    for (const std::size_t cut : {end - 10, end, end + 1}) {
      if (cut < whole.size()) cuts.push_back(cut);
    }
  }
  EXPECT_EQ(cuts.size(), 3U * 6 - 1);
  cuts.push_back(0);
  for (const std::size_t bytes : cuts) {
    put_file(path(), whole.substr(0, bytes));
    Notebook notebook = open();
    const Names missing = bytes < first_end    ? Names{"first", "second"}
                          : bytes < second_end ? Names{"second"}
                                               : Names{};
    ASSERT_EQ(do_both(notebook), missing) << bytes;
    notebook.finish(0);
    std::vector<Json> all = records();
    all[0]["date"] = expected[0]["date"];
    ASSERT_EQ(without_seconds(all), without_seconds(expected)) << bytes;
  }
}

TEST_F(NotebookTest, IsNotDoneAgainWhenFinished) {
  {
    Notebook notebook = open();
    do_both(notebook);
    notebook.finish(0);
  }
  const std::string before = contents(path());
  Notebook notebook = open();
  EXPECT_TRUE(notebook.finished());
  EXPECT_EQ(do_both(notebook), Names{});
  EXPECT_EQ(contents(path()), before);
}

TEST_F(NotebookTest, BeginsAfreshWhatAnotherBuildBegan) {
  {
    Notebook notebook = open();
    notebook.part("first", [&] { notebook.absent("energy", "no counters"); });
  }
  change_program();
  said_.clear();
  auto notebook = std::make_unique<Notebook>(open());
  EXPECT_EQ(said_,
            (Names{"sample: another build of baregrad began '" + path() + "': begun afresh"}));
  EXPECT_EQ(kinds(), (Names{"header"}));
  EXPECT_EQ(do_both(*notebook), (Names{"first", "second"}));
  notebook->part("third", [&] { notebook->absent("energy", "no counters"); });
  EXPECT_EQ(kinds().back(), "part");
  EXPECT_EQ(records().end()[-2].at("kind"), "absent");
  notebook.reset();
  { Notebook same = open(); }
  EXPECT_EQ(said_.size(), 2U) << "the same build goes on";
}

TEST_F(NotebookTest, LeavesAFileOfAnotherProgramAsItIs) {
  { Notebook notebook = open(); }
  for (const std::string text :
       {"notes without a line end", "{\"kind\":\"note\"}", "a\nb\n", "\n"}) {
    put_file(path(), text);
    EXPECT_THROW(open(), ValueError) << text;
    EXPECT_EQ(contents(path()), text);
  }
}

TEST_F(NotebookTest, HasOneWriter) {
  Notebook notebook = open();
  do_both(notebook);
  const std::string before = contents(path());
  EXPECT_THROW(open(), IoError);
  EXPECT_EQ(contents(path()), before);
}

TEST_F(NotebookTest, KeepsWhatAnotherBuildFinished) {
  {
    Notebook notebook = open();
    do_both(notebook);
    notebook.finish(1);
    EXPECT_FALSE(notebook.of_another_build());
  }
  change_program();
  const std::string before = contents(path());
  Notebook notebook = open();
  EXPECT_TRUE(notebook.finished());
  EXPECT_TRUE(notebook.of_another_build());
  EXPECT_EQ(contents(path()), before);
}

TEST_F(NotebookTest, AddsUpTheSecondsOfAllSittings) {
  {
    Notebook notebook = open();
    do_both(notebook);
  }
  // As if the parts of the first session had taken long.
  std::vector<Json> all = records();
  std::string text;
  for (Json& record : all) {
    if (record.at("kind") == "part") {
      EXPECT_GE(record.at("seconds"), 0.0);
      record["seconds"] = record.at("key") == "first" ? 100.0 : 20.0;
    }
    text += record.dump() + "\n";
  }
  put_file(path(), text);
  Notebook notebook = open();
  EXPECT_EQ(do_both(notebook), Names{});
  notebook.finish(3);
  EXPECT_EQ(records().back().at("seconds"), 123.0);
}

TEST_F(NotebookTest, SaysOnceWhatIsAbsentAlsoInALaterSitting) {
  {
    Notebook notebook = open();
    notebook.part("first", [&] {
      notebook.absent("torch", "not installed");
      notebook.absent("torch", "not installed");
    });
    notebook.part("second", [&] { notebook.absent("torch", "not installed"); });
  }
  Notebook notebook = open();
  notebook.part("third", [&] {
    notebook.absent("torch", "not installed");
    notebook.absent("torch", "too old");
  });
  EXPECT_EQ(said_, (Names{"sample: torch is left out: not installed",
                          "sample: torch is left out: too old"}));
  EXPECT_EQ(kinds(), (Names{"header", "absent", "part", "part", "absent", "part"}));
}

TEST(Fingerprint, FollowsFromTheBytesOfAFile) {
  const test::TemporaryFolder folder;
  put_file(folder.file("empty"), "");
  put_file(folder.file("a"), "a");
  // The test values published by FNV-1a's authors.
  EXPECT_EQ(fingerprint(folder.file("empty")), "cbf29ce484222325");
  EXPECT_EQ(fingerprint(folder.file("a")), "af63dc4c8601ec8c");
  put_file(folder.file("long"), std::string(200'000, 'x'));
  put_file(folder.file("other"), std::string(199'999, 'x') + "y");
  EXPECT_NE(fingerprint(folder.file("long")), fingerprint(folder.file("other")));
  EXPECT_THROW(fingerprint(folder.file("none")), IoError);
}

TEST_F(NotebookTest, RefusesOtherSettings) {
  { Notebook notebook = open(/*quick=*/true); }
  const std::string before = contents(path());
  const auto again = [this] { open(/*quick=*/false); };
  EXPECT_EQ(test::error_of<ValueError>(again),
            "lab: '" + path() +
                "' holds a run with another quick (true, now false): choose another --out, or "
                "remove it");
  EXPECT_EQ(contents(path()), before);
}

TEST_F(NotebookTest, RefusesAnotherMachine) {
  { Notebook notebook = open(); }
  std::vector<Json> all = records();
  all[0]["machine"]["cpu"] = "an abacus";
  put_file(path(), all[0].dump() + "\n");
  const std::string message = test::error_of<ValueError>([this] { open(); });
  EXPECT_NE(message.find("holds a run with another machine"), std::string::npos) << message;
  EXPECT_NE(message.find("an abacus"), std::string::npos) << message;
}

TEST_F(NotebookTest, LeavesFilesOfOthersAlone) {
  { Notebook notebook = open(); }
  for (const char* text : {"a diary\n", "[1, 2]\n", "{\"kind\":\"other\"}\n"}) {
    put_file(path(), text);
    EXPECT_NE(test::error_of<ValueError>([this] { open(); }), "") << text;
    EXPECT_EQ(contents(path()), text);
  }
}

TEST_F(NotebookTest, SaysWhatIsAbsentInOneLine) {
  Notebook notebook = open();
  notebook.part("first", [&] {
    notebook.absent("energy", "no counters");
    notebook.note("a warm day");
  });
  EXPECT_EQ(said_, (Names{"sample: energy is left out: no counters"}));
  const std::vector<Json> all = records();
  EXPECT_EQ(all[1], (Json{{"kind", "absent"}, {"what", "energy"}, {"why", "no counters"}}));
  EXPECT_EQ(all[2], (Json{{"kind", "note"}, {"text", "a warm day"}}));
}

TEST_F(NotebookTest, NamesFilesBesideIt) {
  EXPECT_EQ(open().file(".trace.json"), folder_.file("run/sample.trace.json"));
}

}  // namespace
}  // namespace baregrad::lab
