// CSV: quoting, headers, labels, numbers, and lines that are wrong.
#include <cmath>
#include <limits>

#include "tests/data/support.h"
#include "tests/io/temporary_folder.h"

namespace baregrad {
namespace {

using data::CsvOptions;
using data::CsvTable;
using namespace test;

CsvTable decode(std::string_view text, const CsvOptions& options = {}) {
  return data::decode_csv(bytes_of(text), options);
}
using Floats = std::vector<float>;
using Names = std::vector<std::string>;

void expect_csv_refused(std::string_view text, std::string_view part,
                        const CsvOptions& options = {}) {
  expect_error<IoError>([&] { decode(text, options); }, part);
}

TEST(Csv, NumbersInRowsAndColumns) {
  const CsvTable table = decode("1,2.5,-3\n4e2,+5,.5\n");
  EXPECT_EQ(table.values.shape(), Dims({2, 3}));
  EXPECT_EQ(table.values.to_vector<float>(), (Floats{1, 2.5F, -3, 400, 5, 0.5F}));
  EXPECT_TRUE(table.columns.empty());
  EXPECT_FALSE(table.labels.defined());
}

TEST(Csv, LineEndsBlankLinesAndTheLastLineWithoutOne) {
  for (const char* text :
       {"1,2\n3,4", "1,2\n3,4\n", "1,2\r\n3,4\r\n", "1,2\r\n3,4\r", "\n\n1,2\n\n\r\n3,4\n\n",
        "\xEF\xBB\xBF"
        "1,2\n3,4",
        " 1 ,\t2\n 3, 4 \n"}) {
    SCOPED_TRACE(text);
    const CsvTable table = decode(text);
    EXPECT_EQ(table.values.shape(), Dims({2, 2}));
    EXPECT_EQ(table.values.to_vector<float>(), (Floats{1, 2, 3, 4}));
  }
}

TEST(Csv, NothingIsNoRows) {
  EXPECT_EQ(decode("").values.shape(), Dims({0, 0}));
  EXPECT_EQ(decode("\n\r\n").values.shape(), Dims({0, 0}));
  const CsvTable header = decode("a,b\n");
  EXPECT_EQ(header.values.shape(), Dims({0, 2}));
  EXPECT_EQ(header.columns, (Names{"a", "b"}));
}

TEST(Csv, QuotedFieldsHoldDelimitersQuotesAndLines) {
  CsvOptions options;
  options.label = "text";
  const CsvTable table = decode(
      "\"x\",text,\"a \"\"b\"\", c\"\r\n"
      "\"1\",\"two\nlines\",3\r\n"
      "4,\"\"\"\",\"6\"",
      options);
  EXPECT_EQ(table.columns, (Names{"x", "a \"b\", c"}));
  EXPECT_EQ(table.values.to_vector<float>(), (Floats{1, 3, 4, 6}));
  EXPECT_EQ(table.classes, (Names{"\"", "two\nlines"}));
  EXPECT_EQ(table.labels.to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 0}));
}

TEST(Csv, OtherDelimitersAndQuotes) {
  CsvOptions options;
  options.delimiter = ';';
  options.quote = '\'';
  const CsvTable table = decode("'a;b';c\n1;'2'\n", options);
  EXPECT_EQ(table.columns, (Names{"a;b", "c"}));
  EXPECT_EQ(table.values.to_vector<float>(), (Floats{1, 2}));
}

TEST(Csv, HeadersAreSeenOrSaid) {
  EXPECT_EQ(decode("a,2\n3,4\n").columns, (Names{"a", "2"}));
  EXPECT_TRUE(decode("1,2\n3,4\n").columns.empty());
  CsvOptions options;
  options.header = true;
  const CsvTable said = decode("1,2\n3,4\n", options);
  EXPECT_EQ(said.columns, (Names{"1", "2"}));
  EXPECT_EQ(said.values.to_vector<float>(), (Floats{3, 4}));
  options.header = false;
  expect_csv_refused("a,2\n3,4\n", "line 1, field 1: 'a' is no number that float32 can hold",
                     options);
}

