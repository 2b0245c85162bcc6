// safetensors: round trips, with mapping where possible; an error for every hostile file.
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "baregrad/allocator.h"
#include "baregrad/ops.h"
#include "tests/io/files.h"

namespace baregrad {
namespace {

using io::Bytes;
using io::SafeTensors;
using test::error_of;
using test::expect_same;
using test::pattern;
using test::TemporaryFolder;

Bytes file_of(std::string_view header, std::string_view data = "") {
  Bytes out;
  for (int i = 0; i < 8; ++i) {
    out.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(header.size()) >> (8 * i)));
  }
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

std::string safetensors_error(const Bytes& bytes) {
  return error_of<IoError>([&] { io::parse_safetensors(bytes, "f"); });
}

std::uint64_t header_length(const Bytes& bytes) {
  std::uint64_t out = 0;
  std::memcpy(&out, bytes.data(), 8);
  return out;
}

TEST(SafeTensors, EveryDTypeAndLayoutThroughMemory) {
  const NamedTensors tensors = test::varied();
  const Bytes bytes = io::safetensors_bytes(tensors, {{"a", "b"}});
  EXPECT_EQ((header_length(bytes) + 8) % 64, 0U);
  const SafeTensors back = io::parse_safetensors(bytes);
  expect_same(back.tensors, tensors);
  EXPECT_EQ(back.metadata, (io::Metadata{{"a", "b"}}));
}

TEST(SafeTensors, TheExactBytes) {
  const Bytes bytes =
      io::safetensors_bytes({{"b", Tensor::of<std::uint8_t>({7})}, {"f", Tensor::of<float>({1})}});
  std::string header =
      R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]},"f":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.resize(120, ' ');
  EXPECT_EQ(test::text_of(bytes), test::text_of(file_of(header, std::string("\0\0\x80\x3f\7", 5))));
}

TEST(SafeTensors, NoTensorsAndNoMetadata) {
  const Bytes bytes = io::safetensors_bytes({});
  EXPECT_EQ(bytes.size(), 64U);
  EXPECT_TRUE(io::parse_safetensors(bytes).tensors.empty());
  const SafeTensors only = io::parse_safetensors(io::safetensors_bytes({}, {{"k", ""}}));
  EXPECT_EQ(only.metadata, (io::Metadata{{"k", ""}}));
}

TEST(SafeTensors, LoadedTensorsLieInAPrivateMapping) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.safetensors");
  const NamedTensors tensors = test::varied();
  io::save_safetensors(path, tensors);
  const std::string before = test::contents(path);

  const std::uint64_t allocations = current_allocator().stats().allocations;
  SafeTensors loaded = io::load_safetensors(path, {.mmap = true});
  EXPECT_EQ(current_allocator().stats().allocations, allocations) << "all are aligned";
  expect_same(loaded.tensors, tensors);
  for (const NamedTensor& entry : loaded.tensors) {
    EXPECT_TRUE(entry.tensor.is_aligned());
    if (is_floating(entry.tensor.dtype())) entry.tensor.fill_(3.0);
  }
  EXPECT_EQ(test::contents(path), before) << "a write to a loaded tensor reached the file";

  // A tensor keeps the mapping alive, even when the file is replaced or removed.
  const Tensor kept = loaded.tensors.back().tensor;
  loaded = {};
  io::save_safetensors(path, {});
  std::filesystem::remove(path);
  EXPECT_EQ(baregrad::sum(kept).item<double>(), 3.0 * static_cast<double>(kept.numel()));
}

TEST(SafeTensors, UnalignedDataIsCopied) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  const Bytes bytes = file_of(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
      std::string("\7\0\0\x80\x3f", 5));
  test::put_file(path, test::text_of(bytes));
  const SafeTensors loaded = io::load_safetensors(path, {.mmap = true});
  EXPECT_TRUE(loaded.tensors[1].tensor.is_aligned());
  EXPECT_EQ(loaded.tensors[0].tensor.item<int>(), 7);
  EXPECT_EQ(loaded.tensors[1].tensor.item<float>(), 1.0F);
}

