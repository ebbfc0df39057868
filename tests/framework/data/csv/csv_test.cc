// Tests framework/data/csv/internal/csv_column.cc, csv_reader.cc and csv_splitter.cc.
#include <keel/framework/data/csv/csv.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/parallel.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::data::csv_test {

using testing::HasSubstr;
using testing_support::message_of;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

using Ints = std::vector<int64_t>;
using Texts = std::vector<std::string>;

CsvColumn ints(std::string name) { return {.name = std::move(name), .dtype = DType::kInt64}; }
CsvColumn floats(std::string name) { return {.name = std::move(name)}; }
CsvColumn texts(std::string name) { return {.name = std::move(name), .dtype = DType::kString}; }

class CsvTest : public testing::Test {
 protected:
  // Writes a new file and returns its path.
  std::string write(const std::string& content) {
    const std::string file = folder_ / str(++files_, ".csv");
    write_bytes(file, content);
    return file;
  }
  Texts texts_of(const std::string& content) {
    return read_csv(write(content), {texts("t")})["t"].tensor().to_vector<std::string>();
  }
  Ints ints_of(const std::string& content) {
    return read_csv(write(content), {ints("i")})["i"].tensor().to_vector<int64_t>();
  }
  std::vector<float> floats_of(const std::string& content) {
    return read_csv(write(content), {floats("f")})["f"].tensor().to_vector<float>();
  }

  const TemporaryFolder folder_;

 private:
  int files_ = 0;
};

TEST_F(CsvTest, BatchesTheRequestedColumnsInOrder) {
  const auto file = write("id,name,price,extra\n1,a,0.5,x\n2,b,-1e3,x\n3,c,2,x\n");
  const Dataset dataset =
      csv_dataset(file, {.columns = {floats("price"), texts("name"), ints("id")}, .batch_size = 2});
  EXPECT_EQ(dataset.cardinality(), kUnknownCardinality);
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto it = dataset.iterator();
    const Tensors first = *it->next();
    EXPECT_EQ(first.structure(), "{id: *, name: *, price: *}");
    EXPECT_EQ(first["id"].tensor().to_vector<int64_t>(), Ints({1, 2}));
    EXPECT_EQ(first["name"].tensor().to_vector<std::string>(), Texts({"a", "b"}));
    EXPECT_EQ(first["price"].tensor().to_vector<float>(), std::vector<float>({0.5F, -1000}));
    EXPECT_EQ(it->next()->at("id").tensor().shape(), Shape({1}));
    EXPECT_FALSE(it->next());
  }
}

TEST_F(CsvTest, DropsAPartialLastBatchOnRequest) {
  const auto file = write("i\n1\n2\n3\n");
  const Dataset dataset =
      csv_dataset(file, {.columns = {ints("i")}, .batch_size = 2, .drop_remainder = true});
  auto it = dataset.iterator();
  EXPECT_TRUE(it->next());
  EXPECT_FALSE(it->next());
}

TEST_F(CsvTest, ReadsAllDtypes) {
  const Tensors table =
      read_csv(write("a,b,c,d,e\n1,2,3,4,5\n"), {{.name = "a", .dtype = DType::kFloat32},
                                                 {.name = "b", .dtype = DType::kFloat64},
                                                 {.name = "c", .dtype = DType::kInt32},
                                                 {.name = "d", .dtype = DType::kInt64},
                                                 {.name = "e", .dtype = DType::kString}});
  EXPECT_EQ(table["a"].tensor().item<float>(), 1);
  EXPECT_EQ(table["b"].tensor().item<double>(), 2);
  EXPECT_EQ(table["c"].tensor().item<int32_t>(), 3);
  EXPECT_EQ(table["d"].tensor().item<int64_t>(), 4);
  EXPECT_EQ(table["e"].tensor().item<std::string>(), "5");
}

TEST_F(CsvTest, QuotedFieldsMayHoldDelimitersLineBreaksAndQuotes) {
  EXPECT_EQ(
      texts_of(
          "t,u\n\"a,b\",1\n\"line\r\nbreak\n\n\",2\n\"say \"\"hi\"\"\",3\n\"\",4\n\"\"\"\",5\n"),
      Texts({"a,b", "line\r\nbreak\n\n", "say \"hi\"", "", "\""}));
  EXPECT_EQ(ints_of("u,i\nx,\"12\"\n"), Ints({12}));
  EXPECT_EQ(texts_of("\"t\"\n5\" disk\n"),
            Texts({"5\" disk"}));  // a quote inside an unquoted field is literal
}

