// Serving from mapped tables: a model whose table lies in its file, against the same model with the
// table in memory. Measures loading, the first answer with a cold and a warm page cache, lookups of
// uniform random ids, and promotion to huge pages.
//
// --quick uses a table of 512 MiB, the full run one of 4 GiB. The model file is written to the
// system's temporary folder (TMPDIR) and removed.
#include <array>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <unistd.h>

#include <keel/layers.h>
#include <keel/layers/serving/serving_plan.h>
#include <keel/savedmodel/saved_model.h>

#include "benchmarks/support/measure.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

constexpr int64_t kDim = 64, kIds = 26;  // sizes of one sample
constexpr int kBatches = 512;

double seconds_of(const std::function<void()>& fn) {
  const auto begin = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Functional make_model(int64_t rows) {
  const Tensor id = layers::input({.shape = {kIds}, .dtype = DType::kInt64, .name = "id"});
  // The values do not matter for the time; a constant start keeps the preparation short.
  Tensor x = layers::Embedding({.input_dim = rows,
                                .output_dim = kDim,
                                .embeddings_initializer = initializers::constant(0.5),
                                .name = "table"})(id);
  x = layers::Flatten({})(x);
  return Functional({.inputs = id, .outputs = layers::Dense({.units = 1, .name = "score"})(x)});
}

void drop_from_page_cache(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY);
  if (file < 0) return;
  fsync(file);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

void read_into_page_cache(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY);
  if (file < 0) return;
  std::vector<char> buffer(size_t{1} << 22);
  while (read(file, buffer.data(), buffer.size()) > 0) {
  }
  close(file);
}

// A loaded model and its plan, with requests of uniform random ids.
class Server {
 public:
  Server(const std::string& path, std::shared_ptr<MappedTables> tables)
      : tables_(std::move(tables)),
        plan_(load_model(path, {.compile = false, .mapped_tables = tables_})) {}

  void make_requests(int64_t rows, int64_t samples) {
    std::mt19937_64 random(samples);
    requests_.clear();
    for (int i = 0; i < kBatches; ++i) {
      Tensor ids = Tensor::uninitialized({samples, kIds}, DType::kInt64);
      for (int64_t& id : ids.mutable_data<int64_t>()) {
        id = static_cast<int64_t>(random() % static_cast<uint64_t>(rows));
      }
      requests_.push_back(ids);
    }
    scores_.assign(static_cast<size_t>(samples), 0);
  }
  void answer() {
    const std::array<TensorView, 1> view = {view_of(requests_[next_++ % requests_.size()])};
    const std::span<float> out = scores_;
    plan_.run(view, {&out, 1});
  }
  MappedTables& tables() { return *tables_; }

 private:
  const std::shared_ptr<MappedTables> tables_;
  const ServingPlan plan_;
  std::vector<Tensor> requests_;
  std::vector<float> scores_;
  size_t next_ = 0;
};

// The seconds from the start of loading to the first answer.
double first_answer(const std::string& path, int64_t rows, bool mapped) {
  return seconds_of([&] {
    Server server(path, mapped ? std::make_shared<MappedTables>() : nullptr);
    server.make_requests(rows, 1);
    server.answer();
  });
}

// The first calls after loading, whose rows have to be read from the disk.
void add_cold_lookups(const std::string& path, int64_t rows, const Options& options,
                      Report& report) {
  constexpr int kCalls = 100;
  for (int64_t samples : {1, 32, 256}) {
    drop_from_page_cache(path);
    Server server(path, std::make_shared<MappedTables>());
    server.make_requests(rows, samples);
    std::vector<double> seconds;
    for (int i = 0; i < kCalls; ++i) seconds.push_back(seconds_of([&] { server.answer(); }));
    const Timing timing = summarize(seconds);
    report.add({.op = "cold_batch" + std::to_string(samples),
                .dim = kDim,
                .threads = options.threads,
                .value = timing.median * 1e6,
                .unit = "us p50",
                .more = {{"p99_us", timing.p99 * 1e6}}});
  }
}

int run(const Options& options) {
  Report report(options, "bench_mapped");
  const int64_t bytes = options.quick ? int64_t{512} << 20 : int64_t{4} << 30;
  const int64_t rows = bytes / (kDim * static_cast<int64_t>(sizeof(float)));
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("keel_bench_mapped_" + std::to_string(getpid()) + ".keras");
  struct Remove {
    const std::filesystem::path& path;
    ~Remove() { std::filesystem::remove(path); }
  } remove{path};
  save_model(make_model(rows), path);

  drop_from_page_cache(path);
  const double cold = first_answer(path, rows, true);
  read_into_page_cache(path);
  const double warm = first_answer(path, rows, true);
  report.add({.op = "first_answer_mapped",
              .dim = kDim,
              .threads = options.threads,
              .value = cold * 1e3,
              .unit = "ms cold",
              .more = {{"warm_ms", warm * 1e3},
                       {"resident_ms", first_answer(path, rows, false) * 1e3},
                       {"table_bytes", static_cast<double>(bytes)}}});

  add_cold_lookups(path, rows, options, report);
  Server resident(path, nullptr);
  Server mapped(path, std::make_shared<MappedTables>());
  const int calls = options.quick ? 1000 : 4000;
  const auto measure = [&](const char* name) {
    for (int64_t samples : {1, 32, 256}) {
      const std::string of_batch = std::string(name) + "_batch" + std::to_string(samples);
      if (!options.wants(of_batch)) continue;
      resident.make_requests(rows, samples);
      mapped.make_requests(rows, samples);
      const Comparison times = latencies(
          {{"mapped", [&] { mapped.answer(); }}, {"resident", [&] { resident.answer(); }}}, calls);
      report.add({.op = of_batch,
                  .dim = kDim,
                  .threads = options.threads,
                  .value = times.timings[0].median * 1e6,
                  .unit = "us p50",
                  .more = {{"over_resident", times.ratio(0, 1)},
                           {"p99_us", times.timings[0].p99 * 1e6},
                           {"resident_p50_us", times.timings[1].median * 1e6},
                           {"resident_p99_us", times.timings[1].p99 * 1e6}}});
    }
  };
  measure("mapped");
  const double promotion = seconds_of([&] { mapped.tables().promote(); });
  report.add({.op = "promotion",
              .dim = kDim,
              .threads = 1,
              .value = static_cast<double>(bytes) / promotion / 1e9,
              .unit = "GB/s",
              .more = {{"seconds", promotion}}});
  measure("promoted");
  return report.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  return keel::bench::run(keel::bench::parse_options(
      argc, argv, "bench_mapped",
      "Serving from tables that are mapped from the model's file, over the time of tables in "
      "memory:\nfirst answer, lookups of uniform random ids, and promotion to huge pages."));
}
