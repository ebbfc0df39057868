// Tests layers/functional/internal/math_operators.cc, array_operators.cc and nn_operators.cc: the
// operators of graphs of Keras 3, in the forms of .keras and .h5 files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/internal/operator_tables.h>
#include <keel/layers/registry.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::operator_catalog_test {

using testing::HasSubstr;
using testing_support::expect_near;
using testing_support::floats;
using testing_support::message_of;
using testing_support::values_of;
using Floats = std::vector<float>;

// One operator of the input x. In `arguments`, X is the input.
struct Case {
  const char *class_name, *config, *arguments, *keywords;
  Shape input;
  Floats expected;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

Functional graph(const Case& each, bool archive) {
  std::string shape;
  for (int i = 0; i < each.input.rank(); ++i) {
    shape += (i == 0 ? "" : ", ") + std::to_string(each.input[i]);
  }
  const std::string x = str(R"({"class_name": "__keras_tensor__", "config": {"shape": [)", shape,
                            R"(], "dtype": "float32", "keras_history": ["x", 0, 0]}})");
  const std::string module =
      archive ? R"("module": "keras.src.ops.numpy", "registered_name": "Op", )" : "";
  const std::string text = str(
      R"({"class_name": "Functional", "config": {"name": "m", "trainable": true, "layers": [
        {"class_name": "InputLayer", "name": "x", "inbound_nodes": [], "config": {"name": "x",
         "batch_shape": [)",
      shape, R"(], "dtype": "float32", "sparse": false}}, {)", module, R"("class_name": ")",
      each.class_name, R"(", "name": "op", "config": )", each.config,
      R"(, "inbound_nodes": [{"args": [)", replaced(each.arguments, "X", x), R"(], "kwargs": {)",
      each.keywords, R"(}}]}], "input_layers": [["x", 0, 0]], "output_layers": [["op", 0, 0]]}})");
  const auto model = layers::deserialize(parse_json(text));
  return {kAdopt, std::dynamic_pointer_cast<FunctionalModel>(model.shared())};
}

const Floats kX = {1, -2, 3, 4, 5, -6};

// The values follow from the definitions in NumPy's documentation.
const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"Sort", R"({"name": "op", "axis": -1})", "X", "", {2, 3}, {-2, 1, 3, -6, 4, 5}},
      {"Median", R"({"name": "op", "axis": 1, "keepdims": false})", "X", "", {2, 3}, {1, 4}},
      {"Norm",
       R"({"name": "op", "ord": 1, "axis": 1, "keepdims": false})",
       "X",
       "",
       {2, 3},
       {6, 15}},
      {"Tril", R"({"name": "op", "k": 0})", "X", "", {2, 3}, {1, 0, 0, 4, 5, 0}},
      {"Triu", R"({"name": "op", "k": 1})", "X", "", {2, 3}, {0, -2, 3, 0, 0, -6}},
      {"Swapaxes",
       R"({"name": "op", "axis1": 0, "axis2": 1})",
       "X",
       "",
       {2, 3},
       {1, 4, -2, 5, 3, -6}},
      {"Repeat",
       R"({"name": "op", "repeats": 2, "axis": 1})",
       "X",
       "",
       {2, 3},
       {1, 1, -2, -2, 3, 3, 4, 4, 5, 5, -6, -6}},
      {"Roll", R"({"name": "op", "shift": 1, "axis": 1})", "X", "", {2, 3}, {3, 1, -2, -6, 4, 5}},
      {"Pad",
       R"({"name": "op", "pad_width": [[0, 0], [1, 0]], "mode": "constant"})",
       "X",
       "",
       {2, 3},
       {0, 1, -2, 3, 0, 4, 5, -6}},
      {"Einsum",
       R"({"name": "op", "subscripts": "ij,kj->ik"})",
       "X, X",
       "",
       {2, 3},
       {14, -24, -24, 77}},
      {"Tensordot",
       R"({"name": "op", "axes": [[1], [1]]})",
       "X, X",
       "",
       {2, 3},
       {14, -24, -24, 77}},
      {"Rearrange",
       R"({"name": "op"})",
       R"(X, "r (h w) -> h r w")",
       R"("h": 3)",
       {2, 3},
       {1, 4, -2, 5, 3, -6}},
      {"TakeAlongAxis", R"({"name": "op", "axis": 1})", "X, [[2], [0]]", "", {2, 3}, {3, 4}},
      {"Slice", R"({"name": "op", "shape": [1, 2]})", "X, [1, 0]", "", {2, 3}, {4, 5}},
      {"Hstack",
       R"({"name": "op"})",
       "[X, X]",
       "",
       {2, 3},
       {1, -2, 3, 1, -2, 3, 4, 5, -6, 4, 5, -6}},
      {"Cumprod",
       R"({"name": "op", "axis": 1, "dtype": null})",
       "X",
       "",
       {2, 3},
       {1, -2, -6, 4, 20, -120}},
      {"Diff", R"({"name": "op", "n": 1, "axis": -1})", "X", "", {2, 3}, {-3, 5, 1, -11}},
      {"Fmod", R"({"name": "op"})", "X, 4", "", {2, 3}, {1, -2, 3, 0, 1, -2}},
      {"LayerNorm",
       R"({"name": "op", "axis": -1, "epsilon": 1e-9, "rms_scaling": false})",
       "X",
       "",
       {2, 3},
       {0.16222f, -1.29777f, 1.13555f, 0.60404f, 0.80539f, -1.40944f}},
      {"MaxPool",
       R"({"name": "op", "pool_size": 2, "strides": null, "padding": "valid",
                      "data_format": "channels_last"})",
       "X",
       "",
       {1, 6, 1},
       {1, 4, 5}},
      {"AveragePool",
       R"({"name": "op", "pool_size": [2], "strides": [2], "padding": "valid",
                          "data_format": null})",
       "X",
       "",
       {1, 6, 1},
       {-0.5, 3.5, -0.5}},
      {"Conv",
       R"({"name": "op", "strides": 1, "padding": "valid", "data_format": null,
                   "dilation_rate": 1})",
       "X, [[[1.0]], [[2.0]]]",
       "",
       {1, 6, 1},
       {-3, 4, 11, 14, -7}},
      {"Resize",
       R"({"name": "op", "size": [1, 3], "interpolation": "bilinear", "antialias": false,
                     "crop_to_aspect_ratio": false, "pad_to_aspect_ratio": false,
                     "fill_mode": "constant", "fill_value": 0.0, "data_format": null})",
       "X",
       "",
       {1, 2, 3, 1},
       {2.5, 1.5, -1.5}},
      {"Threshold",
       R"({"name": "op", "threshold": 2, "default_value": 7})",
       "X",
       "",
       {2, 3},
       {7, 7, 3, 4, 5, 7}},
      // Of the real and the imaginary part, the first output.
      {"RFFT", R"({"name": "op", "fft_length": null})", "X", "", {2, 3}, {2, 0.5, 3, 4.5}},
      {"FFT",
       R"({"name": "op"})",
       "[X, X]",
       "",
       {2, 3},
       {2, -3.83013f, 4.83013f, 3, 14.02628f, -5.02628f}},
      {"Hsplit", R"({"name": "op", "indices_or_sections": 3})", "X", "", {2, 3}, {1, 4}},
      {"Linspace",
       R"({"name": "op", "num": 2, "endpoint": false, "retstep": false, "dtype": null,
                       "axis": 0})",
       "X, 1",
       "",
       {1, 6},
       {1, -2, 3, 4, 5, -6, 1, -0.5, 2, 2.5, 3, -2.5}},
      {"Any", R"({"name": "op", "axis": [-1], "keepdims": false})", "X", "", {2, 3}, {1, 1}},
      // A layer has the same name.
      {"Softmax", R"({"name": "op", "axis": 0})", "X", "", {1, 6}, {1, 1, 1, 1, 1, 1}},
      {"Average", R"({"name": "op", "axis": 1})", "X", "", {2, 3}, {2.0f / 3, 1}}};
  return kCases;
}

TEST(OperatorCatalogTest, OperatorsOfBothFormatsComputeKerasFunctions) {
  for (const Case& each : cases()) {
    for (const bool archive : {true, false}) {
      SCOPED_TRACE(str(each.class_name, archive ? " in .keras" : " in .h5"));
      const Functional model = graph(each, archive);
      const Tensor x = floats(kX, each.input);
      const Tensor y = model(x);
      EXPECT_EQ(model->outputs().tensor().shape(), y.shape());
      expect_near(y.cast(DType::kFloat32), floats(each.expected, y.shape()), {.absolute = 2e-5});
      const LayerHandle<Layer> copy = layers::deserialize(layers::serialize(*model));
      EXPECT_EQ(values_of(copy(Tensors(x)).tensor().cast(DType::kFloat32)),
                values_of(y.cast(DType::kFloat32)));
    }
  }
}

TEST(OperatorCatalogTest, UnknownArgumentsAreNamed) {
  const Case tril = {"Tril", R"({"name": "op", "k": 0, "upside": true})", "X", "", {2, 3}, {}};
  EXPECT_THAT(message_of([&] { graph(tril, true); }), HasSubstr("upside"));
}

}  // namespace keel::operator_catalog_test