TEST_F(CsvTest, LinesMayEndInCarriageReturnsAndTheLastWithout) {
  EXPECT_EQ(ints_of("i,u\r\n1,x\r\n2,\"y\"\r\n"), Ints({1, 2}));
  EXPECT_EQ(texts_of("u,t\r\n1,x\r\n2,\"y\"\r\n3,"), Texts({"x", "y", ""}));
  EXPECT_EQ(texts_of("u,t\n1,x\n2,y"), Texts({"x", "y"}));
  EXPECT_EQ(texts_of("u,t\n1,x\n2,\"y\""), Texts({"x", "y"}));
  EXPECT_EQ(texts_of("u,t\n1,x\n2,y\r"), Texts({"x", "y"}));
}

TEST_F(CsvTest, EmptyLinesAndAByteOrderMarkAreSkipped) {
  EXPECT_EQ(ints_of("\xEF\xBB\xBFi,u\n\n1,x\n\r\n\n2,x\n\n"), Ints({1, 2}));
  EXPECT_EQ(ints_of("\xEF\xBB\xBF\"i\",u\n1,x\n"), Ints({1}));
}

TEST_F(CsvTest, OtherDelimitersWork) {
  const auto file = write("i\tt\n1\ta,b\n");
  EXPECT_EQ(csv_header(file, '\t'), Texts({"i", "t"}));
  EXPECT_EQ(read_csv(file, {texts("t")}, '\t')["t"].tensor().item<std::string>(), "a,b");
}

// 302 rows of a log in which only rows 1 and 202 have a quote, at the start of their titles.
std::string log_with_two_quotes(char delimiter) {
  std::string out = str("i", delimiter, "t\n");
  for (int i = 1; i <= 302; ++i) {
    out += str(i, delimiter, i == 1 || i == 202 ? "\"The" : "plain", '\n');
  }
  return out;
}

TEST_F(CsvTest, QuotesAreDataInFilesSeparatedByTabs) {
  const Tensors all = read_csv(write(log_with_two_quotes('\t')), {ints("i"), texts("t")}, '\t');
  EXPECT_EQ(all["i"].tensor().size(), 302);
  EXPECT_EQ(all["t"].tensor().data<std::string>()[201], "\"The");
  const auto quoted = write("\"i\"\tt\n1\t\"a\t\"\"b\"\n");
  EXPECT_EQ(csv_header(quoted, '\t'), Texts({"\"i\"", "t"}));
  const Tensors unquoted = read_csv_table(
      quoted, {.columns = {ints("i"), texts("t")}, .delimiter = '\t', .quoting = true});
  EXPECT_EQ(unquoted["t"].tensor().item<std::string>(), "a\t\"b");
}

TEST_F(CsvTest, QuotesAreDataWithoutQuoting) {
  const int before = num_workers();
  for (const int workers : {1, 4}) {
    set_num_workers(workers);
    const Tensors all = read_csv_table(write(log_with_two_quotes(',')),
                                       {.columns = {ints("i"), texts("t")}, .quoting = false});
    EXPECT_EQ(all["i"].tensor().size(), 302);
    EXPECT_EQ(all["t"].tensor().data<std::string>()[0], "\"The");
  }
  set_num_workers(before);
}

TEST_F(CsvTest, AQuotedFieldOfTooManyLinesIsAnErrorThatNamesItsFirstLine) {
  const int before = num_workers();
  for (const int workers : {1, 4}) {
    set_num_workers(workers);
    const std::string message =
        message_of<IoError>([&] { texts_of("u,t\n\n1,\"a\nb\"\n" + log_with_two_quotes(',')); });
    // The header, an empty line, a row of two lines, and the header of the log come before it.
    EXPECT_THAT(message, HasSubstr("row 3: a quoted field that begins on line 6 spans more than "
                                   "100 lines: 'The"));
    EXPECT_THAT(message, HasSubstr("set quoting to false"));
  }
  set_num_workers(before);
}

