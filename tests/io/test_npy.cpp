// npy: NumPy's bytes, orders and versions; an error for every hostile header.
#include <algorithm>

#include <gtest/gtest.h>

#include "baregrad/allocator.h"
#include "baregrad/ops.h"
#include "tests/io/files.h"

namespace baregrad {
namespace {

using io::Bytes;
using test::error_of;
using test::expect_same;
using test::pattern;
using test::TemporaryFolder;

std::string npy(const std::string& literal, std::string_view data = "", int major = 1,
                int minor = 0) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(major);
  out += static_cast<char>(minor);
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) {
    out += static_cast<char>(literal.size() >> (8 * i));
  }
  out += literal;
  out += data;
  return out;
}

std::string literal(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

Tensor parse(const std::string& file) { return io::parse_npy(test::bytes_of(file), "f"); }
std::string npy_error(const std::string& file) {
  return error_of<IoError>([&] { parse(file); });
}

TEST(Npy, EveryDTypeAndLayout) {
  for (const auto& [name, tensor] : test::varied(false)) {
    expect_same(io::parse_npy(io::npy_bytes(tensor)), tensor, name);
  }
}

TEST(Npy, NumPysOwnBytes) {
  // numpy.save(f, numpy.arange(6, dtype=numpy.float32).reshape(2, 3)) and so on, NumPy 2.4.
  const auto padded = [](std::string text) {
    text.resize(117, ' ');
    return text + '\n';
  };
  const std::vector<std::pair<Tensor, std::string>> rows = {
      {pattern({2, 3}, float32), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
      {pattern({3}, int64), "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"},
      {pattern({}, bool_), "{'descr': '|b1', 'fortran_order': False, 'shape': (), }"},
      {pattern({1, 2, 0}, uint8), "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 0), }"},
      {pattern({2}, float16), "{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }"},
  };
  for (const auto& [tensor, header] : rows) {
    EXPECT_EQ(test::text_of(io::npy_bytes(tensor)), npy(padded(header), test::raw(tensor)));
  }
}

TEST(Npy, MappedWhereAligned) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.npy");
  const Tensor tensor = pattern({4, 5}, float32);
  io::save_npy(path, tensor);
  const std::uint64_t allocations = current_allocator().stats().allocations;
  const Tensor loaded = io::load_npy(path, {.mmap = true});
  EXPECT_EQ(current_allocator().stats().allocations, allocations);
  expect_same(loaded, tensor);
  const std::string before = test::contents(path);
  loaded.fill_(1.0);
  EXPECT_EQ(test::contents(path), before);

  test::put_file(path,
                 npy(literal("'<f4'", "False", "(1,)") + "  ", std::string("\0\0\x80\x3f", 4)));
  EXPECT_EQ(io::load_npy(path, {.mmap = true}).item<float>(), 1.0F) << "unaligned, so copied";
}

TEST(Npy, EveryVersion) {
  const std::string data("\0\0\x80\x3f", 4);
  for (const int major : {1, 2, 3}) {
    EXPECT_EQ(parse(npy(literal("'<f4'", "False", "(1,)"), data, major)).item<float>(), 1.0F);
  }
}

TEST(Npy, FortranOrderAndBigEndian) {
  // 2x3 of int16: rows {1,2,3} and {4,5,6}.
  const std::string columns("\1\0\4\0\2\0\5\0\3\0\6\0", 12);
  const std::string swapped("\0\1\0\4\0\2\0\5\0\3\0\6", 12);
  const std::vector<std::int16_t> expected = {1, 2, 3, 4, 5, 6};
  for (const bool big : {false, true}) {
    const Tensor t =
        parse(npy(literal(big ? "'>i2'" : "'<i2'", "True", "(2, 3)"), big ? swapped : columns));
    EXPECT_EQ(describe(t), "int16[2,3]");
    EXPECT_EQ(t.strides(), (Dims{1, 2}));
    EXPECT_EQ(t.to_vector<std::int16_t>(), expected);
  }
  const Tensor row_major =
      parse(npy(literal("'>i2'", "False", "(2, 3)"), std::string("\0\1\0\2\0\3\0\4\0\5\0\6", 12)));
  EXPECT_EQ(row_major.to_vector<std::int16_t>(), expected);

  const TemporaryFolder folder;
  std::string head = literal("'<i2'", "True", "(2, 3)");
  head.resize(118, ' ');
  test::put_file(folder.file("a"), npy(head, columns));
  const Tensor mapped = io::load_npy(folder.file("a"));
  EXPECT_EQ(mapped.to_vector<std::int16_t>(), expected);

  std::string big_head = literal("'>i2'", "True", "(2, 3)");
  big_head.resize(118, ' ');
  test::put_file(folder.file("b"), npy(big_head, swapped));
  EXPECT_EQ(io::load_npy(folder.file("b")).to_vector<std::int16_t>(), expected);
  EXPECT_EQ(test::contents(folder.file("b")), npy(big_head, swapped)) << "turned in a copy";

  // One axis is the same in either order; eight bytes are swapped like two.
  EXPECT_EQ(parse(npy(literal("'>i8'", "True", "(1,)"), std::string("\0\0\0\0\0\0\1\2", 8)))
                .item<std::int64_t>(),
            258);
  EXPECT_EQ(
      parse(npy(literal("'>f4'", "False", "()"), std::string("\x3f\x80\0\0", 4))).item<float>(),
      1.0F);
  EXPECT_EQ(parse(npy(literal("'>u1'", "False", "(2,)"), "\1\2")).to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{1, 2}));
}

