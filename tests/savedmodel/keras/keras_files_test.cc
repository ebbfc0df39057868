// Tests files written by Keras, with inputs and Keras's predictions. A few files are in the
// repository; more files are read from the folders of $KEEL_KERAS_DIRS (separated by ':').
#include <absl/strings/str_split.h>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/expectations.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::keras_files_test {

using testing::HasSubstr;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;

namespace fs = std::filesystem;

constexpr double kTolerance = 1e-5;
constexpr double kTrainingTolerance = 1e-4;

std::vector<fs::path> folders() {
  const fs::path root = KEEL_SOURCE_DIR;
  std::vector<fs::path> out = {root / "tests/cases/keras_models"};
  const char* const given = std::getenv("KEEL_KERAS_DIRS");
  if (given == nullptr) {
    for (const char* name : {"cases/keras_models", "cases/keras_models_extra", "interop/keras",
                             "interop/keras/real_keras_outputs",
                             "interop/keras/real_keras_outputs/simple_sparse_xent"}) {
      out.push_back(root / "../shared" / name);
    }
  } else {
    for (const absl::string_view each : absl::StrSplit(given, ':')) {
      out.emplace_back(std::string(each));
    }
  }
  std::erase_if(out, [](const fs::path& folder) { return !fs::is_directory(folder); });
  return out;
}

// Returns all files of the folders with this suffix, one per name.
std::vector<fs::path> files(const std::string& ending) {
  std::map<std::string, fs::path> out;
  for (const fs::path& folder : folders()) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      if (name.ends_with(ending)) out.emplace(name, entry.path());
    }
  }
  std::vector<fs::path> sorted;
  for (const auto& [_, path] : out) sorted.push_back(path);
  return sorted;
}

// Returns "folder/name" for "folder/name.expected.json".
std::string stem(const fs::path& file, const std::string& ending) {
  const std::string path = file;
  return path.substr(0, path.size() - ending.size());
}

Config json(const std::string& path) { return parse_json(read_bytes(path)); }

Tensor tensor(const Config& config) {
  TensorSpec spec;
  decode(config["shape"], spec.shape);
  decode(config["dtype"], spec.dtype);
  std::vector<double> values;
  decode(config["data"], values);
  return Tensor::from(std::move(values), spec.shape).cast(spec.dtype);
}

struct Case {
  std::map<std::string, Tensor> inputs;
  std::vector<Tensor> expected;
};

Case read_case(const std::string& name) {
  Case out;
  const Config inputs = json(name + ".inputs.json");
  for (const Config& input : inputs["inputs"].items()) {
    out.inputs.emplace(input["name"].string(), tensor(input));
  }
  const Config expected = json(name + ".expected.json");
  for (const Config& output : expected["outputs"].items()) {
    out.expected.push_back(tensor(output));
  }
  return out;
}

Tensors inputs_of(const Model& model, const Case& example) {
  const auto* functional = dynamic_cast<const FunctionalModel*>(&model);
  if (functional == nullptr) return example.inputs.begin()->second;
  return map_structure(functional->inputs(), [&](const TensorLike& t) -> TensorLike {
    const auto& layer = static_cast<const Layer&>(*t.values().producer()->operation);
    return example.inputs.at(layer.name());
  });
}

std::vector<Tensor> predict(Model& model, const Tensors& inputs) {
  std::vector<Tensor> out;
  for (const TensorLike& t : flatten(model.predict(inputs, {.verbose = Verbose::kSilent}))) {
    out.push_back(t.tensor());
  }
  return out;
}

void expect_all_near(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                     double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    SCOPED_TRACE(i);
    testing_support::expect_near(actual[i], expected[i], {.absolute = tolerance});
  }
}

void expect_same_bits(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].to_vector<float>(), expected[i].to_vector<float>());
  }
}

void set_to_zero(const Model& model) {
  for (const Variable& v : model.weights()) v.assign(Tensor::zeros(v.shape(), v.dtype()));
}

// Returns the whole-model file that belongs to a weights file.
std::string model_of(const std::string& name) {
  for (const std::string ending : {"", "_weights_only_legacy"}) {
    if (!name.ends_with(ending)) continue;
    const std::string archive = name.substr(0, name.size() - ending.size()) + ".keras";
    if (fs::exists(archive)) return archive;
    const fs::path sibling = fs::path(archive).parent_path().parent_path() / "keras_models" /
                             fs::path(archive).filename();
    if (fs::exists(sibling)) return sibling;
  }
  return {};
}

ModelHandle load(const std::string& name, const std::string& ending) {
  const std::string file = name + ending;
  const bool whole =
      ending == ".keras" || (ending == ".h5" && Hdf5File(file).has_attribute("/", "model_config"));
  if (whole) return load_model(file);
  ModelHandle model = load_model(model_of(name));
  set_to_zero(*model);
  EXPECT_TRUE(load_weights(model, file).empty());
  return model;
}

