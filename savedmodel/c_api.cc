#include <keel/savedmodel/c_api.h>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <ranges>

#include <keel/framework/base/parallel.h>
#include <keel/savedmodel/internal/c_tensors.h>
#include <keel/savedmodel/keras/signature.h>
#include <keel/savedmodel/saved_model.h>
#include <keel/version.h>

namespace {

using keel::DType;
using keel::IoError;
using keel::Layout;
using keel::NotImplementedError;
using keel::str;
using keel::Tensor;
using keel::TensorLike;
using keel::Tensors;
using keel::TensorSpec;
using keel::TypeError;
using keel::ValueError;
using keel::c_tensors::copied;
using keel::c_tensors::deref;
using keel::c_tensors::NamedTensor;
using keel::c_tensors::tensor_of;

constexpr const char* kExamples = "examples";

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

}  // namespace

struct keel_model {  // NOLINT(readability-identifier-naming)
  std::vector<Served> served;
  std::vector<NamedTensor> weights;

  const Served& at(const char* caller, const char* name) const {
    const std::string wanted = name == nullptr ? keel::kServingDefault : name;
    for (const Served& s : served) {
      if (s.name == wanted) return s;
    }
    throw ValueError(caller, ": the model has no signature '", wanted, "'; it has ",
                     absl::StrJoin(std::views::transform(served, &Served::name), ", "));
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
  std::vector<NamedTensor> outputs;
};

namespace {

int64_t rows_of(const TensorLike& value) {
  if (value.layout() == Layout::kRagged) return value.ragged().rows();
  if (value.layout() == Layout::kSparse) return value.sparse().dense_shape[0];
  return value.tensor().dim(0);
}

const NamedSpec& spec_named(const char* caller, const Served& served, const char* name) {
  for (const NamedSpec& input : served.inputs) {
    if (input.name == name) return input;
  }
  throw ValueError(caller, ": signature '", served.name, "' has no input '", name, "'; it has {",
                   absl::StrJoin(std::views::transform(served.inputs, &NamedSpec::name), ", "),
                   "}");
}

Tensors inputs_from(const char* caller, const Served& served, const keel_tensor* inputs,
                    size_t count) {
  if (count > 0) deref(inputs, caller, "inputs");
  Tensors::Dict out;
  std::string first;
  for (size_t i = 0; i < count; ++i) {
    const char* name = &deref(inputs[i].name, caller, "the name of an input");
    const std::string place = absl::StrCat(caller, ": input '", name, "'");
    const TensorSpec& spec = spec_named(caller, served, name).spec;
    const auto [at, added] = out.emplace(name, tensor_of(place, inputs[i], spec));
    if (!added) throw ValueError(place, " is given twice; pass each input once");
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
    NamedTensor& output =
        result->outputs.emplace_back(NamedTensor{.name = name, .value = value.leaf()});
    const Tensor& values = output.value.values();
    if (values.dtype() != DType::kString) continue;
    for (const std::string& text : values.data<std::string>()) {
      output.strings.push_back({.data = text.data(), .size = text.size()});
    }
  }
  return result;
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

keel_status load(const char* caller, const char* path,
                 const std::shared_ptr<keel::MappedTables>& mapped_tables, keel_model** model) {
  return guarded([&] {
    deref(path, caller, "path");
    deref(model, caller, "model");
    auto loaded = std::make_unique<keel_model>();
    const keel::ModelHandle handle =
        keel::load_model(path, {.compile = false, .mapped_tables = mapped_tables});
    for (const keel::Variable& weight : handle->weights()) {
      if (weight.is_virtual()) continue;
      loaded->weights.push_back({.name = weight.path(), .value = TensorLike(weight.read())});
    }
    for (const auto& [name, signature] : keel::planned_signatures(handle, path)) {
      loaded->served.push_back({.name = name,
                                .signature = signature,
                                .inputs = listed(signature.inputs()),
                                .outputs = listed(signature.outputs())});
    }
    *model = loaded.release();
  });
}

const NamedTensor& named(const char* caller, const std::vector<NamedTensor>& items,
                         const char* name, const char* owner, const char* what) {
  deref(name, caller, "name");
  const auto at =
      std::ranges::find_if(items, [&](const NamedTensor& item) { return item.name == name; });
  if (at == items.end()) {
    throw ValueError(caller, ": the ", owner, " has no ", what, " '", name, "'");
  }
  return *at;
}

}  // namespace

const char* keel_version() { return KEEL_VERSION; }

const char* keel_last_error() { return last_error; }

keel_status keel_set_num_workers(int count) {
  return guarded([&] { keel::set_num_workers(count); });
}

keel_status keel_model_load(const char* path, keel_model** model) {
  return load("keel_model_load", path, nullptr, model);
}

keel_status keel_model_load_mapped(const char* path, keel_model** model) {
  return load("keel_model_load_mapped", path, std::make_shared<keel::MappedTables>(), model);
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

keel_status keel_weight_count(const keel_model* model, size_t* count) {
  return guarded([&] {
    const char* caller = "keel_weight_count";
    const keel_model& m = deref(model, caller, "model");
    deref(count, caller, "count") = m.weights.size();
  });
}

keel_status keel_weight_at(const keel_model* model, size_t position, keel_tensor* weight) {
  return guarded([&] {
    const char* caller = "keel_weight_at";
    const keel_model& m = deref(model, caller, "model");
    deref(weight, caller, "weight") = view_of(at_position(caller, m.weights, position));
  });
}

keel_status keel_weight_find(const keel_model* model, const char* name, keel_tensor* weight) {
  return guarded([&] {
    const char* caller = "keel_weight_find";
    const keel_model& m = deref(model, caller, "model");
    const NamedTensor& found = named(caller, m.weights, name, "model", "weight");
    deref(weight, caller, "weight") = view_of(found);
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
      throw ValueError(caller, ": count exceeds the address space, received ", count,
                       "; pass the number of elements");
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
    const NamedTensor& found = named(caller, r.outputs, name, "result", "output");
    deref(output, caller, "output") = view_of(found);
  });
}

void keel_result_free(keel_result* result) { delete result; }
