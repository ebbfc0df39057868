// HDF5 files: whole models and weights in both of Keras's layouts.
#include <algorithm>
#include <fstream>
#include <hdf5.h>
#include <iterator>

#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/keras_h5.h>
#include <keel/savedmodel/keras/internal/keras_weights_h5.h>
#include <keel/savedmodel/keras/internal/legacy_weights.h>
#include <keel/savedmodel/keras/internal/signature_files.h>

#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/models.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/run_model.h"

namespace keel::fuzz {
namespace {

constexpr int kMostObjects = 24;  // a damaged file may have groups in themselves

void read_object(const Hdf5File& file, const std::string& path, int& left) {
  if (--left < 0) return;
  for (const char* name : {"layer_names", "weight_names"}) {
    allow_own_errors([&] { file.string_list(path, name); });
  }
  for (const char* name : {"keras_version", "name", "count"}) {
    allow_own_errors([&] {
      if (!file.has_attribute(path, name)) return;
      allow_own_errors([&] { file.string_attribute(path, name); });
      file.integer_attribute(path, name);
    });
  }
  if (file.is_group(path)) {
    for (const std::string& child : file.children(path)) {
      allow_own_errors([&] { read_object(file, path + "/" + child, left); });
    }
    return;
  }
  const TensorSpec spec = file.spec(path);
  require(file.read(path).shape() == spec.shape, "a tensor of another shape than its spec");
  if (spec.dtype != DType::kString && spec.shape.rank() > 0 && spec.shape[0] > 0) {
    file.read_rows(path, spec.shape[0] - 1, 1);
  }
}

// Changes the configuration of a model, the attribute model_config of the root, as JSON. Returns
// false if there is none.
bool mutate_config(std::string& bytes, size_t max_size, Random& random) {
  const std::string path = scratch_file("mutated.h5", bytes);
  std::string json;
  allow_own_errors([&] {
    const Hdf5File file(path);
    if (file.has_attribute("/", "model_config")) json = file.string_attribute("/", "model_config");
  });
  if (json.empty()) return false;
  mutate_json(json, max_size / 2, random);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  if (file < 0) return false;
  const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, std::max<size_t>(json.size(), 1));
  H5Adelete(file, "model_config");
  const hid_t attribute = H5Acreate2(file, "model_config", type, space, H5P_DEFAULT, H5P_DEFAULT);
  if (attribute >= 0) {  // a long one needs another layout of the file
    H5Awrite(attribute, type, json.data());
    H5Aclose(attribute);
  }
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(file);
  std::ifstream in(path, std::ios::binary);
  std::string out{std::istreambuf_iterator<char>(in), {}};
  if (attribute < 0 || out.size() > max_size) return false;
  bytes = std::move(out);
  return true;
}

}  // namespace
}  // namespace keel::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace keel;
  using namespace keel::fuzz;
  const std::string path = scratch_file("a.h5", text_of(data, size));
  bool whole = false, signatures = false;
  allow_own_errors([&] {
    const Hdf5File file(path);
    int left = kMostObjects;
    allow_own_errors([&] { read_object(file, "", left); });
    whole = file.has_attribute("/", "model_config");
    signatures = file.has_attribute("/", kSignaturesKey);
    if (file.has_attribute("/", "layer_names")) {
      const bool by_name = size % 2 == 0;
      read_legacy_weights(file, "/", *small_model(),
                          {.by_name = by_name, .skip_mismatch = by_name});
    } else if (!whole) {
      read_keras_weights(file, *small_model(), size % 2 == 0);
    }
  });
  if (whole) {
    allow_own_errors([&] { run_model(read_keras_h5(path, {.compile = size % 2 == 0})); });
  }
  if (signatures) allow_own_errors([&] { read_signature_specs(path); });
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  std::string bytes(keel::fuzz::text_of(data, size));
  keel::fuzz::Random random(seed);
  if (keel::fuzz::below(random, 2) != 0 || !keel::fuzz::mutate_config(bytes, max_size, random)) {
    keel::fuzz::mutate_binary(bytes, max_size, random);
  }
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
