// Writes inputs for the fuzz programs to start from: fuzz_seeds FOLDER makes FOLDER/hdf5 and so on.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <hdf5.h>
#include <iterator>

#include <keel/framework/data/tfrecord.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/keras_model_config.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/fuzz/compressed.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/models.h"
#include "tests/fuzz/plain_zip.h"

namespace keel::fuzz {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kLimit = 1 << 20;

std::string read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Corpus {
 public:
  explicit Corpus(fs::path folder) : folder_(std::move(folder)) { fs::create_directories(folder_); }
  void add(const std::string& name, std::string_view bytes) const {
    std::ofstream out(folder_ / name, std::ios::binary | std::ios::trunc);
    out << bytes;
    if (!out) throw IoError(folder_ / name, ": cannot be written");
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  // Next to the folder, its files as libFuzzer's -seed_inputs takes them.
  ~Corpus() {
    std::vector<std::string> paths;
    for (const auto& file : fs::directory_iterator(folder_)) paths.push_back(file.path());
    std::sort(paths.begin(), paths.end());
    std::ofstream out(folder_.string() + ".list", std::ios::trunc);
    for (const std::string& path : paths) out << (&path == paths.data() ? "" : ",") << path;
  }
  Corpus(const Corpus&) = delete;
  Corpus& operator=(const Corpus&) = delete;

 private:
  const fs::path folder_;
};

SignatureSpecs signatures_of_small_model() {
  return {{"examples",
           {{"x",
             {.feature = data::FixedLenFeature{.shape = {3},
                                               .default_value = Tensor::scalar<float>(1)}}}}}};
}

// The file with every dataset in chunks that are shuffled, deflated and have checksums.
void write_chunked(const std::string& path) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t settings = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t dims[] = {6, 4}, chunk[] = {4, 3};
  H5Pset_chunk(settings, 2, chunk);
  H5Pset_shuffle(settings);
  H5Pset_deflate(settings, 1);
  H5Pset_fletcher32(settings);
  const hid_t space = H5Screate_simple(2, dims, nullptr);
  const hid_t dataset =
      H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, settings, H5P_DEFAULT);
  const std::vector<float> values(24, 1.5F);
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Dclose(dataset);
  H5Sclose(space);
  H5Pclose(settings);
  H5Fclose(file);
}

void write_objects(const std::string& path) {
  Hdf5Writer file(path);
  file.write("g/x", Tensor::from<int64_t>({1, 2, 3}, {3}));
  file.write("g/b", Tensor::from<bool>({true, false}, {2}));
  file.write("s", Tensor::from<std::string>({"one", "", "three"}, {3}));
  file.write("d", Tensor::scalar<double>(2));
  file.write_string_list("g", "weight_names", {"x", "b"});
  file.write_string_list("/", "layer_names", {});
  file.write_attribute("g", "count", int64_t{3});
  file.commit();
}

