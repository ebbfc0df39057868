// Tests the exact HDF5 types in files, on which h5py and Keras depend.
#include <hdf5.h>

#include <gtest/gtest.h>

#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/temporary_folder.h"

namespace keel::keras_layout_test {

using layers::Dense;
using testing_support::TemporaryFolder;
using Input = LayerHandle<InputLayer>;

Sequential model_of(const std::vector<LayerHandle<Layer>>& layers) {
  std::vector<LayerHandle<Layer>> all = {Input({.batch_shape = {kUnknown, 3}, .name = "in"})};
  all.insert(all.end(), layers.begin(), layers.end());
  return Sequential({.layers = all, .name = "mlp"});
}

Sequential mlp() {
  return model_of({Dense({.units = 2, .name = "one"}), layers::Identity({.name = "same"})});
}

// Returns the type of an attribute as h5dump shows it: "vlen ascii scalar", "fixed 12 ascii simple
// 3", "float 8 simple 0". Does not close handles; they are closed with the file.
std::string describe(hid_t file, const char* object, const char* name) {
  const hid_t attribute = H5Aopen_by_name(file, object, name, H5P_DEFAULT, H5P_DEFAULT);
  if (attribute < 0) return "none";
  const hid_t type = H5Aget_type(attribute);
  const hid_t space = H5Aget_space(attribute);
  std::stringstream out;
  if (H5Tget_class(type) == H5T_STRING) {
    const bool variable = H5Tis_variable_str(type) > 0;
    out << (variable ? "vlen" : "fixed");
    if (!variable) out << " " << H5Tget_size(type);
    const H5T_str_t expected = variable ? H5T_STR_NULLTERM : H5T_STR_NULLPAD;
    if (H5Tget_strpad(type) != expected) out << " oddly padded";
    out << (H5Tget_cset(type) == H5T_CSET_UTF8 ? " utf8" : " ascii");
  } else {
    out << (H5Tequal(type, H5T_IEEE_F64LE) > 0 ? "float 8" : "other");
  }
  if (H5Sget_simple_extent_type(space) == H5S_SCALAR) {
    out << " scalar";
  } else if (H5Sget_simple_extent_type(space) == H5S_SIMPLE) {
    out << " simple " << H5Sget_simple_extent_npoints(space);
  }
  return out.str();
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    id_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
    H5Pclose(access);
  }
  ~OpenFile() { H5Fclose(id_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  operator hid_t() const { return id_; }  // NOLINT: implicit, for calls of the library

 private:
  hid_t id_;
};

TEST(KerasLayoutTest, AttributesOfWholeModels) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  model->compile({.optimizer = "adam", .loss = "mse"});
  save_model(model, folder / "a.h5");
  const OpenFile file(folder / "a.h5");
  EXPECT_EQ(describe(file, "/", "keras_version"), "vlen utf8 scalar");
  EXPECT_EQ(describe(file, "/", "backend"), "vlen utf8 scalar");
  EXPECT_EQ(describe(file, "/", "model_config"), "vlen ascii scalar");
  EXPECT_EQ(describe(file, "/", "training_config"), "vlen ascii scalar");
  EXPECT_EQ(describe(file, "/model_weights", "keras_version"), "vlen ascii scalar");
  EXPECT_EQ(describe(file, "/model_weights", "layer_names"), "vlen ascii simple 2");
  EXPECT_EQ(describe(file, "/model_weights/one", "weight_names"), "vlen ascii simple 2");
  EXPECT_EQ(describe(file, "/model_weights/same", "weight_names"), "float 8 simple 0");
  EXPECT_EQ(describe(file, "/model_weights/top_level_model_weights", "weight_names"),
            "float 8 simple 0");
}

TEST(KerasLayoutTest, AttributesOfWeightFiles) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  model->compile({.optimizer = "adam", .loss = "mse"});
  save_weights(model, folder / "a.weights.h5");
  const OpenFile file(folder / "a.weights.h5");
  EXPECT_EQ(describe(file, "/vars", "name"), "vlen utf8 scalar");
  EXPECT_EQ(describe(file, "/layers/dense/vars", "name"), "vlen utf8 scalar");
  EXPECT_EQ(describe(file, "/layers/identity/vars", "name"), "vlen utf8 scalar");
  EXPECT_EQ(describe(file, "/optimizer/vars", "name"), "vlen utf8 scalar");
  for (const char* scalar : {"/optimizer/vars/0", "/optimizer/vars/1"}) {
    const hid_t dataset = H5Dopen2(file, scalar, H5P_DEFAULT);
    EXPECT_EQ(H5Sget_simple_extent_type(H5Dget_space(dataset)), H5S_SCALAR) << scalar;
  }
}

TEST(KerasLayoutTest, DatasetsAreContiguousLittleEndianFloats) {
  const TemporaryFolder folder;
  save_model(mlp(), folder / "a.h5");
  const OpenFile file(folder / "a.h5");
  const hid_t dataset = H5Dopen2(file, "/model_weights/one/one/kernel:0", H5P_DEFAULT);
  ASSERT_GE(dataset, 0);
  EXPECT_GT(H5Tequal(H5Dget_type(dataset), H5T_IEEE_F32LE), 0);
  EXPECT_EQ(H5Pget_layout(H5Dget_create_plist(dataset)), H5D_CONTIGUOUS);
}

TEST(KerasLayoutTest, NamesBeyondAnObjectHeaderAreSplitIntoNearEqualParts) {
  const TemporaryFolder folder;
  std::vector<LayerHandle<Layer>> layers;
  for (int i = 0; i < 53; ++i) {
    layers.push_back(layers::Identity({.name = str("n", 100 + i, std::string(1296, 'x'))}));
  }
  save_model(model_of(layers), folder / "a.h5");
  const OpenFile file(folder / "a.h5");
  EXPECT_EQ(describe(file, "/model_weights", "layer_names"), "none");
  EXPECT_EQ(describe(file, "/model_weights", "layer_names0"), "fixed 1300 ascii simple 27");
  EXPECT_EQ(describe(file, "/model_weights", "layer_names1"), "fixed 1300 ascii simple 26");
  EXPECT_EQ(describe(file, "/model_weights", "layer_names2"), "none");
  EXPECT_EQ(load_model(folder / "a.h5")->layers().size(), 53U);
}

}  // namespace keel::keras_layout_test
