#include <keel/savedmodel/serving/grpc/tensor_messages.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <keel/framework/base/dtype.h>

namespace keel::serving {
namespace {

using google::protobuf::RepeatedField;

template <class... Args>
[[noreturn]] void fail_message(const RequestTensor& tensor, const Args&... args) {
  throw ServeError(Code::kInvalidArgument, "input '", tensor.name, "' ", args...);
}

// Checks the number of values against that of the shape. Values that are filled in need memory that
// the request has not sent, so all its tensors share a limit.
void check_count(const RequestTensor& tensor, int64_t received, int64_t needed, size_t value_bytes,
                 int64_t& spare_bytes) {
  if (received > needed) {
    fail_message(tensor, "has ", received, " values, but its shape needs ", needed);
  }
  if (received == needed) return;
  int64_t bytes = 0;
  const bool overflows = __builtin_mul_overflow(needed, value_bytes, &bytes);
  spare_bytes -= overflows ? 0 : std::min(bytes, spare_bytes + 1);
  if (overflows || spare_bytes < 0) {
    fail_message(tensor, "has ", received, " values, but its shape needs ", needed,
                 ", which is too many to repeat the last one");
  }
}

// Adds `needed` numbers of type T, converted from a list of a wider type.
template <class T, class Wide>
void read_numbers(const RepeatedField<Wide>& list, const RequestTensor& tensor, int64_t needed,
                  TensorCollector& to, int64_t& spare_bytes) {
  check_count(tensor, list.size(), needed, sizeof(T), spare_bytes);
  const bool whole = list.size() == needed;
  if constexpr (std::is_same_v<T, Wide>) {
    if (whole) {
      const std::string_view bytes(reinterpret_cast<const char*>(list.data()),
                                   static_cast<size_t>(needed) * sizeof(T));
      return to.add_binary(tensor, bytes);
    }
  }
  IntegerList* const integers = to.begin_integers(tensor);
  for (int64_t i = 0; i < needed; ++i) {
    const Wide value = list.empty() ? Wide() : list[std::min(static_cast<int>(i), list.size() - 1)];
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (!std::in_range<T>(value)) {
        fail_message(tensor, "has the value ", value, ", which ",
                     tensorflow_name(tensor.part->dtype), " cannot hold");
      }
    }
    if (integers != nullptr) {
      integers->push_back(static_cast<int64_t>(value));
    } else {
      to.values_of(tensor).numbers.push(static_cast<T>(value));
    }
  }
}

void read_text(const rpc::TensorProto& message, const RequestTensor& tensor, int64_t needed,
               TensorCollector& to, int64_t& spare_bytes) {
  const auto& list = message.string_val();
  const size_t last = list.empty() ? 0 : list[list.size() - 1].size();
  check_count(tensor, list.size(), needed, sizeof(std::string) + last, spare_bytes);
  InputValues& values = to.values_of(tensor);
  for (int64_t i = 0; i < needed; ++i) {
    std::string& value = values.add_string();
    if (list.empty()) {
      value.clear();
    } else {
      value = list[std::min(static_cast<int>(i), list.size() - 1)];
    }
  }
}

void read_values(const rpc::TensorProto& message, const RequestTensor& tensor, int64_t needed,
                 TensorCollector& to, int64_t& spare_bytes) {
  switch (tensor.part->dtype) {
    case DType::kFloat32:
      return read_numbers<float>(message.float_val(), tensor, needed, to, spare_bytes);
    case DType::kFloat64:
      return read_numbers<double>(message.double_val(), tensor, needed, to, spare_bytes);
    case DType::kInt32:
      return read_numbers<int32_t>(message.int_val(), tensor, needed, to, spare_bytes);
    case DType::kInt64:
      return read_numbers<int64_t>(message.int64_val(), tensor, needed, to, spare_bytes);
    case DType::kBool:
      return read_numbers<bool>(message.bool_val(), tensor, needed, to, spare_bytes);
    case DType::kUint8:
      return read_numbers<uint8_t>(message.int_val(), tensor, needed, to, spare_bytes);
    case DType::kInt8:
      return read_numbers<int8_t>(message.int_val(), tensor, needed, to, spare_bytes);
    case DType::kString:
      return read_text(message, tensor, needed, to, spare_bytes);
  }
}

void write_shape(std::span<const int64_t> dims, rpc::TensorShapeProto& to) {
  for (int64_t dim : dims) to.add_dim()->set_size(dim);
}

template <class T, class Wide>
void add_all(const TensorView& view, RepeatedField<Wide>& to) {
  const auto* const values = static_cast<const T*>(view.data);
  to.Add(values, values + view.values);
}

void write_values(const TensorView& view, rpc::TensorProto& to) {
  switch (view.dtype) {
    case DType::kFloat32:
      return add_all<float>(view, *to.mutable_float_val());
    case DType::kFloat64:
      return add_all<double>(view, *to.mutable_double_val());
    case DType::kInt32:
      return add_all<int32_t>(view, *to.mutable_int_val());
    case DType::kInt64:
      return add_all<int64_t>(view, *to.mutable_int64_val());
    case DType::kBool:
      return add_all<bool>(view, *to.mutable_bool_val());
    case DType::kUint8:
      return add_all<uint8_t>(view, *to.mutable_int_val());
    case DType::kInt8:
      return add_all<int8_t>(view, *to.mutable_int_val());
    case DType::kString: {
      const auto* const strings = static_cast<const std::string*>(view.data);
      for (int64_t i = 0; i < view.values; ++i) to.add_string_val(strings[i]);
      return;
    }
  }
}

}  // namespace

