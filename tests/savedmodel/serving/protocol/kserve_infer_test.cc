// Tests savedmodel/serving/protocol/kserve_infer.cc: where the values of binary tensors lie.
#include <keel/savedmodel/serving/protocol/kserve_infer.h>

#include <cstring>

#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/temporary_folder.h"

namespace keel::serving::kserve_infer_test {

using testing_support::TemporaryFolder;

constexpr int64_t kRows = 5, kWidth = 3;
constexpr size_t kBytes = kRows * kWidth * sizeof(float);

VersionHandle make_version(const std::string& path) {
  const Tensor x = layers::input({.shape = {kWidth}, .name = "x"});
  save_model(
      Functional({.inputs = {{"x", x}}, .outputs = layers::Dense({.units = 1, .name = "y"})(x)}),
      path);
  return std::make_shared<const ModelVersion>("m", 1, path, std::make_shared<ModelMetrics>());
}

// A body at an address that is `shift` behind a multiple of 16, and its view.
class Body {
 public:
  Body(size_t json_size, size_t shift) {
    std::string json = str(R"({"inputs": [{"name": "x", "shape": [5, 3], "datatype": "FP32", )",
                           R"("parameters": {"binary_data_size": )", kBytes, "}}]}");
    json.resize(json_size, ' ');
    for (size_t i = 0; i < kRows * kWidth; ++i) values_.push_back(static_cast<float>(i) * 0.25F);
    json.append(reinterpret_cast<const char*>(values_.data()), kBytes);
    memory_.resize(json.size() + 32);
    char* at = memory_.data();
    while (reinterpret_cast<uintptr_t>(at) % 16 != shift) ++at;
    std::memcpy(at, json.data(), json.size());
    view_ = {at, json.size()};
  }
  std::string_view view() const { return view_; }
  const std::vector<float>& values() const { return values_; }

 private:
  std::vector<char> memory_;
  std::vector<float> values_;
  std::string_view view_;
};

// S-127: a tensor is used where it lies in the body if that is aligned, and else copied once.
TEST(KserveInferTest, UsesAlignedBinaryTensorsInPlace) {
  const TemporaryFolder folder;
  RequestTrace trace = {.version = make_version(folder / "m.keras"), .api = Api::kInfer};
  constexpr size_t kJsonSize = 160;
  std::string first;
  for (size_t shift = 0; shift < 16; ++shift) {
    const Body body(kJsonSize, shift);
    std::string out;
    kserve_infer(trace, body.view(), kJsonSize, {}, out);
    const TensorView& view = request_memory().inputs[0].view();
    const char* const data = static_cast<const char*>(view.data);
    const bool in_place = data == body.view().data() + kJsonSize;
    EXPECT_EQ(in_place, shift % sizeof(float) == 0) << shift;
    EXPECT_EQ(std::memcmp(data, body.values().data(), kBytes), 0) << shift;
    if (shift == 0) first = out;
    EXPECT_EQ(out, first) << shift;
  }
}

// S-125: a tensor whose size is not that of its shape never reads behind the body.
TEST(KserveInferTest, RefusesSizesThatTheBodyDoesNotHave) {
  const TemporaryFolder folder;
  RequestTrace trace = {.version = make_version(folder / "m.keras"), .api = Api::kInfer};
  constexpr size_t kJsonSize = 160;
  const Body body(kJsonSize, 0);
  std::string out;
  for (size_t missing : {size_t{1}, size_t{4}, kBytes}) {
    EXPECT_THROW(kserve_infer(trace, body.view().substr(0, body.view().size() - missing), kJsonSize,
                              {}, out),
                 ServeError);
  }
}

}  // namespace keel::serving::kserve_infer_test
