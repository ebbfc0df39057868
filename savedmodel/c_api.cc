#include <keel/savedmodel/c_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include <keel/framework/base/parallel.h>
#include <keel/savedmodel/keras/signature.h>
#include <keel/savedmodel/saved_model.h>
#include <keel/version.h>

namespace {

using keel::DType;
using keel::IoError;
using keel::Layout;
using keel::NotImplementedError;
using keel::RaggedTensor;
using keel::Shape;
using keel::SparseTensor;
using keel::str;
using keel::Tensor;
using keel::TensorLike;
using keel::Tensors;
using keel::TensorSpec;
using keel::TypeError;
using keel::ValueError;

constexpr const char* kExamples = "examples";

static_assert(KEEL_MAX_RANK == Shape::kMaxRank);
static_assert(KEEL_INT8 == static_cast<int>(DType::kInt8));
static_assert(KEEL_STRING == static_cast<int>(DType::kString));
static_assert(KEEL_UINT8 == static_cast<int>(DType::kUint8));
static_assert(KEEL_BOOL == static_cast<int>(DType::kBool));
static_assert(KEEL_INT64 == static_cast<int>(DType::kInt64));
static_assert(KEEL_INT32 == static_cast<int>(DType::kInt32));
static_assert(KEEL_FLOAT64 == static_cast<int>(DType::kFloat64));
static_assert(KEEL_FLOAT32 == static_cast<int>(DType::kFloat32));
static_assert(KEEL_DENSE == static_cast<int>(Layout::kDense));
static_assert(KEEL_RAGGED == static_cast<int>(Layout::kRagged));
static_assert(KEEL_SPARSE == static_cast<int>(Layout::kSparse));

// An array, because storing an error must not allocate.
thread_local char last_error[2048] = "";

keel_status fail(keel_status status, const char* what) {
  size_t size = std::min(std::strlen(what), sizeof last_error - 1);
  // Truncate before a UTF-8 character of several bytes, not inside it.
  if (what[size] != '\0') {
    while (size > 0 && (static_cast<unsigned char>(what[size]) & 0xC0) == 0x80) --size;
  }
  std::replace_copy(what, what + size, last_error, '\n', ' ');
  last_error[size] = '\0';
  return status;
}

// Calls body() and converts its exceptions to statuses.
template <class Body>
keel_status guarded(Body&& body) noexcept {
  try {
    body();
    return KEEL_OK;
  } catch (const ValueError& error) {
    return fail(KEEL_VALUE_ERROR, error.what());
  } catch (const TypeError& error) {
    return fail(KEEL_TYPE_ERROR, error.what());
  } catch (const NotImplementedError& error) {
    return fail(KEEL_NOT_IMPLEMENTED_ERROR, error.what());
  } catch (const IoError& error) {
    return fail(KEEL_IO_ERROR, error.what());
  } catch (const std::bad_alloc&) {
    return fail(KEEL_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return fail(KEEL_RUNTIME_ERROR, error.what());
  } catch (...) {
    return fail(KEEL_RUNTIME_ERROR, "unknown error");
  }
}

template <class T>
T& deref(T* pointer, const char* caller, const char* what) {
  if (pointer == nullptr) throw ValueError(caller, ": ", what, " must not be NULL");
  return *pointer;
}

struct NamedSpec {
  std::string name;
  TensorSpec spec;
};

std::vector<NamedSpec> listed(const std::map<std::string, TensorSpec>& specs) {
  std::vector<NamedSpec> out;
  for (const auto& [name, spec] : specs) out.push_back({name, spec});
  return out;
}

struct Served {
  std::string name;
  keel::Signature signature;
  std::vector<NamedSpec> inputs, outputs;

  bool takes_examples() const {
    return inputs.size() == 1 && inputs[0].name == kExamples &&
           inputs[0].spec == TensorSpec{.shape = {keel::kUnknown}, .dtype = DType::kString};
  }
};

struct Output {
  std::string name;
  TensorLike value;
  std::vector<keel_string> strings = {};  // views of value's values if they are strings
};

}  // namespace

struct keel_model {  // NOLINT(readability-identifier-naming)
  std::vector<Served> served;

  const Served& at(const char* caller, const char* name) const {
    const std::string wanted = name == nullptr ? keel::kServingDefault : name;
    std::string names;
    for (const Served& s : served) {
      if (s.name == wanted) return s;
      names += (names.empty() ? "" : ", ") + s.name;
    }
    throw ValueError(caller, ": the model has no signature '", wanted, "'; it has ", names);
  }