TEST_F(CsvTest, TheMostLinesOfAQuotedFieldAreAnOption) {
  const auto file = write("u,t\n1,\"a\nb\nc\"\n");
  const auto read = [&](int64_t lines) {
    return read_csv_table(file, {.columns = {texts("t")}, .max_quoted_lines = lines})["t"]
        .tensor()
        .item<std::string>();
  };
  EXPECT_EQ(read(3), "a\nb\nc");
  EXPECT_THAT(message_of<IoError>([&] { read(2); }), HasSubstr("begins on line 2 "));
  EXPECT_THROW(read(0), ValueError);
  // A quote that is not closed names its line as well.
  EXPECT_THAT(message_of<IoError>([&] { texts_of("u,t\n1,x\n2,\"y\n"); }),
              HasSubstr("a quote that begins on line 3 is not closed"));
}

TEST_F(CsvTest, LinesAreCountedBeyondTheBuffer) {
  std::string text = "u,t\n";
  for (int i = 0; i < 200000; ++i) text += "1234567,abcdefg\n";
  text += "1,\"" + std::string(150, '\n') + "\"\n";
  EXPECT_THAT(message_of<IoError>([&] { texts_of(text); }), HasSubstr("begins on line 200002 "));
}

TEST_F(CsvTest, AHeaderWithoutRowsIsAnEmptyTable) {
  EXPECT_EQ(read_csv(write("i,t\n"), {ints("i")})["i"].tensor().shape(), Shape({0}));
  EXPECT_FALSE(csv_dataset(write("i,t"), {.columns = {ints("i")}}).iterator()->next());
}

TEST_F(CsvTest, HeaderNamesAreGivenAsWritten) {
  EXPECT_EQ(csv_header(write("a, b,\"c,\"\"d\"\"\"\n1,2,3\n")), Texts({"a", " b", "c,\"d\""}));
}

// The layout of Criteo's click logs: no header, tabs, empty fields for missing values.
TEST_F(CsvTest, FilesWithoutAHeaderUseTheGivenNames) {
  const auto file = write("1\t\t5\t68fd1e64\t\n0\t-1\t\t\tb28479f6\n");
  CsvColumn i1 = ints("i1");
  i1.default_value = 0;
  const CsvOptions options = {.columns = {floats("label"), i1, texts("c1"), texts("c2")},
                              .batch_size = 8,
                              .delimiter = '\t',
                              .has_header = false,
                              .column_names = {"label", "i1", "i2", "c1", "c2"}};
  const Tensors all = read_csv_table(file, options);
  EXPECT_EQ(all["label"].tensor().to_vector<float>(), std::vector<float>({1, 0}));
  EXPECT_EQ(all["i1"].tensor().to_vector<int64_t>(), Ints({0, -1}));
  EXPECT_EQ(all["c1"].tensor().to_vector<std::string>(), Texts({"68fd1e64", ""}));
  EXPECT_EQ(all["c2"].tensor().to_vector<std::string>(), Texts({"", "b28479f6"}));
  int64_t batches = 0;
  for (const Tensors& batch : csv_dataset(file, options)) {
    EXPECT_EQ(batch["c2"].tensor().to_vector<std::string>(), Texts({"", "b28479f6"}));
    ++batches;
  }
  EXPECT_EQ(batches, 1);
}

TEST_F(CsvTest, RowsOfFilesWithoutAHeaderCountFrom1) {
  const auto file = write("1,2\nx,3\n4\n");
  CsvOptions options = {.columns = {ints("a")}, .has_header = false, .column_names = {"a", "b"}};
  EXPECT_THAT(message_of([&] { read_csv_table(file, options); }), HasSubstr("row 2, column 'a'"));
  options.columns = {texts("a")};
  EXPECT_THAT(message_of([&] { read_csv_table(file, options); }),
              HasSubstr("row 3: expected 2 fields"));
}

TEST_F(CsvTest, ColumnNamesReplaceThoseOfTheHeader) {
  const auto file = write("x,y\n1,2\n");
  CsvOptions options = {.columns = {ints("b")}, .column_names = {"a", "b"}};
  EXPECT_EQ(read_csv_table(file, options)["b"].tensor().to_vector<int64_t>(), Ints({2}));
  options.column_names = {"a", "b", "c"};
  EXPECT_THAT(message_of([&] { read_csv_table(file, options); }),
              HasSubstr("has 2 columns, but column_names has 3; pass one name for each column"));
}