TEST(Csv, LabelsByNameByNumberAndFromTheEnd) {
  CsvOptions options;
  options.label = "kind";
  const CsvTable named = decode("x,kind,y\n1,7,2\n3,-8,4\n", options);
  EXPECT_EQ(named.labels.to_vector<std::int64_t>(), (std::vector<std::int64_t>{7, -8}));
  EXPECT_EQ(named.columns, (Names{"x", "y"}));
  EXPECT_EQ(named.values.to_vector<float>(), (Floats{1, 2, 3, 4}));
  EXPECT_TRUE(named.classes.empty());

  options.label = "-1";
  const CsvTable last = decode("5.1,setosa\n6.2,virginica\n4.9,setosa\n", options);
  EXPECT_TRUE(last.columns.empty());
  EXPECT_EQ(last.values.shape(), Dims({3, 1}));
  EXPECT_EQ(last.classes, (Names{"setosa", "virginica"}));
  EXPECT_EQ(last.labels.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1, 0}));

  options.label = "0";
  EXPECT_EQ(decode("3,1,2\n", options).labels.to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{3}));
  for (const char* label : {"2", "-3", "nobody"}) {
    options.label = label;
    expect_csv_refused(
        "1,2\n", std::string("has no column '") + label + "' for the label among its 2", options);
  }
}

TEST(Csv, NumbersAreRoundedOnceAndToTheNearest) {
  // 2^24 + 1 lies between two floats, and the longer number above the midpoint; 0.1 in both dtypes.
  const CsvTable f32 = decode("16777217,16777217.0000001,0.1,99999999,1e-50,1e50,nan,-inf\n");
  const Floats values = f32.values.to_vector<float>();
  EXPECT_EQ(values[0], 16777216.0F);
  EXPECT_EQ(values[1], 16777218.0F);
  EXPECT_EQ(values[2], 0.1F);
  EXPECT_EQ(values[3], 100000000.0F);
  EXPECT_EQ(values[4], 0.0F);
  EXPECT_EQ(values[5], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(values[6]));
  EXPECT_EQ(values[7], -std::numeric_limits<float>::infinity());
  CsvOptions options;
  options.dtype = DType::Float64;
  const CsvTable f64 = decode("0.1,9007199254740993,1e308\n", options);
  EXPECT_EQ(f64.values.to_vector<double>(), (std::vector<double>{0.1, 9007199254740992.0, 1e308}));
}

TEST(Csv, MissingValues) {
  expect_csv_refused("1,,3\n", "line 1, field 2 is empty");
  CsvOptions options;
  options.missing = -1;
  EXPECT_EQ(decode("1,,3\n,2,\n", options).values.to_vector<float>(),
            (Floats{1, -1, 3, -1, 2, -1}));
}

TEST(Csv, LinesThatAreWrongAreNamed) {
  expect_csv_refused("1,2\n3,4,5\n", "decode_csv: line 2 has 3 fields, the first has 2");
  expect_csv_refused("1,2\n\n\n3\n", "line 4 has 1 fields, the first has 2");
  // The record begins in line 2, and its quoted field includes line 3.
  expect_csv_refused("a,b\n1,\"x\ny\"\n1,2\n", "line 2, field 2: 'x\\x0ay' is no number");
  expect_csv_refused("a,b\n1,\"x\ny\"\n1\n", "line 4 has 1 fields");
  expect_csv_refused("1,2\n3,\"4\n", "line 2: a quoted field is not closed");
  expect_csv_refused("1,2\n3,\"4\"x\n", "line 2: text after a closing quote");
  for (const char* bad : {"x", "1x", "--1", "+-1", "0x10", "1e", "1 2", "1e400"}) {
    expect_csv_refused(std::string("1,2\n3,") + bad + "\n",
                       std::string("line 2, field 2: '") + bad + "'");
  }
}

TEST(Csv, OptionsThatMakeNoSense) {
  CsvOptions options;
  options.quote = ',';
  expect_error<ValueError>([&] { decode("1", options); }, "delimiter and quote must differ");
  options.quote = '\n';
  expect_error<ValueError>([&] { decode("1", options); }, "no line ends");
  options = {};
  options.dtype = DType::Int32;
  expect_error<DTypeError>([&] { decode("1", options); },
                           "decode_csv: gives float32 or float64, not int32");
}