TEST(SafeTensors, NamesAndMetadataOfAnyText) {
  std::string controls;
  for (char c = 0; c < 0x20; ++c) controls += c;
  const io::Metadata metadata = {{"\"quoted\" \\ /", controls},
                                 {"\xc3\xa9\xf0\x9f\x98\x80", "\x7f"}};
  // Names may contain all of them but NUL.
  const NamedTensors tensors = {{"", pattern({1}, int8)},
                                {controls.substr(1) + "\"", pattern({2}, int8)}};
  const SafeTensors back = io::parse_safetensors(io::safetensors_bytes(tensors, metadata));
  EXPECT_EQ(back.metadata, metadata);
  expect_same(back.tensors, tensors);
}

TEST(SafeTensors, EscapesAndSpacesOfOtherWriters) {
  const SafeTensors back = io::parse_safetensors(file_of(
      "{ \"__metadata__\" : { \"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\" : "
      "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\" "
      "} ,\t\"t\":{\r\"shape\"\n:[ 1 , 0 ],\"data_offsets\":[0,0],\"dtype\":\"F64\"} }  \n"));
  EXPECT_EQ(back.metadata,
            (io::Metadata{{"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\\/\b\f\n\r\t"}}));
  EXPECT_EQ(describe(back.tensors.at(0).tensor), "float64[1,0]");
}