TEST(Npy, OtherSpellings) {
  EXPECT_EQ(
      describe(parse(npy("{\"shape\":(2,),\"descr\":\"?\",\"fortran_order\":False}", "\1\1"))),
      "bool[2]");
  EXPECT_EQ(describe(parse(npy(literal("'=f4'", "False", "(0,3)")))), "float32[0,3]");
  EXPECT_EQ(describe(parse(npy(literal("'i1'", "False", "( 1 , 1 , )"), "a"))), "int8[1,1]");
}

TEST(Npy, WhatCannotBeWritten) {
  EXPECT_EQ(error_of<DTypeError>([] { io::npy_bytes(pattern({2}, bfloat16)); }),
            "npy_bytes: npy has no bfloat16 (bfloat16[2]); save it as safetensors or as float32");
  EXPECT_EQ(error_of<ValueError>([] { io::npy_bytes(Tensor()); }),
            "npy_bytes: the tensor is undefined");
  const TemporaryFolder folder;
  EXPECT_NE(error_of<DTypeError>([&] { io::save_npy(folder.file("a"), pattern({2}, bfloat16)); }),
            "");
  EXPECT_EQ(folder.files(), 0U);
  EXPECT_NE(error_of<IoError>([&] { io::load_npy(folder.file("a")); }), "");
}

