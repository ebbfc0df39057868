#include <keel/framework/data/csv/csv.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <limits>
#include <memory>

#include <keel/framework/base/parallel.h>
#include <keel/framework/data/csv/internal/csv_column.h>
#include <keel/framework/data/csv/internal/csv_reader.h>

namespace keel::data {
namespace {

constexpr const char* kCaller = "csv_dataset";
constexpr size_t kShownColumns = 20;
constexpr int64_t kRowsOfBlock = 256;
constexpr int64_t kRowsAtFirst = int64_t{1} << 12;  // initial room of a batch that may be short

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShownColumns); ++i) {
    absl::StrAppend(&out, i == 0 ? "'" : ", '", names[i], "'");
  }
  if (names.size() > kShownColumns)
    absl::StrAppend(&out, " and ", names.size() - kShownColumns, " more");
  return out;
}

CsvDialect dialect_of(const CsvOptions& options) {
  return {.delimiter = options.delimiter,
          .quoting = options.quoting.value_or(options.delimiter != '\t'),
          .max_quoted_lines = options.max_quoted_lines};
}

// Reads the requested columns of an open file.
class TableReader {
 public:
  TableReader(const std::filesystem::path& file, const CsvOptions& options,
              const std::string& caller)
      : dialect_(dialect_of(options)),
        reader_(file, dialect_, caller),
        splitter_(reader_.place(), dialect_) {
    if (options.columns.empty())
      throw ValueError(caller, ": columns is empty; pass at least one column");
    const std::vector<std::string> header = names(options, file, caller);
    splitter_.expect_fields(header.size());
    for (const CsvColumn& column : options.columns) {
      const auto found = std::ranges::find(header, column.name);
      if (found == header.end()) {
        throw ValueError(caller, ": '", file.string(), "' has no column '", column.name,
                         "'; it has ", listed(header));
      }
      if (std::find(found + 1, header.end(), column.name) != header.end()) {
        throw ValueError(caller, ": '", file.string(), "' has more than one column '", column.name,
                         "'; rename one of them, or pass column_names with has_header = false");
      }
      if (std::ranges::any_of(columns_, [&](auto& c) { return c.name() == column.name; })) {
        throw ValueError(caller, ": column '", column.name,
                         "' is listed twice; list each column once");
      }
      columns_.emplace_back(column, static_cast<size_t>(found - header.begin()), caller);
    }
  }

  // Reads up to `most` rows and returns their number.
  int64_t read(int64_t most) {
    int64_t rows = 0;
    while (rows < most) {
      const int64_t more =
          num_workers() > 1 ? read_blocks(rows, most - rows) : read_on(rows, most - rows);
      rows += more;
      if (more > 0) continue;
      if (reader_.text().last) break;
      reader_.refill();
    }
    return rows;
  }

  Tensors finish(int64_t rows) {
    Tensors::Dict out;
    for (CsvColumnReader& column : columns_) out.emplace(column.name(), column.finish(rows));
    return out;
  }

 private:
  // Returns the names of all columns and moves past the header, if there is one.
  std::vector<std::string> names(const CsvOptions& options, const std::filesystem::path& file,
                                 const std::string& caller) {
    if (!options.has_header) {
      if (options.column_names.empty()) {
        throw ValueError(caller, ": has_header is false; pass column_names");
      }
      reader_.begin_without_header();
      return options.column_names;
    }
    std::vector<std::string> header = reader_.header();
    if (options.column_names.empty()) return header;
    if (options.column_names.size() != header.size()) {
      throw ValueError(caller, ": '", file.string(), "' has ", header.size(),
                       " columns, but column_names has ", options.column_names.size(),
                       "; pass one name for each column");
    }
    return options.column_names;
  }

  // Makes room for rows after `rows`: for `more` of them, but at first for at most kRowsAtFirst
  // and then doubling. Returns the number of rows for which there is room.
  int64_t reserve(int64_t rows, int64_t more) {
    const int64_t room = columns_.front().room();
    if (rows == room) {
      const int64_t further = std::min(more, std::max(kRowsAtFirst, room));
      for (CsvColumnReader& column : columns_) column.reserve(rows + further);
    }
    return std::min(more, columns_.front().room() - rows);
  }