TEST(Csv, FromAFilePlainAndGzipped) {
  const TemporaryFolder folder;
  std::string text;
  Floats expected;
  for (int i = 0; i < 40000; ++i) {
    text += std::to_string(i) + "," + std::to_string(i * 7 % 13) + "\n";
    expected.push_back(static_cast<float>(i));
    expected.push_back(static_cast<float>(i * 7 % 13));
  }
  write_file(folder.file("plain.csv"), bytes_of(text));
  write_file(folder.file("packed.csv.gz"), gzip(bytes_of(text)));
  EXPECT_EQ(data::read_csv(folder.file("plain.csv")).values.to_vector<float>(), expected);
  EXPECT_EQ(data::read_csv(folder.file("packed.csv.gz")).values.to_vector<float>(), expected);
  expect_error<IoError>([&] { data::read_csv(folder.file("none")); }, "read_csv: '");
}

TEST(CsvLabels, RealNumbersAreTargets) {
  // An earlier version made 2,000 classes of these 2,000 real numbers.
  std::string text = "x,y\n";
  for (int i = 0; i < 2000; ++i)
    text += "1," + std::to_string(i / 2) + (i % 2 == 0 ? ".5" : "") + "\n";
  const data::CsvTable table = data::decode_csv(bytes_of(text), {.label = "y"});
  EXPECT_TRUE(table.classes.empty());
  ASSERT_EQ(table.labels.dtype(), DType::Float32);
  const auto labels = table.labels.to_vector<float>();
  ASSERT_EQ(labels.size(), 2000U);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    ASSERT_EQ(labels[i], static_cast<float>(i / 2) + (i % 2 == 0 ? 0.5F : 0.0F));
  }
  EXPECT_EQ(table.columns, std::vector<std::string>{"x"});
}

TEST(CsvLabels, Kinds) {
  const auto labels = [](const char* column, data::CsvOptions options = {}) {
    std::string text;
    for (const char* at = column; *at != '\0'; ++at) {
      if (at == column || at[-1] == ' ') text += "7,";
      text += *at == ' ' ? '\n' : *at;
    }
    options.label = "1";
    options.header = false;
    return data::decode_csv(bytes_of(text + "\n"), options);
  };
  // Whole numbers and names are classes.
  EXPECT_EQ(labels("3 -1 +2").labels.to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{3, -1, 2}));
  EXPECT_EQ(labels("b a b").labels.to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 0, 1}));
  EXPECT_EQ(labels("b a b").classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(labels("1 2.5 n/a").classes, (std::vector<std::string>{"1", "2.5", "n/a"}));
  EXPECT_EQ(labels("nan inf").classes, (std::vector<std::string>{"inf", "nan"}));
  // Numbers with a fraction are targets, in the dtype of the values.
  EXPECT_EQ(labels("1.0 2.0").labels.to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(labels("1 2e0").labels.to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(labels("1 0.1", {.dtype = DType::Float64}).labels.to_vector<double>(),
            (std::vector<double>{1, 0.1}));
  const auto missing = labels("1 nan 3").labels.to_vector<float>();
  EXPECT_TRUE(missing[0] == 1 && missing[1] != missing[1] && missing[2] == 3);
  expect_error<IoError>([&] { labels("0.5 99999999999999999999"); },
                        "line 2: the label '99999999999999999999' is a whole number");
  expect_error<IoError>([&] { labels("99999999999999999999 1"); }, "int64");
}

TEST(CsvLabels, EmptyOnes) {
  const auto read = [](std::optional<double> missing) {
    return data::decode_csv(bytes_of("1,0.5\n2,\n"),
                            {.header = false, .missing = missing, .label = "1"});
  };
  EXPECT_EQ(read(-1.0).labels.to_vector<float>(), (std::vector<float>{0.5F, -1}));
  // Without `missing` an empty field is a text like any other.
  EXPECT_EQ(read({}).classes, (std::vector<std::string>{"", "0.5"}));
}

}  // namespace
}  // namespace baregrad