TEST(Npy, NO_TSAN_HostileFiles) {
  const std::string k4 = "abcd";
  const std::string f4 = "'<f4'";
  struct Row {
    std::string file;
    std::string error;
  };
  const std::vector<Row> rows = {
      {"", "not an npy file"},
      {"\x93NUMP", "not an npy file"},
      {"\x93NUMPX\1\0\0\0", "not an npy file"},
      {"\x93NUMPY", "ends within the header"},
      {"\x93NUMPY\1", "ends within the header"},
      {std::string("\x93NUMPY\1\0\1", 9), "ends within the header"},
      {std::string("\x93NUMPY\2\0\1\0", 10), "ends within the header"},
      {npy("", "", 0), "npy version 0.0; known are 1.0 to 3.0"},
      {npy("", "", 4), "npy version 4.0"},
      {npy("", "", 1, 1), "npy version 1.1"},
      {npy(std::string(10'001, ' ')), "declares a header of 10001 bytes; the most is 10000"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12), "declares a header of 4294967295 bytes"},
      {std::string("\x93NUMPY\1\0\x20\0", 10), "declares a header up to byte 42, but has only 10"},
      {npy(""), "expected '{' (byte 0 of the header)"},
      {npy("{"), "expected a string"},
      {npy("{'descr"), "a string does not end"},
      {npy("{'descr' 1"), "expected ':'"},
      {npy("{'descr': 1}"), "expected a string"},
      {npy("{'other': 1}"), "unknown key 'other'"},
      {npy("{'descr': '<f4', 'descr': '<f4'}"), "key 'descr' occurs twice"},
      {npy("{'shape': (), 'shape': ()}"), "key 'shape' occurs twice"},
      {npy("{'fortran_order': True, 'fortran_order': True}"), "key 'fortran_order' occurs twice"},
      {npy("{'descr': '<f4' 'shape': ()}"), "expected ','"},
      {npy("{'fortran_order': false}"), "expected True or False"},
      {npy("{'fortran_order': 0}"), "expected True or False"},
      {npy("{'fortran_order': False, 'shape': ()}"), "no descr"},
      {npy("{'descr': '<f4', 'shape': ()}"), "no fortran_order"},
      {npy("{'descr': '<f4', 'fortran_order': False}"), "no shape"},
      {npy(literal(f4, "False", "()") + "x", k4), "something follows the header's dictionary"},
      {npy(literal(f4, "False", "[1]"), k4), "expected '('"},
      {npy(literal(f4, "False", "(1)"), k4), "the shape is a number, not a tuple"},
      {npy(literal(f4, "False", "(1 1)"), k4), "expected ',' or ')'"},
      {npy(literal(f4, "False", "(,)"), k4), "expected a non-negative integer"},
      {npy(literal(f4, "False", "(-1,)"), k4), "expected a non-negative integer"},
      {npy(literal(f4, "False", "(1.5,)"), k4), "expected ',' or ')'"},
      {npy(literal(f4, "False", "(a,)"), k4), "expected a non-negative integer"},
      {npy(literal(f4, "False", "(1a,)"), k4), "expected ',' or ')'"},
      {npy("{'shape': (1"), "expected ',' or ')'"},
      {npy(literal(f4, "False", "(9223372036854775808,)"), k4), "an integer of 2^63 or more"},
      {npy(literal(f4, "False", "(99999999999999999999,)"), k4), "an integer of 2^63 or more"},
      {npy(literal(f4, "False", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), k4),
       "more than 16 dimensions"},
      {npy(literal("'|O'", "False", "(1,)"), k4), "object arrays are refused"},
      {npy(literal("'O'", "False", "(1,)"), k4), "object arrays are refused"},
      {npy(literal("[('x', '<f4')]", "False", "(1,)"), k4), "arrays of structures"},
      {npy(literal("'<c8'", "False", "(1,)"), k4), "dtype '<c8' is none of ours"},
      {npy(literal("'<U4'", "False", "(1,)"), k4), "dtype '<U4' is none of ours"},
      {npy(literal("'<M8[ns]'", "False", "(1,)"), k4), "dtype '<M8[ns]' is none of ours"},
      {npy(literal("''", "False", "(1,)"), k4), "dtype '' is none of ours"},
      {npy(literal("'<'", "False", "(1,)"), k4), "dtype '<' is none of ours"},
      {npy(literal("'<V2'", "False", "(1,)"), k4), "if it was bfloat16, save it as safetensors"},
      {npy(literal(f4, "False", "(2,)"), k4), "float32[2] takes 8 bytes, but 4 follow the header"},
      {npy(literal(f4, "False", "(1,)"), "abcde"), "takes 4 bytes, but 5 follow"},
      {npy(literal(f4, "False", "(4294967296, 4294967296, 4)"), k4),
       "takes 2^63 or more bytes, but 4 follow"},
      {npy(literal(f4, "True", "(1000000000000,)"), k4), "takes 4000000000000 bytes"},
  };
  for (const Row& row : rows) {
    const std::string error = npy_error(row.file);
    EXPECT_NE(error.find(row.error), std::string::npos) << row.file << ": " << error;
    EXPECT_EQ(error.rfind("parse_npy: 'f': ", 0), 0U) << error;
  }
}

TEST(Npy, EveryTruncationIsAnError) {
  const Bytes bytes = io::npy_bytes(pattern({3}, float32));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(io::parse_npy({bytes.data(), length}), IoError) << length;
  }
}

}  // namespace
}  // namespace baregrad