TEST_F(CsvTest, FilesWithoutAHeaderRequireNames) {
  const CsvOptions options = {.columns = {ints("a")}, .has_header = false};
  EXPECT_THAT(message_of([&] { read_csv_table(write("1\n"), options); }),
              HasSubstr("has_header is false; pass column_names"));
}

TEST_F(CsvTest, InvalidUtf8IsAnErrorWithItsPosition) {
  const auto file = write("i,t\n1,caf\xC3\xA9\n2,\"caf\xE9 \"\"noir\"\n");
  const std::string message = message_of([&] { read_csv(file, {texts("t")}); });
  EXPECT_THAT(message, HasSubstr(file));
  EXPECT_THAT(
      message,
      HasSubstr("row 2, column 't': must be UTF-8, received byte 233 after 'caf'; convert"));
  // Columns that are not read are not checked.
  EXPECT_EQ(read_csv(file, {ints("i")})["i"].tensor().to_vector<int64_t>(), Ints({1, 2}));
}

TEST_F(CsvTest, NumbersMayHaveSpacesAroundThemAndAPlus) {
  EXPECT_EQ(ints_of("i\n 7\n8 \n +9\n-10\t\n"), Ints({7, 8, 9, -10}));
  EXPECT_EQ(floats_of("f\n 1.5 \n+.5\n1e-3\n5\n"), std::vector<float>({1.5F, 0.5F, 1e-3F, 5}));
}

TEST_F(CsvTest, NumbersTooSmallForTheirDtypeAreRounded) {
  EXPECT_EQ(floats_of("f\n1e-60\n-1e-300\n"), std::vector<float>({0, 0}));
  EXPECT_EQ(floats_of("f\n1e-40\n"), std::vector<float>({1e-40F}));
  const std::string zeros(5000, '0');
  for (const std::string& text :
       {std::string("1e-4940"), std::string("1e-5000"), std::string("123.5E-99999"),
        std::string("1e-99999999999999999999"), "0." + zeros + "1", "." + zeros + "12e+100",
        "1" + zeros + "e-9999"}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const Tensor read =
          read_csv(write("f\n" + text + "\n-" + text + "\n"), {{.name = "f", .dtype = dtype}})["f"]
              .tensor();
      const std::vector<double> values =
          dtype == DType::kFloat64
              ? read.to_vector<double>()
              : std::vector<double>{read.data<float>()[0], read.data<float>()[1]};
      EXPECT_EQ(values, std::vector<double>({0, 0})) << text;
      EXPECT_FALSE(std::signbit(values[0])) << text;
      EXPECT_TRUE(std::signbit(values[1])) << text;
    }
  }
}

TEST_F(CsvTest, EmptyFieldsTakeTheDefaultOrAreAnError) {
  const auto file = write("i,f,t\n,,\n 1,\" \",x\n");
  const Tensors table = read_csv(file, {{.name = "i", .dtype = DType::kInt64, .default_value = -1},
                                        {.name = "f", .default_value = std::nan("")},
                                        {.name = "t", .dtype = DType::kString}});
  EXPECT_EQ(table["i"].tensor().to_vector<int64_t>(), Ints({-1, 1}));
  EXPECT_TRUE(std::isnan(table["f"].tensor().data<float>()[0]));
  EXPECT_TRUE(std::isnan(table["f"].tensor().data<float>()[1]));
  EXPECT_EQ(table["t"].tensor().to_vector<std::string>(), Texts({"", "x"}));
  EXPECT_THROW(read_csv(file, {ints("i")}), ValueError);
  EXPECT_THROW(read_csv(file, {floats("f")}), ValueError);
}