// Calls fn for each file with inputs and predictions, and `once` for each model, in one of its
// formats.
template <class Fn>
int for_each_case(Fn fn, bool once = false) {
  int count = 0;
  for (const fs::path& expected : files(".expected.json")) {
    const std::string name = stem(expected, ".expected.json");
    for (const char* ending : {".h5", ".keras", ".weights.h5"}) {
      if (!fs::exists(name + ending)) continue;
      SCOPED_TRACE(name + ending);
      const Case example = read_case(name);
      fn(*load(name, ending), example);
      ++count;
      if (once) break;
    }
  }
  return count;
}

// Returns the labels of a record, by name if the model was trained so.
Tensors labels_of(const Config& training) {
  const Config::List& targets = training["targets"].items();
  const Config* const structure = training.find("target_structure");
  if (structure == nullptr || *structure != Config("dict")) return Tensors(tensor(targets[0]));
  Tensors::Dict out;
  for (const Config& target : targets) out.emplace(target["name"].string(), tensor(target));
  return Tensors(std::move(out));
}

TEST(KerasFilesTest, ModelsOfEveryFormatPredictAsKeras) {
  const int count = for_each_case([](Model& model, const Case& example) {
    expect_all_near(predict(model, inputs_of(model, example)), example.expected, kTolerance);
  });
  EXPECT_GE(count, 10);
}

TEST(KerasFilesTest, ResavedModelsPredictTheSameBits) {
  const TemporaryFolder folder;
  for_each_case(
      [&](Model& model, const Case& example) {
        const Tensors inputs = inputs_of(model, example);
        const std::vector<Tensor> expected = predict(model, inputs);
        for (const char* name : {"again.h5", "again.keras"}) {
          save_model(model, folder / name);
          const ModelHandle again = load_model(folder / name);
          expect_same_bits(predict(*again, inputs), expected);
        }
        for (const char* name : {"weights.h5", "again.weights.h5"}) {
          save_weights(model, folder / name);
          const ModelHandle again = load_model(folder / "again.keras");
          set_to_zero(*again);
          load_weights(again, folder / name);
          expect_same_bits(predict(*again, inputs), expected);
        }
      },
      true);
}

TEST(KerasFilesTest, TrainingContinuesAsInKeras) {
  int count = 0;
  for (const fs::path& file : files(".train.json")) {
    const std::string name = stem(file, ".train.json");
    SCOPED_TRACE(name);
    const Config training = json(file);
    const ModelHandle model = load_model(name + ".keras", {.compile = true});
    const Tensors inputs = inputs_of(*model, read_case(name));
    const Tensors labels = labels_of(training);
    for (const Config& loss : training["loss_per_step"].items()) {
      model->reset_metrics();
      EXPECT_NEAR(model->train_on_batch(inputs, labels).at("loss"), loss.number(),
                  kTrainingTolerance);
    }
    std::vector<Tensor> after;
    for (const Config& output : training["outputs_after"].items()) after.push_back(tensor(output));
    expect_all_near(predict(*model, inputs), after, kTrainingTolerance);
    EXPECT_EQ(model->optimizer()->iterations(), training["iterations_after"].integer());
    ++count;
  }
  EXPECT_GE(count, 3);
}

TEST(KerasFilesTest, OptimizersContinueFromArchivesWrittenHere) {
  const TemporaryFolder folder;
  for (const fs::path& file : files(".train.json")) {
    const std::string name = stem(file, ".train.json");
    SCOPED_TRACE(name);
    const ModelHandle model = load_model(name + ".keras", {.compile = true});
    const Tensors inputs = inputs_of(*model, read_case(name));
    const Tensors labels = labels_of(json(file));
    save_model(model, folder / "again.keras");
    const ModelHandle again = load_model(folder / "again.keras", {.compile = true});
    for (int step = 0; step < 2; ++step) {
      EXPECT_EQ(again->train_on_batch(inputs, labels), model->train_on_batch(inputs, labels));
    }
  }
}

TEST(KerasFilesTest, FilesOfKeras2PredictTheRecordedValues) {
  const std::vector<fs::path> models = files("_model.h5");
  if (models.empty()) GTEST_SKIP() << "no folder of $KEEL_KERAS_DIRS has files *_model.h5";
  for (const fs::path& file : models) {
    SCOPED_TRACE(file);
    const std::string name = stem(file, "_model.h5");
    const Hdf5File record(name + "_inputs_and_outputs.h5");
    const Tensors inputs(record.read("inputs/" + record.children("inputs")[0]));
    const std::vector<Tensor> expected = {
        record.read("predictions/" + record.children("predictions")[0])};
    const ModelHandle model = load_model(file);
    expect_all_near(predict(*model, inputs), expected, kTolerance);
    for (const bool by_name : {false, true}) {
      set_to_zero(*model);
      load_weights(model, name + "_weights.h5", {.by_name = by_name});
      expect_all_near(predict(*model, inputs), expected, kTolerance);
    }
  }
}