  const Served& for_examples(const char* caller) const {
    const Served* found = nullptr;
    for (const Served& s : served) {
      if (!s.takes_examples()) continue;
      if (found != nullptr) {
        throw ValueError(caller, ": several signatures take examples, '", found->name, "' and '",
                         s.name, "'; pass the name of one");
      }
      found = &s;
    }
    if (found == nullptr)
      throw ValueError(caller,
                       ": no signature of the model takes examples; save the model with one that "
                       "parses tf.Example");
    return *found;
  }
};

struct keel_result {  // NOLINT(readability-identifier-naming)
  std::vector<Output> outputs;
};

namespace {

const Tensor& values_of(const TensorLike& value) { return value.values(); }

// Returns the number of elements of an untrusted shape. Throws ValueError if it is invalid.
int64_t checked_size(const std::string& caller, const keel_tensor& given) {
  if (given.rank < 0 || given.rank > KEEL_MAX_RANK) {
    throw ValueError(caller, ": rank must be 0 to ", KEEL_MAX_RANK, ", received ", given.rank);
  }
  if (given.rank > 0) deref(given.dims, caller.c_str(), "dims");
  int64_t size = 1;
  for (int i = 0; i < given.rank; ++i) {
    if (given.dims[i] < 0)
      throw ValueError(caller, ": dims[", i, "] must not be negative, received ", given.dims[i]);
    if (__builtin_mul_overflow(size, given.dims[i], &size)) {
      throw ValueError(caller, ": the number of elements of dims overflows 64 bits");
    }
  }
  return size;
}

Shape shape_of(const keel_tensor& given) {
  return given.rank == 0 ? Shape() : Shape(std::span(given.dims, static_cast<size_t>(given.rank)));
}

// Copies `count` elements at `data`, which need not be aligned.
Tensor copied(const std::string& caller, DType dtype, const void* data, size_t bytes, int64_t count,
              const Shape& shape) {
  const size_t element = dtype == DType::kString ? sizeof(keel_string) : keel::size_of(dtype);
  size_t needed = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(count), element, &needed) || needed != bytes) {
    throw ValueError(caller, ": ", shape, " of ", dtype, " requires ", count, " values of ",
                     element, " bytes, received ", bytes, " bytes");
  }
  if (bytes > 0) deref(static_cast<const char*>(data), caller.c_str(), "data");
  Tensor out = Tensor::uninitialized(shape, dtype);
  const char* from = static_cast<const char*>(data);
  if (dtype == DType::kString) {
    for (std::string& text : out.mutable_data<std::string>()) {
      keel_string given;
      std::memcpy(&given, from, sizeof given);
      from += sizeof given;
      if (given.size > 0) {
        text.assign(&deref(given.data, caller.c_str(), "the data of a string"), given.size);
      }
    }
  } else if (dtype == DType::kBool) {
    for (bool& value : out.mutable_data<bool>()) value = *from++ != 0;
  } else if (bytes > 0) {
    std::memcpy(out.mutable_raw().data(), data, bytes);
  }
  return out;
}

// Copies `count` numbers to a tensor of `shape`, which must have as many elements.
Tensor numbers(const std::string& caller, const int64_t* data, size_t count, const Shape& shape) {
  Tensor out = Tensor::uninitialized(shape, DType::kInt64);
  if (count > 0) {
    std::memcpy(out.mutable_raw().data(),
                &deref(data, caller.c_str(), "the pointer to int64 values"), count * sizeof *data);
  }
  return out;
}

