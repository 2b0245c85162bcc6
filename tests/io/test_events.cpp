// Event files, read back by the test's own decoder: frames, checksums, messages.
#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "tests/io/files.h"

namespace baregrad {
namespace {

namespace fs = std::filesystem;
using io::EventWriter;
using test::error_of;
using test::TemporaryFolder;

/// Bit by bit, from the polynomial.
std::uint32_t crc32c(std::string_view data) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : data) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
  }
  return crc ^ 0xFFFFFFFF;
}

std::uint32_t masked(std::string_view data) {
  const std::uint32_t crc = crc32c(data);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

template <class T>
T number(std::string_view data, std::size_t at) {
  T out;
  std::memcpy(&out, data.data() + at, sizeof out);
  return out;
}

/// The messages of a file, up to the first incomplete one.
std::vector<std::string> records(std::string_view file) {
  std::vector<std::string> out;
  while (file.size() >= 12) {
    const auto length = number<std::uint64_t>(file, 0);
    EXPECT_EQ(number<std::uint32_t>(file, 8), masked(file.substr(0, 8)));
    if (file.size() < 16 + length) break;
    const std::string_view body = file.substr(12, length);
    EXPECT_EQ(number<std::uint32_t>(file, 12 + length), masked(body));
    out.emplace_back(body);
    file.remove_prefix(16 + length);
  }
  return out;
}

/// The fields of a message: numbers as bytes, other fields as they are.
std::map<int, std::string> fields(std::string_view message) {
  std::map<int, std::string> out;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(message.at(at++));
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const std::uint64_t tag = varint();
    std::uint64_t bytes = 0;
    switch (tag & 7) {
      case 0:
        out[static_cast<int>(tag >> 3)] = std::to_string(static_cast<std::int64_t>(varint()));
        continue;
      case 1:
        bytes = 8;
        break;
      case 2:
        bytes = varint();
        break;
      case 5:
        bytes = 4;
        break;
      default:
        ADD_FAILURE() << "kind " << (tag & 7);
        return out;
    }
    if (bytes > message.size() - at) {
      ADD_FAILURE() << "field " << (tag >> 3) << " reaches beyond the message";
      return out;
    }
    out[static_cast<int>(tag >> 3)] = message.substr(at, bytes);
    at += bytes;
  }
  return out;
}

TEST(Events, TheChecksumOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);  // RFC 3720's polynomial, the usual check value
}

TEST(Events, ScalarsAndText) {
  const TemporaryFolder folder;
  std::string path;
  {
    EventWriter writer(folder.file("run/logs"));
    path = writer.path();
    writer.add_scalar("loss/train", 0.25, 7, 1234.5);
    writer.add_scalar("\xc3\xa9", std::numeric_limits<double>::infinity(), -1, 0.0);
    writer.add_scalar("big", 1e300, std::int64_t{1} << 40);
    writer.add_text("notes", std::string(300, 'x'), 8, 2.0);
    writer.flush();
  }
  EXPECT_EQ(fs::path(path).parent_path(), folder.file("run/logs"));
  EXPECT_EQ(fs::path(path).filename().string().rfind("events.out.tfevents.", 0), 0U);

  const std::vector<std::string> events = records(test::contents(path));
  ASSERT_EQ(events.size(), 5U);
  const auto first = fields(events[0]);
  EXPECT_EQ(first.at(3), "brain.Event:2");
  EXPECT_GT(number<double>(first.at(1), 0), 1.5e9);

  auto event = fields(events[1]);
  EXPECT_EQ(number<double>(event.at(1), 0), 1234.5);
  EXPECT_EQ(event.at(2), "7");
  auto value = fields(fields(event.at(5)).at(1));
  EXPECT_EQ(value.at(1), "loss/train");
  EXPECT_EQ(number<float>(value.at(2), 0), 0.25F);

  event = fields(events[2]);
  EXPECT_EQ(event.at(2), "-1");
  value = fields(fields(event.at(5)).at(1));
  EXPECT_EQ(value.at(1), "\xc3\xa9");
  EXPECT_TRUE(std::isinf(number<float>(value.at(2), 0)));

  event = fields(events[3]);
  EXPECT_EQ(event.at(2), "1099511627776");
  EXPECT_GT(number<double>(event.at(1), 0), 1.5e9);

  value = fields(fields(fields(events[4]).at(5)).at(1));
  EXPECT_EQ(value.at(1), "notes");
  const auto tensor = fields(value.at(8));
  EXPECT_EQ(tensor.at(1), "7");
  EXPECT_EQ(fields(fields(tensor.at(2)).at(2)).at(1), "1");
  EXPECT_EQ(tensor.at(8), std::string(300, 'x'));
  EXPECT_EQ(fields(fields(value.at(9)).at(1)).at(1), "text");
}

TEST(Events, EachRunHasAFileAndResumesAtAStep) {
  const TemporaryFolder folder;
  EventWriter first(folder.file(""));
  EventWriter second(folder.file(""), 120);
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(folder.files(), 2U);
  const std::vector<std::string> events = records(test::contents(second.path()));
  ASSERT_EQ(events.size(), 2U);
  const auto start = fields(events[1]);
  EXPECT_EQ(start.at(2), "120");
  EXPECT_EQ(fields(start.at(7)).at(1), "1");
}

TEST(Events, NamesAreFreshAndInOrder) {
  // Many starts within one second and with the same process number, as in containers.
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (int i = 0; i < 20; ++i) paths.push_back(EventWriter(folder.file("")).path());
  EXPECT_EQ(folder.files(), 20U);
  EXPECT_TRUE(std::is_sorted(paths.begin(), paths.end()));
  // A clock that was set back, and a name without a time.
  test::put_file(folder.file("events.out.tfevents.4000000000.host.1.0"), "");
  test::put_file(folder.file("events.out.tfevents.99999999999999999999.host.1.0"), "");
  EXPECT_NE(EventWriter(folder.file("")).path().find("tfevents.4000000001."), std::string::npos);
}

TEST(Events, ARecordIsThereWhenTheCallReturns) {
  const TemporaryFolder folder;
  EventWriter writer(folder.file(""));
  for (int step = 0; step < 20; ++step) {
    writer.add_scalar("x", step, step);
    EXPECT_EQ(records(test::contents(writer.path())).size(), static_cast<std::size_t>(step) + 2);
  }
  // A torn last record affects no other record.
  std::string file = test::contents(writer.path());
  file.pop_back();
  EXPECT_EQ(records(file).size(), 20U);
  EventWriter moved = std::move(writer);
  moved.add_scalar("x", 20, 20);
  EXPECT_EQ(records(test::contents(moved.path())).size(), 22U);
  moved = EventWriter(folder.file(""));
  EXPECT_EQ(records(test::contents(moved.path())).size(), 1U);
}

TEST(Events, Errors) {
  const TemporaryFolder folder;
  test::put_file(folder.file("file"), "");
  EXPECT_NE(error_of<IoError>([&] { EventWriter(folder.file("file")); }), "");
  EventWriter writer(folder.file("logs"));
  EXPECT_EQ(error_of<ValueError>([&] { writer.add_scalar("\xff", 1, 1); }),
            "EventWriter::add_scalar: the tag '\\xff' is not UTF-8");
  EXPECT_EQ(error_of<ValueError>([&] { writer.add_text("\xff", "", 1); }),
            "EventWriter::add_text: the tag '\\xff' is not UTF-8");
  EXPECT_TRUE(test::refuses_nul<ValueError>(
      "EventWriter::add_scalar", [&] { writer.add_scalar(std::string("a\0b", 3), 1, 1); }));
}

}  // namespace
}  // namespace baregrad
