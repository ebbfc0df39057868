// Tests layers/visualization/internal/xml_text.cc and shape_text.cc.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/visualization/visualization.h>

#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/texts.h"

namespace keel::plot_model_test {

using testing::HasSubstr;
using testing::Not;
using testing_support::count_of;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;

namespace fs = std::filesystem;

layers::Dense dense(int64_t units, const std::string& name) {
  return layers::Dense({.units = units, .activation = "relu", .name = name});
}

// Two inputs share one layer; an op adds the results.
Functional shared_tower() {
  const Tensor a = layers::input({.shape = {4}, .name = "a"});
  const Tensor b = layers::input({.shape = {4}, .name = "b"});
  const layers::Dense shared = dense(2, "shared");
  const Tensor sum = shared(a) + shared(b);
  return Functional({.inputs = Tensors::list({a, b}), .outputs = dense(1, "head")(sum)});
}

TEST(PlotModelTest, LayersAndOpsAreNodesAndTensorsAreEdges) {
  const std::string dot = model_to_dot(*shared_tower());
  EXPECT_EQ(count_of(dot, "[label=<"), 5u);
  EXPECT_EQ(count_of(dot, " -> "), 4u);
  EXPECT_EQ(count_of(dot, "<b>InputLayer</b>"), 2u);
  EXPECT_EQ(count_of(dot, "<b>Dense</b>"), 2u);
  for (const char* edge :
       {"node_0 -> node_1", "node_2 -> node_1", "node_1 -> node_3", "node_3 -> node_4"}) {
    EXPECT_THAT(dot, HasSubstr(edge));
  }
  EXPECT_THAT(dot, HasSubstr("rankdir=TB"));
  EXPECT_THAT(dot, Not(HasSubstr("shape:")));
}

TEST(PlotModelTest, ShowsTheRequestedDetails) {
  const Functional model = shared_tower();
  model->get_layer("head")->set_trainable(false);
  const std::string dot = model_to_dot(*model, {.show_shapes = true,
                                                .show_dtype = true,
                                                .show_layer_names = true,
                                                .rankdir = "LR",
                                                .show_layer_activations = true,
                                                .show_trainable = true});
  for (const char* part :
       {"<b>shared</b> (Dense)", "Input shape: (None, 4)", "Output shape: (None, 2)",
        "Output dtype: float32", "Activation: relu", "Non-trainable", "rankdir=LR"}) {
    EXPECT_THAT(dot, HasSubstr(part)) << part;
  }
}

TEST(PlotModelTest, SequentialModelsAreChains) {
  const Sequential model({.layers = {dense(3, "first"), dense(1, "last")}});
  const std::string before = model_to_dot(*model, {.show_shapes = true});
  EXPECT_THAT(before, HasSubstr("node_0 -> node_1"));
  EXPECT_THAT(before, HasSubstr("Output shape: ?"));
  model->build(TensorSpec{{kUnknown, 5}, DType::kFloat32});
  const std::string dot = model_to_dot(*model, {.show_shapes = true});
  EXPECT_THAT(dot, HasSubstr("Input shape: (None, 5)"));
  EXPECT_THAT(dot, HasSubstr("Output shape: (None, 1)"));
}

TEST(PlotModelTest, NestedModelsAreBoxesOnRequest) {
  const Functional tower = shared_tower();
  const Tensor a = layers::input({.shape = {4}, .name = "left"});
  const Tensor b = layers::input({.shape = {4}, .name = "right"});
  const Sequential top({.layers = {dense(1, "top")}, .name = "end"});
  const Functional model(
      {.inputs = Tensors::list({a, b}), .outputs = top((*tower)(Tensors::list({a, b})))});
  const std::string closed = model_to_dot(*model);
  EXPECT_EQ(count_of(closed, "[label=<"), 4u);
  EXPECT_THAT(closed, Not(HasSubstr("cluster")));
  const std::string open = model_to_dot(*model, {.expand_nested = true});
  EXPECT_EQ(count_of(open, "subgraph cluster_"), 2u) << open;
  EXPECT_EQ(count_of(open, "[label=<"), 2u + 5u + 1u);
  EXPECT_EQ(count_of(open, " -> "), 2u + 4u + 1u);
}

TEST(PlotModelTest, NestedModelsAreOneNodeByDefault) {
  struct Own final : Model {
    Own() : Model(std::string("Own"), std::string("mine & yours")) {}
    Tensors call(const Tensors& x, const CallContext&) override { return x; }
  };
  const std::string dot = model_to_dot(*make_layer<Own>(), {.show_layer_names = true});
  EXPECT_EQ(count_of(dot, "[label=<"), 1u);
  EXPECT_THAT(dot, HasSubstr("<b>mine &amp; yours</b> (Own)"));
  EXPECT_NO_THROW(model_to_dot(*Sequential({}), {.expand_nested = true}));
}

TEST(PlotModelTest, DotFilesContainTheGraphText) {
  const TemporaryFolder folder;
  plot_model(*shared_tower(), {.to_file = folder / "model.dot"});
  EXPECT_EQ(read_bytes(folder / "model.dot"), model_to_dot(*shared_tower()));
  EXPECT_THROW(plot_model(*shared_tower(), {.to_file = folder / "no/model.dot"}), IoError);
}

// Uses programs named dot instead of Graphviz's.
TEST(PlotModelTest, PicturesAreDrawnByGraphviz) {
  const TemporaryFolder folder;
  const auto write_program = [&](const std::string& script) {
    std::ofstream(folder / "dot") << "#!/bin/sh\n" << script;
    chmod((folder / "dot").c_str(), 0755);
  };
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.path() + ":" + path).c_str(), 1);
  write_program("echo \"$1\" > \"$3\"; cat \"$4\" >> \"$3\"\n");
  const fs::path picture = folder / "my model;.svg";
  plot_model(*shared_tower(), {.to_file = picture});
  EXPECT_EQ(read_bytes(picture), "-Tsvg\n" + model_to_dot(*shared_tower()));
  write_program("exit 3\n");
  EXPECT_THROW(plot_model(*shared_tower(), {.to_file = picture}), RuntimeError);
  setenv("PATH", "/nowhere", 1);
  EXPECT_THROW(plot_model(*shared_tower(), {.to_file = picture}), RuntimeError);
  setenv("PATH", path.c_str(), 1);
}

TEST(PlotModelTest, OptionsOutOfRangeAreRejected) {
  EXPECT_THROW(model_to_dot(*shared_tower(), {.rankdir = "UP"}), ValueError);
  EXPECT_THROW(model_to_dot(*shared_tower(), {.dpi = 0}), ValueError);
  EXPECT_THROW(plot_model(*shared_tower(), {.to_file = "model.bmp"}), ValueError);
}

}  // namespace keel::plot_model_test