void check_kind(const std::string& caller, const keel_tensor& given, const TensorSpec& spec) {
  constexpr const char* kLayouts[] = {"dense", "ragged", "sparse"};
  if (given.dtype < KEEL_FLOAT32 || given.dtype > KEEL_INT8) {
    throw TypeError(caller, ": unknown dtype ", given.dtype);
  }
  if (given.dtype != static_cast<int>(spec.dtype)) {
    throw TypeError(caller, ": dtype must be ", spec.dtype, ", received ",
                    static_cast<DType>(given.dtype));
  }
  if (given.layout < KEEL_DENSE || given.layout > KEEL_SPARSE) {
    throw TypeError(caller, ": unknown layout ", given.layout);
  }
  if (given.layout != static_cast<int>(spec.layout)) {
    throw TypeError(caller, ": requires a ", kLayouts[static_cast<int>(spec.layout)],
                    " tensor, received a ", kLayouts[given.layout], " one");
  }
  if (given.layout != KEEL_RAGGED && (given.row_splits != nullptr || given.row_splits_count > 0)) {
    throw ValueError(
        caller,
        ": only ragged tensors have row_splits; set row_splits to NULL and row_splits_count to 0");
  }
  if (given.layout != KEEL_SPARSE && (given.indices != nullptr || given.indices_count > 0)) {
    throw ValueError(
        caller, ": only sparse tensors have indices; set indices to NULL and indices_count to 0");
  }
}

void check_shape(const std::string& caller, const Shape& needed, const Shape& given) {
  if (!keel::compatible(needed, given)) {
    throw ValueError(caller, ": shape must be ", needed, ", received ", given);
  }
}

void check_count(const std::string& caller, size_t count) {
  if (count > PTRDIFF_MAX / sizeof(int64_t)) {
    throw ValueError(caller, ": the count exceeds the address space, received ", count);
  }
}

// Makes a ragged tensor with values [n, ...] for a spec of shape [batch, ?, ...].
TensorLike ragged(const std::string& caller, const keel_tensor& given, const TensorSpec& spec) {
  check_count(str(caller, ", row_splits"), given.row_splits_count);
  const int64_t count = checked_size(caller, given);
  const Shape shape = shape_of(given);
  check_shape(str(caller, ", values"), spec.shape.without(1).with(0, keel::kUnknown), shape);
  if (given.row_splits_count == 0) {
    throw ValueError(
        caller, ": a ragged tensor requires row_splits with one more element than it has rows");
  }
  const auto splits = static_cast<int64_t>(given.row_splits_count);
  RaggedTensor out{
      copied(caller, spec.dtype, given.data, given.data_size, count, shape),
      numbers(str(caller, ", row_splits"), given.row_splits, given.row_splits_count, {splits})};
  out.validate(caller);
  return out;
}

TensorLike sparse(const std::string& caller, const keel_tensor& given, const TensorSpec& spec) {
  check_count(str(caller, ", indices"), given.indices_count);
  checked_size(caller, given);
  const Shape shape = shape_of(given);
  check_shape(caller, spec.shape, shape);
  const int64_t rank = shape.rank();
  if (rank == 0 || given.indices_count % static_cast<size_t>(rank) != 0) {
    throw ValueError(caller, ": indices_count must be a multiple of the rank, ", rank,
                     ", received ", given.indices_count);
  }
  const int64_t count = static_cast<int64_t>(given.indices_count) / rank;
  SparseTensor out{
      numbers(str(caller, ", indices"), given.indices, given.indices_count, {count, rank}),
      copied(caller, spec.dtype, given.data, given.data_size, count, {count}), shape};
  out.validate(caller);
  return out;
}

TensorLike dense(const std::string& caller, const keel_tensor& given, const TensorSpec& spec) {
  const int64_t count = checked_size(caller, given);
  const Shape shape = shape_of(given);
  check_shape(caller, spec.shape, shape);
  return copied(caller, spec.dtype, given.data, given.data_size, count, shape);
}

TensorLike tensor_of(const std::string& caller, const keel_tensor& given, const TensorSpec& spec) {
  check_kind(caller, given, spec);
  switch (spec.layout) {
    case Layout::kRagged:
      return ragged(caller, given, spec);
    case Layout::kSparse:
      return sparse(caller, given, spec);
    case Layout::kDense:
      break;
  }
  return dense(caller, given, spec);
}

int64_t rows_of(const TensorLike& value) {
  if (value.layout() == Layout::kRagged) return value.ragged().rows();
  if (value.layout() == Layout::kSparse) return value.sparse().dense_shape[0];
  return value.tensor().dim(0);
}

const NamedSpec& spec_named(const char* caller, const Served& served, const char* name) {
  std::string names;
  for (const NamedSpec& input : served.inputs) {
    if (input.name == name) return input;
    names += (names.empty() ? "" : ", ") + input.name;
  }
  throw ValueError(caller, ": signature '", served.name, "' has no input '", name, "'; it has {",
                   names, "}");
}