void write_models(const fs::path& folder) {
  const Corpus files(folder / "hdf5"), archives(folder / "keras_archive"),
      configs(folder / "json_config");
  int number = 0;
  for (const ModelHandle& model : {small_model(), small_graph()}) {
    const std::string name = std::to_string(number++);
    const SignatureSpecs specs = number == 1 ? signatures_of_small_model() : SignatureSpecs();
    save_model(model, files.path(name + ".h5"), {.include_optimizer = true, .signatures = specs});
    save_weights(model, files.path(name + ".weights.h5"));
    save_weights(model, files.path(name + "_legacy.h5"));
    const std::string archive = archives.path(name + ".keras");
    save_model(model, archive, {.signatures = specs});
    configs.add(name + ".json", ZipFile(archive).read("config.json", kLimit));
    std::vector<ZipEntry> entries = plain_zip_entries(read_bytes(archive));
    for (ZipEntry& entry : entries) entry.deflated = true;
    archives.add(name + "_deflated.keras", plain_zip(entries));
  }
  write_chunked(files.path("chunked.h5"));
  write_objects(files.path("objects.h5"));
  for (const Config& config : one_layer_configs()) {
    configs.add(std::to_string(number++) + ".json", to_json(config));
  }
  for (const Config& config : graph_configs()) {
    const std::string name = std::to_string(number++);
    configs.add(name + ".json", to_json(config));
    save_model(model_from_keras(config), archives.path(name + ".keras"));
  }
  std::vector<ModelHandle> with_state = one_layer_models();
  with_state.push_back(small_dynamic());
  for (const ModelHandle& model : with_state) {
    const std::string name = std::to_string(number++);
    save_model(model, archives.path(name + ".keras"));
    save_model(model, files.path(name + ".h5"));
    save_weights(model, files.path(name + ".weights.h5"));
  }
  save_feature_space(small_space(), archives.path("space.keras"));
  // Files that Keras wrote with another library.
  const fs::path keras = KEEL_SOURCE_DIR "/tests/cases/keras_models";
  files.add("keras.h5", read_bytes(keras / "ncf_weights_only_legacy.h5"));
  for (const char* name : {"mha_block", "ncf", "nested", "seq_pool"}) {
    const ZipFile archive(keras / str(name, ".keras"));
    configs.add(str(name, ".json"), archive.read("config.json", kLimit));
  }
  configs.add("values.json",
              R"([null, true, -1, 2.5e3, NaN, -Infinity, "\u00e9\ud83d\ude00", {"a": [{}]}])");
}

void write_records(const fs::path& folder) {
  const Corpus corpus(folder / "tfrecord");
  for (const char* type : {"", "GZIP", "ZLIB"}) {
    const std::string path = corpus.path(std::string("raw") + type);
    {
      data::TFRecordWriter writer(path, {.compression_type = type});
      for (const char* record : {"", "one", "a longer record, twice over, twice over"}) {
        writer.write(record);
      }
    }
    const std::string bytes = read_bytes(path);
    const int choice = *type == '\0' ? 0 : *type == 'G' ? 2 : 4;
    corpus.add(std::string("raw") + type, std::string(1, static_cast<char>(choice)) + bytes);
    if (choice != 0) continue;
    for (const int mode : {1, 1 + 32, 1 + 2 + 16, 1 + 4 + 16, 1 + 2 + 16 + 32}) {
      corpus.add("mended" + std::to_string(mode), std::string(1, static_cast<char>(mode)) + bytes);
    }
  }
}

void write_examples(const fs::path& folder) {
  const Corpus corpus(folder / "example");
  const std::vector<std::string> examples = {
      data::serialize_example({{"i", Tensor::from<int64_t>({1, -2}, {2})},
                               {"f", Tensor::from<float>({1, 2, 3}, {3})},
                               {"s", Tensor::scalar<std::string>("text")},
                               {"v", Tensor::from<int64_t>({1, 300, 1LL << 40}, {3})},
                               {"r", Tensor::from<std::string>({"a", "bc"}, {2})},
                               {"other", Tensor::scalar<float>(1)}}),
      data::serialize_example({{"i", Tensor::from<int64_t>({3, 4}, {2})}, {"f", Tensor()}}),
      data::serialize_example(
          {{"i", Tensor::from<int64_t>({0, 0}, {2})}, {"w", Tensor::from<float>({1, 2}, {2})}})};
  std::string batch;
  for (size_t i = 0; i < examples.size(); ++i) {
    std::string one;
    one += static_cast<char>(examples[i].size());
    one += static_cast<char>(examples[i].size() >> 8);
    one += examples[i];
    corpus.add("one" + std::to_string(i), one);
    batch += one;
  }
  corpus.add("batch", batch);
}

void write_csv(const fs::path& folder) {
  const Corpus corpus(folder / "csv");
  const std::string plain =
      "a,b,c,d,e\nx,1.5,2,3e4,-5\n,,,,\n\"q,\"\"uoted\"\"\",0,1,nan,2\r\n\ny,1,2,3,4";
  for (const int mode : {0, 4, 8, 132, 12}) {
    corpus.add("plain" + std::to_string(mode), std::string(1, static_cast<char>(mode)) + plain);
  }
  corpus.add("semicolons", std::string("\5", 1) + "a;b\n\"line\nbreak\";2\nz;-1.25e-3\n");
  corpus.add("header", std::string("\0", 1) + "only,a,header");
}