  // Parses up to `records` records from `text` into the rows from `at` on. `first` is the row
  // number of the first record. Returns the number of records.
  int64_t parse(CsvSplitter& splitter, CsvText& text, int64_t records, int64_t at,
                int64_t first) const {
    int64_t done = 0;
    while (done < records) {
      const int64_t some = splitter.split(text, first + done, records - done);
      if (some == 0) break;
      // The first invalid record is reported, whichever column it is in.
      int64_t good = some;
      const CsvColumnReader* failed = nullptr;
      for (const CsvColumnReader& column : columns_) {
        const int64_t read = column.read(splitter, good, at + done);
        if (read < good) failed = &column;
        good = read;
      }
      if (failed != nullptr) {
        failed->fail(reader_.place().of_row(first + done + good), splitter, good);
      }
      done += some;
    }
    return done;
  }

  // Parses the text in the buffer on this thread.
  int64_t read_on(int64_t rows, int64_t most) {
    CsvText text = reader_.text();
    const int64_t done = parse(splitter_, text, reserve(rows, most), rows, reader_.row());
    reader_.take(text.begin, done);
    return done;
  }

  // Parses the text in the buffer in parallel: finds the boundaries of blocks of rows first, then
  // splits and parses the blocks.
  int64_t read_blocks(int64_t rows, int64_t most) {
    CsvText text = reader_.text();
    most = reserve(rows, most);
    std::vector<CsvText> blocks;
    int64_t done = 0;
    while (done < most) {
      CsvText block = text;
      const int64_t more = splitter_.skip(text, std::min(kRowsOfBlock, most - done));
      if (more == 0) break;
      blocks.push_back(block);
      done += more;
    }
    parallel_for(done, kRowsOfBlock, [&](int64_t begin, int64_t end) {
      CsvSplitter splitter(reader_.place(), dialect_);
      splitter.expect_fields(splitter_.stride());
      CsvText block = blocks[static_cast<size_t>(begin / kRowsOfBlock)];
      parse(splitter, block, end - begin, rows + begin, reader_.row() + begin);
    });
    reader_.take(text.begin, done);
    return done;
  }

  const CsvDialect dialect_;
  CsvReader reader_;
  CsvSplitter splitter_;
  std::vector<CsvColumnReader> columns_;
};

}  // namespace

Dataset csv_dataset(const std::filesystem::path& file, CsvOptions options) {
  if (options.batch_size < 1) {
    throw ValueError(kCaller, ": batch_size must be at least 1, received ", options.batch_size);
  }
  const TableReader checks_the_header(file, options, kCaller);
  return Dataset::from_generator([file, options = std::move(options)]() -> Dataset::Generator {
    // Shared, because std::function copies its target.
    auto table = std::make_shared<TableReader>(file, options, kCaller);
    return [table, options]() -> std::optional<Tensors> {
      const int64_t rows = table->read(options.batch_size);
      if (rows == 0 || (rows < options.batch_size && options.drop_remainder)) return std::nullopt;
      return table->finish(rows);
    };
  });
}

Tensors read_csv_table(const std::filesystem::path& file, const CsvOptions& options) {
  TableReader table(file, options, "read_csv");
  return table.finish(table.read(std::numeric_limits<int64_t>::max()));
}

Tensors read_csv(const std::filesystem::path& file, std::vector<CsvColumn> columns,
                 char delimiter) {
  return read_csv_table(file, CsvOptions{.columns = std::move(columns), .delimiter = delimiter});
}

std::vector<std::string> csv_header(const std::filesystem::path& file, char delimiter) {
  CsvReader reader(file, dialect_of({.columns = {}, .delimiter = delimiter}), "csv_header");
  return reader.header();
}

}  // namespace keel::data