Tensors inputs_from(const char* caller, const Served& served, const keel_tensor* inputs,
                    size_t count) {
  if (count > 0) deref(inputs, caller, "inputs");
  Tensors::Dict out;
  std::string first;
  for (size_t i = 0; i < count; ++i) {
    const char* name = &deref(inputs[i].name, caller, "the name of an input");
    const std::string place = str(caller, ": input '", name, "'");
    const TensorSpec& spec = spec_named(caller, served, name).spec;
    const auto [at, added] = out.emplace(name, tensor_of(place, inputs[i], spec));
    if (!added) throw ValueError(place, " is given twice");
    if (spec.shape.rank() == 0) continue;
    if (first.empty()) first = name;
    const int64_t rows = rows_of(at->second.leaf()), expected = rows_of(out.at(first).leaf());
    if (rows != expected) {
      throw ValueError(place, " has ", rows, " rows, but '", first, "' has ", expected,
                       "; all inputs must have the same number of rows");
    }
  }
  for (const NamedSpec& input : served.inputs) {
    if (!out.contains(input.name)) {
      throw ValueError(caller, ": signature '", served.name, "' requires input '", input.name, "'");
    }
  }
  return out;
}

std::unique_ptr<keel_result> run(const Served& served, const Tensors& inputs) {
  const Tensors outputs = served.signature(inputs);
  auto result = std::make_unique<keel_result>();
  for (const auto& [name, value] : outputs.entries()) {
    Output& output = result->outputs.emplace_back(Output{.name = name, .value = value.leaf()});
    const Tensor& values = values_of(output.value);
    if (values.dtype() != DType::kString) continue;
    for (const std::string& text : values.data<std::string>()) {
      output.strings.push_back({.data = text.data(), .size = text.size()});
    }
  }
  return result;
}

keel_tensor view_of(const Output& output) {
  const TensorLike& value = output.value;
  const Tensor& values = values_of(value);
  const Shape& shape =
      value.layout() == Layout::kSparse ? value.sparse().dense_shape : values.shape();
  keel_tensor out = {};
  out.name = output.name.c_str();
  out.dtype = static_cast<int>(values.dtype());
  out.layout = static_cast<int>(value.layout());
  out.rank = shape.rank();
  out.dims = shape.dims().data();
  if (values.dtype() == DType::kString) {
    out.data = output.strings.data();
    out.data_size = output.strings.size() * sizeof(keel_string);
  } else {
    out.data = values.raw().data();
    out.data_size = values.raw().size();
  }
  if (value.layout() == Layout::kRagged) {
    const auto splits = value.ragged().row_splits.data<int64_t>();
    out.row_splits = splits.data();
    out.row_splits_count = splits.size();
  } else if (value.layout() == Layout::kSparse) {
    const auto indices = value.sparse().indices.data<int64_t>();
    out.indices = indices.data();
    out.indices_count = indices.size();
  }
  return out;
}

template <class T>
const T& at_position(const char* caller, const std::vector<T>& items, size_t position) {
  if (position >= items.size()) {
    throw ValueError(caller, ": position must be below ", items.size(), ", received ", position);
  }
  return items[position];
}

keel_spec to_c(const NamedSpec& named) {
  keel_spec out = {};
  out.name = named.name.c_str();
  out.dtype = static_cast<int>(named.spec.dtype);
  out.layout = static_cast<int>(named.spec.layout);
  out.rank = named.spec.shape.rank();
  std::ranges::copy(named.spec.shape.dims(), out.dims);
  return out;
}

using Side = std::vector<NamedSpec> Served::*;

keel_status count_of(const char* caller, const keel_model* model, const char* signature, Side side,
                     size_t* count) {
  return guarded([&] {
    const Served& served = deref(model, caller, "model").at(caller, signature);
    deref(count, caller, "count") = (served.*side).size();
  });
}

keel_status spec_of(const char* caller, const keel_model* model, const char* signature, Side side,
                    size_t position, keel_spec* spec) {
  return guarded([&] {
    const Served& served = deref(model, caller, "model").at(caller, signature);
    deref(spec, caller, "spec") = to_c(at_position(caller, served.*side, position));
  });
}

}  // namespace

const char* keel_version() { return KEEL_VERSION; }

const char* keel_last_error() { return last_error; }

keel_status keel_set_num_workers(int count) {
  return guarded([&] { keel::set_num_workers(count); });
}