// The first bytes of bodies of predictions, as serving_request_fuzz.cc reads them.
std::string prefix(int flags, size_t json_size = 0) {
  return {static_cast<char>(flags), static_cast<char>(json_size & 255),
          static_cast<char>(json_size >> 8)};
}

// A field of a protobuf message that has a length.
std::string field(int number, const std::string& data) {
  return static_cast<char>(number << 3 | 2) + std::string(1, static_cast<char>(data.size())) + data;
}

// Requests for the model with an input of each dtype and a sparse one, in JSON and binary.
void write_kinds(const Corpus& requests) {
  struct Kind {
    const char *name, *datatype, *json;
    size_t bytes;
  };
  constexpr Kind kKinds[] = {{"bool", "BOOL", "true", 1},     {"float32", "FP32", "1.5", 4},
                             {"float64", "FP64", "-0.1", 8},  {"int32", "INT32", "-7", 4},
                             {"int64", "INT64", "9", 8},      {"int8", "INT8", "-128", 1},
                             {"string", "BYTES", "\"a\"", 5}, {"uint8", "UINT8", "255", 1}};
  std::string row, json, head, data;
  for (const Kind& kind : kKinds) {
    row += str("\"", kind.name, "\": ", kind.json, ", ");
    const std::string start = str("{\"name\": \"", kind.name,
                                  "\", \"shape\": [1, 1], \"datatype\": \"", kind.datatype, "\", ");
    json += str(start, "\"data\": [", kind.json, "]}, ");
    head += str(start, "\"parameters\": {\"binary_data_size\": ", kind.bytes, "}}, ");
    data += kind.bytes == 5 ? std::string("\1\0\0\0a", 5) : std::string(kind.bytes, '\1');
  }
  const auto tensor = [](const char* name, const char* shape, const char* values) {
    return str("{\"name\": \"tags.", name, "\", \"shape\": ", shape,
               ", \"datatype\": \"INT64\", \"data\": ", values, "}");
  };
  const std::string tags = tensor("indices", "[2, 2]", "[0, 1, 0, 5]") + ", " +
                           tensor("values", "[2]", "[7, 8]") + ", " +
                           tensor("dense_shape", "[2]", "[1, 6]");
  requests.add("kinds_rows", prefix(8) + "{\"instances\": [{" + row +
                                 R"("tags": {"indices": [0, 5], "values": [1, 5]}}, {)" + row +
                                 R"("tags": [3, 4]}]})");
  requests.add("kinds_infer", prefix(11) + "{\"inputs\": [" + json + tags + "]}");
  head = "{\"inputs\": [" + head + tags + R"(], "parameters": {"binary_data_output": true}})";
  requests.add("kinds_binary", prefix(15, head.size()) + head + data);
}

void write_requests(const Corpus& requests) {
  const std::string row = R"({"x": [1.5, -2e3], "word": {"b64": "YQ=="}, "seen": [1, 2]})";
  requests.add("rows", prefix(0) + "{\"instances\": [" + row + ", " + row + "]}");
  requests.add("columns",
               prefix(0) +
                   R"({"inputs": {"x": [[1, NaN]], "word": ["a\u00e4"], "seen": {"values": [1],)"
                   R"( "row_splits": [0, 1]}}})");
  requests.add("examples",
               prefix(0) + R"({"signature_name": "examples", "instances": [{"b64": "CgA="}]})");
  requests.add("regress",
               prefix(2) + R"({"context": {"x": [1.0, 2.0]}, "examples": [{"word": "a"}, {}]})");
  const std::string infer =
      R"({"id": "7", "inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]},)"
      R"( {"name": "word", "shape": [1], "datatype": "BYTES", "data": ["a"]}, {"name": "seen.values",)"
      R"( "shape": [1], "datatype": "INT64", "data": [1]}, {"name": "seen.row_splits", "shape": [2],)"
      R"( "datatype": "INT64", "data": [0, 1]}], "outputs": [{"name": "score"}]})";
  requests.add("infer", prefix(3) + infer);
  const std::string binary =
      R"({"inputs": [{"name": "word", "shape": [1], "datatype": "BYTES", "parameters":)"
      R"( {"binary_data_size": 5}}]})";
  requests.add("binary", prefix(7, binary.size()) + binary + std::string("\1\0\0\0a", 5));
  write_kinds(requests);
}