// Returns the file if a folder contains it.
std::optional<std::string> find(const std::string& name) {
  for (const fs::path& folder : folders()) {
    if (fs::exists(folder / name)) return folder / name;
  }
  return std::nullopt;
}

TEST(KerasFilesTest, AThirdPartyRecommenderIsRead) {
  const auto file = find("ncf_keras3.keras");
  if (!file) GTEST_SKIP() << "no folder of $KEEL_KERAS_DIRS has ncf_keras3.keras";
  const ModelHandle model = load_model(*file, {.compile = true});
  const auto inputs = std::dynamic_pointer_cast<FunctionalModel>(model.shared())->inputs();
  const std::vector<Tensor> scores =
      predict(*model, map_structure(inputs, [](const TensorLike&) -> TensorLike {
        return Tensor::from<int64_t>({1, 53}, {2, 1});
      }));
  for (const float score : scores[0].to_vector<float>()) EXPECT_TRUE(std::isfinite(score));
  EXPECT_GT(model->optimizer()->iterations(), 0);
}

struct NestedDenseOptions {
  int64_t num = 3;
  std::string name = {};
  bool trainable = true;
  DType dtype = DType::kFloat32;
  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("num", self.num);
  }
};

// The model as it was written in Python: layers "d_0", "d_1", ... of 4 units, then one of 2.
class NestedDenseModel final : public Model {
 public:
  static constexpr char kClassName[] = "legacy_nested_container>NestedDenseModel";
  using Options = NestedDenseOptions;
  explicit NestedDenseModel(Options options) : Model(kClassName, options), options_(options) {
    for (int64_t i = 0; i < options.num; ++i) {
      inner_.push_back(track(layers::Dense({.units = 4, .use_bias = false, .name = str("d_", i)})));
    }
    last_.emplace(track(layers::Dense({.units = 2, .name = "dense"})));
  }
  Config get_config() const override { return to_config(options_); }

 private:
  Tensors call(const Tensors& x, const CallContext&) override {
    Tensor h = x.tensor();
    for (const auto& layer : inner_) h = layer(h);
    return (*last_)(h);
  }
  const Options options_;
  std::vector<layers::Dense> inner_;
  std::optional<layers::Dense> last_;
};

TEST(KerasFilesTest, AModelOfAUserClassIsRead) {
  const auto file = find("nested_container.keras");
  if (!file) GTEST_SKIP() << "no folder of $KEEL_KERAS_DIRS has nested_container.keras";
  EXPECT_THROW(load_model(*file), ValueError) << "before it is registered";
  layer_registry().add<NestedDenseModel>();
  const ModelHandle model = load_model(*file, {.compile = true});
  EXPECT_FALSE(model->compiled());
  const TemporaryFolder folder;
  save_model(model, folder / "again.keras");
  const ModelHandle again = load_model(*file);
  set_to_zero(*again);
  load_weights(again, folder / "again.keras");
  const Tensors x(Tensor::from<float>({1, -2, 3, -4}, {1, 4}));
  expect_same_bits(predict(*again, x), predict(*model, x));
}

TEST(KerasFilesTest, WeightsOfAModelOfKeras2AreLoadedByName) {
  const auto path = find("textgenrnn_weights.hdf5");
  if (!path) GTEST_SKIP() << "no folder of $KEEL_KERAS_DIRS has textgenrnn_weights.hdf5";
  const Hdf5File file(*path);
  EXPECT_EQ(file.string_list("/", "layer_names"),
            (std::vector<std::string>{"input", "embedding", "rnn_1", "rnn_2", "rnn_concat",
                                      "attention", "output"}));
  const Tensor ids = layers::input({.shape = {2}, .dtype = DType::kInt32, .name = "input"});
  const Tensor rows =
      layers::Embedding({.input_dim = 465, .output_dim = 100, .name = "embedding"})(ids);
  const layers::Dense own({.units = 356, .name = "own"});
  const Functional model(
      {.inputs = ids, .outputs = layers::Dense({.units = 465, .name = "output"})(own(rows))});
  const std::vector<std::string> left = load_weights(model, *path, {.by_name = true});
  ASSERT_EQ(left.size(), 1U);
  EXPECT_THAT(left[0], HasSubstr("layer 'own' is not in"));
  EXPECT_EQ(model->get_layer("embedding")->weights()[0].read().to_vector<float>(),
            file.read("embedding/embedding/embeddings:0").to_vector<float>());
  EXPECT_EQ(model->get_layer("output")->weights()[1].read().to_vector<float>(),
            file.read("output/output/bias:0").to_vector<float>());
  EXPECT_THROW(load_weights(model, *path), ValueError) << "in order they do not fit";
}

}  // namespace keel::keras_files_test