keel_status keel_model_load(const char* path, keel_model** model) {
  return guarded([&] {
    const char* caller = "keel_model_load";
    deref(path, caller, "path");
    deref(model, caller, "model");
    auto loaded = std::make_unique<keel_model>();
    for (const auto& [name, signature] : keel::signatures(path)) {
      loaded->served.push_back({.name = name,
                                .signature = signature,
                                .inputs = listed(signature.inputs()),
                                .outputs = listed(signature.outputs())});
    }
    *model = loaded.release();
  });
}

void keel_model_free(keel_model* model) { delete model; }

keel_status keel_signature_count(const keel_model* model, size_t* count) {
  return guarded([&] {
    const char* caller = "keel_signature_count";
    const keel_model& m = deref(model, caller, "model");
    deref(count, caller, "count") = m.served.size();
  });
}

keel_status keel_signature_name(const keel_model* model, size_t position, const char** name) {
  return guarded([&] {
    const char* caller = "keel_signature_name";
    const keel_model& m = deref(model, caller, "model");
    deref(name, caller, "name") = at_position(caller, m.served, position).name.c_str();
  });
}

keel_status keel_input_count(const keel_model* model, const char* signature, size_t* count) {
  return count_of("keel_input_count", model, signature, &Served::inputs, count);
}

keel_status keel_input_spec(const keel_model* model, const char* signature, size_t position,
                            keel_spec* spec) {
  return spec_of("keel_input_spec", model, signature, &Served::inputs, position, spec);
}

keel_status keel_output_count(const keel_model* model, const char* signature, size_t* count) {
  return count_of("keel_output_count", model, signature, &Served::outputs, count);
}

keel_status keel_output_spec(const keel_model* model, const char* signature, size_t position,
                             keel_spec* spec) {
  return spec_of("keel_output_spec", model, signature, &Served::outputs, position, spec);
}

keel_status keel_run(const keel_model* model, const char* signature, const keel_tensor* inputs,
                     size_t count, keel_result** result) {
  return guarded([&] {
    const char* caller = "keel_run";
    const Served& served = deref(model, caller, "model").at(caller, signature);
    deref(result, caller, "result");
    *result = run(served, inputs_from(caller, served, inputs, count)).release();
  });
}

keel_status keel_run_examples(const keel_model* model, const char* signature,
                              const keel_string* examples, size_t count, keel_result** result) {
  return guarded([&] {
    const char* caller = "keel_run_examples";
    const keel_model& m = deref(model, caller, "model");
    deref(result, caller, "result");
    const Served& served = signature == nullptr ? m.for_examples(caller) : m.at(caller, signature);
    if (!served.takes_examples()) {
      throw ValueError(caller, ": signature '", served.name, "' takes no examples; call keel_run");
    }
    if (count > 0) deref(examples, caller, "examples");
    if (count > PTRDIFF_MAX / sizeof *examples)
      throw ValueError(caller, ": count exceeds the address space, received ", count);
    const auto rows = static_cast<int64_t>(count);
    const Tensor strings =
        copied(caller, DType::kString, examples, count * sizeof *examples, rows, {rows});
    *result = run(served, Tensors::dict({{kExamples, TensorLike(strings)}})).release();
  });
}

keel_status keel_result_count(const keel_result* result, size_t* count) {
  return guarded([&] {
    const char* caller = "keel_result_count";
    const keel_result& r = deref(result, caller, "result");
    deref(count, caller, "count") = r.outputs.size();
  });
}

keel_status keel_result_at(const keel_result* result, size_t position, keel_tensor* output) {
  return guarded([&] {
    const char* caller = "keel_result_at";
    const keel_result& r = deref(result, caller, "result");
    deref(output, caller, "output") = view_of(at_position(caller, r.outputs, position));
  });
}

keel_status keel_result_find(const keel_result* result, const char* name, keel_tensor* output) {
  return guarded([&] {
    const char* caller = "keel_result_find";
    const keel_result& r = deref(result, caller, "result");
    deref(name, caller, "name");
    deref(output, caller, "output");
    const auto at =
        std::ranges::find_if(r.outputs, [&](const Output& o) { return o.name == name; });
    if (at == r.outputs.end()) throw ValueError(caller, ": the result has no output '", name, "'");
    *output = view_of(*at);
  });
}

void keel_result_free(keel_result* result) { delete result; }