// Requests to the server, with the first bytes that its programs read.
void write_serving(const fs::path& folder) {
  const Corpus configs(folder / "serving_config"), http(folder / "serving_http"),
      requests(folder / "serving_request");
  configs.add("models", std::string("\0", 1) +
                            "model_config_list { config { name: \"a\" base_path: \"/b\" "
                            "model_version_policy { specific { versions: 3 } } "
                            "version_labels { key: \"s\" value: 3 } } }");
  configs.add("monitoring", "\1prometheus_config { enable: true path: \"/m\" }");
  configs.add("batching", "\2max_batch_size { value: 8 } allowed_batch_sizes: 8");
  http.add("plain",
           "aPOST /v1/models/m:predict HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
           "GET /healthz HTTP/1.0\r\n\r\n");
  http.add("chunked",
           "bPOST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
           "Expect: 100-continue\r\n\r\n3;x=1\r\nabc\r\n0\r\nT: 1\r\n\r\n");
  write_requests(requests);
  const Corpus bodies(folder / "serving_inflate"), paths(folder / "serving_path"),
      calls(folder / "serving_rpc");
  bodies.add("deflate", std::string(1, '\0') + compressed("{\"instances\": [1, 2]}", kZlib));
  bodies.add("gzip", std::string(1, '\1') + compressed(std::string(3000, ' '), kGzip));
  int number = 0;
  for (const char* path : {"/v1/models/m/versions/1", "/v1/models/m/labels/l/metadata", "/metrics",
                           "/v2/models/%6d/versions/l/ready", "/v2/repository/models/m/load", "/",
                           "/v1/models/m:predict\n{}", "/v2/models/m/infer\n{\"inputs\": []}"}) {
    for (char method : {'\0', '\2'}) paths.add(str(number++), std::string(1, method) + path);
  }
  const std::string spec = field(1, field(1, "m"));
  for (int method = 0; method < 14; ++method) {
    const std::string choice(1, static_cast<char>(method));
    calls.add(str("spec", method), choice + spec);
    calls.add(str("name", method), choice + field(1, "m"));
  }
  const auto entry = [](const std::string& name, const std::string& tensor) {
    return field(2, field(1, name) + field(2, tensor));
  };
  const auto shape = [](std::string_view dims) {
    std::string out;
    for (char dim : dims) out += field(2, std::string("\x08") + dim);
    return field(2, out);
  };
  const auto tensor = [&](char dtype, std::string_view dims, const std::string& values) {
    return std::string("\x08") + dtype + shape(dims) + values;
  };
  const std::string floats = field(4, std::string(8, '\1')), words = field(8, "a");
  calls.add("predict",
            std::string(1, '\0') + spec + entry("x", tensor(1, "\1\2", floats)) +
                entry("word", tensor(7, "\1", words)) +
                entry("seen.values", tensor(9, "\1", field(10, "\3"))) +
                entry("seen.row_splits", tensor(9, "\2", field(10, std::string("\0\1", 2)))));
  const std::string feature =
      field(1, field(1, "x") + field(2, field(2, field(1, std::string(8, '\1')))));
  calls.add("regress",
            std::string(1, '\2') + spec + field(2, field(1, field(1, field(1, feature)))));
}

}  // namespace
}  // namespace keel::fuzz

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  try {
    const std::filesystem::path folder = arguments[1];
    keel::fuzz::write_models(folder);
    keel::fuzz::write_records(folder);
    keel::fuzz::write_examples(folder);
    keel::fuzz::write_csv(folder);
    keel::fuzz::write_serving(folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}