rpc::DataType tensorflow_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return rpc::DT_FLOAT;
    case DType::kFloat64:
      return rpc::DT_DOUBLE;
    case DType::kInt32:
      return rpc::DT_INT32;
    case DType::kInt64:
      return rpc::DT_INT64;
    case DType::kBool:
      return rpc::DT_BOOL;
    case DType::kUint8:
      return rpc::DT_UINT8;
    case DType::kInt8:
      return rpc::DT_INT8;
    case DType::kString:
      return rpc::DT_STRING;
  }
  return rpc::DT_INVALID;
}

void read_tensor(const rpc::TensorProto& message, RequestTensor& tensor, TensorCollector& to,
                 int64_t& spare_bytes) {
  if (message.dtype() != tensorflow_type(tensor.part->dtype)) {
    fail_message(tensor, "needs dtype ", tensorflow_name(tensor.part->dtype), ", received number ",
                 static_cast<int>(message.dtype()));
  }
  if (message.tensor_shape().unknown_rank()) fail_message(tensor, "has no known shape");
  for (const auto& dim : message.tensor_shape().dim()) tensor.shape.push_back(dim.size());
  to.check_shape(tensor);
  if (message.tensor_content().empty()) {
    read_values(message, tensor, checked_size(tensor.shape), to, spare_bytes);
  } else if (tensor.part->dtype == DType::kString) {
    fail_message(tensor, "has strings in tensor_content; use string_val");
  } else {
    to.add_binary(tensor, message.tensor_content());
  }
  to.close(tensor);
}

void write_tensor(const TensorView& view, bool content, rpc::TensorProto& to) {
  to.set_dtype(tensorflow_type(view.dtype));
  write_shape(view.shape.dims(), *to.mutable_tensor_shape());
  if (view.values == 0) return;
  if (content && view.dtype != DType::kString) {
    to.set_tensor_content(view.data, static_cast<size_t>(view.values) * size_of(view.dtype));
  } else {
    write_values(view, to);
  }
}

void write_tensor_info(const TensorInfo& info, rpc::TensorInfo& to) {
  const std::span<const int64_t> dims = info.spec.shape.dims();
  to.set_dtype(tensorflow_type(info.spec.dtype));
  write_shape(dims, *to.mutable_tensor_shape());
  switch (info.spec.layout) {
    case Layout::kDense:
      to.set_name(info.name);
      return;
    case Layout::kSparse: {
      rpc::TensorInfo::CooSparse& sparse = *to.mutable_coo_sparse();
      sparse.set_values_tensor_name(info.name + ".values");
      sparse.set_indices_tensor_name(info.name + ".indices");
      sparse.set_dense_shape_tensor_name(info.name + ".dense_shape");
      return;
    }
    case Layout::kRagged: {
      rpc::TensorInfo::CompositeTensor& ragged = *to.mutable_composite_tensor();
      ragged.mutable_type_spec()->set_type_spec_class(
          rpc::TensorInfo::TypeSpecProto::RAGGED_TENSOR_SPEC);
      for (const PartInfo& part : parts_of({info})) {
        rpc::TensorInfo& component = *ragged.add_components();
        component.set_name(part.name);
        component.set_dtype(tensorflow_type(part.dtype));
        write_shape(part.shape, *component.mutable_tensor_shape());
      }
      return;
    }
  }
}

}  // namespace keel::serving
