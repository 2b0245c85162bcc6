// npz: archives of ours and of other zip writers; errors for bombs and damaged archives.
#include <zlib.h>

#include <gtest/gtest.h>

#include "baregrad/allocator.h"
#include "io/zip.h"
#include "tests/io/files.h"

namespace baregrad {
namespace {

using io::Bytes;
using io::NpzMode;
using test::error_of;
using test::expect_same;
using test::pattern;
using test::TemporaryFolder;

constexpr NpzMode kModes[] = {NpzMode::Stored, NpzMode::Deflated};

std::string npz_error(const std::string& file) {
  return error_of<IoError>([&] { io::parse_npz(test::bytes_of(file), "f"); });
}

/// A zip archive written field by field, so that each field can be wrong.
struct Member {
  std::string name = "a.npy";
  std::string packed;
  std::uint32_t bytes = 0;
  std::uint32_t crc = 0;
  int method = 0;
  int flags = 0;
  std::string extra;  // in the directory entry
  std::string local_extra;
  std::string local_name;   // if different from the name
  std::int64_t local = -1;  // the offset in the directory, if wrong
  int disk = 0;
  std::int64_t packed_size = -1;
  int local_method = -1;
};

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

struct End {
  std::int64_t count = -1;
  std::int64_t count_here = -1;  // entries on this disk
  std::int64_t size = -1;
  std::int64_t begin = -1;
  int disk = 0;
  std::string comment;
  std::string before;       // bytes between the directory and the end record
  std::int64_t zip64 = -1;  // the offset in a zip64 locator
};

std::string zip(const std::vector<Member>& members, const End& end = {}) {
  std::string out;
  std::string directory;
  for (const Member& m : members) {
    const std::uint64_t local = m.local >= 0 ? static_cast<std::uint64_t>(m.local) : out.size();
    const std::uint64_t packed =
        m.packed_size >= 0 ? static_cast<std::uint64_t>(m.packed_size) : m.packed.size();
    const std::string& local_name = m.local_name.empty() ? m.name : m.local_name;
    out += "PK\3\4";
    put(out, 20, 2);
    put(out, static_cast<std::uint64_t>(m.flags), 2);
    put(out, static_cast<std::uint64_t>(m.local_method >= 0 ? m.local_method : m.method), 2);
    put(out, 0, 4);
    put(out, m.crc, 4);
    put(out, m.packed.size(), 4);
    put(out, m.bytes, 4);
    put(out, local_name.size(), 2);
    put(out, m.local_extra.size(), 2);
    out += local_name + m.local_extra + m.packed;
    directory += "PK\1\2";
    put(directory, 20, 2);
    put(directory, 20, 2);
    put(directory, static_cast<std::uint64_t>(m.flags), 2);
    put(directory, static_cast<std::uint64_t>(m.method), 2);
    put(directory, 0, 4);
    put(directory, m.crc, 4);
    put(directory, packed, 4);
    put(directory, m.bytes, 4);
    put(directory, m.name.size(), 2);
    put(directory, m.extra.size(), 2);
    put(directory, 0, 2);
    put(directory, static_cast<std::uint64_t>(m.disk), 2);
    put(directory, 0, 6);
    put(directory, local, 4);
    directory += m.name + m.extra;
  }
  const std::uint64_t begin = out.size();
  out += directory + end.before;
  if (end.zip64 >= 0) {
    out += "PK\6\7";
    put(out, 0, 4);
    put(out, static_cast<std::uint64_t>(end.zip64), 8);
    put(out, 1, 4);
  }
  const auto count =
      static_cast<std::uint64_t>(end.count >= 0 ? end.count : static_cast<int>(members.size()));
  out += "PK\5\6";
  put(out, static_cast<std::uint64_t>(end.disk), 4);
  put(out, end.count_here >= 0 ? static_cast<std::uint64_t>(end.count_here) : count, 2);
  put(out, count, 2);
  put(out, end.size >= 0 ? static_cast<std::uint64_t>(end.size) : directory.size(), 4);
  put(out, end.begin >= 0 ? static_cast<std::uint64_t>(end.begin) : begin, 4);
  put(out, end.comment.size(), 2);
  return out + end.comment;
}

std::string some_npy() { return test::text_of(io::npy_bytes(pattern({5}, float32))); }

std::uint32_t crc_of(const std::string& data) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
}

Member stored(const std::string& data, const std::string& name = "a.npy") {
  Member out;
  out.name = name;
  out.packed = data;
  out.bytes = static_cast<std::uint32_t>(data.size());
  out.crc = crc_of(data);
  return out;
}

Member deflated(const std::string& data) {
  Member out = stored(data);
  out.method = 8;
  uLongf room = compressBound(static_cast<uLong>(data.size()));
  std::string wrapped(room, '\0');
  compress2(reinterpret_cast<Bytef*>(wrapped.data()), &room,
            reinterpret_cast<const Bytef*>(data.data()), static_cast<uLong>(data.size()), 9);
  out.packed = wrapped.substr(2, room - 6);  // raw deflate, without zlib's header
  return out;
}

TEST(Npz, EveryDTypeAndLayout) {
  const NamedTensors tensors = test::varied(false);
  for (const NpzMode mode : kModes) {
    expect_same(io::parse_npz(io::npz_bytes(tensors, mode)), tensors);
    const TemporaryFolder folder;
    io::save_npz(folder.file("a.npz"), tensors, mode);
    expect_same(io::load_npz(folder.file("a.npz")), tensors);
  }
  EXPECT_TRUE(io::parse_npz(io::npz_bytes({})).empty());
}

TEST(Npz, ZerosDeflateWell) {
  const Tensor zeros = Tensor::allocate({1000, 1000}, float64, "test");
  std::memset(zeros.data_ptr(), 0, zeros.nbytes());
  const Bytes bytes = io::npz_bytes({{"z", zeros}}, NpzMode::Deflated);
  EXPECT_LT(bytes.size(), zeros.nbytes() / 900);
  expect_same(io::parse_npz(bytes), {{"z", zeros}});
}

TEST(Npz, OtherWritersArchives) {
  const NamedTensors expected = {{"a", pattern({5}, float32)}};
  const auto parse = [](const std::string& file) { return io::parse_npz(test::bytes_of(file)); };
  expect_same(parse(zip({stored(some_npy())})), expected);
  expect_same(parse(zip({deflated(some_npy())})), expected);
  End comment;
  comment.comment = "a comment with PK\5\6 in it, which is no end record............";
  expect_same(parse(zip({stored(some_npy())}, comment)), expected);
  Member extra = stored(some_npy());
  extra.local_extra = "extra";
  extra.extra = std::string("\7\7\2\0ab", 6);
  expect_same(parse(zip({extra})), expected);
  // All sizes in the zip64 field, after another field.
  Member wide = stored(some_npy());
  wide.extra = std::string("\7\7\1\0x", 5) + std::string("\1\0\30\0", 4);
  put(wide.extra, wide.bytes, 8);
  put(wide.extra, wide.bytes, 8);
  put(wide.extra, 0, 8);
  wide.bytes = 0xFFFFFFFF;
  wide.packed_size = 0xFFFFFFFF;
  wide.local = 0xFFFFFFFF;
  expect_same(parse(zip({wide})), expected);
}

/// The end record in zip64 form, for an archive of one member.
std::string zip64_archive(std::uint64_t count, std::uint64_t disk, std::int64_t shift = 0,
                          std::uint64_t record_bytes = 44) {
  const Member member = stored(some_npy());
  const std::uint64_t begin = 30 + member.name.size() + member.packed.size();
  const std::uint64_t bytes = 46 + member.name.size();
  End end;
  end.count = 0xFFFF;
  end.size = 0xFFFFFFFF;
  end.begin = 0xFFFFFFFF;
  end.before = "PK\6\6";
  put(end.before, record_bytes, 8);
  put(end.before, 45, 2);
  put(end.before, 45, 2);
  put(end.before, disk, 4);
  put(end.before, 0, 4);
  put(end.before, count, 8);
  put(end.before, count, 8);
  put(end.before, bytes, 8);
  put(end.before, begin, 8);
  end.zip64 = static_cast<std::int64_t>(begin + bytes) + shift;
  return zip({member}, end);
}

TEST(Npz, Zip64EndRecord) {
  expect_same(io::parse_npz(test::bytes_of(zip64_archive(1, 0))), {{"a", pattern({5}, float32)}});
  const std::string misplaced = "its zip64 end record is not where it should be";
  EXPECT_NE(npz_error(zip64_archive(1, 0, 1)).find(misplaced), std::string::npos);
  EXPECT_NE(npz_error(zip64_archive(1, 0, 1 << 20)).find(misplaced), std::string::npos);
  EXPECT_NE(npz_error(zip64_archive(1, 0, -1)).find(misplaced), std::string::npos);
  EXPECT_NE(npz_error(zip64_archive(1, 0, 0, 45)).find(misplaced), std::string::npos);
  EXPECT_NE(npz_error(zip64_archive(1, 1)).find("several parts"), std::string::npos);
  EXPECT_NE(npz_error(zip64_archive(std::uint64_t{1} << 62, 0)).find("more than its directory"),
            std::string::npos);
  End tiny;  // a locator without a record before it
  tiny.count = 0xFFFF;
  tiny.zip64 = 0;
  EXPECT_NE(npz_error(zip({}, tiny)).find(misplaced), std::string::npos);
}

TEST(Npz, MoreMembersThanTheOldFormatCounts) {
  NamedTensors tensors;
  const Tensor one = pattern({1}, uint8);
  for (int i = 0; i < 66'000; ++i) tensors.push_back({std::to_string(i), one});
  const NamedTensors back = io::parse_npz(io::npz_bytes(tensors));
  ASSERT_EQ(back.size(), tensors.size());
  EXPECT_EQ(back.back().name, "65999");
  expect_same(back.back().tensor, one);
}

TEST(Npz, NO_TSAN_MembersBeyondFourGigabytes) {
  // The archive is written to a sparse sink: only its headers are kept, and checked field by field.
  std::string kept;
  std::uint64_t written = 0;
  io::ZipWriter zip([&](std::string_view part) {
    if (part.size() < (1U << 20)) kept += part;
    written += part.size();
  });
  const std::string block(1U << 24, '\0');
  const std::uint64_t bytes = std::uint64_t{300} << 24;
  zip.add("big.npy", bytes, false, [&](const io::Sink& sink) {
    for (int i = 0; i < 300; ++i) sink(block);
  });
  zip.add("b", 1, false, [](const io::Sink& sink) { sink("x"); });
  zip.finish();
  std::string size;
  put(size, bytes, 8);
  const std::string local_field = std::string("\1\0\20\0", 4) + size + size;
  EXPECT_EQ(kept.substr(18, 8), std::string(8, '\xff'));
  EXPECT_EQ(kept.substr(37, 20), local_field);
  const std::size_t directory = kept.find("PK\1\2");
  EXPECT_EQ(kept.substr(directory + 46 + 7, 20), local_field);
  const std::size_t second = kept.find("PK\1\2", directory + 4);
  std::string where;
  put(where, bytes + 57, 8);
  EXPECT_EQ(kept.substr(second + 46 + 1, 12), std::string("\1\0\10\0", 4) + where);
  EXPECT_NE(kept.find("PK\6\6"), std::string::npos);
  EXPECT_NE(kept.find("PK\6\7"), std::string::npos);
  EXPECT_GT(written, bytes);
}

TEST(Npz, SizesBehindLargeDeflatedMembers) {
  // The declared size decides the form of what follows; the contents may be smaller.
  std::string kept;
  io::ZipWriter zip([&](std::string_view part) { kept += part; });
  const std::uint64_t bytes = 5'000'000'000;
  zip.add("a.npy", bytes, true, [](const io::Sink& sink) { sink("hello"); });
  const std::size_t sizes = kept.find("PK\7\10");
  ASSERT_EQ(sizes + 24, kept.size());
  std::string declared;
  put(declared, sizes - (30 + 5 + 20), 8);
  put(declared, bytes, 8);
  EXPECT_EQ(kept.substr(sizes + 8), declared);
}

TEST(Npz, WhatDoesNotShrink) {
  const Tensor noise = Tensor::allocate({100'000}, uint32, "test");
  std::uint32_t state = 1;
  for (int i = 0; i < 100'000; ++i) {
    state = state * 1664525U + 1013904223U;
    noise.data<std::uint32_t>()[i] = state ^ (state >> 13);
  }
  const Bytes bytes = io::npz_bytes({{"n", noise}}, NpzMode::Deflated);
  expect_same(io::parse_npz(bytes), {{"n", noise}});
}

TEST(Npz, WhatCannotBeWritten) {
  const TemporaryFolder folder;
  const auto save = [&](const NamedTensors& tensors) { io::save_npz(folder.file("a"), tensors); };
  const Tensor one = pattern({1}, float32);
  EXPECT_EQ(error_of<ValueError>([&] {
              save({{"x", one}, {"x", one}});
            }),
            "save_npz: two tensors are named 'x'");
  EXPECT_EQ(error_of<DTypeError>([&] {
              save({{"h", pattern({2}, bfloat16)}});
            }),
            "save_npz: tensor 'h': npy has no bfloat16 (bfloat16[2]); save it as safetensors or as "
            "float32");
  EXPECT_NE(error_of<ValueError>([&] { save({{"\xff", one}}); }), "");
  EXPECT_NE(error_of<ValueError>([&] { save({{std::string(65'532, 'x'), one}}); }), "");
  EXPECT_EQ(folder.files(), 0U);
  save({{std::string(65'531, 'x'), one}});
  EXPECT_EQ(io::load_npz(folder.file("a")).at(0).name.size(), 65'531U);
}

TEST(Npz, HostileArchives) {
  struct Row {
    const char* what;
    std::string file;
    std::string error;
  };
  const auto with = [](Member member, const auto& change) {
    change(member);
    return zip({member});
  };
  const auto ended = [](const auto& change) {
    End end;
    change(end);
    return zip({stored(some_npy())}, end);
  };
  const Member good = stored(some_npy());
  const Member packed = deflated(some_npy());
  std::string cut_header = some_npy().substr(0, 20);
  std::string empty_header("\x93NUMPY\1\0\0\0ab", 12);
  const std::vector<Row> rows = {
      {"empty", "", "not a zip archive: too short"},
      {"short", "PK\5\6", "not a zip archive: too short"},
      {"no end", std::string(100, 'x'), "it has no end record"},
      {"no end, long", std::string(100'000, 'x'), "it has no end record"},
      {"text behind", zip({good}) + "x", "it has no end record"},
      {"several parts", ended([](End& e) { e.disk = 1; }), "several parts"},
      {"parts of a count", ended([](End& e) { e.count_here = 0; }), "several parts"},
      {"zip64 without a locator", ended([](End& e) { e.begin = 0xFFFFFFFF; }),
       "directory is not where"},
      {"too short for a locator",
       zip({},
           [] {
             End end;
             end.begin = 0xFFFFFFFF;
             return end;
           }()),
       "directory is not where"},
      {"half an entry",
       ended([](End& e) { e.before = std::string(41, 'x'), e.count = 2, e.size = 92; }),
       "damaged directory"},
      {"another method", with(good, [](Member& m) { m.local_method = 8; }), "local header is not"},
      {"a name that does not fit",
       [&] {
         Member member = good;
         const std::string fake = "PK\3\4" + std::string(22, '\0') + std::string("\5\0\0\0", 4);
         member.packed += fake;
         member.local = static_cast<std::int64_t>(30 + 5 + member.packed.size() - fake.size());
         return zip({member});
       }(),
       "local header is not"},
      {"count too high", ended([](End& e) { e.count = 2; }), "declares 2 members"},
      {"count too low", ended([](End& e) { e.count = 0; }), "bytes between the directory"},
      {"directory elsewhere", ended([](End& e) { e.begin = 3; }), "directory is not where"},
      {"directory too long", ended([](End& e) { e.size = 1 << 30; }), "directory is not where"},
      {"directory of 4 GB", ended([](End& e) { e.size = 0xFFFFFFFF; }), "directory is not where"},
      {"not an entry",
       ended([](End& e) { e.before = std::string(46, 'x'), e.count = 2, e.size = 97; }),
       "damaged directory"},
      {"entry cut", ended([](End& e) {
         e.before = "PK\1\2" + std::string(24, '\0') + "\xff\xff" + std::string(16, '\0');
         e.count = 2;
         e.size = 97;
       }),
       "damaged directory"},
      {"encrypted", with(good, [](Member& m) { m.flags = 1; }), "encrypted"},
      {"strongly encrypted", with(good, [](Member& m) { m.flags = 64; }), "encrypted"},
      {"method", with(good, [](Member& m) { m.method = 14; }), "packed by method 14"},
      {"other disk", with(good, [](Member& m) { m.disk = 1; }), "several parts"},
      {"far away", with(good, [](Member& m) { m.local = 1 << 30; }), "outside of the archive"},
      {"in the directory", with(good, [](Member& m) { m.local = 170; }), "outside of the archive"},
      {"no local header", with(good, [](Member& m) { m.local = 1; }), "local header is not that"},
      {"another name", with(good, [](Member& m) { m.local_name = "b.npy"; }),
       "local header is not"},
      {"longer name", with(good, [](Member& m) { m.local_name = "bb.npy"; }),
       "local header is not"},
      {"extra beyond",
       with(good, [](Member& m) { m.packed_size = 1'000'000, m.bytes = 1'000'000; }),
       "outside of the archive"},
      {"stored sizes differ", with(good, [](Member& m) { m.bytes += 1; }),
       "bytes, which 148 stored bytes cannot be"},
      {"bomb", with(packed, [](Member& m) { m.bytes = 0xFFFFFFF0; }), "deflated bytes cannot be"},
      {"bomb in zip64",
       with(packed,
            [](Member& m) {
              m.bytes = 0xFFFFFFFF;
              m.extra = std::string("\1\0\10\0", 4) + std::string(7, '\xff') + '\x7f';
            }),
       "declares 9223372036854775807 bytes"},
      {"zip64 field short",
       with(good,
            [](Member& m) { m.bytes = 0xFFFFFFFF, m.extra = std::string("\1\0\4\0abcd", 8); }),
       "its zip64 field is too short"},
      {"zip64 field cut",
       with(good,
            [](Member& m) { m.bytes = 0xFFFFFFFF, m.extra = std::string("\1\0\11\0abcd", 8); }),
       "declares 4294967295 bytes"},
      {"zip64 field missing", with(good, [](Member& m) { m.bytes = 0xFFFFFFFF; }),
       "declares 4294967295 bytes"},
      {"same bytes twice",
       [&] {
         Member second = stored(some_npy(), "b.npy");
         second.local = 0;
         second.name = "a.npy";
         return zip({good, second});
       }(),
       "members 'a.npy' and 'a.npy' share bytes"},
      {"same name twice", zip({good, good}), "two members are named 'a'"},
      {"not npy", zip({stored("text", "../../etc/passwd")}),
       "member '../../etc/passwd' is not an npy"},
      {"bad UTF-8", zip({stored(some_npy(), "\xff.npy")}), "the name '\\xff' is not UTF-8"},
      {"checksum", with(good, [](Member& m) { m.crc ^= 1; }), "its checksum does not fit"},
      {"checksum, deflated", with(packed, [](Member& m) { m.crc ^= 1; }),
       "its checksum does not fit"},
      {"damaged", with(packed, [](Member& m) { m.packed[0] = '\x07'; }), "damaged deflated data"},
      {"fewer bytes", with(packed, [](Member& m) { m.bytes += 1; }), "follow the header"},
      {"stream cut", with(packed, [](Member& m) { m.packed.resize(m.packed.size() / 2); }),
       "unpacks to fewer bytes than it declares"},
      {"stream cut in the header", with(packed, [](Member& m) { m.packed.resize(1); }),
       "unpacks to fewer bytes than it declares"},
      {"stream end cut", with(deflated(some_npy()), [](Member& m) { m.packed.pop_back(); }),
       "npy': "},
      {"bytes behind the stream", with(packed, [](Member& m) { m.packed += "x"; }),
       "damaged deflated data"},
      {"not npy inside", zip({stored("hello world, hello")}), "member 'a.npy': not an npy file"},
      {"npy cut", zip({stored(cut_header)}), "ends within the header"},
      {"npy without a header", zip({stored(empty_header)}), "its header is empty"},
      {"npy of three bytes", zip({stored("abc")}), "not an npy file"},
      {"wrong length", zip({stored(some_npy() + "x")}), "takes 20 bytes, but 21 follow the header"},
  };
  for (const Row& row : rows) {
    const std::string error = npz_error(row.file);
    EXPECT_NE(error.find(row.error), std::string::npos) << row.what << ": " << error;
    EXPECT_EQ(error.rfind("parse_npz: 'f': ", 0), 0U) << row.what << ": " << error;
  }
}

TEST(Npz, MoreBytesThanDeclared) {
  // Size and checksum are those of the shorter array; the stream continues.
  const std::string shorter = some_npy();
  Member member = deflated(shorter + "more");
  member.bytes = static_cast<std::uint32_t>(shorter.size());
  member.crc = crc_of(shorter);
  EXPECT_NE(npz_error(zip({member})).find("unpacks to more bytes than it declares"),
            std::string::npos);
}

TEST(Npz, FewerBytesThanDeclared) {
  const std::string longer = test::text_of(io::npy_bytes(pattern({6}, float32)));
  Member member = deflated(longer.substr(0, longer.size() - 4));
  member.bytes = static_cast<std::uint32_t>(longer.size());
  EXPECT_NE(npz_error(zip({member})).find("unpacks to fewer bytes than it declares"),
            std::string::npos);
}

TEST(Npz, EveryTruncationIsAnError) {
  for (const NpzMode mode : kModes) {
    const Bytes bytes = io::npz_bytes({{"a", pattern({9}, float32)}}, mode);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_THROW(io::parse_npz({bytes.data(), length}), IoError) << length;
    }
  }
}

}  // namespace
}  // namespace baregrad
