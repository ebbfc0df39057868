#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <keel/framework/data/tfrecord.h>

#include "framework/data/example.pb.h"

namespace keel::data {
namespace {

proto::Feature feature_of(const std::string& name, const Tensor& values) {
  proto::Feature out;
  if (!values) return out;
  if (values.is_symbolic()) {
    throw ValueError("serialize_example: feature '", name,
                     "' must have values, received a symbolic ", "tensor");
  }
  if (values.dtype() == DType::kString) {
    for (const std::string& value : values.data<std::string>()) {
      out.mutable_bytes_list()->add_value(value);
    }
    out.mutable_bytes_list();
  } else if (is_floating(values.dtype())) {
    const Tensor floats = values.cast(DType::kFloat32);
    const auto data = floats.data<float>();
    out.mutable_float_list()->mutable_value()->Add(data.begin(), data.end());
  } else {
    const Tensor integers = values.cast(DType::kInt64);
    const auto data = integers.data<int64_t>();
    out.mutable_int64_list()->mutable_value()->Add(data.begin(), data.end());
  }
  return out;
}

}  // namespace

std::string serialize_example(const std::map<std::string, Tensor>& features) {
  proto::Example example;
  for (const auto& [name, values] : features) {
    (*example.mutable_features()->mutable_feature())[name] = feature_of(name, values);
  }
  std::string out;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // sorts maps by key
    example.SerializeToCodedStream(&coded);
  }
  return out;
}

}  // namespace keel::data