TEST(SafeTensors, WhatCannotBeWrittenLeavesTheFileAlone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  test::put_file(path, "before");
  const Tensor one = pattern({1}, float32);
  const auto refusal = [&](const NamedTensors& tensors, const io::Metadata& metadata = {}) {
    return error_of<ValueError>([&] { io::save_safetensors(path, tensors, metadata); });
  };
  EXPECT_EQ(refusal({{"x", one}, {"y", one}, {"x", one}}),
            "save_safetensors: two tensors are named 'x'");
  EXPECT_EQ(refusal({{"x", Tensor()}}), "save_safetensors: tensor 'x' is undefined");
  EXPECT_EQ(refusal({{"__metadata__", one}}),
            "save_safetensors: a tensor cannot be named '__metadata__'");
  EXPECT_EQ(refusal({{"\xff", one}}), "save_safetensors: tensor name '\\xff' is not UTF-8");
  EXPECT_EQ(refusal({}, {{"a\x80", ""}}), "save_safetensors: metadata key 'a\\x80' is not UTF-8");
  EXPECT_EQ(refusal({}, {{"a", "\xc3"}}), "save_safetensors: metadata value '\\xc3' is not UTF-8");
  EXPECT_NE(refusal({}, {{"a", std::string(100'000'000, 'x')}}), "");
  const Tensor huge = one.expand({std::int64_t{1} << 60});
  EXPECT_NE(refusal({{"a", huge}, {"b", huge}, {"c", huge}, {"d", huge}}), "");
  EXPECT_EQ(test::contents(path), "before");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(SafeTensors, UnreadableFiles) {
  const TemporaryFolder folder;
  const auto failure = [](const std::string& path) {
    return error_of<IoError>([&] { io::load_safetensors(path); });
  };
  const std::string missing = folder.file("none");
  EXPECT_EQ(failure(missing),
            "load_safetensors: cannot read '" + missing + "': No such file or directory");
  EXPECT_EQ(failure(folder.file("")),
            "load_safetensors: cannot read '" + folder.file("") + "': Is a directory");
  EXPECT_EQ(failure("/dev/null"), "load_safetensors: '/dev/null': not a regular file");
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(failure(pipe), "load_safetensors: '" + pipe + "': not a regular file");
  const std::string empty = folder.file("empty");
  test::put_file(empty, "");
  EXPECT_EQ(failure(empty),
            "load_safetensors: '" + empty + "': 0 bytes are too few for a safetensors file");
}

TEST(SafeTensors, HostileLengths) {
  EXPECT_EQ(safetensors_error(Bytes(7, 0)),
            "parse_safetensors: 'f': 7 bytes are too few for a safetensors file");
  for (const std::uint8_t top : {0x7F, 0x80, 0xFF}) {
    Bytes bytes = file_of("{}");
    bytes[7] = top;
    EXPECT_NE(safetensors_error(bytes).find("but the most is 100000000"), std::string::npos);
  }
  Bytes bytes = file_of("{}");
  bytes[0] = 3;
  EXPECT_EQ(safetensors_error(bytes),
            "parse_safetensors: 'f': declares a header of 3 bytes, but only 2 follow");
}

struct Hostile {
  const char* what;
  std::string header;
  std::string error;
  std::string data = "";
};

std::string tensor(const std::string& shape, const std::string& offsets,
                   const std::string& dtype = "F32") {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(SafeTensors, HostileHeaders) {
  const std::string good = tensor("[1]", "[0,4]");
  const std::string dims17 = "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]";
  const std::string k4 = "abcd";
  const std::vector<Hostile> rows = {
      {"empty header", "", "the header does not begin with '{' (byte 0 of the header)"},
      {"space first", " {}", "the header does not begin with '{'"},
      {"bad UTF-8", "{\"\x80\":1}", "the header is not UTF-8"},
      {"overlong", "{\"\xc0\xaf\":1}", "the header is not UTF-8"},
      {"overlong 3", "{\"\xe0\x80\x80\":1}", "the header is not UTF-8"},
      {"overlong 4", "{\"\xf0\x80\x80\x80\":1}", "the header is not UTF-8"},
      {"surrogate", "{\"\xed\xa0\x80\":1}", "the header is not UTF-8"},
      {"above all", "{\"\xf4\x90\x80\x80\":1}", "the header is not UTF-8"},
      {"above all lead", "{\"\xf5\x80\x80\x80\":1}", "the header is not UTF-8"},
      {"cut UTF-8", "{\"\xe2\x82", "the header is not UTF-8"},
      {"bad tail", "{\"\xe2\x82\x22", "the header is not UTF-8"},
      {"array", "[]", "the header does not begin with '{'"},
      {"open object", "{", "expected '\"' (byte 1 of the header)"},
      {"bare key", "{a:1}", "expected '\"'"},
      {"no colon", "{\"a\"1}", "expected ':' (byte 4 of the header)"},
      {"no value", "{\"a\":", "tensor 'a': expected '{'"},
      {"number for a tensor", "{\"a\":1}", "tensor 'a': expected '{'"},
      {"null", "{\"a\":null}", "tensor 'a': expected '{'"},
      {"comma at the end", "{\"a\":" + good + ",}", "expected '\"'", k4},
      {"no comma", "{\"a\":" + good + "\"b\":" + good + "}", "expected ',' or '}'", k4},
      {"trailing text", "{}x", "something follows the header's object (byte 2 of the header)"},
      {"two objects", "{}{}", "something follows the header's object"},
      {"zero bytes as padding", std::string("{}\0", 3), "something follows the header's object"},
      {"deep JSON", "{\"a\":" + std::string(100'000, '{'), "tensor 'a': expected '\"'"},
      {"deep arrays", "{\"a\":{\"shape\":" + std::string(100'000, '['),
       "tensor 'a': expected a non-negative integer"},
      {"deep metadata", "{\"__metadata__\":" + std::string(100'000, '{'), "expected '\"'"},
      {"open string", "{\"a", "a string does not end"},
      {"newline in a string", "{\"a\n\":1}", "control character in a string"},
      {"NUL in a string", std::string("{\"a\0\":1}", 8), "control character in a string"},
      {"escape unknown", "{\"\\x\":1}", "unknown escape in a string"},
      {"escape cut", "{\"\\", "unknown escape in a string"},
      {"\\u cut", "{\"\\u00", "\\u without four hexadecimal digits"},
      {"\\u of no digits", "{\"\\u00g0\":1}", "\\u without four hexadecimal digits"},
      {"lone high surrogate", "{\"\\ud800\":1}", "half of a surrogate pair"},
      {"lone low surrogate", "{\"\\udc00\\udc00\":1}", "half of a surrogate pair"},
      {"two high surrogates", "{\"\\ud800\\ud800\":1}", "half of a surrogate pair"},
      {"high and plain", "{\"\\ud800\\uffff\":1}", "half of a surrogate pair"},
      {"tensor twice", "{\"a\":" + good + ",\"a\":" + good + "}", "tensor 'a' occurs twice", k4},
      {"tensor twice by escape", "{\"a\":" + good + ",\"\\u0061\":" + good + "}",
       "tensor 'a' occurs twice", k4},
      {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", "__metadata__ occurs twice"},
      {"metadata key twice", R"({"__metadata__":{"k":"1","k":"1"}})",
       "key 'k' of __metadata__ occurs twice"},
      {"metadata number", R"({"__metadata__":{"k":1}})", "expected '\"'"},
      {"metadata null", R"({"__metadata__":null})", "expected '{'"},
      {"dtype twice", R"({"a":{"dtype":"F32","dtype":"F32"}})", "key 'dtype' occurs twice"},
      {"shape twice", R"({"a":{"shape":[],"shape":[]}})", "key 'shape' occurs twice"},
      {"unknown key", R"({"a":{"strides":[]}})", "tensor 'a': unknown key 'strides'"},
      {"no dtype", R"({"a":{"shape":[],"data_offsets":[0,0]}})", "tensor 'a': no dtype"},
      {"no shape", R"({"a":{"dtype":"F32","data_offsets":[0,0]}})", "tensor 'a': no shape"},
      {"no offsets", R"({"a":{"dtype":"F32","shape":[]}})", "tensor 'a': no data_offsets"},
      {"empty tensor", R"({"a":{}})", "tensor 'a': no dtype"},
      {"unknown dtype", "{\"a\":" + tensor("[1]", "[0,4]", "C64") + "}",
       "tensor 'a': unknown dtype 'C64'", k4},
      {"small dtype", "{\"a\":" + tensor("[1]", "[0,4]", "f32") + "}", "unknown dtype 'f32'", k4},
      {"dtype number", R"({"a":{"dtype":3}})", "expected '\"'"},
      {"17 dimensions", "{\"a\":" + tensor(dims17, "[0,4]") + "}",
       "tensor 'a': more than 16 dimensions", k4},
      {"negative size", "{\"a\":" + tensor("[-1]", "[0,4]") + "}",
       "tensor 'a': expected a non-negative integer"},
      {"fraction", "{\"a\":" + tensor("[1.0]", "[0,4]") + "}", "found a fraction or an exponent"},
      {"exponent", "{\"a\":" + tensor("[1e3]", "[0,4]") + "}", "found a fraction or an exponent"},
      {"NaN size", "{\"a\":" + tensor("[NaN]", "[0,4]") + "}", "expected a non-negative integer"},
      {"leading zero", "{\"a\":" + tensor("[01]", "[0,4]") + "}", "leading zero"},
      {"string size", "{\"a\":" + tensor("[\"1\"]", "[0,4]") + "}", "non-negative integer"},
      {"size 2^63", "{\"a\":" + tensor("[9223372036854775808]", "[0,4]") + "}",
       "an integer of 2^63 or more"},
      {"size of 30 digits", "{\"a\":" + tensor("[" + std::string(30, '9') + "]", "[0,4]") + "}",
       "an integer of 2^63 or more"},
      {"number at the end", "{\"a\":{\"shape\":[1", "expected ',' or ']'"},
      {"comma in a list", "{\"a\":" + tensor("[1,]", "[0,4]") + "}", "non-negative integer"},
      {"one offset", "{\"a\":" + tensor("[1]", "[0]") + "}", "data_offsets holds 1 numbers, not 2"},
      {"three offsets", "{\"a\":" + tensor("[1]", "[0,4,8]") + "}", "holds 3 numbers, not 2"},
      {"no offsets in the list", "{\"a\":" + tensor("[1]", "[]") + "}", "holds 0 numbers, not 2"},
      {"offsets backwards", "{\"a\":" + tensor("[1]", "[4,0]") + "}",
       "tensor 'a': data_offsets [4,0] end before they begin", k4},
      {"out of range", "{\"a\":" + tensor("[1]", "[0,4]") + "}",
       "tensor 'a': data_offsets [0,4] reach beyond the 3 bytes of data", "abc"},
      {"far out of range", "{\"a\":" + tensor("[1]", "[0,9223372036854775807]") + "}",
       "reach beyond the 4 bytes of data", k4},
      {"shape too large", "{\"a\":" + tensor("[2]", "[0,4]") + "}",
       "tensor 'a': data_offsets [0,4] do not hold float32[2], which takes 8 bytes", k4},
      {"shape too small", "{\"a\":" + tensor("[0]", "[0,4]") + "}", "which takes 0 bytes", k4},
      {"shape wraps", "{\"a\":" + tensor("[4294967296,4294967296,4294967296]", "[0,0]") + "}",
       "which takes 2^63 or more bytes"},
      {"empty shape wraps", "{\"a\":" + tensor("[0,4611686018427387904,8]", "[0,0]") + "}",
       "which takes 2^63 or more bytes"},
      {"overlap", "{\"a\":" + good + ",\"b\":" + good + "}",
       "tensor 'b': its data begins at 0, inside of another tensor's, which ends at 4", k4},
      {"hole", "{\"a\":" + good + ",\"b\":" + tensor("[1]", "[8,12]") + "}",
       "tensor 'b': its data begins at 8, behind a hole of unused bytes, which ends at 4",
       "abcdefghijkl"},
      {"hole first", "{\"a\":" + tensor("[1]", "[1,5]") + "}", "behind a hole", "abcde"},
      {"trailing bytes", "{\"a\":" + good + "}", "3 bytes follow the last tensor's data",
       "abcdefg"},
      {"data of nobody", "{}", "1 bytes follow the last tensor's data", "x"},
  };
  for (const Hostile& row : rows) {
    const std::string error = safetensors_error(file_of(row.header, row.data));
    EXPECT_NE(error.find(row.error), std::string::npos) << row.what << ": " << error;
    EXPECT_EQ(error.rfind("parse_safetensors: 'f': ", 0), 0U) << row.what;
  }
}

TEST(SafeTensors, EveryLengthOfUtf8) {
  // The first and last character of each encoded length, and the neighbours of the surrogates.
  const std::string all =
      "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f"
      "\xbf\xbf";
  const SafeTensors back = io::parse_safetensors(io::safetensors_bytes({}, {{all, all}}));
  EXPECT_EQ(back.metadata, (io::Metadata{{all, all}}));
  const SafeTensors escaped =
      io::parse_safetensors(file_of("{\"__metadata__\":{\"\\ud7ff\":\"\\uFFFD\"}}"));
  EXPECT_EQ(escaped.metadata, (io::Metadata{{"\xed\x9f\xbf", "\xef\xbf\xbd"}}));
  EXPECT_NE(safetensors_error(file_of("{\"\x7f\\u0001\":1}")).find("tensor '\\x7f\\x01'"),
            std::string::npos);
}

TEST(SafeTensors, LongNamesAreCutInMessages) {
  const std::string name(10'000, 'n');
  const std::string error = safetensors_error(file_of("{\"" + name + "\":1}"));
  EXPECT_LT(error.size(), 300U);
  EXPECT_NE(error.find("nnn...'"), std::string::npos);
}

TEST(SafeTensors, EveryTruncationIsAnError) {
  const Bytes bytes = io::safetensors_bytes(
      {{"a", pattern({3}, float32)}, {"b", pattern({5}, int8)}}, {{"k", "v"}});
  ASSERT_NO_THROW(io::parse_safetensors(bytes));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(io::parse_safetensors({bytes.data(), length}), IoError) << length;
  }
}

TEST(SafeTensors, EveryEmptyTensorFindsItsPlace) {
  const NamedTensors tensors = {{"a", pattern({0}, float32)},
                                {"b", pattern({2}, float32)},
                                {"c", pattern({0, 5}, float32)},
                                {"d", pattern({0}, uint8)}};
  expect_same(io::parse_safetensors(io::safetensors_bytes(tensors)).tensors, tensors);
}

TEST(SafeTensors, LargeStridedTensorsInBlocks) {
  // More than one staging block, rows longer and shorter than a block, reversed and repeated.
  const Tensor base = pattern({300, 40'000}, uint16);
  const Tensor row = pattern({1, 40'000}, float64);
  const NamedTensors tensors = {
      {"turned", base.permute({1, 0})},
      {"backwards", baregrad::flip(base, {0, 1})},
      {"repeated", row.expand({3, 40'000})},
  };
  NamedTensors expected;
  for (const NamedTensor& entry : tensors)
    expected.push_back({entry.name, entry.tensor.contiguous()});
  expect_same(io::parse_safetensors(io::safetensors_bytes(tensors)).tensors, expected);
}

}  // namespace
}  // namespace baregrad