TEST_F(CsvTest, TextThatIsNotANumberIsAnErrorWithItsPosition) {
  const auto file = write("i,price\n1,2\n\n3,12 apples\n");
  const auto read = [&] { read_csv(file, {floats("price")}); };
  EXPECT_THROW(read(), ValueError);
  const std::string message = message_of(read);
  for (const char* part : {".csv", "row 2", "'price'", "'12 apples'", "float32"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
  const std::string cut = message_of([&] { floats_of("f\n" + std::string(100, 'x') + "\n"); });
  EXPECT_THAT(cut, HasSubstr("'" + std::string(40, 'x') + "...'"));
}

TEST_F(CsvTest, IncompatibleNumbersAreErrors) {
  for (const char* text :
       {"3.0", "3.5", "1e3", "9223372036854775808", "0x10", "--1", "+-1", "1 2"}) {
    EXPECT_THROW(ints_of(std::string("i\n") + text + "\n"), ValueError) << text;
  }
  EXPECT_EQ(ints_of("i\n-9223372036854775808\n"), Ints({INT64_MIN}));
  for (const char* text :
       {"nan", "inf", "-Infinity", "1e39", "1e999", "1e4940", "-1e5000", "0.001e+99999",
        "1e99999999999999999999", "1e-5000x", "1e-5000 1", "1,5", "1.5f", "\"1,5\""}) {
    EXPECT_ANY_THROW(floats_of(std::string("f\n") + text + "\n")) << text;
  }
  const auto small = write("s\n3000000000\n");
  EXPECT_THROW(read_csv(small, {{.name = "s", .dtype = DType::kInt32}}), ValueError);
}

TEST_F(CsvTest, BatchesBeforeAnErrorAreReturned) {
  const Dataset dataset =
      csv_dataset(write("i\n1\n2\n3\nx\n"), {.columns = {ints("i")}, .batch_size = 2});
  for (const Dataset& d : {dataset, dataset.prefetch(4)}) {
    auto it = d.iterator();
    EXPECT_TRUE(it->next());
    EXPECT_THAT(message_of([&] { it->next(); }), HasSubstr("row 4"));
    EXPECT_FALSE(it->next());
  }
}

TEST_F(CsvTest, AMissingColumnIsAnErrorWhenTheDatasetIsMade) {
  const auto file = write("a,b\n1,2\n");
  const auto make = [&] { csv_dataset(file, {.columns = {ints("c")}}); };
  EXPECT_THROW(make(), ValueError);
  const std::string message = message_of(make);
  for (const char* part : {"'c'", "'a', 'b'"}) EXPECT_THAT(message, HasSubstr(part));
  std::string wide = "c0";
  for (int i = 1; i < 50; ++i) wide += ",c" + std::to_string(i);
  EXPECT_THAT(message_of([&] { read_csv(write(wide), {ints("x")}); }), HasSubstr("and 30 more"));
}

TEST_F(CsvTest, ColumnsThatAreAmbiguousOrUnfitAreErrors) {
  const auto file = write("a,b,b\n1,2,3\n");
  EXPECT_THROW(read_csv(file, {ints("b")}), ValueError);
  EXPECT_THROW(read_csv(file, {ints("a"), floats("a")}), ValueError);
  EXPECT_THROW(read_csv(file, {}), ValueError);
  EXPECT_THROW(read_csv(file, {{.name = "a", .dtype = DType::kBool}}), TypeError);
  EXPECT_THROW(read_csv(file, {{.name = "a", .dtype = DType::kInt32, .default_value = 0.5}}),
               ValueError);
  EXPECT_THROW(
      read_csv(file, {{.name = "a", .dtype = DType::kInt32, .default_value = 2147483648.0}}),
      ValueError);
  EXPECT_THROW(read_csv(file, {{.name = "a", .dtype = DType::kString, .default_value = 1}}),
               ValueError);
  EXPECT_THROW(read_csv(file, {ints("a")}, '"'), ValueError);
  EXPECT_THROW(csv_dataset(file, {.columns = {ints("a")}, .batch_size = 0}), ValueError);
}

TEST_F(CsvTest, ARowWithAnotherNumberOfFieldsIsAnError) {
  for (const char* row : {"3", "3,4,5"}) {
    const auto read = [&] { ints_of(std::string("i,u\n1,2\n") + row + "\n"); };
    EXPECT_THROW(read(), IoError);
    EXPECT_THAT(message_of(read), HasSubstr("row 2"));
    EXPECT_THAT(message_of(read), HasSubstr("2 fields"));
  }
}

TEST_F(CsvTest, UnclosedOrContinuedQuotesAreErrors) {
  const auto open = [&] { texts_of("t,u\n1,2\n\"abc,3\n4,5\n"); };
  EXPECT_THROW(open(), IoError);
  EXPECT_THAT(message_of(open), HasSubstr("row 2"));
  EXPECT_THROW(texts_of("t\n\"abc\"\""), IoError);
  EXPECT_THROW(texts_of("t\n\""), IoError);
  EXPECT_THROW(texts_of("t\n\"abc\" x\n"), IoError);
}

TEST_F(CsvTest, FilesThatAreMissingOrEmptyAreErrors) {
  EXPECT_THROW(csv_header(folder_ / "no such file.csv"), IoError);
  EXPECT_THROW(csv_header(folder_.path()), IoError);
  EXPECT_THROW(csv_header(write("")), IoError);
  EXPECT_THROW(csv_header(write("\n\r\n")), IoError);
}

TEST_F(CsvTest, RecordsMaySpanReadBuffers) {
  constexpr int64_t kRows = 60'000;  // about 3 MB
  std::ostringstream content;
  content << "i,t\r\n";
  for (int64_t i = 0; i < kRows; ++i) {
    content << i << ",\"a \"\"long\"\" text,\r\nof several lines " << i << "\"\r\n";
  }
  const Dataset dataset =
      csv_dataset(write(content.str()), {.columns = {ints("i"), texts("t")}, .batch_size = 1000});
  int64_t row = 0;
  for (const Tensors& batch : dataset) {
    for (int64_t i = 0; i < 1000; ++i, ++row) {
      ASSERT_EQ(batch["i"].tensor().data<int64_t>()[i], row);
      ASSERT_EQ(batch["t"].tensor().data<std::string>()[i],
                "a \"long\" text,\r\nof several lines " + std::to_string(row));
    }
  }
  EXPECT_EQ(row, kRows);
}

// A deterministic table with every kind of field.
std::string mixed_table(int rows) {
  std::ostringstream content;
  content << "i,t,f,u\n";
  for (int r = 0; r < rows; ++r) {
    const char* end = r % 3 == 0 ? "\r\n" : "\n";
    if (r % 97 == 5) content << end;
    content << (r % 7 == 0 ? "-" : "") << r * 37 << ',';
    if (r % 11 == 3) {
      content << "\"a \"\"b\"\",\nc" << r << "\",";
    } else {
      content << std::string(static_cast<size_t>(r % 23), 'x') << (r % 13 == 2 ? "5\" disk," : ",");
    }
    content << r % 1000 << '.' << r % 89 << ',' << (r % 5 == 0 ? "\"q\"" : "") << end;
  }
  return content.str();
}

TEST_F(CsvTest, GivesTheSameRowsForAnyNumberOfWorkers) {
  constexpr int kRows = 5000;
  const auto file = write(mixed_table(kRows));
  const std::vector<CsvColumn> columns = {ints("i"), texts("t"), floats("f"), texts("u")};
  const int workers = num_workers();
  for (const int count : {1, 2, 5}) {
    set_num_workers(count);
    const Tensors table = read_csv(file, columns);
    const auto i = table["i"].tensor().data<int64_t>();
    const auto t = table["t"].tensor().data<std::string>();
    const auto f = table["f"].tensor().data<float>();
    ASSERT_EQ(i.size(), kRows);
    for (int r = 0; r < kRows; ++r) {
      ASSERT_EQ(i[r], r % 7 == 0 ? -37 * r : 37 * r);
      ASSERT_EQ(t[r], r % 11 == 3 ? "a \"b\",\nc" + std::to_string(r)
                                  : std::string(static_cast<size_t>(r % 23), 'x') +
                                        (r % 13 == 2 ? "5\" disk" : ""));
      ASSERT_EQ(f[r], std::stof(std::to_string(r % 1000) + "." + std::to_string(r % 89)));
      ASSERT_EQ(table["u"].tensor().data<std::string>()[r], r % 5 == 0 ? "q" : "");
    }
    int64_t rows = 0;
    for (const Tensors& batch : csv_dataset(file, {.columns = columns, .batch_size = 700})) {
      const Tensor read = batch["i"].tensor();
      for (const int64_t value : read.data<int64_t>()) ASSERT_EQ(value, i[rows++]);
    }
    EXPECT_EQ(rows, kRows);
  }
  set_num_workers(workers);
}

TEST_F(CsvTest, TheFirstInvalidRowIsNamedForAnyNumberOfWorkers) {
  std::ostringstream content;
  content << "a,b\n";
  for (int r = 1; r <= 3000; ++r) {
    content << (r == 1700 || r == 1501 ? "x" : "1") << ',' << (r == 1500 ? "y" : "2")
            << (r == 1900 ? ",\"open" : "") << '\n';
  }
  const auto file = write(content.str());
  const int workers = num_workers();
  for (const int count : {1, 2, 5}) {
    set_num_workers(count);
    EXPECT_THAT(message_of([&] { read_csv(file, {ints("a"), ints("b")}); }),
                HasSubstr("row 1500, column 'b'"));
    EXPECT_THAT(message_of([&] { read_csv(file, {ints("a")}); }),
                HasSubstr("row 1501, column 'a'"));
    EXPECT_THAT(message_of([&] { read_csv(file, {texts("b")}); }), HasSubstr("row 1900: a quote"));
  }
  set_num_workers(workers);
}

TEST_F(CsvTest, RecordsOfAnyLengthAndNumberOfFieldsAreSplitAtTheirDelimiters) {
  for (const int fields : {1, 2, 3, 63, 64, 65, 200, 5000}) {
    std::string content;
    for (int c = 0; c < fields; ++c) content += (c == 0 ? "c" : ",c") + std::to_string(c);
    for (int r = 0; r < 70; ++r) {
      content += '\n';
      for (int c = 0; c < fields; ++c) {
        content += (c == 0 ? "" : ",") + std::string(static_cast<size_t>((r + c) % 5), 'y') + "z";
      }
    }
    const std::string name = "c" + std::to_string(fields - 1);
    const Texts last =
        read_csv(write(content), {texts(name)})[name].tensor().to_vector<std::string>();
    ASSERT_EQ(last.size(), 70U) << fields;
    for (int r = 0; r < 70; ++r) {
      ASSERT_EQ(last[r], std::string(static_cast<size_t>((r + fields - 1) % 5), 'y') + "z");
    }
  }
}

TEST_F(CsvTest, AFieldMayBeLongerThanTheReadBuffer) {
  const std::string text(3'000'000, 'x');
  EXPECT_EQ(texts_of("t,u\n1,2\n\"" + text + "\",3\n4,5\n"), Texts({"1", text, "4"}));
}

TEST_F(CsvTest, RowsCanBeShuffledAndRebatched) {
  std::ostringstream content;
  content << "i,t\n";
  for (int i = 0; i < 100; ++i) content << i << ",t" << i << "\n";
  const Dataset dataset =
      csv_dataset(write(content.str()), {.columns = {ints("i"), texts("t")}, .batch_size = 16});
  std::vector<bool> seen(100);
  for (const Tensors& batch : dataset.unbatch().shuffle(32, {.seed = 1}).batch(10)) {
    for (size_t i = 0; i < 10; ++i) {
      const auto id = static_cast<size_t>(batch["i"].tensor().data<int64_t>()[i]);
      EXPECT_EQ(batch["t"].tensor().data<std::string>()[i], "t" + std::to_string(id));
      seen[id] = true;
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 100);
}

#if !defined(KEEL_ADDRESS_SANITIZER)  // AddressSanitizer keeps freed memory

// Returns the resident memory of this process in KiB.
int64_t resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return 0;
}

TEST_F(CsvTest, MemoryIsBoundedByTheBatchAndNotByTheFile) {
  const std::string file = folder_ / "large.csv";
  {
    std::ofstream out(file);
    out << "a,b\n";
    for (int row = 0; row < 1'000'000; ++row) out << "123456.75,text of row\n";
  }
  const Dataset rows = csv_dataset(
      file,
      {.columns = {{.name = "a"}, {.name = "b", .dtype = DType::kString}}, .batch_size = 1000});
  const auto it = rows.iterator();
  for (int batch = 0; batch < 20; ++batch) it->next();
  const int64_t before = resident_kilobytes();
  int64_t most = before;
  while (it->next()) most = std::max(most, resident_kilobytes());
  EXPECT_LT(most - before, 4096) << "of a file of 24 MB";
}

#endif

}  // namespace keel::data::csv_test
